/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/slim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define SOME(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE ((const char *const[]){NULL})

static size_t read_list(const char *const *paths, struct kr_bytes *out)
{
    size_t n = 0;

    for (; paths[n] != NULL; n++)
        out[n] = kr_bytes_str(paths[n]);
    return n;
}

static struct kr_profile *make(const char *const *keep, const char *const *drop, bool metadata_only)
{
    struct kr_note why = {.text = ""};
    struct kr_bytes kept[70];
    struct kr_bytes dropped[70];
    struct kr_profile_paths paths = {
        .keep = kept,
        .keep_count = read_list(keep, kept),
        .drop = dropped,
        .drop_count = read_list(drop, dropped),
        .metadata_only = metadata_only,
    };
    struct kr_profile *p = kr_profile_create(&paths, &why);

    assert_true((p != NULL) == (why.text[0] == '\0'));
    return p;
}

static struct kr_profile *make_well(const char *const *keep, const char *const *drop)
{
    struct kr_profile *p = make(keep, drop, false);

    assert_non_null(p);
    return p;
}

/* Slims, compares, and slims what came out again: that must change nothing. */
static struct kr_slim expect_of(const struct kr_profile *p, struct kr_bytes in, const char *want)
{
    uint8_t *copy = malloc(in.n != 0 ? in.n : 1); /* of just this size, for sanitizers */
    struct kr_slim seen;
    struct kr_slim again;
    struct kr_buf out;
    struct kr_buf twice;

    assert_non_null(copy);
    if (in.n != 0)
        memcpy(copy, in.p, in.n);
    kr_buf_init(&out, 1 << 20);
    kr_buf_init(&twice, 1 << 20);
    kr_buf_append_str(&out, "before");
    assert_int_equal(kr_slim(p, kr_bytes_of(copy, in.n), &out, &seen, NULL), 0);
    if (!kr_bytes_is(kr_bytes_skip(kr_buf_bytes(&out), 6), want))
        fail_msg("%.*s\nbecame %.*s\n not   %s", (int)in.n, (const char *)in.p, (int)out.n - 6,
                 (const char *)out.p + 6, want);
    assert_int_equal(kr_slim(p, kr_bytes_skip(kr_buf_bytes(&out), 6), &twice, &again, NULL), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&twice), want));
    assert_false(again.lossy);
    kr_buf_deinit(&out);
    kr_buf_deinit(&twice);
    free(copy);
    return (struct kr_slim){.lossy = seen.lossy}; /* the spans went with the copy */
}

static bool expect(const char *const *keep, const char *const *drop, const char *in,
                   const char *want)
{
    struct kr_profile *p = make_well(keep, drop);
    bool lossy = expect_of(p, kr_bytes_str(in), want).lossy;

    kr_profile_destroy(p);
    return lossy;
}

