/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/join_token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_token_that_was_made_is_read_back(void **state)
{
    char text[HUB_JOIN_TOKEN_SIZE];
    char id[HUB_TOKEN_ID + 1];
    uint8_t hash[32];
    struct hub_token t = {.used = false};

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(hub_join_token_make(text, &t), 0);
        assert_true(hub_join_token_read(kr_bytes_str(text), id, hash));
        assert_string_equal(id, t.id);
        assert_memory_equal(hash, t.secret_sha256, sizeof hash);
    }
}

static void test_anything_else_is_no_token(void **state)
{
    static const char good[] = "kr1.abcdefgh.abcdefghijklmnopqrstuvwxyz234567";
    char id[HUB_TOKEN_ID + 1];
    char text[sizeof good];
    uint8_t hash[32];

    (void)state;
    assert_true(hub_join_token_read(kr_bytes_str(good), id, hash));
    for (size_t i = 0; i < sizeof good - 1; i++) {
        memcpy(text, good, sizeof good);
        text[i] = '1';
        assert_int_equal(hub_join_token_read(kr_bytes_str(text), id, hash), i == 2);
        assert_false(hub_join_token_read(kr_bytes_of(good, i), id, hash));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_that_was_made_is_read_back),
        cmocka_unit_test(test_anything_else_is_no_token),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
