/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static int setup(void **state)
{
    struct kr_arena *arena = malloc(sizeof *arena);

    kr_arena_init(arena, 4096, 1024 * 1024);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    kr_arena_deinit(*state);
    free(*state);
    return 0;
}

static void test_read_when_all_is_given_then_all_is_read(void **state)
{
    struct kr_list_options o;
    struct kr_note why;

    assert_int_equal(
        kr_list_options_read(KR_LIT("labelSelector=a%3Db%2Cc&fieldSelector=metadata.name%3Dx&"
                                    "resourceVersion=18446744073709551615&watch=1&"
                                    "allowWatchBookmarks=true&sendInitialEvents=true&"
                                    "resourceVersionMatch=NotOlderThan&timeoutSeconds=31&"
                                    "includeObject=Object&limit=500&limit=7&clusters=a,b-1&pretty"),
                             true, *state, &o, &why),
        0);
    assert_int_equal(o.labels.n, 2);
    assert_int_equal(o.fields.n, 1);
    assert_true(kr_bytes_is(o.label_text, "a=b,c"));
    assert_true(kr_bytes_is(o.field_text, "metadata.name=x"));
    assert_true(o.watch && o.bookmarks && o.send_initial && o.has_send_initial);
    assert_true(o.has_version && !o.version_zero && o.version == UINT64_MAX);
    assert_int_equal(o.match, KR_MATCH_NOT_OLDER_THAN);
    assert_int_equal(o.timeout_s, 31);
    assert_int_equal(o.limit, 500);
    assert_int_equal(o.include, KR_INCLUDE_OBJECT);
    assert_true(kr_bytes_is(o.clusters, "a,b-1"));
}

static void test_read_when_nothing_is_given_then_defaults(void **state)
{
    struct kr_list_options o;

    assert_int_equal(kr_list_options_read(kr_bytes_of(NULL, 0), false, *state, &o, NULL), 0);
    assert_true(!o.watch && !o.bookmarks && !o.has_send_initial && !o.has_version);
    assert_int_equal(o.labels.n + o.fields.n, 0);
    assert_int_equal(o.limit + o.timeout_s, 0);
    assert_int_equal(o.include, KR_INCLUDE_METADATA);
    assert_int_equal(o.match, KR_MATCH_UNSET);
    assert_int_equal(o.cont.n + o.clusters.n, 0);
}

static const struct {
    const char *query;
    bool watch;
    const char *why; /* NULL: it is fine */
    bool invalid;
} cases[] = {
    {"resourceVersion=0", false, NULL, false},
    {"resourceVersion=", false, NULL, false},
    {"resourceVersion=12&resourceVersionMatch=Exact", false, NULL, false},
    {"resourceVersion=0&continue=x", false, NULL, false},
    {"limit=-1&timeoutSeconds=-5", false, NULL, false},
    {"sendInitialEvents=false&resourceVersionMatch=NotOlderThan", true, NULL, false},
    {"resourceVersion=abc", false,
     "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
     false},
    {"resourceVersion=18446744073709551616", true,
     "resourceVersion: Invalid value: \"18446744073709551616\": strconv.ParseUint: parsing "
     "\"18446744073709551616\": value out of range",
     false},
    {"resourceVersion=-1", true, "resourceVersion: Invalid value: \"-1\"", false},
    {"limit=x", false, "strconv.ParseInt: parsing \"x\": invalid syntax", false},
    {"limit=", false, "strconv.ParseInt: parsing \"\": invalid syntax", false},
    {"limit=9223372036854775808", false,
     "strconv.ParseInt: parsing \"9223372036854775808\": value out of range", false},
    {"timeoutSeconds=1s", true, "strconv.ParseInt: parsing \"1s\": invalid syntax", false},
    {"labelSelector=a%20b", false,
     "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", false},
    {"fieldSelector=a", false, "invalid selector: 'a'; can't understand 'a'", false},
    {"includeObject=All", false,
     "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must be "
     "'Metadata', 'Object', 'None', or empty",
     false},
    {"clusters=a,,b", false, "clusters: Invalid value: \"a,,b\"", false},
    {"clusters=A", false, "clusters: Invalid value: \"A\"", false},
    {"resourceVersion=5&continue=x", false,
     "specifying resource version is not allowed when using continue", false},
#define INVALID "ListOptions.meta.k8s.io \"\" is invalid: "
    {"resourceVersionMatch=Exact", false,
     INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
             "resourceVersion is provided",
     true},
    {"resourceVersion=0&resourceVersionMatch=Exact", false,
     INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for "
             "resourceVersion \"0\"",
     true},
    {"resourceVersion=1&resourceVersionMatch=Some", false,
     INVALID "resourceVersionMatch: Unsupported value: \"Some\": supported values: \"Exact\", "
             "\"NotOlderThan\", \"\"",
     true},
    {"resourceVersion=1&resourceVersionMatch=Exact&continue=x", false,
     INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is "
             "provided",
     true},
    {"sendInitialEvents=false", false,
     INVALID "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list", true},
    {"sendInitialEvents=true", true,
     INVALID "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
             "resourceVersionMatch to NotOlderThan",
     true},
    {"sendInitialEvents=true&resourceVersionMatch=Exact", true,
     INVALID "resourceVersionMatch: Forbidden: sendInitialEvents requires", true},
    {"resourceVersionMatch=NotOlderThan", true,
     INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
             "sendInitialEvents is provided",
     true},
    {"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x", true,
     INVALID "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue",
     true},
};