static const char pod[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                          "\"resourceVersion\":\"5\",\"uid\":\"u\","
                          "\"annotations\":{\"x.y\":\"1\",\"z\":\"2\"},\"namespace\":\"s\","
                          "\"managedFields\":[{\"a\":{\"]\":\"\\\"\"}}]},"
                          "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\",\"image\":"
                          "\"i\"},{\"image\":\"j\"}]},"
                          "\"status\":{\"phase\":\"Running\",\"qos\":{}}}";

#define POD_METADATA                                                                               \
    "\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"annotations\":{\"x.y\":\"1\",\"z\":\"2\"},"      \
    "\"namespace\":\"s\"}"

static void test_slim_when_no_paths_then_lossless(void **state)
{
    (void)state;
    assert_false(expect(NONE, NONE, pod,
                        "{" POD_METADATA
                        ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\","
                        "\"image\":\"i\"},{\"image\":\"j\"}]},\"status\":{\"phase\":\"Running\","
                        "\"qos\":{}}}"));
}

static void test_slim_when_paths_keep_then_only_these(void **state)
{
    (void)state;
    assert_true(expect(SOME("spec.containers[*].image", "status.qos"), NONE, pod,
                       "{" POD_METADATA
                       ",\"spec\":{\"containers\":[{\"image\":\"i\"},{\"image\":\"j\"}]},"
                       "\"status\":{\"qos\":{}}}"));
    assert_true(expect(SOME("spec"), NONE, pod,
                       "{" POD_METADATA
                       ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\","
                       "\"image\":\"i\"},{\"image\":\"j\"}]}}"));
    assert_true(expect(SOME("metadata.name"), NONE, pod, "{" POD_METADATA "}"));
    assert_true(expect(SOME("nothing.of.it"), NONE, pod, "{" POD_METADATA "}"));
    /* A path that ends above another one keeps all below. */
    assert_true(expect(SOME("status", "status.phase"), NONE, pod,
                       "{" POD_METADATA ",\"status\":{\"phase\":\"Running\",\"qos\":{}}}"));
}

static void test_slim_when_paths_drop_then_all_but_these(void **state)
{
    (void)state;
    assert_true(expect(
        NONE, SOME("metadata.annotations[\"x.y\"]", "spec.containers[*].name", "status"), pod,
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"annotations\":{\"z\":\"2\"},"
        "\"namespace\":\"s\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"image\":\"i\"},"
        "{\"image\":\"j\"}]}}"));
    assert_true(
        expect(NONE, SOME("metadata.annotations", "spec"), pod,
               "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"namespace\":\"s\"},\"status\":"
               "{\"phase\":\"Running\",\"qos\":{}}}"));
    assert_false(expect(NONE, SOME("spec.nothing", "x.y.z"), "{\"spec\":{\"a\":{}}}",
                        "{\"spec\":{\"a\":{}}}"));
}

static void test_slim_when_paths_keep_and_drop_then_first_keep(void **state)
{
    (void)state;
    assert_true(
        expect(SOME("spec", "status.phase"), SOME("spec.containers[*].name", "status.phase"), pod,
               "{" POD_METADATA ",\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"image\":\"i\"},"
               "{\"image\":\"j\"}]},\"status\":{}}"));
    assert_true(expect(
        SOME("spec.containers[*].image"), SOME("spec.containers", "metadata.annotations[*]"), pod,
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"annotations\":{},\"namespace\":\"s\"},"
        "\"spec\":{}}"));
}

static void test_slim_when_metadata_only_then_nothing_else(void **state)
{
    struct kr_profile *p = make(NONE, SOME("metadata.annotations.z"), true);

    (void)state;
    assert_non_null(p);
    assert_true(
        expect_of(p, kr_bytes_str(pod),
                  "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"annotations\":{\"x.y\":\"1\"},"
                  "\"namespace\":\"s\"}}")
            .lossy);
    assert_false(
        expect_of(p, KR_LIT("{\"kind\":\"X\",\"metadata\":{}}"), "{\"metadata\":{}}").lossy);
    kr_profile_destroy(p);
}

/* The same object in a list (without apiVersion and kind) and in a watch. */
static void test_slim_when_from_list_or_watch_then_the_same(void **state)
{
    (void)state;
    expect(SOME("spec.a"), NONE, "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"a\":1}}",
           "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"a\":1}}");
    expect(SOME("spec.a"), NONE,
           "{\"kind\":\"K\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"3\",\"name\":"
           "\"n\"},"
           "\"spec\":{\"a\":1}}",
           "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"a\":1}}");
    expect(
        SOME("spec.a"), NONE,
        "{\"metadata\":{\"name\":\"n\",\"managedFields\":null},\"spec\":{\"a\":1},\"kind\":\"K\","
        "\"apiVersion\":\"v1\"}",
        "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"a\":1}}");
}

/* F031: what is empty stays, also as the only match. F030: null is a value. */
static void test_f031_slim_when_empty_then_it_stays(void **state)
{
    static const char *const objects[] = {
        "{\"spec\":{\"emptyDir\":{},\"args\":[],\"podSelector\":{},\"ingress\":[{}]},\"data\":{}}",
        "{\"metadata\":{\"annotations\":{\"k\":\"\"}}}",
        "{\"metadata\":{\"annotations\":{},\"labels\":null}}",
        "{\"spec\":{\"m\":{\"a\":null,\"c\":{\"d\":null}}}}",
        "{\"spec\":{\"m\":null}}",
        "{}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++)
        assert_false(expect(NONE, NONE, objects[i], objects[i]));
    expect(SOME("spec.emptyDir"), NONE, objects[0], "{\"spec\":{\"emptyDir\":{}}}");
    expect(SOME("spec.ingress[*].from"), NONE, objects[0], "{\"spec\":{\"ingress\":[{}]}}");
    expect(SOME("spec.args[*].x"), NONE, objects[0], "{\"spec\":{\"args\":[]}}");
    expect(SOME("spec.x"), NONE, objects[0], "{\"spec\":{}}");
    expect(SOME("spec.m.a"), NONE, objects[4], "{\"spec\":{\"m\":null}}");
    expect(SOME("data"), NONE, objects[0], "{\"data\":{}}");
    expect(NONE, SOME("spec.m.c.d"), objects[3], "{\"spec\":{\"m\":{\"a\":null,\"c\":{}}}}");
}

/* F029: nulls in arrays stay in their places. */
static void test_f029_slim_when_arrays_have_nulls_then_places_and_number_stay(void **state)
{
    (void)state;
    expect(NONE, NONE, "{\"spec\":{\"n\":[1,5,null,null,{\"a\":null},{}]}}",
           "{\"spec\":{\"n\":[1,5,null,null,{\"a\":null},{}]}}");
    expect(SOME("spec.n[*].a"), NONE,
           "{\"spec\":{\"n\":[null,{\"b\":1,\"a\":2},7,{\"b\":1},null]}}",
           "{\"spec\":{\"n\":[null,{\"a\":2},7,{},null]}}");
    expect(NONE, SOME("spec.n[*].a"), "{\"spec\":{\"n\":[null,{\"b\":1,\"a\":2},7,{\"a\":1}]}}",
           "{\"spec\":{\"n\":[null,{\"b\":1},7,{}]}}");
    expect(NONE, SOME("spec.n[*]"), "{\"spec\":{\"n\":[null,{\"b\":1},7],\"o\":[1]}}",
           "{\"spec\":{\"n\":[],\"o\":[1]}}");
    /* An array where a path has a name, and the other way round. */
    expect(SOME("spec.n.a"), NONE, "{\"spec\":{\"n\":[{\"a\":1}]}}", "{\"spec\":{\"n\":[]}}");
    expect(SOME("spec.n[*]"), NONE, "{\"spec\":{\"n\":{\"a\":1,\"b\":{}}}}",
           "{\"spec\":{\"n\":{\"a\":1,\"b\":{}}}}");
    expect(SOME("spec.n[*].a"), NONE, "{\"spec\":{\"n\":[[1,2],[{}]]}}",
           "{\"spec\":{\"n\":[[],[]]}}");
    expect(SOME("spec.n.a"), NONE, "{\"spec\":{\"n\":5,\"o\":1}}", "{\"spec\":{}}");
}

/* F028: every number keeps its spelling. */
static void test_f028_slim_when_numbers_then_byte_for_byte(void **state)
{
    static const char object[] =
        "{\"spec\":{\"a\":1000000,\"b\":9007199254740993,\"c\":-9223372036854775808,"
        "\"d\":18446744073709551615,\"e\":1.0,\"f\":1e3,\"g\":1E+2,\"h\":-0,\"i\":0.1,"
        "\"j\":1.7976931348623157e308,\"k\":123456789012345678901234567890,\"l\":1.10}}";

    (void)state;
    expect(NONE, NONE, object, object);
    expect(SOME("spec[*]"), NONE, object, object);
    expect(SOME("spec.e", "spec.k", "spec.l"), NONE, object,
           "{\"spec\":{\"e\":1.0,\"k\":123456789012345678901234567890,\"l\":1.10}}");
}

/* F032: an escaped zero byte neither cuts a string nor merges keys. */
static void test_f032_slim_when_zero_is_escaped_then_all_stays(void **state)
{
    static const char object[] = "{\"metadata\":{\"name\":\"z\",\"annotations\":{\"e\":\"\"}},"
                                 "\"data\":{\"k\":\"a\\u0000b\",\"t\":"
                                 "\"\\u0000\"},\"x\":{\"p\\u0000q\":1,\"p\\u0000r\":2,\"p\":3}}";
    struct kr_profile *p = make_well(NONE, NONE);
    struct kr_slim seen;
    struct kr_buf out;

    (void)state;
    expect(NONE, NONE, object, object);
    expect(SOME("x.p"), NONE, object,
           "{\"metadata\":{\"name\":\"z\",\"annotations\":{\"e\":\"\"}},\"x\":{\"p\":3}}");
    expect(SOME("x[\"p\\u0000r\"]"), NONE, object,
           "{\"metadata\":{\"name\":\"z\",\"annotations\":{\"e\":\"\"}},\"x\":{\"p\\u0000r\":2}}");
    kr_buf_init(&out, 100);
    assert_int_equal(kr_slim(p, kr_bytes_of("{\"k\":\"a\0b\"}", 11), &out, &seen, NULL), KR_EPROTO);
    assert_int_equal(out.n, 0);
    kr_buf_deinit(&out);
    kr_profile_destroy(p);
}

/* F033: as deep as an API server serves, and what is left out may be deeper. */
static void test_f033_slim_when_deep_then_up_to_the_limit(void **state)
{
    static const size_t depths[] = {33, 64, 200, 1000, 2046, 2048, 10001};
    struct kr_profile *all = make_well(NONE, NONE);
    struct kr_profile *none = make_well(SOME("x"), NONE);

    (void)state;
    for (size_t i = 0; i < COUNT(depths); i++) {
        struct kr_buf in;
        struct kr_buf out;
        struct kr_slim seen;
        int rc;

        kr_buf_init(&in, 1 << 20);
        kr_buf_init(&out, 1 << 20);
        kr_buf_append_str(&in, "{\"spec\":");
        for (size_t d = 0; d < depths[i]; d++)
            kr_buf_append_str(&in, "{\"a\":");
        kr_buf_append_str(&in, "[]");
        for (size_t d = 0; d < depths[i]; d++)
            kr_buf_append_str(&in, "}");
        kr_buf_append_str(&in, "}");
        rc = kr_slim(all, kr_buf_bytes(&in), &out, &seen, NULL);
        assert_int_equal(rc, depths[i] + 2 <= KR_SCAN_DEPTH_MAX ? 0 : KR_ETOOBIG);
        assert_true(rc != 0 ? out.n == 0 : kr_bytes_eq(kr_buf_bytes(&in), kr_buf_bytes(&out)));
        expect_of(none, kr_buf_bytes(&in), "{}");
        kr_buf_deinit(&in);
        kr_buf_deinit(&out);
    }
    kr_profile_destroy(all);
    kr_profile_destroy(none);
}

static void test_slim_when_keys_are_escaped_then_what_they_mean_counts(void **state)
{
    (void)state;
    assert_true(
        expect(SOME("spec.image"), NONE,
               "{\"\\u006bind\":\"K\",\"\\u006detadata\":{\"resource\\u0056ersion\":\"1\",\"a\":1},"
               "\"sp\\u0065c\":{\"im\\u0061ge\":\"i\",\"x\":1}}",
               "{\"\\u006detadata\":{\"a\":1},\"sp\\u0065c\":{\"im\\u0061ge\":\"i\"}}"));
    expect(NONE, SOME("spec[\"a\\\"b\"]", "spec[\"\\u00e9\"]"),
           "{\"spec\":{\"a\\\"b\":1,\"a\\u0022b\":2,\"\xc3\xa9\":3,\"\\u00e9\":4,\"e\":5}}",
           "{\"spec\":{\"e\":5}}");
    /* A backslash in a path is none in a key: here \b is a control character. */
    expect(NONE, SOME("spec[\"a\\\\b\"]"), "{\"spec\":{\"a\\b\":1,\"a\\\\b\":2}}",
           "{\"spec\":{\"a\\b\":1}}");
}

static void test_slim_when_keys_are_there_twice_then_alike(void **state)
{
    (void)state;
    expect(SOME("spec.a"), NONE, "{\"spec\":{\"a\":1,\"b\":2,\"a\":3},\"spec\":{\"a\":4}}",
           "{\"spec\":{\"a\":1,\"a\":3},\"spec\":{\"a\":4}}");
    expect(NONE, SOME("spec.a"), "{\"spec\":{\"a\":1,\"b\":2,\"a\":3}}", "{\"spec\":{\"b\":2}}");
    expect(NONE, NONE, "{\"kind\":1,\"kind\":2,\"a\":1,\"a\":1}", "{\"a\":1,\"a\":1}");
}

/* Names of all lengths, beside others that differ in one byte only. */
static void test_slim_when_names_are_alike_then_told_apart(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 40; n++) {
        char name[48];
        char path[64];
        char object[300];
        char want[100];
        int at;

        memset(name, 'n', sizeof name);
        name[n] = '\0';
        snprintf(path, sizeof path, "spec[\"%s\"]", name);
        snprintf(want, sizeof want, "{\"spec\":{\"%s\":0}}", name);
        at = snprintf(object, sizeof object, "{\"spec\":{\"%sn\":1,\"%s\":0", name, name);
        if (n != 0)
            at += snprintf(object + at, sizeof object - (size_t)at, ",\"%s\":2", name + 1);
        if (n != 0) {
            name[n / 2] = 'm';
            at += snprintf(object + at, sizeof object - (size_t)at, ",\"%s\":3", name);
        }
        snprintf(object + at, sizeof object - (size_t)at, "}}");
        expect(SOME(path), NONE, object, want);
    }
}

static void test_slim_when_pretty_then_valid_and_fixed(void **state)
{
    (void)state;
    expect(SOME("spec.a"), NONE,
           " {\n  \"kind\" : \"K\" ,\n  \"metadata\" : {\n    \"name\" : \"n\" ,\n    "
           "\"resourceVersion\" : "
           "\"1\"\n  } ,\n  \"spec\" : { \"b\" : 1 , \"a\" : 2 , \"c\" : 3 }\n}\n",
           "{\n  \"metadata\" : {\n    \"name\" : \"n\"\n  } ,\n  \"spec\" : { \"a\" : 2 }\n}");
    expect(NONE, SOME("spec[*]"), "{ \"spec\" : [ 1 , [ ] , { } ] }", "{ \"spec\" : [ ] }");
    expect(NONE, NONE, "{ \"kind\" : 1 }", "{ }");
}

/* What is left out in every place: first, middle, last, all. */
static void test_slim_when_members_go_then_commas_are_right(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 64; gone++) {
        char in[100] = "{\"s\":{";
        char want[100] = "{\"s\":{";
        char list[100] = "{\"s\":[";
        const char *drop[7] = {NULL};
        char paths[6][8];
        size_t drops = 0;
        bool first = true;

        for (unsigned i = 0; i < 6; i++) {
            char member[16];

            snprintf(member, sizeof member, "\"%c\":[%u]", 'a' + (int)i, i);
            snprintf(in + strlen(in), 16, "%s%s", i != 0 ? "," : "", member);
            snprintf(paths[i], sizeof paths[i], "s.%c", 'a' + (int)i);
            if ((gone >> i & 1) != 0) {
                drop[drops++] = paths[i];
            } else {
                snprintf(want + strlen(want), 16, "%s%s", first ? "" : ",", member);
                first = false;
            }
        }
        snprintf(in + strlen(in), 3, "}}");
        snprintf(want + strlen(want), 3, "}}");
        assert_int_equal(expect(NONE, drop, in, want), gone != 0);
        snprintf(list + strlen(list), 16, "{\"a\":1},2]}");
        expect(NONE, SOME("s[*].a"), list, "{\"s\":[{},2]}");
    }
}

