/* SPDX-License-Identifier: Apache-2.0 */
/* Each case: an object as it is at the edge, what a profile leaves of it, what somebody made of
 * that, and what becomes of the whole object (or why it is refused). */
#include "kube/json_diff.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "json_apply.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define HEAD "\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"}"
#define BARE "\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"\"}"

struct sample {
    const char *keep; /* paths with spaces between them */
    const char *drop;
    const char *live;
    const char *wanted;
    const char *result; /* NULL: refused */
};

static const struct sample lossless[] = {
    {"", "", "{" HEAD ",\"a\":1}", "{" HEAD ",\"a\":1}", "{" BARE ",\"a\":1}"},
    {"", "", "{" HEAD ",\"a\":1}", "{" HEAD ",\"a\":2}", "{" BARE ",\"a\":2}"},
    {"", "", "{" HEAD ",\"a\":1}", "{" HEAD "}", "{" BARE "}"},
    {"", "", "{" HEAD ",\"a\":1}", "{" HEAD ",\"a\":null}", "{" BARE "}"},
    {"", "", "{" HEAD "}", "{" HEAD ",\"a\":null}", "{" BARE "}"},
    {"", "", "{" HEAD ",\"a\":null}", "{" HEAD "}", "{" BARE ",\"a\":null}"},
    {"", "", "{" HEAD ",\"a\":null}", "{" HEAD ",\"a\":5}", "{" BARE ",\"a\":5}"},
    {"", "", "{" HEAD "}", "{" HEAD ",\"a\":{}}", "{" BARE ",\"a\":{}}"},
    {"", "", "{" HEAD "}", "{" HEAD ",\"a\":0,\"b\":\"\",\"c\":false}",
     "{" BARE ",\"a\":0,\"b\":\"\",\"c\":false}"},
    {"", "", "{" HEAD ",\"a\":{}}", "{" HEAD "}", "{" BARE "}"},
    {"", "", "{" HEAD ",\"a\":{\"b\":{\"c\":1,\"d\":2}}}", "{" HEAD ",\"a\":{\"b\":{\"c\":3}}}",
     "{" BARE ",\"a\":{\"b\":{\"c\":3}}}"},
    {"", "", "{" HEAD ",\"a\":{\"b\":1}}", "{" HEAD ",\"a\":[1]}", "{" BARE ",\"a\":[1]}"},
    {"", "", "{" HEAD ",\"a\":[1,2,3]}", "{" HEAD ",\"a\":[1,3]}", "{" BARE ",\"a\":[1,3]}"},
    {"", "", "{" HEAD ",\"a\":[{\"b\":1},{\"b\":2}]}", "{" HEAD ",\"a\":[{\"b\":1},{\"c\":2}]}",
     "{" BARE ",\"a\":[{\"b\":1},{\"c\":2}]}"},
    {"", "", "{" HEAD ",\"a\":[{\"b\":1},{\"b\":2}]}", "{" HEAD ",\"a\":[{\"b\":2}]}",
     "{" BARE ",\"a\":[{\"b\":2}]}"},
    {"", "", "{" HEAD ",\"a\":[]}", "{" HEAD ",\"a\":[{\"b\":2}]}", "{" BARE ",\"a\":[{\"b\":2}]}"},
    {"", "", "{" HEAD ",\"a\":[[1],[2]]}", "{" HEAD ",\"a\":[[1],[2,3]]}",
     "{" BARE ",\"a\":[[1],[2,3]]}"},
    /* names that a pointer must escape, and text that only looks different */
    {"", "", "{" HEAD ",\"a/b~c\":{\"d\":1}}", "{" HEAD ",\"a/b~c\":{\"d\":2}}",
     "{" BARE ",\"a/b~c\":{\"d\":2}}"},
    {"", "", "{" HEAD ",\"~1\":1,\"/\":1,\"\":1}", "{" HEAD ",\"~1\":2,\"/\":3,\"\":4}",
     "{" BARE ",\"~1\":2,\"/\":3,\"\":4}"},
    {"", "", "{" HEAD ",\"q\\\"\\\\\":1}", "{" HEAD ",\"q\\\"\\\\\":2}",
     "{" BARE ",\"q\\\"\\\\\":2}"},
    {"", "", "{" HEAD ",\"\\u0061\":\"\\u0062\"}", "{ " HEAD " , \"a\" : \"b\" }",
     "{" BARE ",\"a\":\"b\"}"},
    {"", "", "{" HEAD ",\"a\":{\"b\":[1,2]}}", "{" HEAD ",\"a\":{\"b\":[1, 2]}}",
     "{" BARE ",\"a\":{\"b\":[1,2]}}"},
    {"", "", "{" HEAD ",\"a\":1}", "{" HEAD ",\"a\":2,\"a\":3}", "{" BARE ",\"a\":3}"},
    /* what does not count */
    {"", "",
     "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"x\",\"namespace\":\"n\","
     "\"uid\":"
     "\"u\",\"creationTimestamp\":\"t\",\"generation\":3,\"resourceVersion\":\"7\","
     "\"managedFields\":"
     "[1]}}",
     "{\"kind\":\"Y\",\"metadata\":{\"resourceVersion\":\"9\"}}",
     "{\"apiVersion\":\"v1\",\"kind\":\"X\",\"metadata\":{\"name\":\"x\",\"namespace\":\"n\","
     "\"uid\":"
     "\"u\",\"creationTimestamp\":\"t\",\"generation\":3,\"resourceVersion\":\"\","
     "\"managedFields\":"
     "[1]}}"},
    {"", "", "{\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
     "{\"metadata\":{\"name\":\"x\",\"labels\":{\"b\":\"\"}}}",
     "{\"metadata\":{\"name\":\"x\",\"labels\":{\"b\":\"\"},\"resourceVersion\":\"\"}}"},
    {"", "", "{\"metadata\":{\"name\":\"x\",\"finalizers\":[\"a\"]}}",
     "{\"metadata\":{\"name\":\"x\",\"finalizers\":[\"a\",\"b\"]}}",
     "{\"metadata\":{\"name\":\"x\",\"finalizers\":[\"a\",\"b\"],\"resourceVersion\":\"\"}}"},
};

