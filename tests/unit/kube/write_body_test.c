/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/write_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define REV "28160000000000001"
#define APPLIED "\"kubectl.kubernetes.io/last-applied-configuration\":"
#define APPLIED_INNER "\\\"kubectl.kubernetes.io/last-applied-configuration\\\":"

/* The edited body with "LIVE" put in at each offset. */
static void check_edit(enum kr_body_kind kind, const char *text, const char *want)
{
    struct kr_write_body b;
    struct kr_buf out = {.max = 65536};
    struct kr_buf live = {.max = 65536};
    uint32_t offsets[KR_BODY_VERSIONS_MAX];
    struct kr_note why = {""};

    assert_int_equal(kr_scan_check(kr_bytes_str(text), 64, NULL), 0);
    if (kr_write_body_read(kind, kr_bytes_str(text), KR_LIT(REV), &b, &why) != 0)
        fail_msg("%s: %s", text, why.text);
    kr_buf_append_str(&out, "before");
    kr_buf_drop(&out, 6);
    assert_int_equal(kr_write_body_edit(&b, kr_bytes_str(text), &out, offsets), 0);
    assert_int_equal(
        kr_write_body_fill(kr_buf_bytes(&out), offsets, b.version_count, KR_LIT("LIVE"), &live), 0);
    if (!kr_bytes_is(kr_buf_bytes(&live), want))
        fail_msg("%s\n  is:   %.*s\n  want: %s", text, (int)live.n, (const char *)live.p, want);
    if (live.n != 0)
        assert_int_equal(kr_scan_check(kr_buf_bytes(&live), 64, NULL), 0);
    kr_buf_deinit(&out);
    kr_buf_deinit(&live);
}

