/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Goes into the outermost object and, there, into "in" (objects) and "list" (arrays of objects);
 * keys and values that are passed over are counted. */
static int walk(struct kr_bytes text, unsigned *keys, size_t *bytes)
{
    struct kr_walk w;
    struct kr_bytes key;
    struct kr_bytes inner;

    *keys = 0;
    *bytes = 0;
    kr_walk_start(&w, text);
    if (!kr_walk_enter(&w, '{'))
        return KR_EINVAL;
    while (kr_walk_member(&w, &key)) {
        ++*keys;
        if (kr_bytes_is(key, "list") && kr_walk_enter(&w, '[')) {
            while (kr_walk_element(&w))
                *bytes += kr_walk_value(&w).n;
        } else if (kr_bytes_is(key, "in") && kr_walk_enter(&w, '{')) {
            while (kr_walk_member(&w, &inner)) {
                ++*keys;
                *bytes += kr_walk_value(&w).n;
            }
        } else {
            *bytes += kr_walk_value(&w).n;
        }
    }
    return kr_walk_end(&w);
}

/* In memory of its own, so that a byte read outside of it is found. */
static int walk_copy(const char *text, size_t n, unsigned *keys, size_t *bytes)
{
    uint8_t *copy = malloc(n != 0 ? n : 1);
    int rc;

    assert_non_null(copy);
    memcpy(copy, text, n);
    rc = walk(kr_bytes_of(copy, n), keys, bytes);
    free(copy);
    return rc;
}

static void test_walk_when_sound_then_all_is_seen_once(void **state)
{
    static const char text[] = " { \"a\" : 1 , \"in\":{\"b\":\"}\\\"\",\"c\":[{}]} , \"list\" : [ "
                               "] ,\"list\":[ 1 , {} ,\"x\" ],"
                               "\"in\" : { } , \"in\":null,\"z\":{\"y\":[1,2]} } ";
    unsigned keys;
    size_t bytes;

    (void)state;
    assert_int_equal(walk_copy(text, sizeof text - 1, &keys, &bytes), 0);
    assert_int_equal(keys, 9);
    assert_int_equal(bytes, 1 + 5 + 4 + 1 + 2 + 3 + 4 + 11);
}

static void test_walk_when_cut_anywhere_then_malformed(void **state)
{
    static const char text[] = "{\"a\":1,\"in\":{\"b\":\"x\"},\"list\":[1,{}],\"c\":true}";
    unsigned keys;
    size_t bytes;

    (void)state;
    for (size_t n = 0; n < sizeof text - 1; n++)
        assert_int_equal(walk_copy(text, n, &keys, &bytes), n == 0 ? KR_EINVAL : KR_EPROTO);
}

static void test_walk_when_punctuation_is_wrong_then_malformed(void **state)
{
    static const char *const bad[] = {
        "{,}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1]",
        "{a:1}",
        "{\"a\":1}}",
        "{\"a\":1} 1",
        "{\"list\":[,]}",
        "{\"list\":[1,]}",
        "{\"list\":[1 2]}",
        "{\"list\":[1}",
        "{\"list\":[1}]}",
        "{\"in\":{]}",
        "{\"in\":{,}}",
        "{\"in\":{\"a\":1,}}",
    };
    unsigned keys;
    size_t bytes;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (walk_copy(bad[i], strlen(bad[i]), &keys, &bytes) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
    }
}

static void test_walk_when_a_value_is_too_deep_then_too_big(void **state)
{
    static const size_t depths[] = {KR_FRAME_DEPTH_MAX, KR_FRAME_DEPTH_MAX + 1};
    unsigned keys;
    size_t bytes;

    (void)state;
    for (size_t i = 0; i < COUNT(depths); i++) {
        const size_t n = 2 * depths[i] + 6;
        char *text = malloc(n);

        assert_non_null(text);
        memcpy(text, "{\"a\":", 5);
        memset(text + 5, '[', depths[i]);
        memset(text + 5 + depths[i], ']', depths[i]);
        text[n - 1] = '}';
        assert_int_equal(walk_copy(text, n, &keys, &bytes), i == 0 ? 0 : KR_ETOOBIG);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_when_sound_then_all_is_seen_once),
        cmocka_unit_test(test_walk_when_cut_anywhere_then_malformed),
        cmocka_unit_test(test_walk_when_punctuation_is_wrong_then_malformed),
        cmocka_unit_test(test_walk_when_a_value_is_too_deep_then_too_big),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