#define LIVE_POD                                                                                   \
    "{" HEAD ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\",\"image\":\"1\","      \
    "\"env\":[{\"name\":\"E\",\"value\":\"1\"}]},{\"name\":\"b\",\"image\":\"2\",\"command\":"     \
    "[\"run\"]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"
#define KEEP_IMAGES "spec.containers[*].name spec.containers[*].image"
#define SPEC(x) "{" HEAD ",\"spec\":{" x "}}"

static const struct sample lossy[] = {
    /* a change in what was served; the rest stays */
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC("\"containers\":[{\"name\":\"a\",\"image\":\"9\"},{\"name\":\"b\",\"image\":\"2\"}]"),
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\",\"image\":\"9\","
     "\"env\":[{\"name\":\"E\",\"value\":\"1\"}]},{\"name\":\"b\",\"image\":\"2\",\"command\":"
     "[\"run\"]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* what a typed program writes besides */
    {KEEP_IMAGES, "", LIVE_POD,
     "{" HEAD
     ",\"spec\":{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"resources\":{}},{\"name\""
     ":\"b\",\"image\":\"3\",\"resources\":{},\"env\":null}],\"volumes\":null,\"nodeName\":\"\","
     "\"hostNetwork\":false},\"status\":{\"conditions\":[]}}",
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\",\"image\":\"1\","
     "\"env\":[{\"name\":\"E\",\"value\":\"1\"}]},{\"name\":\"b\",\"image\":\"3\",\"command\":"
     "[\"run\"]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* the order changes: hidden parts move along */
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC("\"containers\":[{\"name\":\"b\",\"image\":\"2\"},{\"name\":\"a\",\"image\":\"8\"}]"),
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"b\",\"image\":\"2\","
     "\"command\":[\"run\"]},{\"name\":\"a\",\"image\":\"8\",\"env\":[{\"name\":\"E\",\"value\":"
     "\"1\"}]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* one goes */
    {KEEP_IMAGES, "", LIVE_POD, SPEC("\"containers\":[{\"name\":\"b\",\"image\":\"2\"}]"),
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"b\",\"image\":\"2\","
     "\"command\":[\"run\"]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* one comes, in the middle */
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC(
         "\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"c\",\"image\":\"3\",\"tty\":"
         "true},{\"name\":\"b\",\"image\":\"2\"}]"),
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\",\"image\":\"1\","
     "\"env\":[{\"name\":\"E\",\"value\":\"1\"}]},{\"name\":\"c\",\"image\":\"3\",\"tty\":true},"
     "{\"name\":\"b\",\"image\":\"2\",\"command\":[\"run\"]}],\"volumes\":[{\"name\":\"v\","
     "\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* one goes while another comes: perhaps a new name, then its hidden parts would be lost */
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC("\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"c\",\"image\":\"2\"}]"),
     NULL},
    /* the list goes, explicitly */
    {KEEP_IMAGES, "", LIVE_POD, SPEC("\"containers\":[]"),
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[],\"volumes\":[{\"name\":\"v\","
     "\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* a value where nothing was served: it is what its writer says */
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC("\"nodeName\":\"m\",\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\","
          "\"image\":\"2\"}]"),
     "{" BARE ",\"spec\":{\"nodeName\":\"m\",\"containers\":[{\"name\":\"a\",\"image\":\"1\","
     "\"env\":[{\"name\":\"E\",\"value\":\"1\"}]},{\"name\":\"b\",\"image\":\"2\",\"command\":"
     "[\"run\"]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* an object or a list where nothing was served: what is there would be lost */
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC(
         "\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"env\":[{\"name\":\"F\",\"value\":\"2\"}"
         "]},{\"name\":\"b\",\"image\":\"2\"}]"),
     NULL},
    {KEEP_IMAGES, "", LIVE_POD,
     SPEC(
         "\"volumes\":[{\"name\":\"w\"}],\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\""
         ":\"b\",\"image\":\"2\"}]"),
     NULL},
    /* a shell that was served and that a typed program does not write back */
    {"spec.volumes[*].name", "spec.volumes[*].name", LIVE_POD, "{" HEAD "}",
     "{" BARE ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\",\"image\":\"1\","
     "\"env\":[{\"name\":\"E\",\"value\":\"1\"}]},{\"name\":\"b\",\"image\":\"2\",\"command\":"
     "[\"run\"]}],\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"s\"}}]}}"},
    /* all items dropped: what is there is not known */
    {"", "spec.l[*]", "{" HEAD ",\"spec\":{\"l\":[1,2]}}", SPEC("\"l\":[]"),
     "{" BARE ",\"spec\":{\"l\":[1,2]}}"},
    {"", "spec.l[*]", "{" HEAD ",\"spec\":{\"l\":[1,2]}}", "{" HEAD ",\"spec\":{}}",
     "{" BARE ",\"spec\":{\"l\":[1,2]}}"},
    {"", "spec.l[*]", "{" HEAD ",\"spec\":{\"l\":[1,2]}}", SPEC("\"l\":[3]"), NULL},
    /* plain values are kept whole */
    {"spec.l[*].x", "", "{" HEAD ",\"spec\":{\"l\":[1,2],\"m\":1}}", SPEC("\"l\":[2,3,4]"),
     "{" BARE ",\"spec\":{\"l\":[2,3,4],\"m\":1}}"},
    /* a list that is there and empty */
    {"spec.l[*].x", "", "{" HEAD ",\"spec\":{\"l\":[],\"m\":1}}", SPEC("\"l\":[{\"x\":1}]"),
     "{" BARE ",\"spec\":{\"l\":[{\"x\":1}],\"m\":1}}"},
    /* items without names */
    {"spec.l[*].x", "", "{" HEAD ",\"spec\":{\"l\":[{\"x\":1,\"h\":1},{\"x\":2,\"h\":2}]}}",
     SPEC("\"l\":[{\"x\":1},{\"x\":5}]"),
     "{" BARE ",\"spec\":{\"l\":[{\"x\":1,\"h\":1},{\"x\":5,\"h\":2}]}}"},
    {"spec.l[*].x", "", "{" HEAD ",\"spec\":{\"l\":[{\"x\":1,\"h\":1},{\"x\":2,\"h\":2}]}}",
     SPEC("\"l\":[{\"x\":2},{\"x\":1}]"), NULL},
    {"spec.l[*].x", "", "{" HEAD ",\"spec\":{\"l\":[{\"x\":1,\"h\":1},{\"x\":2,\"h\":2}]}}",
     SPEC("\"l\":[{\"x\":2}]"), NULL},
    /* names that are not enough: twice the same, then the next one */
    {"spec.m[*].name spec.m[*].mountPath", "",
     "{" HEAD ",\"spec\":{\"m\":[{\"name\":\"v\",\"mountPath\":\"/a\",\"h\":1},{\"name\":\"v\","
     "\"mountPath\":\"/b\",\"h\":2}]}}",
     SPEC("\"m\":[{\"name\":\"v\",\"mountPath\":\"/b\"}]"),
     "{" BARE ",\"spec\":{\"m\":[{\"name\":\"v\",\"mountPath\":\"/b\",\"h\":2}]}}"},
    {"spec.p[*].port spec.p[*].protocol", "",
     "{" HEAD ",\"spec\":{\"p\":[{\"port\":53,\"protocol\":\"TCP\",\"h\":1},{\"port\":53,"
     "\"protocol\":\"UDP\",\"h\":2}]}}",
     SPEC("\"p\":[{\"port\":53,\"protocol\":\"UDP\"},{\"port\":53}]"),
     "{" BARE
     ",\"spec\":{\"p\":[{\"port\":53,\"protocol\":\"UDP\",\"h\":2},{\"port\":53,\"h\":1}]}}"},
    /* a part of a list within an item */
    {"spec.c[*].name spec.c[*].e[*].name", "",
     "{" HEAD ",\"spec\":{\"c\":[{\"name\":\"a\",\"e\":[{\"name\":\"1\",\"v\":1},{\"name\":\"2\","
     "\"v\":2}]}]}}",
     SPEC("\"c\":[{\"name\":\"a\",\"e\":[{\"name\":\"2\"},{\"name\":\"1\"},{\"name\":\"3\",\"v\":3}"
          "]}]"),
     "{" BARE ",\"spec\":{\"c\":[{\"name\":\"a\",\"e\":[{\"name\":\"2\",\"v\":2},{\"name\":\"1\","
     "\"v\":1},{\"name\":\"3\",\"v\":3}]}]}}"},
    /* an annotation that was dropped stays */
    {"", "metadata.annotations[\"last\"]",
     "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"last\":\"{}\",\"a\":\"1\"}}}",
     "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"a\":\"2\",\"b\":\"\"}}}",
     "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"last\":\"{}\",\"a\":\"2\",\"b\":\"\"},"
     "\"resourceVersion\":\"\"}}"},
    {"", "metadata.annotations[\"last\"]",
     "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"last\":\"{}\"}}}",
     "{\"metadata\":{\"name\":\"x\"}}",
     "{\"metadata\":{\"name\":\"x\",\"annotations\":{\"last\":\"{}\"},\"resourceVersion\":\"\"}}"},
    /* nothing but metadata ("." keeps a path that is not there) */
    {"none", "", "{" HEAD ",\"data\":{\"k\":\"v\"}}",
     "{\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"b\"}},\"data\":null}",
     "{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"\",\"labels\":{\"a\":\"b\"}},\"data\":{"
     "\"k\":\"v\"}}"},
    {"none", "", "{" HEAD ",\"data\":{\"k\":\"v\"}}", "{" HEAD ",\"data\":{\"k\":\"w\"}}", NULL},
};

static size_t split(const char *text, struct kr_bytes *out)
{
    size_t n = 0;

    while (*text != '\0') {
        size_t word = strcspn(text, " ");

        if (word != 0)
            out[n++] = kr_bytes_of(text, word);
        text += word + (text[word] == ' ');
    }
    return n;
}

static void slim(const struct kr_profile_paths *paths, const char *live, struct kr_buf *out)
{
    struct kr_profile *profile = kr_profile_create(paths, NULL);
    struct kr_slim seen;

    assert_non_null(profile);
    assert_int_equal(kr_slim(profile, kr_bytes_str(live), out, &seen, NULL), 0);
    kr_profile_destroy(profile);
}

static void check_applied(const struct sample *c, struct kr_bytes patch)
{
    struct json_object *live = tree_of(kr_bytes_str(c->live));
    struct json_object *result = tree_of(kr_bytes_str(c->result));
    struct json_object *operations = tree_of(patch);
    struct json_object *metadata;

    assert_true(live != NULL && result != NULL && operations != NULL);
    json_object_object_get_ex(live, "metadata", &metadata);
    json_object_object_add(metadata, "resourceVersion", json_object_new_string("7"));
    if (apply_patch(live, operations) >= 0 || !json_object_equal(live, result))
        fail_msg("%s\n  patch:  %.*s\n  result: %s\n  want:   %s", c->wanted, (int)patch.n,
                 (const char *)patch.p, json_object_to_json_string(live), c->result);
    json_object_put(live);
    json_object_put(result);
    json_object_put(operations);
}

static void check(const struct sample *c)
{
    struct kr_bytes keep[8];
    struct kr_bytes drop[8];
    struct kr_profile_paths paths = {keep, split(c->keep, keep), drop, split(c->drop, drop), false};
    struct kr_reach *reach = kr_reach_create(&paths, NULL);
    struct kr_buf served = {.max = 65536};
    struct kr_buf patch = {.max = 65536};
    struct kr_note why = {""};
    uint32_t version;
    int rc;

    assert_non_null(reach);
    slim(&paths, c->live, &served);
    rc =
        kr_json_diff(reach, kr_buf_bytes(&served), kr_bytes_str(c->wanted), &patch, &version, &why);
    if (rc != (c->result != NULL ? 0 : KR_EDENIED))
        fail_msg("%s: %d %s: %.*s", c->wanted, rc, why.text, (int)patch.n, (const char *)patch.p);
    if (rc == 0) {
        assert_memory_equal(patch.p + version - 1, "\"\"}", 3);
        check_applied(c, kr_buf_bytes(&patch));
    } else {
        assert_int_equal(patch.n, 0);
        assert_true(why.text[0] == '/');
    }
    kr_buf_deinit(&served);
    kr_buf_deinit(&patch);
    kr_reach_destroy(reach);
}

static void test_diff_when_nothing_was_left_out_then_the_result_is_what_was_wanted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lossless); i++)
        check(&lossless[i]);
}

