/* SPDX-License-Identifier: Apache-2.0 */
/* The listener and the TLS pipes are doubles, put in place of lib/net by the linker: what a
 * handshake has come to is whatever the test says. */
#include "hub/handshakes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "net/tls_pipe.h"

#define MAX 16
#define TURN_MS 5

struct kr_listener {
    bool paused;
};

struct shake {
    struct kr_pipe pipe;
    struct hub_handshake h;
    struct kr_tls_progress progress;
    bool closed;
};

struct world {
    struct kr_sched sched;
    struct kr_listener listener;
    struct hub_handshakes hs;
    struct shake shakes[MAX + 1];
    size_t n;
};

void kr_listener_pause(struct kr_listener *l, bool paused)
{
    l->paused = paused;
}

struct kr_tls_progress kr_tls_pipe_progress(const struct kr_pipe *p)
{
    return KR_CONTAINER_OF(p, const struct shake, pipe)->progress;
}

/* Its owner hears of it later. */
static void close_pipe(struct kr_pipe *p, enum kr_pipe_close how)
{
    struct shake *s = KR_CONTAINER_OF(p, struct shake, pipe);

    assert_int_equal(how, KR_PIPE_ABORT);
    assert_false(s->closed);
    s->closed = true;
}

static const struct kr_pipe_ops pipe_ops = {.close = close_pipe};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    if (w == NULL)
        return -1;
    kr_sched_init(&w->sched, 1000, 0);
    hub_handshakes_init(&w->hs, &w->sched, MAX);
    w->hs.listener = &w->listener;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hub_handshakes_deinit(&w->hs);
    kr_sched_deinit(&w->sched);
    free(w);
    return 0;
}

static struct shake *begin(struct world *w, const char *peer)
{
    struct shake *s = &w->shakes[w->n++];

    assert_in_range(w->n, 1, MAX + 1);
    s->pipe.ops = &pipe_ops;
    hub_handshake_begin(&w->hs, &s->h, &s->pipe, peer);
    return s;
}

/* From addresses of which no two share a slot with one another: each has less than its share. */
static void fill(struct world *w)
{
    char peer[48];

    while (w->n < MAX) {
        snprintf(peer, sizeof peer, "10.0.0.%zu:4000", w->n + 1);
        begin(w, peer);
    }
}

static void pass(struct world *w, int64_t ms)
{
    for (int64_t end = w->sched.now_ms + ms; w->sched.now_ms < end;)
        kr_sched_run(&w->sched, w->sched.now_ms + TURN_MS, w->sched.now_ms + TURN_MS);
}

static size_t closed(const struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += w->shakes[i].closed;
    return n;
}

static void test_listener_rests_while_all_places_are_taken(void **state)
{
    struct world *w = *state;
    struct shake *first = begin(w, "10.0.0.1:1");

    assert_false(w->listener.paused);
    fill(w);
    assert_true(w->listener.paused);
    hub_handshake_end(&w->hs, &first->h);
    assert_false(w->listener.paused);
    assert_int_equal(w->hs.count, MAX - 1);
}

static void test_silent_ones_keep_their_places_while_there_are_others(void **state)
{
    struct world *w = *state;

    begin(w, "10.0.0.1:1");
    pass(w, 60000); /* the deadline of the handshake itself is the pipe's */
    assert_int_equal(closed(w), 0);
}

static void test_who_has_sent_nothing_makes_room_after_half_a_second(void **state)
{
    struct world *w = *state;

    fill(w);
    pass(w, 490);
    assert_int_equal(closed(w), 0);
    pass(w, 60);
    assert_int_equal(closed(w), MAX);
    pass(w, 1000); /* the second look does not close them twice */
    for (size_t i = 0; i < MAX; i++)
        hub_handshake_end(&w->hs, &w->shakes[i].h);
    assert_int_equal(w->hs.count, 0);
    assert_false(w->listener.paused);
}

static void test_who_waits_for_the_hub_keeps_its_place(void **state)
{
    struct world *w = *state;

    fill(w);
    w->shakes[3].progress.waits_for_us = true;
    w->shakes[4].progress = (struct kr_tls_progress){true, true, 1000};
    pass(w, 20000);
    assert_int_equal(closed(w), MAX - 2);
    assert_false(w->shakes[3].closed || w->shakes[4].closed);
}

static void test_who_was_answered_has_three_seconds_from_then_on(void **state)
{
    struct world *w = *state;

    fill(w);
    pass(w, 400);
    w->shakes[0].progress = (struct kr_tls_progress){false, true, w->sched.now_ms};
    pass(w, 2900);
    assert_int_equal(closed(w), MAX - 1);
    assert_false(w->shakes[0].closed);
    pass(w, 200);
    assert_true(w->shakes[0].closed);
}

static void test_address_with_many_places_has_less_time_than_others(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++) /* more than an eighth of 16; the port does not matter */
        begin(w, i == 0 ? "192.0.2.9:1" : i == 1 ? "192.0.2.9:2" : "192.0.2.9:3");
    fill(w);
    pass(w, 100);
    assert_int_equal(closed(w), 3);
    assert_true(w->shakes[0].closed && w->shakes[1].closed && w->shakes[2].closed);
}

static void
test_address_with_half_of_the_places_is_not_waited_for_long_after_an_answer(void **state)
{
    struct world *w = *state;
    struct kr_tls_progress answered = {false, true, 1000};

    for (int i = 0; i < MAX / 2 + 1; i++)
        begin(w, "[2001:db8::1]:443")->progress = answered;
    fill(w);
    for (size_t i = MAX / 2 + 1; i < MAX; i++)
        w->shakes[i].progress = answered;
    pass(w, 900);
    assert_int_equal(closed(w), 0);
    pass(w, 200);
    assert_int_equal(closed(w), MAX / 2 + 1);
    assert_true(w->shakes[0].closed && !w->shakes[MAX - 1].closed);
}

static void test_share_of_an_address_is_given_back_at_the_end(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++)
        begin(w, "192.0.2.9:1");
    for (int i = 0; i < 3; i++)
        hub_handshake_end(&w->hs, &w->shakes[i].h);
    w->n = 0;
    begin(w, "192.0.2.9:1");
    fill(w);
    pass(w, 400);
    assert_int_equal(closed(w), 0);
}

static void test_stopped_port_rests_for_good(void **state)
{
    struct world *w = *state;
    struct shake *s = begin(w, "10.0.0.1:1");

    hub_handshakes_stop(&w->hs);
    assert_true(w->listener.paused);
    hub_handshake_end(&w->hs, &s->h);
    assert_true(w->listener.paused);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_listener_rests_while_all_places_are_taken),
        T(test_silent_ones_keep_their_places_while_there_are_others),
        T(test_who_has_sent_nothing_makes_room_after_half_a_second),
        T(test_who_waits_for_the_hub_keeps_its_place),
        T(test_who_was_answered_has_three_seconds_from_then_on),
        T(test_address_with_many_places_has_less_time_than_others),
        T(test_address_with_half_of_the_places_is_not_waited_for_long_after_an_answer),
        T(test_share_of_an_address_is_given_back_at_the_end),
        T(test_stopped_port_rests_for_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
