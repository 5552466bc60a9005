/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

static const uint8_t key[KR_HMAC_SIZE] = {1, 2, 3};
static const uint8_t other_key[KR_HMAC_SIZE] = {1, 2, 4};

static void make(struct kr_buf *out)
{
    const struct hub_token t = {.revision = UINT64_C(28737062518656001),
                                .ns = KR_LIT("default"),
                                .name = KR_LIT("web-\"1"),
                                .cluster = KR_LIT("edge-1"),
                                .left = 15};

    *out = (struct kr_buf){.max = 4096};
    assert_int_equal(hub_token_write(key, KR_LIT("alice pods"), &t, out), 0);
}

static int read_with(const uint8_t *with, const char *bound, struct kr_bytes text,
                     struct kr_arena *arena, struct hub_token *t)
{
    return hub_token_read(with, kr_bytes_str(bound), text, arena, t);
}

static void test_token_when_read_back_then_the_same(void **state)
{
    struct kr_arena arena;
    struct kr_buf text;
    struct hub_token t;

    (void)state;
    kr_arena_init(&arena, 512, 65536);
    make(&text);
    for (size_t i = 0; i < text.n; i++) /* nothing that a URL would have to escape */
        assert_true((text.p[i] >= '0' && text.p[i] <= '9') ||
                    (text.p[i] >= 'A' && text.p[i] <= 'Z') ||
                    (text.p[i] >= 'a' && text.p[i] <= 'z') || text.p[i] == '-' || text.p[i] == '_');
    assert_int_equal(read_with(key, "alice pods", kr_buf_bytes(&text), &arena, &t), 0);
    assert_int_equal(t.revision, UINT64_C(28737062518656001));
    assert_true(kr_bytes_is(t.ns, "default") && kr_bytes_is(t.name, "web-\"1") &&
                kr_bytes_is(t.cluster, "edge-1"));
    assert_int_equal(t.left, 15);
    kr_buf_deinit(&text);
    kr_arena_deinit(&arena);
}

static void test_token_when_nothing_is_known_of_the_rest_then_neither_is_it_after(void **state)
{
    const struct hub_token plain = {.revision = 7, .left = HUB_LEFT_UNKNOWN};
    struct kr_buf text = {.max = 4096};
    struct kr_arena arena;
    struct hub_token t;

    (void)state;
    kr_arena_init(&arena, 512, 65536);
    assert_int_equal(hub_token_write(key, KR_LIT(""), &plain, &text), 0);
    assert_int_equal(read_with(key, "", kr_buf_bytes(&text), &arena, &t), 0);
    assert_int_equal(t.left, HUB_LEFT_UNKNOWN);
    assert_int_equal(t.ns.n + t.name.n + t.cluster.n, 0);
    kr_buf_deinit(&text);
    kr_arena_deinit(&arena);
}

static void test_token_when_anything_differs_then_denied(void **state)
{
    struct kr_arena arena;
    struct kr_buf text;
    struct hub_token t;

    (void)state;
    kr_arena_init(&arena, 512, 1 << 20);
    make(&text);
    assert_int_equal(read_with(key, "bob pods", kr_buf_bytes(&text), &arena, &t), KR_EDENIED);
    assert_int_equal(read_with(other_key, "alice pods", kr_buf_bytes(&text), &arena, &t),
                     KR_EDENIED);
    for (size_t i = 0; i < text.n; i++) {
        uint8_t was = text.p[i];
        int rc;

        text.p[i] = was == 'A' ? 'B' : 'A';
        rc = read_with(key, "alice pods", kr_buf_bytes(&text), &arena, &t);
        /* The last character has bits that stand for nothing. */
        assert_true(rc == KR_EDENIED || i + 1 == text.n);
        text.p[i] = was;
        assert_int_equal(read_with(key, "alice pods", kr_bytes_of(text.p, i), &arena, &t),
                         KR_EDENIED);
    }
    assert_int_equal(read_with(key, "alice pods", KR_LIT("%%%"), &arena, &t), KR_EDENIED);
    kr_buf_deinit(&text);
    kr_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_when_read_back_then_the_same),
        cmocka_unit_test(test_token_when_nothing_is_known_of_the_rest_then_neither_is_it_after),
        cmocka_unit_test(test_token_when_anything_differs_then_denied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
