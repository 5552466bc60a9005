/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/review_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/err.h"

static int convert(const char *body, size_t n, struct kr_buf *out)
{
    kr_buf_init(out, 65536);
    return hub_review_body_to_json(kr_bytes_of(body, n), out);
}

static void becomes(const char *body, size_t n, const char *json)
{
    struct kr_buf out;

    assert_int_equal(convert(body, n, &out), 0);
    assert_int_equal(out.n, strlen(json));
    assert_memory_equal(out.p, json, out.n);
    kr_buf_deinit(&out);
}

static void is_refused(const char *body, size_t n)
{
    struct kr_buf out;

    assert_int_equal(convert(body, n, &out), KR_EPROTO);
    kr_buf_deinit(&out);
}

#define BECOMES(body, json) becomes(body, sizeof(body) - 1, json)
#define IS_REFUSED(body) is_refused(body, sizeof(body) - 1)

/* What kubectl 1.33 sends for `auth can-i list pods`, but for the type's name. */
static void test_body_of_kubectl_is_read(void **state)
{
    (void)state;
    BECOMES(
        "k8s\0"
        "\x12\x2a" /* raw */
        "\x0a\x12"
        "\x0a\x00\x12\x00\x1a\x00\x22\x00\x2a\x00\x32\x00\x38\x00\x42\x00\x0a\x00" /* metadata */
        "\x12\x14\x0a\x12" /* spec, resourceAttributes */
        "\x0a\x00\x12\x04list\x1a\x00\x22\x00\x2a\x04pods"
        "\x1a\x00\x22\x00",
        "{\"spec\":{\"resourceAttributes\":{\"namespace\":\"\",\"verb\":\"list\",\"group\":\"\","
        "\"version\":\"\",\"resource\":\"pods\"}}}");
}

static void test_path_that_is_no_resource_is_read(void **state)
{
    (void)state;
    BECOMES("k8s\0"
            "\x12\x12\x12\x10\x12\x0e"
            "\x0a\x07/a\"b/\nc\x12\x03get",
            "{\"spec\":{\"nonResourceAttributes\":{\"path\":\"/a\\\"b/\\nc\",\"verb\":\"get\"}}}");
}

static void test_fields_that_are_not_known_are_skipped(void **state)
{
    (void)state;
    BECOMES("k8s\0"
            "\x0a\x02xy\x12\x0e\x12\x0c\x18\x01\x0a\x08"
            "\x42\x02\x0a\x00\x12\x02go\x22\x00",
            "{\"spec\":{\"resourceAttributes\":{\"verb\":\"go\"}}}");
}

static void test_body_that_is_broken_is_refused(void **state)
{
    (void)state;
    IS_REFUSED("");
    IS_REFUSED("{}");
    IS_REFUSED("k8s\0");
    IS_REFUSED("k8s\0\x12\x00");                             /* no spec */
    IS_REFUSED("k8s\0\x12\x05\x12\x01");                     /* cut off */
    IS_REFUSED("k8s\0\x10\x01");                             /* raw is a number */
    IS_REFUSED("k8s\0\x12\x02\x12\x00\x12\x02\x12\x00");     /* twice */
    IS_REFUSED("k8s\0\x12\x06\x12\x04\x0a\x02\x10\x01");     /* a verb that is a number */
    IS_REFUSED("k8s\0\x12\x07\x12\x05\x0a\x03\x12\x01\xff"); /* not UTF-8 */
}

static void test_rules_review_is_read(void **state)
{
    static const char body[] = "k8s\0\x12\x0b\x12\x09\x0a\x07"
                               "default";
    struct kr_buf out = {.max = 4096};

    (void)state;
    assert_int_equal(hub_rules_body_to_json(kr_bytes_of(body, sizeof body - 1), &out), 0);
    assert_int_equal(kr_buf_append(&out, kr_bytes_of("", 1)), 0);
    assert_string_equal(out.p, "{\"spec\":{\"namespace\":\"default\"}}");
    kr_buf_deinit(&out);
    assert_int_equal(hub_rules_body_to_json(kr_bytes_of(body, 6), &out), KR_EPROTO);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_body_of_kubectl_is_read),
        cmocka_unit_test(test_path_that_is_no_resource_is_read),
        cmocka_unit_test(test_fields_that_are_not_known_are_skipped),
        cmocka_unit_test(test_body_that_is_broken_is_refused),
        cmocka_unit_test(test_rules_review_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
