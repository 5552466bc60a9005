/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object_facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static int read_facts(const char *object, struct kr_object_facts *f)
{
    struct kr_note why = {.text = ""};
    int rc = kr_object_facts(kr_bytes_str(object), f, &why);

    assert_true((rc == 0) == (why.text[0] == '\0'));
    return rc;
}

static void test_facts_when_all_are_there_then_found(void **state)
{
    static const char object[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                                 "\"n\",\"namespace\":\"s\",\"uid\":"
                                 "\"u\",\"resourceVersion\":\"12\",\"creationTimestamp\":\"2026-01-"
                                 "01T00:00:00Z\",\"labels\":"
                                 "{\"a\":\"b\"},\"annotations\":{\"c\":\"d\"},\"ownerReferences\":["
                                 "{\"name\":\"o\"}],\"other\":"
                                 "{\"name\":\"x\"}},\"spec\":{\"metadata\":{\"name\":\"y\"}}}";
    struct kr_object_facts f;

    (void)state;
    assert_int_equal(read_facts(object, &f), 0);
    assert_true(kr_bytes_is(f.api_version, "v1") && kr_bytes_is(f.kind, "Pod"));
    assert_true(kr_bytes_is(f.name, "n") && kr_bytes_is(f.ns, "s") && kr_bytes_is(f.uid, "u"));
    assert_true(kr_bytes_is(f.version, "12") && kr_bytes_is(f.created, "2026-01-01T00:00:00Z"));
    assert_true(kr_bytes_is(f.labels, "{\"a\":\"b\"}"));
    assert_true(kr_bytes_is(f.annotations, "{\"c\":\"d\"}"));
    assert_true(kr_bytes_is(f.owners, "[{\"name\":\"o\"}]"));
    assert_int_equal(f.top.at, 1);
    assert_int_equal(f.in_metadata.at, strstr(object, "\"name\":\"n\"") - object);
    assert_int_equal(f.in_labels.at, strstr(object, "\"a\":") - object);
    assert_int_equal(f.in_annotations.at, strstr(object, "\"c\":") - object);
    assert_false(f.top.empty || f.in_metadata.empty || f.in_labels.empty || f.in_annotations.empty);
}

static void test_facts_when_nothing_is_there_then_empty(void **state)
{
    struct kr_object_facts f;

    (void)state;
    assert_int_equal(read_facts(" { } ", &f), 0);
    assert_int_equal(f.top.at, 2);
    assert_true(f.top.empty && f.in_metadata.at == 0 && f.name.n == 0 && f.labels.n == 0);
    assert_int_equal(read_facts("{\"metadata\":{ }}", &f), 0);
    assert_true(f.in_metadata.at == 13 && f.in_metadata.empty && !f.top.empty);
    assert_int_equal(read_facts("{\"metadata\":null}", &f), 0);
    assert_int_equal(f.in_metadata.at, 0);
    assert_int_equal(
        read_facts("{\"metadata\":{\"labels\":null,\"annotations\":{},\"creationTimestamp\":null}}",
                   &f),
        0);
    assert_true(f.labels.n == 0 && f.in_labels.at == 0 && f.created.n == 0);
    assert_true(kr_bytes_is(f.annotations, "{}") && f.in_annotations.empty);
}

/* What is put behind each opening makes a valid object that has it. */
static void test_openings_when_something_is_put_there_then_still_valid(void **state)
{
    static const char *const objects[] = {
        "{\"metadata\":{\"labels\":{},\"annotations\":{\"x\":\"y\"}}}",
        " {\n\"metadata\" : { \"annotations\":{ } ,\"labels\" : { \"a\" : \"b\" } } , \"k\":1 }\n",
        "{\"spec\":{},\"metadata\":{\"labels\":{\"caf\xc3\xa9\":\"\"},\"annotations\":{}}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        struct kr_object_facts f;

        assert_int_equal(read_facts(objects[i], &f), 0);
        const struct kr_opening all[] = {f.top, f.in_metadata, f.in_labels, f.in_annotations};

        for (size_t j = 0; j < COUNT(all); j++) {
            char text[300];

            assert_true(all[j].at != 0 && objects[i][all[j].at - 1] == '{');
            snprintf(text, sizeof text, "%.*s\"new\":\"v\"%s%s", (int)all[j].at, objects[i],
                     all[j].empty ? "" : ",", objects[i] + all[j].at);
            assert_int_equal(read_facts(text, &f), 0);
        }
    }
}

static void test_facts_when_ambiguous_then_refused(void **state)
{
    static const char *const bad[] = {
        "{\"metadata\":{},\"metadata\":{}}",
        "{\"kind\":\"A\",\"kind\":\"A\"}",
        "{\"apiVersion\":\"v1\",\"apiVersion\":\"v1\"}",
        "{\"metadata\":{\"name\":\"a\",\"name\":\"a\"}}",
        "{\"metadata\":{\"namespace\":\"a\",\"namespace\":\"b\"}}",
        "{\"metadata\":{\"uid\":\"a\",\"uid\":\"b\"}}",
        "{\"metadata\":{\"resourceVersion\":\"1\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"labels\":{},\"labels\":{}}}",
        "{\"metadata\":{\"labels\":null,\"labels\":{}}}",
        "{\"metadata\":{\"annotations\":{},\"annotations\":{}}}",
        "{\"metadata\":{\"ownerReferences\":[],\"ownerReferences\":[]}}",
        "{\"metadata\":{\"creationTimestamp\":null,\"creationTimestamp\":null}}",
        "{\"\\u006detadata\":{}}",
        "{\"metadata\":{},\"met\\u0061data\":{}}",
        "{\"\\u006bind\":\"A\"}",
        "{\"metadata\":{\"\\u006eame\":\"a\"}}",
        "{\"metadata\":{\"label\\u0073\":{}}}",
    };
    struct kr_object_facts f;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (read_facts(bad[i], &f) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
        assert_true(f.top.at == 0 && f.name.n == 0);
    }
    /* What is not read may be there twice. */
    assert_int_equal(read_facts("{\"a\":1,\"a\":2,\"metadata\":{\"x\":1,\"\\u0078\":2}}", &f), 0);
}

static void test_facts_when_of_another_kind_then_refused(void **state)
{
    static const char *const bad[] = {"[]",
                                      "1",
                                      "",
                                      "{",
                                      "{\"metadata\":[]}",
                                      "{\"metadata\":1}",
                                      "{\"metadata\":{\"name\":1}}",
                                      "{\"metadata\":{\"name\":null}}",
                                      "{\"metadata\":{\"name\":\"a\\u0062\"}}",
                                      "{\"metadata\":{\"uid\":{}}}",
                                      "{\"metadata\":{\"resourceVersion\":5}}",
                                      "{\"metadata\":{\"namespace\":\"\\n\"}}",
                                      "{\"metadata\":{\"labels\":[]}}",
                                      "{\"metadata\":{\"annotations\":\"\"}}",
                                      "{\"metadata\":{\"creationTimestamp\":5}}",
                                      "{\"kind\":{}}",
                                      "{\"apiVersion\":null}",
                                      "{\"spec\":01}",
                                      "{\"spec\":\"\xff\"}"};
    struct kr_object_facts f;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (read_facts(bad[i], &f) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
    }
}

/* F033 */
static void test_f033_facts_when_too_deep_then_too_big(void **state)
{
    struct kr_object_facts f;
    struct kr_buf object;

    (void)state;
    kr_buf_init(&object, 1 << 20);
    kr_buf_append_str(&object, "{\"spec\":");
    for (int i = 0; i < 10001; i++)
        kr_buf_append_str(&object, "[");
    for (int i = 0; i < 10001; i++)
        kr_buf_append_str(&object, "]");
    kr_buf_append_str(&object, "}");
    assert_int_equal(kr_object_facts(kr_buf_bytes(&object), &f, NULL), KR_ETOOBIG);
    kr_buf_deinit(&object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts_when_all_are_there_then_found),
        cmocka_unit_test(test_facts_when_nothing_is_there_then_empty),
        cmocka_unit_test(test_openings_when_something_is_put_there_then_still_valid),
        cmocka_unit_test(test_facts_when_ambiguous_then_refused),
        cmocka_unit_test(test_facts_when_of_another_kind_then_refused),
        cmocka_unit_test(test_f033_facts_when_too_deep_then_too_big),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
