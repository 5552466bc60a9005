/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/bearer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "hub/token_file.h"

#define P HUB_BEARER_PROTOCOL

struct row {
    const char *fields[4]; /* name, value, name, value */
    int rc;
    const char *token;
};

static const struct row rows[] = {
    {{NULL}, KR_ENOENT, NULL},
    {{"authorization", "Bearer abc"}, 0, "abc"},
    {{"authorization", "bEaReR   a.b-c_d~+/=="}, 0, "a.b-c_d~+/=="},
    {{"authorization", "Bearer"}, KR_EDENIED, NULL},
    {{"authorization", "Bearer a b"}, KR_EDENIED, NULL},
    {{"authorization", "Bearer \xc3\xa9"}, KR_EDENIED, NULL},
    {{"authorization", "Basic YTpi"}, KR_EDENIED, NULL},
    {{"authorization", "Bearerabc"}, KR_EDENIED, NULL},
    {{"authorization", ""}, KR_EDENIED, NULL},
    {{"authorization", "Bearer a", "authorization", "Bearer a"}, KR_EDENIED, NULL},
    {{"sec-websocket-protocol", "v5.channel.k8s.io"}, KR_ENOENT, NULL},
    {{"sec-websocket-protocol", P "YWJj, v5.channel.k8s.io"}, 0, "abc"},
    {{"sec-websocket-protocol", "v5.channel.k8s.io," P "YWJj"}, 0, "abc"},
    {{"sec-websocket-protocol", P "YWJj", "sec-websocket-protocol", "x"}, 0, "abc"},
    {{"sec-websocket-protocol", P "YWJj"}, KR_EDENIED, NULL},
    {{"sec-websocket-protocol", P "YWJj, " P "YWJj, x"}, KR_EDENIED, NULL},
    {{"sec-websocket-protocol", P "YWJj=, x"}, KR_EDENIED, NULL},
    {{"sec-websocket-protocol", P ", x"}, KR_EDENIED, NULL},
    {{"sec-websocket-protocol", P "YSBi, x"}, KR_EDENIED, NULL}, /* "a b" */
    {{"authorization", "Bearer abc", "sec-websocket-protocol", P "eHl6, x"}, 0, "abc"},
};

static void test_find_when_fields_then_token_or_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kr_head head;
        struct kr_arena arena;
        struct kr_bytes token = {NULL, 0};
        struct kr_note why = {""};
        int rc;

        kr_head_init(&head, KR_HEAD_MAX);
        kr_arena_init(&arena, 256, 65536);
        for (size_t f = 0; f < 4 && rows[i].fields[f] != NULL; f += 2)
            kr_head_add_str(&head, rows[i].fields[f], rows[i].fields[f + 1]);
        rc = hub_bearer_find(&head, &arena, &token, &why);
        if (rc != rows[i].rc || (rc == 0 && !kr_bytes_is(token, rows[i].token)))
            fail_msg("row %zu: %d \"%.*s\" %s", i, rc, (int)token.n, (const char *)token.p,
                     why.text);
        kr_arena_deinit(&arena);
        kr_head_deinit(&head);
    }
}

static void test_token_file_when_read_then_callers(void **state)
{
    static const char text[] =
        "# labs\n\nt1,alice,u1,\"ops, dev\"\r\n\"t,2\",bob,\n t3 , carol , u3 ,ops\n";
    struct hub_token_file *f;
    struct hub_caller *c;
    struct kr_note why = {""};

    (void)state;
    assert_int_equal(hub_token_file_parse(&f, "t.csv", kr_bytes_str(text), &why), KR_EINVAL);
    assert_non_null(strstr(why.text, "t.csv:4")); /* the uid must be there */
    assert_int_equal(hub_token_file_parse(
                         &f, "t.csv", KR_LIT("t1,alice,u1,\"ops, dev\"\r\n\"t,2\",bob,-\n"), &why),
                     0);
    assert_int_equal(hub_token_file_count(f), 2);
    c = hub_token_file_find(f, KR_LIT("t1"));
    assert_string_equal(hub_caller_name(c), "alice");
    assert_int_equal(c->group_count, 2);
    assert_true(kr_bytes_is(c->groups[1], "dev"));
    assert_string_equal(hub_caller_name(hub_token_file_find(f, KR_LIT("t,2"))), "bob");
    assert_null(hub_token_file_find(f, KR_LIT("t")));
    hub_token_file_destroy(f);
}

static void test_revoke_when_a_token_is_gone_then_only_its_caller(void **state)
{
    struct hub_token_file *old;
    struct hub_token_file *now;

    (void)state;
    assert_int_equal(
        hub_token_file_parse(&old, "t", KR_LIT("a,alice,1\nb,bob,2\nc,carol,3,x\n"), NULL), 0);
    assert_int_equal(hub_token_file_parse(&now, "t", KR_LIT("a,alice,1\nc,carol,3,y\n"), NULL), 0);
    hub_token_file_revoke(old, now);
    hub_token_file_revoke(NULL, now);
    assert_false(hub_token_file_find(old, KR_LIT("a"))->revoked);
    assert_true(hub_token_file_find(old, KR_LIT("b"))->revoked);
    assert_true(hub_token_file_find(old, KR_LIT("c"))->revoked);
    hub_token_file_destroy(old);
    hub_token_file_destroy(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find_when_fields_then_token_or_reason),
        cmocka_unit_test(test_token_file_when_read_then_callers),
        cmocka_unit_test(test_revoke_when_a_token_is_gone_then_only_its_caller),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