static void test_slim_when_looked_at_then_what_was_seen(void **state)
{
    struct kr_profile *p = make_well(NONE, NONE);
    struct kr_slim seen;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 1000);
    assert_int_equal(kr_slim(p, kr_bytes_str(pod), &out, &seen, NULL), 0);
    assert_true(kr_bytes_is(seen.name, "a") && kr_bytes_is(seen.ns, "s"));
    assert_true(kr_bytes_is(seen.uid, "u") && kr_bytes_is(seen.version, "5"));
    out.n = 0;
    assert_int_equal(
        kr_slim(p, KR_LIT("{\"metadata\":{\"name\":null,\"x\":\"\\n\"}}"), &out, &seen, NULL), 0);
    assert_true(seen.name.n == 0 && seen.version.n == 0);
    kr_buf_deinit(&out);
    kr_profile_destroy(p);
}

static void test_slim_when_not_an_object_then_out_is_as_before(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "[]",
                                      "1",
                                      "null",
                                      "\"{}\"",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1",
                                      "{\"a\":1,}",
                                      "{,}",
                                      "{a:1}",
                                      "{\"a\":1}}",
                                      "{\"a\":1}x",
                                      "{}{}",
                                      "{\"a\":1 \"b\":2}",
                                      "{\"a\":[}",
                                      "{\"a\":{]}",
                                      "{\"a\":[1,]}",
                                      "{\"a\":\"b\"c}",
                                      "{\"a\"x:1}",
                                      "{\"a\":1]",
                                      "{\"a\" \"b\":1}",
                                      "{\"spec\":{\"a\":[1 2]}}",
                                      "{\"spec\":{\"a\":01}}",
                                      "{\"spec\":{\"a\":tru}}",
                                      "{\"spec\":{\"a\":\"\x01\"}}",
                                      "{\"spec\":{\"a\":\"\xff\"}}",
                                      "{\"spec\":{\"a\":\"\\x\"}}",
                                      "{\"metadata\":{\"name\":1}}",
                                      "{\"metadata\":{\"uid\":\"\\u0041\"}}",
                                      "{\"metadata\":{\"resourceVersion\":5}}",
                                      "{\"metadata\":{\"namespace\":{}}}"};
    struct kr_profile *p = make_well(NONE, SOME("spec.b", "a.b"));

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kr_note why = {.text = ""};
        struct kr_slim seen;
        struct kr_buf out;

        kr_buf_init(&out, 1000);
        kr_buf_append_str(&out, "before");
        if (kr_slim(p, kr_bytes_str(bad[i]), &out, &seen, &why) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
        assert_true(why.text[0] != '\0' && kr_bytes_is(kr_buf_bytes(&out), "before"));
        kr_buf_deinit(&out);
    }
    kr_profile_destroy(p);
}