static const struct {
    const char *text;
    const char *edited;
} objects[] = {
    {"{}", "{}"},
    {"[1]", "[1]"},
    {"null", "null"},
    {"{\"metadata\":null}", "{\"metadata\":null}"},
    {"{\"metadata\":{\"resourceVersion\":\"" REV "\"}}",
     "{\"metadata\":{\"resourceVersion\":\"LIVE\"}}"},
    {"{\"metadata\":{\"resourceVersion\":\"2816000000000000\\u0031\",\"n\":1e+400}}",
     "{\"metadata\":{\"resourceVersion\":\"LIVE\",\"n\":1e+400}}"},
    {"{\"m\\u0065tadata\":{\"resource\\u0056ersion\":\"" REV "\"}}",
     "{\"m\\u0065tadata\":{\"resource\\u0056ersion\":\"LIVE\"}}"},
    {"{\"metadata\":{\"resourceVersion\":\"77\"}}", "{\"metadata\":{\"resourceVersion\":\"77\"}}"},
    {"{\"spec\":{\"resourceVersion\":\"" REV "\"}}",
     "{\"spec\":{\"resourceVersion\":\"" REV "\"}}"},
    {"{\"metadata\":{\"resourceVersion\":" REV "}}",
     "{\"metadata\":{\"resourceVersion\":" REV "}}"},
    /* first, middle, last, all; with and without space */
    {"{\"metadata\":{\"labels\":{\"kuberelay.io/cluster\":\"c\",\"a\":\"b\"}}}",
     "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"},
    {"{\"metadata\":{\"labels\":{\"a\":\"b\",\"kuberelay.io/cluster\":\"c\"}}}",
     "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"},
    {"{\"metadata\":{\"labels\":{\"a\":\"b\" , \"kuberelay.io/cluster\" : \"c\" , \"d\":\"e\" }}}",
     "{\"metadata\":{\"labels\":{\"a\":\"b\" , \"d\":\"e\" }}}"},
    {"{\"metadata\":{\"labels\":{\"kuberelay.io/cluster\":\"c\"}}}", "{\"metadata\":{}}"},
    {"{\"metadata\":{ \"labels\": { \"kuberelay.io/cluster\":\"c\" } , \"name\":\"x\"}}",
     "{\"metadata\":{ \"name\":\"x\"}}"},
    {"{\"metadata\":{\"name\":\"x\",\"labels\":{\"kuberelay.io/cluster\":\"c\"},\"uid\":\"u\"}}",
     "{\"metadata\":{\"name\":\"x\",\"uid\":\"u\"}}"},
    {"{\"metadata\":{\"name\":\"x\",\"labels\":{\"kuberelay.io/cluster\":\"c\"}}}",
     "{\"metadata\":{\"name\":\"x\"}}"},
    {"{\"metadata\":{\"labels\":{\"kuberelay.io/cluster\":\"c\"},\"annotations\":{\"kcp.io/"
     "cluster\":"
     "\"c\"},\"name\":\"x\"}}",
     "{\"metadata\":{\"name\":\"x\"}}"},
    {"{\"metadata\":{\"labels\":{\"kuberelay.io/cluster\":\"c\"},\"annotations\":{\"kcp.io/"
     "cluster\":"
     "\"c\"}}}",
     "{\"metadata\":{}}"},
    {"{\"metadata\":{\"annotations\":{\"kcp.io/cluster\":\"c\",\"kuberelay.io/resource-version\":"
     "\"7\",\"kuberelay.io/slimmed\":\"true\",\"kuberelay.io/stale-since\":\"t\",\"multicluster.x-"
     "k8s.io/cluster-name\":\"c\",\"mine\":\"1\"},\"resourceVersion\":\"" REV "\"}}",
     "{\"metadata\":{\"annotations\":{\"mine\":\"1\"},\"resourceVersion\":\"LIVE\"}}"},
    {"{\"metadata\":{\"annotations\":{\"mine\":\"1\",\"kcp.io/cluster\":\"c\",\"other\":\"2\","
     "\"kuberelay.io/slimmed\":\"true\"}}}",
     "{\"metadata\":{\"annotations\":{\"mine\":\"1\",\"other\":\"2\"}}}"},
    {"{\"metadata\":{\"labels\":{\"kuberelay.io\\/cluster\":\"c\",\"a\":\"b\"}}}",
     "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"},
    {"{\"metadata\":{\"labels\":null,\"annotations\":[\"kcp.io/cluster\"]}}",
     "{\"metadata\":{\"labels\":null,\"annotations\":[\"kcp.io/cluster\"]}}"},
    {"{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"kuberelay.io/cluster\":\"c\"}}}}}",
     "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"kuberelay.io/cluster\":\"c\"}}}}}"},
    {"{\"metadata\":{\"labels\":{}}}", "{\"metadata\":{\"labels\":{}}}"},
    /* what kubectl apply keeps: the same in a string */
    {"{\"metadata\":{\"annotations\":{" APPLIED
     "\"{\\\"kind\\\":\\\"Pod\\\",\\\"metadata\\\":{\\\"annotations\\\":{\\\"kcp.io/cluster\\\":"
     "\\\"c\\\"},\\\"labels\\\":{\\\"a\\\":\\\"\\u00e9\\ud83d\\ude00\xc3\xa9\\\",\\\"kuberelay.io/"
     "cluster"
     "\\\":\\\"c\\\"},\\\"name\\\":\\\"x\\\",\\\"resourceVersion\\\":\\\"" REV
     "\\\"}}\\n\",\"kcp.io/cluster\":\"c\"},\"resourceVersion\":\"" REV "\"}}",
     "{\"metadata\":{\"annotations\":{" APPLIED
     "\"{\\\"kind\\\":\\\"Pod\\\",\\\"metadata\\\":{\\\"labels\\\":{\\\"a\\\":\\\"\\u00e9\\ud83d"
     "\\ude00\xc3\xa9\\\"},\\\"name\\\":\\\"x\\\"}}\\n\"},\"resourceVersion\":\"LIVE\"}}"},
    {"{\"metadata\":{\"annotations\":{" APPLIED "\"kuberelay.io/cluster\"}}}",
     "{\"metadata\":{\"annotations\":{" APPLIED "\"kuberelay.io/cluster\"}}}"},
    {"{\"metadata\":{\"annotations\":{" APPLIED "null}}}",
     "{\"metadata\":{\"annotations\":{" APPLIED "null}}}"},
    /* not in itself */
    {"{\"metadata\":{\"annotations\":{" APPLIED
     "\"{\\\"metadata\\\":{\\\"annotations\\\":{" APPLIED_INNER "\\\"{}\\\"}}}\"}}}",
     "{\"metadata\":{\"annotations\":{" APPLIED
     "\"{\\\"metadata\\\":{\\\"annotations\\\":{" APPLIED_INNER "\\\"{}\\\"}}}\"}}}"},
};

