/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

static struct hub_shown *text(const char *s)
{
    struct hub_shown *t = malloc(sizeof *t + strlen(s));

    assert_non_null(t);
    t->refs = 1;
    t->n = (uint32_t)strlen(s);
    memcpy(t->text, s, t->n);
    return t;
}

static void own(struct hub_outbox *o, const char *s)
{
    assert_int_equal(kr_buf_append_str(&o->own, s), 0);
}

static void test_outbox_when_own_and_shared_alternate_then_in_order(void **state)
{
    struct hub_shown *shared = text("..shared");
    char got[64] = "";

    (void)state;
    for (size_t step = 1; step < 30; step++) {
        struct hub_outbox o;
        size_t n = 0;

        hub_outbox_init(&o, 1000);
        own(&o, "a ");
        own(&o, "b ");
        assert_int_equal(hub_outbox_share(&o, shared, 2), 0);
        own(&o, " c ");
        assert_int_equal(hub_outbox_share(&o, shared, 2), 0);
        own(&o, " d");
        assert_int_equal(hub_outbox_note(&o), 0);
        own(&o, "e");
        assert_int_equal(hub_outbox_note(&o), 0);
        assert_int_equal(shared->refs, 3);
        while (o.size != 0) {
            size_t now = step < o.size ? step : o.size;

            hub_outbox_take(&o, (uint8_t *)got + n, now);
            n += now;
        }
        got[n] = '\0';
        assert_string_equal(got, "a b shared c shared de");
        assert_int_equal(shared->refs, 1);
        assert_null(o.own.p); /* nothing is held */
        assert_null(o.parts);
    }
    hub_shown_unref(shared);
}

static void test_outbox_when_full_then_what_is_there_stays(void **state)
{
    struct hub_shown *shared = text("x");
    uint8_t got[200];
    struct hub_outbox o;
    size_t n = 0;

    (void)state;
    hub_outbox_init(&o, 1000);
    while (hub_outbox_has_room(&o)) {
        own(&o, "-");
        assert_int_equal(hub_outbox_share(&o, shared, 0), 0);
        n += 2;
    }
    assert_int_equal(o.size, n);
    own(&o, "-");
    while (hub_outbox_share(&o, shared, 0) == 0) {
    }
    assert_true(o.size >= n);
    hub_outbox_take(&o, got, 1);
    assert_int_equal(got[0], '-');
    hub_outbox_deinit(&o);
    assert_int_equal(shared->refs, 1);
    hub_shown_unref(shared);
}

static void test_outbox_when_dropped_half_taken_then_nothing_leaks(void **state)
{
    struct hub_shown *shared = text("shared");
    uint8_t got[16];
    struct hub_outbox o;

    (void)state;
    hub_outbox_init(&o, 1000);
    assert_int_equal(hub_outbox_share(&o, shared, 0), 0);
    assert_int_equal(hub_outbox_share(&o, shared, 0), 0);
    hub_outbox_take(&o, got, 8);
    hub_shown_unref(shared); /* the log has let it go */
    hub_outbox_take(&o, got, 3);
    assert_memory_equal(got, "are", 3);
    hub_outbox_deinit(&o);
    hub_outbox_deinit(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outbox_when_own_and_shared_alternate_then_in_order),
        cmocka_unit_test(test_outbox_when_full_then_what_is_there_stays),
        cmocka_unit_test(test_outbox_when_dropped_half_taken_then_nothing_leaks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