static void test_read_when_options_do_not_fit_then_as_kube_apiserver(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_list_options o;
        struct kr_note why = {""};
        int rc =
            kr_list_options_read(kr_bytes_str(cases[i].query), cases[i].watch, *state, &o, &why);

        if (cases[i].why == NULL) {
            assert_int_equal(rc, 0);
            continue;
        }
        if (strncmp(why.text, cases[i].why, strlen(cases[i].why)) != 0)
            print_error("%s\n  is:   %s\n  want: %s\n", cases[i].query, why.text, cases[i].why);
        assert_int_equal(rc, KR_EINVAL);
        assert_memory_equal(why.text, cases[i].why, strlen(cases[i].why));
        assert_int_equal(o.invalid, cases[i].invalid);
    }
}

static const struct {
    const char *accept;
    int form; /* -1: not acceptable */
} forms[] = {
    {"", KR_FORM_JSON},
    {"*/*", KR_FORM_JSON},
    {"*", KR_FORM_JSON},
    {"application/*", KR_FORM_JSON},
    {"application/json", KR_FORM_JSON},
    {"Application/JSON", KR_FORM_JSON},
    {"application/json;stream=watch", KR_FORM_JSON},
    {"application/json;stream=other", -1},
    {"application/vnd.kubernetes.protobuf", -1},
    {"application/yaml", -1},
    {"text/html", -1},
    {"application/json;q=0", -1},
    {"application/vnd.kubernetes.protobuf,application/json", KR_FORM_JSON},
    {"application/vnd.kubernetes.protobuf, */*", KR_FORM_JSON},
    {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s."
     "io,application/json",
     KR_FORM_TABLE_V1},
    {"application/json; as=Table; v=v1beta1; g=meta.k8s.io", KR_FORM_TABLE_V1BETA1},
    {"application/json;as=Table;v=v2;g=meta.k8s.io", -1},
    {"application/json;as=Table;v=v2;g=meta.k8s.io,application/json", KR_FORM_JSON},
    {"application/json;as=Other;v=v1;g=meta.k8s.io", -1},
    {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", KR_FORM_METADATA_V1},
    {"application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", KR_FORM_METADATA_V1BETA1},
    {"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
     "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
     KR_FORM_METADATA_V1},
    {"*/*;q=0.1,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9", KR_FORM_TABLE_V1},
    {"*/*,application/json;as=Table;v=v1;g=meta.k8s.io", KR_FORM_TABLE_V1},
    {"application/json;q=0.2,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.1", KR_FORM_JSON},
    {"text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", KR_FORM_JSON},
};

static void test_form_when_accept_is_given_then_the_best_that_is_offered(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        enum kr_form form;
        int rc = kr_accept_form(kr_bytes_str(forms[i].accept), &form);

        if (rc != (forms[i].form < 0 ? KR_EUNSUPPORTED : 0) ||
            (rc == 0 && (int)form != forms[i].form))
            fail_msg("%s", forms[i].accept);
    }
}

static void test_gzip_when_accept_encoding_is_given_then_by_its_name(void **state)
{
    static const char *const yes[] = {
        "gzip", "GZIP", "deflate, gzip", "br;q=1, gzip;q=0.5", " gzip ", "gzip;q=1.0, identity"};
    static const char *const no[] = {
        "", "identity", "*", "gzip;q=0", "gzipx", "deflate, gzip;q=0.000", "br, zstd", "g zip"};

    (void)state;
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(kr_accept_gzip(kr_bytes_str(yes[i])));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(kr_accept_gzip(kr_bytes_str(no[i])));
}