static void test_diff_when_parts_were_left_out_then_they_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lossy); i++)
        check(&lossy[i]);
}

static int diff(const struct kr_reach *reach, const char *served, const char *wanted,
                struct kr_buf *out)
{
    uint32_t version;

    out->n = 0;
    return kr_json_diff(reach, kr_bytes_str(served), kr_bytes_str(wanted), out, &version, NULL);
}

#define VERSION "{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":\"\"}"

static void test_diff_when_values_are_odd_then_copied_byte_for_byte(void **state)
{
    struct kr_profile_paths none = {0};
    struct kr_reach *reach = kr_reach_create(&none, NULL);
    struct kr_buf out = {.max = 65536};

    (void)state;
    assert_int_equal(diff(reach, "{\"a\":1,\"b\":\"x\"}",
                          "{\"a\":123456789012345678901234567890.10e+5 ,\"b\":\"\\u00e4\\/\\n\"}",
                          &out),
                     0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out),
                            "[" VERSION ",{\"op\":\"replace\",\"path\":\"/a\",\"value\":"
                            "123456789012345678901234567890.10e+5},{\"op\":\"replace\",\"path\":"
                            "\"/b\",\"value\":\"\\u00e4\\/\\n\"}]"));
    assert_int_equal(diff(reach, "{}", "{\"a\":{ \"z\" : [ 1.0 ], \"z\":2 }}", &out), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out),
                            "[" VERSION
                            ",{\"op\":\"add\",\"path\":\"/a\",\"value\":{ \"z\" : [ 1.0 "
                            "], \"z\":2 }}]"));
    kr_reach_destroy(reach);
    kr_buf_deinit(&out);
}