static void test_object_when_it_is_of_the_fleet_view_then_only_that_is_taken_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++)
        check_edit(KR_BODY_OBJECT, objects[i].text, objects[i].edited);
}

static void test_delete_options_when_a_version_is_given_then_mapped(void **state)
{
    (void)state;
    check_edit(KR_BODY_DELETE_OPTIONS,
               "{\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":"
               "\"" REV "\"}}",
               "{\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\",\"resourceVersion\":"
               "\"LIVE\"}}");
    check_edit(KR_BODY_DELETE_OPTIONS, "{\"preconditions\":null}", "{\"preconditions\":null}");
    check_edit(KR_BODY_DELETE_OPTIONS, "{\"metadata\":{\"resourceVersion\":\"" REV "\"}}",
               "{\"metadata\":{\"resourceVersion\":\"" REV "\"}}");
}

static void test_json_patch_when_it_speaks_of_the_version_then_mapped(void **state)
{
    (void)state;
    check_edit(
        KR_BODY_JSON_PATCH,
        "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"" REV
        "\"},{\"op\":\"replace\",\"value\":\"" REV
        "\",\"path\":\"\\/metadata\\/resourceVersion\"},{\"op\":\"add\",\"path\":\"/spec/x\","
        "\"value\":\"" REV "\"}]",
        "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"LIVE\"},{\"op\":"
        "\"replace\",\"value\":\"LIVE\",\"path\":\"\\/metadata\\/resourceVersion\"},{\"op\":"
        "\"add\",\"path\":\"/spec/x\",\"value\":\"" REV "\"}]");
    check_edit(KR_BODY_JSON_PATCH,
               "[{\"op\":\"replace\",\"path\":\"/metadata\",\"value\":{\"resourceVersion\":\"" REV
               "\",\"labels\":{\"kuberelay.io/cluster\":\"c\"}}}]",
               "[{\"op\":\"replace\",\"path\":\"/metadata\",\"value\":{\"resourceVersion\":\"LIVE\""
               "}}]");
    check_edit(KR_BODY_JSON_PATCH,
               "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"metadata\":{\"resourceVersion\":"
               "\"" REV "\"}}},{\"op\":\"remove\",\"path\":\"/metadata/resourceVersion\"},7]",
               "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"metadata\":{\"resourceVersion\":"
               "\"LIVE\"}}},{\"op\":\"remove\",\"path\":\"/metadata/resourceVersion\"},7]");
    check_edit(KR_BODY_JSON_PATCH, "{}", "{}");
}

static const char *const ambiguous[] = {
    "{\"metadata\":{},\"metadata\":{}}",
    "{\"metadata\":{},\"m\\u0065tadata\":{}}",
    "{\"metadata\":{\"resourceVersion\":\"1\",\"resourceVersion\":\"2\"}}",
    "{\"metadata\":{\"labels\":{},\"labels\":{}}}",
    "{\"metadata\":{\"annotations\":{},\"annotations\":{}}}",
};

static void test_read_when_two_readers_could_differ_then_refused(void **state)
{
    struct kr_write_body b;
    struct kr_note why;

    (void)state;
    for (size_t i = 0; i < COUNT(ambiguous); i++)
        assert_int_equal(
            kr_write_body_read(KR_BODY_OBJECT, kr_bytes_str(ambiguous[i]), KR_LIT(REV), &b, &why),
            KR_EPROTO);
    assert_int_equal(kr_write_body_read(KR_BODY_DELETE_OPTIONS,
                                        KR_LIT("{\"preconditions\":{},\"preconditions\":{}}"),
                                        KR_LIT(REV), &b, &why),
                     KR_EPROTO);
    assert_int_equal(kr_write_body_read(KR_BODY_JSON_PATCH,
                                        KR_LIT("[{\"path\":\"/a\",\"path\":\"/b\"}]"), KR_LIT(REV),
                                        &b, &why),
                     KR_EPROTO);
}

