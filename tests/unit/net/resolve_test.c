/* SPDX-License-Identifier: Apache-2.0 */
#include "net/resolve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

struct answer {
    struct kr_loop *loop;
    int calls;
    int rc;
    size_t count;
    char first[KR_ADDR_TEXT];
    struct kr_note why;
};

static void on_done(void *owner, int rc, const struct kr_addr *addrs, size_t count,
                    const struct kr_note *why)
{
    struct answer *a = owner;

    a->calls++;
    a->rc = rc;
    a->count = count;
    if (rc == 0)
        kr_addr_text(&addrs[0], a->first);
    a->why = *why;
    kr_loop_stop(a->loop);
}

static struct answer ask(const char *host, int64_t timeout_ms)
{
    struct answer a = {.loop = kr_loop_create(NULL)};

    assert_non_null(kr_resolve_start(a.loop, host, 443, timeout_ms, on_done, &a));
    assert_int_equal(a.calls, 0);
    kr_loop_run(a.loop);
    assert_int_equal(a.calls, 1);
    kr_loop_destroy(a.loop);
    return a;
}

static void test_numeric_address_then_itself(void **state)
{
    (void)state;
    assert_string_equal(ask("10.1.2.3", 0).first, "10.1.2.3:443");
    assert_string_equal(ask("fd00::1", 0).first, "[fd00::1]:443");
}

static void test_localhost_then_loopback(void **state)
{
    struct answer a = ask("localhost", 0);

    (void)state;
    assert_int_equal(a.rc, 0);
    assert_true(a.count >= 1 && a.count <= KR_RESOLVE_MAX);
    assert_true(strcmp(a.first, "127.0.0.1:443") == 0 || strcmp(a.first, "[::1]:443") == 0);
}

static void test_bad_name_then_failure_that_names_it(void **state)
{
    struct answer a = ask("no-such-host.invalid", 500);

    (void)state;
    assert_true(a.rc == KR_ERESOLVE || a.rc == KR_ETIMEDOUT); /* as the machine's DNS is */
    assert_non_null(strstr(a.why.text, "no-such-host.invalid"));
    a = ask("a..b", 500);
    assert_int_equal(a.rc, KR_ERESOLVE);
}

static void test_cancel_then_no_callback(void **state)
{
    struct answer a = {.loop = kr_loop_create(NULL)};

    (void)state;
    kr_resolve_cancel(kr_resolve_start(a.loop, "no-such-host.invalid", 1, 0, on_done, &a));
    kr_resolve_cancel(kr_resolve_start(a.loop, "127.0.0.1", 1, 0, on_done, &a));
    kr_resolve_cancel(NULL);
    kr_loop_turn(a.loop, 20);
    assert_int_equal(a.calls, 0);
    kr_loop_destroy(a.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numeric_address_then_itself),
        cmocka_unit_test(test_localhost_then_loopback),
        cmocka_unit_test(test_bad_name_then_failure_that_names_it),
        cmocka_unit_test(test_cancel_then_no_callback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