/* "{"a":" n times around `core`, or "[". */
static void nest(struct kr_buf *out, const char *open, const char *close, size_t n,
                 const char *core)
{
    out->n = 0;
    kr_buf_append_str(out, "{\"t\":");
    for (size_t i = 0; i < n; i++)
        kr_buf_append_str(out, open);
    kr_buf_append_str(out, core);
    for (size_t i = 0; i < n; i++)
        kr_buf_append_str(out, close);
    kr_buf_append(out, kr_bytes_of("}", 2)); /* with its NUL */
}

static void test_diff_when_too_deep_then_too_big(void **state)
{
    struct kr_profile_paths none = {0};
    struct kr_reach *reach = kr_reach_create(&none, NULL);
    struct kr_buf a = {.max = 65536};
    struct kr_buf b = {.max = 65536};
    struct kr_buf out = {.max = 65536};

    (void)state;
    for (size_t n = KR_DIFF_DEPTH - 1; n <= KR_DIFF_DEPTH; n++) {
        int want = n < KR_DIFF_DEPTH ? 0 : KR_ETOOBIG;

        nest(&a, "{\"a\":", "}", n, "1");
        nest(&b, "{\"a\":", "}", n, "2");
        assert_int_equal(diff(reach, (char *)a.p, (char *)b.p, &out), want);
        nest(&a, "[[],", "]", n, "1");
        nest(&b, "[[],", "]", n, "2");
        assert_int_equal(diff(reach, (char *)a.p, (char *)b.p, &out), want);
    }
    kr_reach_destroy(reach);
    kr_buf_deinit(&a);
    kr_buf_deinit(&b);
    kr_buf_deinit(&out);
}