static void test_slim_when_out_is_too_small_then_too_big(void **state)
{
    struct kr_profile *p = make_well(NONE, NONE);

    (void)state;
    for (size_t max = 0; max < 100; max++) {
        struct kr_slim seen;
        struct kr_buf out;
        int rc;

        kr_buf_init(&out, max);
        rc = kr_slim(p, KR_LIT("{\"kind\":1,\"metadata\":{\"name\":\"n\"},\"a\":[],\"kind\":2}"),
                     &out, &seen, NULL);
        assert_int_equal(
            rc, max >= strlen("{\"metadata\":{\"name\":\"n\"},\"a\":[]}") ? 0 : KR_ETOOBIG);
        assert_true(rc == 0 || out.n == 0);
        kr_buf_deinit(&out);
    }
    kr_profile_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slim_when_no_paths_then_lossless),
        cmocka_unit_test(test_slim_when_paths_keep_then_only_these),
        cmocka_unit_test(test_slim_when_paths_drop_then_all_but_these),
        cmocka_unit_test(test_slim_when_paths_keep_and_drop_then_first_keep),
        cmocka_unit_test(test_slim_when_metadata_only_then_nothing_else),
        cmocka_unit_test(test_slim_when_from_list_or_watch_then_the_same),
        cmocka_unit_test(test_f031_slim_when_empty_then_it_stays),
        cmocka_unit_test(test_f029_slim_when_arrays_have_nulls_then_places_and_number_stay),
        cmocka_unit_test(test_f028_slim_when_numbers_then_byte_for_byte),
        cmocka_unit_test(test_f032_slim_when_zero_is_escaped_then_all_stays),
        cmocka_unit_test(test_f033_slim_when_deep_then_up_to_the_limit),
        cmocka_unit_test(test_slim_when_keys_are_escaped_then_what_they_mean_counts),
        cmocka_unit_test(test_slim_when_keys_are_there_twice_then_alike),
        cmocka_unit_test(test_slim_when_names_are_alike_then_told_apart),
        cmocka_unit_test(test_slim_when_pretty_then_valid_and_fixed),
        cmocka_unit_test(test_slim_when_members_go_then_commas_are_right),
        cmocka_unit_test(test_slim_when_looked_at_then_what_was_seen),
        cmocka_unit_test(test_slim_when_not_an_object_then_out_is_as_before),
        cmocka_unit_test(test_slim_when_out_is_too_small_then_too_big),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
