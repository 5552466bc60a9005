/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pipe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct fake {
    struct kr_pipe pipe;
    int fills;
    int reading;
    int closed;
};

static void want_fill(struct kr_pipe *p)
{
    ((struct fake *)(void *)p)->fills++;
}

static void set_reading(struct kr_pipe *p, bool on)
{
    ((struct fake *)(void *)p)->reading = on;
}

static void close_it(struct kr_pipe *p, enum kr_pipe_close how)
{
    ((struct fake *)(void *)p)->closed = how == KR_PIPE_ABORT ? 2 : 1;
}

static const struct kr_pipe_ops ops = {
    .want_fill = want_fill, .set_reading = set_reading, .close = close_it};
static const struct kr_pipe_user user_ops = {.on_bytes = NULL};

static void test_attach_starts_reading_and_calls_reach_the_provider(void **state)
{
    struct fake f = {.pipe = {.ops = &ops}};
    int user = 0;

    (void)state;
    kr_pipe_attach(&f.pipe, &user_ops, &user);
    assert_int_equal(f.reading, 1);
    assert_ptr_equal(f.pipe.user, &user);
    kr_pipe_want_fill(&f.pipe);
    kr_pipe_set_reading(&f.pipe, false);
    kr_pipe_close(&f.pipe, KR_PIPE_ABORT);
    assert_int_equal(f.fills, 1);
    assert_int_equal(f.reading, 0);
    assert_int_equal(f.closed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attach_starts_reading_and_calls_reach_the_provider),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