static void test_diff_when_there_are_too_many_changes_then_too_big(void **state)
{
    struct kr_profile_paths none = {0};
    struct kr_reach *reach = kr_reach_create(&none, NULL);
    struct kr_buf a = {.max = 1024 * 1024};
    struct kr_buf out = {.max = 4 * 1024 * 1024};

    (void)state;
    kr_buf_append_str(&a, "{");
    for (size_t i = 0; i < 9000; i++)
        kr_buf_printf(&a, "%s\"k%zu\":1", i != 0 ? "," : "", i);
    kr_buf_append(&a, kr_bytes_of("}", 2));
    assert_int_equal(diff(reach, "{}", (char *)a.p, &out), KR_ETOOBIG);
    assert_int_equal(out.n, 0);
    kr_reach_destroy(reach);
    kr_buf_deinit(&a);
    kr_buf_deinit(&out);
}

static void test_diff_when_the_profile_is_not_known_then_careful(void **state)
{
    struct kr_buf out = {.max = 65536};

    (void)state;
    assert_int_equal(diff(NULL, "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"r\":1}}",
                          "{\"metadata\":{\"labels\":{\"c\":\"\"}},\"spec\":{\"r\":2,\"x\":{}}}",
                          &out),
                     0);
    assert_true(kr_bytes_is(
        kr_buf_bytes(&out),
        "[" VERSION ",{\"op\":\"remove\",\"path\":\"/metadata/labels/a\"},{\"op\":\"add\","
        "\"path\":\"/metadata/labels/c\",\"value\":\"\"},{\"op\":\"replace\",\"path\":"
        "\"/spec/r\",\"value\":2}]"));
    assert_int_equal(diff(NULL, "{\"spec\":{}}", "{\"spec\":{\"x\":{\"y\":1}}}", &out), KR_EDENIED);
    assert_int_equal(diff(NULL, "{\"spec\":{\"l\":[]}}", "{\"spec\":{\"l\":[1]}}", &out),
                     KR_EDENIED);
    kr_buf_deinit(&out);
}

static void test_diff_when_it_is_no_object_then_refused(void **state)
{
    struct kr_buf out = {.max = 65536};

    (void)state;
    assert_int_equal(diff(NULL, "{}", "[]", &out), KR_EPROTO);
    assert_int_equal(diff(NULL, "7", "{}", &out), KR_EPROTO);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_diff_when_nothing_was_left_out_then_the_result_is_what_was_wanted),
        cmocka_unit_test(test_diff_when_parts_were_left_out_then_they_stay),
        cmocka_unit_test(test_diff_when_values_are_odd_then_copied_byte_for_byte),
        cmocka_unit_test(test_diff_when_too_deep_then_too_big),
        cmocka_unit_test(test_diff_when_there_are_too_many_changes_then_too_big),
        cmocka_unit_test(test_diff_when_the_profile_is_not_known_then_careful),
        cmocka_unit_test(test_diff_when_it_is_no_object_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