static void test_read_when_done_then_says_what_was_there(void **state)
{
    struct kr_write_body b;

    (void)state;
    kr_write_body_read(KR_BODY_OBJECT,
                       KR_LIT("{\"metadata\":{\"annotations\":{\"kuberelay.io/slimmed\":\"true\"},"
                              "\"resourceVersion\":\"77\"}}"),
                       KR_LIT(REV), &b, NULL);
    assert_true(b.injected && b.slimmed && b.has_version);
    assert_true(kr_bytes_is(b.foreign, "77"));
    assert_int_equal(b.version_count, 0);
    kr_write_body_read(KR_BODY_OBJECT, KR_LIT("{\"metadata\":{\"resourceVersion\":\"\"}}"),
                       KR_LIT(REV), &b, NULL);
    assert_true(!b.injected && !b.slimmed && !b.has_version && b.foreign.n == 0);
}

static void test_read_when_there_is_too_much_then_too_big(void **state)
{
    struct kr_write_body b;
    struct kr_buf text = {.max = 65536};

    (void)state;
    kr_buf_append_str(&text, "[");
    for (size_t i = 0; i <= KR_BODY_VERSIONS_MAX; i++)
        kr_buf_printf(&text, "%s{\"path\":\"/metadata/resourceVersion\",\"value\":\"" REV "\"}",
                      i != 0 ? "," : "");
    kr_buf_append_str(&text, "]");
    assert_int_equal(
        kr_write_body_read(KR_BODY_JSON_PATCH, kr_buf_bytes(&text), KR_LIT(REV), &b, NULL),
        KR_ETOOBIG);
    text.n = 0;
    kr_buf_append_str(&text, "{\"metadata\":{\"labels\":{\"x\":\"y\"");
    for (size_t i = 0; i <= KR_BODY_CUTS_MAX; i++)
        kr_buf_append_str(&text, ",\"kcp.io/cluster\":\"c\"");
    kr_buf_append_str(&text, "}}}");
    assert_int_equal(kr_write_body_read(KR_BODY_OBJECT, kr_buf_bytes(&text), KR_LIT(REV), &b, NULL),
                     KR_ETOOBIG);
    kr_buf_deinit(&text);
}

static void test_fill_when_an_offset_is_elsewhere_then_refused(void **state)
{
    static const char text[] = "{\"a\":\"\",\"b\":\"\"}";
    static const uint32_t good[] = {6, 13};
    static const uint32_t bad[][2] = {{5, 13}, {6, 7}, {6, 6}, {13, 6}, {6, 99}, {0, 13}, {6, 15}};
    struct kr_buf out = {.max = 1024};

    (void)state;
    assert_int_equal(kr_write_body_fill(kr_bytes_str(text), good, 2, KR_LIT("12"), &out), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out), "{\"a\":\"12\",\"b\":\"12\"}"));
    out.n = 0;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(kr_write_body_fill(kr_bytes_str(text), bad[i], 2, KR_LIT("1"), &out),
                         KR_EPROTO);
    assert_int_equal(kr_write_body_fill(kr_bytes_str(text), good, 2, KR_LIT("\""), &out),
                     KR_EPROTO);
    assert_int_equal(kr_write_body_fill(kr_bytes_str(text), good, 2, KR_LIT(""), &out), KR_EPROTO);
    assert_int_equal(out.n, 0);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_when_it_is_of_the_fleet_view_then_only_that_is_taken_out),
        cmocka_unit_test(test_delete_options_when_a_version_is_given_then_mapped),
        cmocka_unit_test(test_json_patch_when_it_speaks_of_the_version_then_mapped),
        cmocka_unit_test(test_read_when_two_readers_could_differ_then_refused),
        cmocka_unit_test(test_read_when_done_then_says_what_was_there),
        cmocka_unit_test(test_read_when_there_is_too_much_then_too_big),
        cmocka_unit_test(test_fill_when_an_offset_is_elsewhere_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