static void test_discovery_when_accept_is_given_then_plain_or_aggregated(void **state)
{
    (void)state;
#define V2 "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define V2BETA1 "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    assert_int_equal(kr_accept_discovery(KR_LIT("")), 0);
    assert_int_equal(kr_accept_discovery(KR_LIT("application/json, */*")), 0);
    assert_int_equal(kr_accept_discovery(KR_LIT(V2 "," V2BETA1 ",application/json")), 1);
    assert_int_equal(kr_accept_discovery(KR_LIT(V2BETA1 ",application/json")), 2);
    assert_int_equal(kr_accept_discovery(KR_LIT(V2 ";profile=nopeer")), 1);
    assert_int_equal(kr_accept_discovery(KR_LIT("application/vnd.kubernetes.protobuf")),
                     KR_EUNSUPPORTED);
    assert_int_equal(
        kr_accept_discovery(KR_LIT("application/json;g=x;v=v2;as=APIGroupDiscoveryList")),
        KR_EUNSUPPORTED);
}

static void test_compare_when_versions_differ_then_by_length_and_bytes(void **state)
{
    (void)state;
    assert_true(kr_version_compare(KR_LIT("9"), KR_LIT("10")) < 0);
    assert_true(kr_version_compare(KR_LIT("11"), KR_LIT("10")) > 0);
    assert_true(kr_version_compare(KR_LIT("10"), KR_LIT("10")) == 0);
    assert_true(kr_version_compare(KR_LIT(""), KR_LIT("1")) < 0);
    assert_true(kr_version_compare(KR_LIT("99999999999999999999999"), KR_LIT("1")) > 0);
}

static const struct {
    int64_t seconds;
    const char *text;
} durations[] = {
    {-9, "<invalid>"},  {-1, "0s"},         {0, "0s"},          {1, "1s"},
    {119, "119s"},      {120, "2m"},        {121, "2m1s"},      {599, "9m59s"},
    {600, "10m"},       {659, "10m"},       {10799, "179m"},    {10800, "3h"},
    {10860, "3h1m"},    {28799, "7h59m"},   {28800, "8h"},      {172799, "47h"},
    {172800, "2d"},     {176400, "2d1h"},   {691199, "7d23h"},  {691200, "8d"},
    {63071999, "729d"}, {63072000, "2y"},   {63158400, "2y1d"}, {252287999, "7y364d"},
    {252288000, "8y"},  {999999999, "31y"},
};

static void test_duration_when_rendered_then_as_kubectl_shows_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(durations); i++) {
        struct kr_buf out = {.max = 64};

        assert_int_equal(kr_human_duration(durations[i].seconds, &out), 0);
        if (!kr_bytes_is(kr_buf_bytes(&out), durations[i].text))
            fail_msg("%s: %.*s", durations[i].text, (int)out.n, (const char *)out.p);
        kr_buf_deinit(&out);
    }
}

static const struct {
    const char *text;
    int64_t seconds; /* -1: none */
} times[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"1970-01-01T00:00:09Z", 9},
    {"2026-01-02T03:04:05Z", 1767323045},
    {"2024-02-29T23:59:59Z", 1709251199},
    {"2000-03-01T00:00:00Z", 951868800},
    {"9999-12-31T23:59:59Z", 253402300799},
    {"2026-01-02T03:04:05.123456Z", 1767323045},
    {"2023-02-29T00:00:00Z", -1},
    {"1900-02-29T00:00:00Z", -1},
    {"2026-13-01T00:00:00Z", -1},
    {"2026-00-01T00:00:00Z", -1},
    {"2026-01-32T00:00:00Z", -1},
    {"2026-01-01T24:00:00Z", -1},
    {"2026-01-01T00:60:00Z", -1},
    {"2026-01-01T00:00:60Z", -1},
    {"2026-01-01T00:00:00", -1},
    {"2026-01-01T00:00:00.Z", -1},
    {"2026-01-01T00:00:00+00:00", -1},
    {"2026-01-01T00:00:00Zx", -1},
    {"2026-1-01T00:00:00Z", -1},
    {"", -1},
    {"null", -1},
};

static void test_time_when_parsed_then_seconds_since_1970(void **state)
{
    int64_t seconds;

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++) {
        bool ok = kr_time_parse(kr_bytes_str(times[i].text), &seconds);

        if (ok != (times[i].seconds >= 0) || (ok && seconds != times[i].seconds))
            fail_msg("%s", times[i].text);
    }
    assert_true(kr_time_parse(KR_LIT("0001-01-01T00:00:00Z"), &seconds));
    assert_true(seconds == -62135596800);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_read_when_all_is_given_then_all_is_read),
        TEST(test_read_when_nothing_is_given_then_defaults),
        TEST(test_read_when_options_do_not_fit_then_as_kube_apiserver),
        TEST(test_form_when_accept_is_given_then_the_best_that_is_offered),
        TEST(test_gzip_when_accept_encoding_is_given_then_by_its_name),
        TEST(test_discovery_when_accept_is_given_then_plain_or_aggregated),
        TEST(test_compare_when_versions_differ_then_by_length_and_bytes),
        TEST(test_duration_when_rendered_then_as_kubectl_shows_it),
        TEST(test_time_when_parsed_then_seconds_since_1970),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
