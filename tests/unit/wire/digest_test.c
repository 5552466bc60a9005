/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/digest.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define L(s) KR_LIT(s)

static void test_key_hash_when_text_moves_between_the_parts_then_another(void **state)
{
    uint64_t h = kr_key_hash(L("ab"), L("c"));

    (void)state;
    assert_true(h == kr_key_hash(L("ab"), L("c")));
    assert_true(h != kr_key_hash(L("a"), L("bc")));
    assert_true(h != kr_key_hash(L(""), L("abc")));
    assert_true(h != kr_key_hash(L("c"), L("ab")));
}

/* Both ends of a wire must find the same: these numbers are part of the protocol. */
static void test_hashes_when_made_on_any_machine_then_these(void **state)
{
    struct kr_digest d = {.objects = 0};

    (void)state;
    assert_int_equal(kr_key_hash(L("default"), L("web-0")), 0xf5bc7e7f8c0ea665u);
    assert_int_equal(kr_key_hash(L(""), L("node-1")), 0x6aa736ebc0520844u);
    assert_int_equal(kr_object_hash(L("u-1"), L("{}"), L("[]")), 0x94df463b31e3a287u);
    kr_digest_add(&d, 0x0123456789abcdefu, 0xfedcba9876543210u);
    assert_int_equal(d.sums[1], 0xb5fd91feb4c92044u);
}

static void test_object_hash_when_any_part_differs_then_another(void **state)
{
    uint64_t h = kr_object_hash(L("u"), L("{}"), L("[1]"));

    (void)state;
    assert_true(h != kr_object_hash(L("v"), L("{}"), L("[1]")));
    assert_true(h != kr_object_hash(L("u"), L("{ }"), L("[1]")));
    assert_true(h != kr_object_hash(L("u"), L("{}"), L("[2]")));
    assert_true(h != kr_object_hash(L(""), L("{}"), L("[1]u")));
}

static void test_digest_when_order_differs_then_same_and_removal_undoes(void **state)
{
    struct kr_digest a = {.objects = 0};
    struct kr_digest b = {.objects = 0};
    const struct kr_digest none = {.objects = 0};

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        kr_digest_add(&a, i * 0x9e3779b97f4a7c15u, i);
    for (uint64_t i = 1000; i-- != 0;)
        kr_digest_add(&b, i * 0x9e3779b97f4a7c15u, i);
    assert_memory_equal(&a, &b, sizeof a);
    kr_digest_remove(&a, 5 * 0x9e3779b97f4a7c15u, 5);
    assert_memory_not_equal(&a, &b, sizeof a);
    kr_digest_add(&a, 5 * 0x9e3779b97f4a7c15u, 6);
    assert_int_equal(a.objects, b.objects);
    assert_memory_not_equal(&a, &b, sizeof a);
    for (uint64_t i = 0; i < 1000; i++)
        kr_digest_remove(&b, i * 0x9e3779b97f4a7c15u, i);
    assert_memory_equal(&b, &none, sizeof b);
}

static void test_digest_when_pair_is_there_twice_then_not_as_if_never(void **state)
{
    struct kr_digest d = {.objects = 0};

    (void)state;
    kr_digest_add(&d, 7, 8);
    kr_digest_add(&d, 7, 8);
    assert_true(d.sums[0] != 0);
    assert_int_equal(d.objects, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_key_hash_when_text_moves_between_the_parts_then_another),
        cmocka_unit_test(test_hashes_when_made_on_any_machine_then_these),
        cmocka_unit_test(test_object_hash_when_any_part_differs_then_another),
        cmocka_unit_test(test_digest_when_order_differs_then_same_and_removal_undoes),
        cmocka_unit_test(test_digest_when_pair_is_there_twice_then_not_as_if_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
