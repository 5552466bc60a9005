/* SPDX-License-Identifier: Apache-2.0 */
/* sync_sender: what comes out, and over random steps: a peer that applies the batches ends up with
 * what was put, and marks never overtake the changes before them. */
#include "wire/sync_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/rand.h"
#include "wire/messages.h"

struct world {
    struct kr_sync_sender *s;
    struct kr_buf out;
    struct kr_arena arena;
    struct kr_sync_batch m; /* the latest batch */
};

static void setup(struct world *w, size_t budget)
{
    w->s = kr_sync_sender_create(budget);
    assert_non_null(w->s);
    kr_buf_init(&w->out, KR_SYNC_MESSAGE_MAX);
    kr_arena_init(&w->arena, 256, KR_DECODE_ARENA(KR_SYNC_MESSAGE_MAX));
}

static void teardown(struct world *w)
{
    kr_sync_sender_destroy(w->s);
    kr_buf_deinit(&w->out);
    kr_arena_deinit(&w->arena);
}

static bool next(struct world *w)
{
    struct kr_note why;
    int rc;

    w->out.n = 0;
    kr_arena_deinit(&w->arena);
    rc = kr_sync_sender_next(w->s, &w->out);
    assert_in_range(rc, 0, 1);
    if (rc == 0)
        return false;
    assert_int_equal(kr_sync_batch_decode(&w->m, kr_buf_bytes(&w->out), &w->arena, &why), 0);
    return true;
}

static int put(struct world *w, uint64_t key, struct kr_bytes text)
{
    struct kr_upsert u = {
        .name = KR_LIT("n"), .hash = key, .size = (uint32_t)text.n, .packed = text};

    return kr_sync_sender_put(w->s, key, &u);
}

static void test_sender_when_new_then_nothing_waits(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 100);
    assert_true(kr_sync_sender_empty(w.s));
    assert_false(kr_sync_sender_full(w.s));
    assert_false(next(&w));
    teardown(&w);
    kr_sync_sender_destroy(NULL);
}

static void test_change_when_a_newer_one_comes_then_that_one_at_its_place(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 10000);
    assert_int_equal(put(&w, 1, KR_LIT("old")), 0);
    assert_int_equal(put(&w, 2, KR_LIT("other")), 0);
    assert_int_equal(put(&w, 3, KR_LIT("gone")), 0);
    assert_int_equal(put(&w, 1, KR_LIT("new")), 0);
    assert_int_equal(kr_sync_sender_delete(w.s, 3), 0);
    assert_int_equal(kr_sync_sender_coalesced(w.s), 2);
    assert_true(next(&w));
    assert_int_equal(w.m.upsert_count, 2);
    assert_true(kr_bytes_is(w.m.upserts[0].packed, "new"));
    assert_true(kr_bytes_is(w.m.upserts[1].packed, "other"));
    assert_int_equal(w.m.delete_count, 1);
    assert_int_equal(w.m.deletes[0], 3);
    assert_true(kr_sync_sender_empty(w.s));
    assert_false(next(&w));
    teardown(&w);
}

static void test_marks_when_put_then_in_their_places(void **state)
{
    const uint32_t buckets[] = {3, 200};
    struct world w;

    (void)state;
    setup(&w, 10000);
    kr_sync_sender_columns(w.s, KR_LIT("[1]"));
    kr_sync_sender_want(w.s, buckets, 2);
    put(&w, 1, KR_LIT("a"));
    kr_sync_sender_snapshot_end(w.s);
    kr_sync_sender_progress(w.s, KR_LIT("10"));
    kr_sync_sender_problem(w.s, KR_SYNC_FAILING, KR_LIT("why"));
    put(&w, 2, KR_LIT("b"));
    kr_sync_sender_progress(w.s, KR_LIT("11"));
    kr_sync_sender_progress(w.s, KR_LIT("12"));
    assert_true(next(&w));
    assert_true(kr_bytes_is(w.m.columns, "[1]"));
    assert_int_equal(w.m.want_count, 2);
    assert_int_equal(w.m.want_buckets[1], 200);
    assert_int_equal(w.m.upsert_count, 1);
    assert_true(w.m.snapshot_end && w.m.has_problem);
    assert_true(kr_bytes_is(w.m.progress, "10"));
    assert_int_equal(w.m.problem, KR_SYNC_FAILING);
    assert_true(kr_bytes_is(w.m.problem_text, "why"));
    assert_true(next(&w));
    assert_true(kr_bytes_is(w.m.upserts[0].packed, "b"));
    assert_true(kr_bytes_is(w.m.progress, "12"));
    assert_true(!w.m.snapshot_end && !w.m.has_problem && w.m.columns.n == 0);
    assert_false(next(&w));
    teardown(&w);
}

/* Cells belong to the columns that were told before them. */
static void test_change_when_columns_lie_between_then_not_moved_before_them(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 10000);
    put(&w, 1, KR_LIT("old"));
    kr_sync_sender_columns(w.s, KR_LIT("[1]"));
    put(&w, 1, KR_LIT("newer"));
    put(&w, 1, KR_LIT("new"));
    assert_true(next(&w));
    assert_int_equal(w.m.columns.n, 0);
    assert_true(kr_bytes_is(w.m.upserts[0].packed, "old"));
    assert_true(next(&w));
    assert_true(kr_bytes_is(w.m.columns, "[1]"));
    assert_int_equal(w.m.upsert_count, 1);
    assert_true(kr_bytes_is(w.m.upserts[0].packed, "new"));
    assert_false(next(&w));
    teardown(&w);
}

static void test_problem_when_it_is_over_before_it_was_told_then_only_that(void **state)
{
    char text[KR_SYNC_TEXT_MAX + 2];
    struct world w;

    (void)state;
    setup(&w, 10000);
    kr_sync_sender_problem(w.s, KR_SYNC_FAILING, KR_LIT("why"));
    kr_sync_sender_problem(w.s, KR_SYNC_OK, KR_LIT(""));
    assert_true(next(&w));
    assert_true(w.m.has_problem);
    assert_int_equal(w.m.problem, KR_SYNC_OK);
    assert_false(next(&w));
    /* A text that is too long is cut between two characters. */
    memset(text, 'x', sizeof text);
    memcpy(text + KR_SYNC_TEXT_MAX - 1, "\xC3\xA9x", 3);
    kr_sync_sender_problem(w.s, KR_SYNC_FAILING, kr_bytes_of(text, sizeof text));
    assert_true(next(&w));
    assert_int_equal(w.m.problem_text.n, KR_SYNC_TEXT_MAX - 1);
    kr_sync_sender_problem(w.s, KR_SYNC_FAILING, KR_LIT("\xFF"));
    assert_true(next(&w));
    assert_int_equal(w.m.problem_text.n, 0);
    teardown(&w);
}

static void test_skipped_when_it_changes_then_told_from_then_on(void **state)
{
    struct world w;

    (void)state;
    setup(&w, 10000);
    kr_sync_sender_skipped(w.s, 0);
    assert_true(kr_sync_sender_empty(w.s));
    kr_sync_sender_skipped(w.s, 3);
    assert_false(kr_sync_sender_empty(w.s));
    assert_true(next(&w));
    assert_int_equal(w.m.skipped, 3);
    assert_false(next(&w));
    kr_sync_sender_delete(w.s, 1);
    assert_true(next(&w));
    assert_int_equal(w.m.skipped, 3);
    assert_int_equal(w.m.delete_count, 1);
    teardown(&w);
}

static void test_batches_when_much_waits_then_about_the_target(void **state)
{
    static uint8_t big[300000];
    size_t seen = 0;
    struct world w;

    (void)state;
    memset(big, 'x', sizeof big);
    setup(&w, 10000);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(put(&w, i, kr_bytes_of(big, i == 500 ? sizeof big : 1000)), 0);
    while (next(&w)) {
        for (size_t i = 0; i < w.m.upsert_count; i++)
            assert_int_equal(w.m.upserts[i].hash, seen++);
        assert_true(w.out.n <= KR_SYNC_BATCH_TARGET + 64 || w.m.upsert_count == 1);
        assert_true(w.m.upsert_count >= 30 || seen == 500 || seen == 501 || seen == 1000);
    }
    assert_int_equal(seen, 1000);
    teardown(&w);
}

static void test_batches_when_plain_texts_are_large_then_bounded_together(void **state)
{
    struct kr_upsert u = {
        .name = KR_LIT("n"), .dictionary = 1, .size = KR_PLAIN_MAX / 2, .packed = KR_LIT("small")};
    struct world w;

    (void)state;
    setup(&w, 10000);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(kr_sync_sender_put(w.s, i, &u), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_true(next(&w));
        assert_int_equal(w.m.upsert_count, i < 2 ? 2 : 1);
    }
    assert_false(next(&w));
    teardown(&w);
}

static void test_deletes_when_very_many_then_in_batches_that_are_taken(void **state)
{
    size_t seen = 0;
    struct world w;

    (void)state;
    setup(&w, 10000);
    for (uint64_t i = 0; i < 10000; i++)
        assert_int_equal(kr_sync_sender_delete(w.s, i), 0);
    while (next(&w))
        seen += w.m.delete_count;
    assert_int_equal(seen, 10000);
    teardown(&w);
}

static void test_budget_when_reached_then_full_until_sent(void **state)
{
    size_t n = 0;
    struct world w;

    (void)state;
    setup(&w, 20000);
    while (!kr_sync_sender_full(w.s))
        put(&w, n++, KR_LIT("text that takes some bytes"));
    assert_in_range(n, 50, 400);
    put(&w, 1, KR_LIT("text that takes some bytes")); /* the same size in the same place */
    assert_true(next(&w));
    assert_false(kr_sync_sender_full(w.s));
    assert_true(kr_sync_sender_empty(w.s));
    teardown(&w);
    setup(&w, 0); /* however small, one change gets through */
    put(&w, 1, KR_LIT("x"));
    assert_true(kr_sync_sender_full(w.s));
    assert_true(next(&w));
    teardown(&w);
}

static void test_change_when_the_peer_would_not_take_it_then_refused(void **state)
{
    static uint8_t long_text[KR_SYNC_TEXT_MAX + 1];
    static uint32_t buckets[KR_BUCKETS + 1];
    struct kr_upsert u = {.size = 1, .packed = KR_LIT("x")};
    struct world w;

    (void)state;
    memset(long_text, 'x', sizeof long_text);
    setup(&w, 10000);
    assert_int_equal(kr_sync_sender_put(w.s, 1, &u), KR_EINVAL);
    u.name = kr_bytes_of(long_text, sizeof long_text);
    assert_int_equal(kr_sync_sender_put(w.s, 1, &u), KR_EINVAL);
    assert_int_equal(kr_sync_sender_columns(w.s, KR_LIT("")), KR_EINVAL);
    assert_int_equal(kr_sync_sender_progress(w.s, KR_LIT("")), KR_EINVAL);
    assert_int_equal(kr_sync_sender_progress(w.s, kr_bytes_of(long_text, sizeof long_text)),
                     KR_EINVAL);
    assert_int_equal(kr_sync_sender_want(w.s, buckets, KR_BUCKETS + 1), KR_EINVAL);
    assert_int_equal(kr_sync_sender_want(w.s, buckets, 0), 0);
    assert_true(kr_sync_sender_empty(w.s));
    teardown(&w);
}

static void test_next_when_out_has_no_room_then_all_waits_as_before(void **state)
{
    struct kr_buf small;
    struct world w;

    (void)state;
    setup(&w, 10000);
    kr_buf_init(&small, 300);
    kr_buf_append_str(&small, "before");
    for (uint64_t i = 0; i < 20; i++)
        put(&w, i, KR_LIT("some text"));
    kr_sync_sender_progress(w.s, KR_LIT("5"));
    assert_int_equal(kr_sync_sender_next(w.s, &small), KR_ETOOBIG);
    assert_true(kr_bytes_is(kr_buf_bytes(&small), "before"));
    assert_true(next(&w));
    assert_int_equal(w.m.upsert_count, 20);
    assert_true(kr_bytes_is(w.m.progress, "5"));
    kr_buf_deinit(&small);
    teardown(&w);
}

/* --- at random ----------------------------------------------------------------------------- */

#define KEYS 40

struct model {            /* of one side */
    uint32_t value[KEYS]; /* 0: not there; values grow with every change */
    uint32_t columns;     /* the latest, as a number; each change holds those it came with */
    uint32_t with[KEYS];  /* the columns of the key's last change */
};

struct point { /* what was true when a mark was put */
    uint32_t value[KEYS];
    char progress[16];
    bool end;
};

struct random_world {
    struct world w;
    struct model here;
    struct model there;
    struct kr_rand r;
    uint32_t clock;
    struct point *points; /* by number of progress */
    size_t point_count;
    uint32_t last_progress;
    size_t ends_put;
    size_t ends_seen;
};

static void change(struct random_world *x)
{
    uint64_t key = kr_rand_below(&x->r, KEYS);
    bool gone = kr_rand_below(&x->r, 3) == 0;
    char text[600];
    int n = snprintf(text, sizeof text, "%u %u %*s", ++x->clock, x->here.columns,
                     (int)kr_rand_below(&x->r, 500) + 1, "");

    if (gone)
        assert_int_equal(kr_sync_sender_delete(x->w.s, key), 0);
    else
        assert_int_equal(put(&x->w, key, kr_bytes_of(text, (size_t)n)), 0);
    x->here.value[key] = gone ? 0 : x->clock;
    x->here.with[key] = x->here.columns;
}

static void mark(struct random_world *x)
{
    char text[16];

    switch (kr_rand_below(&x->r, 8)) {
    case 0:
        snprintf(text, sizeof text, "%u", ++x->here.columns);
        assert_int_equal(kr_sync_sender_columns(x->w.s, kr_bytes_str(text)), 0);
        break;
    case 1:
        assert_int_equal(kr_sync_sender_snapshot_end(x->w.s), 0);
        x->ends_put++;
        break;
    default:
        memcpy(x->points[x->point_count].value, x->here.value, sizeof x->here.value);
        snprintf(text, sizeof text, "%zu", ++x->point_count);
        assert_int_equal(kr_sync_sender_progress(x->w.s, kr_bytes_str(text)), 0);
    }
}

static uint32_t number(struct kr_bytes text)
{
    uint64_t v = 0;

    assert_true(kr_bytes_to_u64(text, UINT32_MAX, &v));
    return (uint32_t)v;
}

/* The receiver, parts in the order of the protocol. */
static void apply(struct random_world *x)
{
    const struct kr_sync_batch *m = &x->w.m;

    if (m->columns.n != 0)
        x->there.columns = number(m->columns);
    for (size_t i = 0; i < m->upsert_count; i++) {
        uint64_t key = m->upserts[i].hash;
        struct kr_bytes text = m->upserts[i].packed; /* "value columns ..." */
        size_t n = kr_bytes_find(text, ' ');
        struct kr_bytes rest = kr_bytes_skip(text, n + 1);

        x->there.value[key] = number(kr_bytes_of(text.p, n));
        x->there.with[key] = number(kr_bytes_of(rest.p, kr_bytes_find(rest, ' ')));
        assert_int_equal(x->there.with[key], x->there.columns); /* cells fit their columns */
    }
    for (size_t i = 0; i < m->delete_count; i++)
        x->there.value[m->deletes[i]] = 0;
    x->ends_seen += m->snapshot_end;
    if (m->progress.n != 0) {
        uint32_t n = number(m->progress);
        const struct point *p = &x->points[n - 1];

        assert_true(n > x->last_progress);
        x->last_progress = n;
        /* All that was put before the mark is there, or something newer. Of a key that is not
         * there, the delete may be newer than the mark: so it is absent here too by then or later.
         */
        for (size_t k = 0; k < KEYS; k++)
            assert_true(x->there.value[k] == 0 ? p->value[k] == 0 || p->value[k] != x->here.value[k]
                                               : x->there.value[k] >= p->value[k]);
    }
}

static void test_sender_when_driven_at_random_then_the_peer_ends_up_with_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random_world x = {.clock = 0};

        setup(&x.w, 1 << 20);
        kr_rand_seed(&x.r, seed);
        x.points = calloc(4000, sizeof *x.points);
        assert_non_null(x.points);
        for (int i = 0; i < 3000; i++) {
            unsigned what = (unsigned)kr_rand_below(&x.r, 100);

            if (what < 75)
                change(&x);
            else if (what < 95)
                mark(&x);
            else if (next(&x.w))
                apply(&x);
        }
        while (next(&x.w))
            apply(&x);
        assert_memory_equal(x.here.value, x.there.value, sizeof x.here.value);
        assert_int_equal(x.here.columns, x.there.columns);
        assert_int_equal(x.last_progress, x.point_count);
        assert_true(x.ends_seen <= x.ends_put && x.ends_seen != 0);
        assert_true(kr_sync_sender_coalesced(x.w.s) != 0);
        free(x.points);
        teardown(&x.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sender_when_new_then_nothing_waits),
        cmocka_unit_test(test_change_when_a_newer_one_comes_then_that_one_at_its_place),
        cmocka_unit_test(test_marks_when_put_then_in_their_places),
        cmocka_unit_test(test_change_when_columns_lie_between_then_not_moved_before_them),
        cmocka_unit_test(test_problem_when_it_is_over_before_it_was_told_then_only_that),
        cmocka_unit_test(test_skipped_when_it_changes_then_told_from_then_on),
        cmocka_unit_test(test_batches_when_much_waits_then_about_the_target),
        cmocka_unit_test(test_batches_when_plain_texts_are_large_then_bounded_together),
        cmocka_unit_test(test_deletes_when_very_many_then_in_batches_that_are_taken),
        cmocka_unit_test(test_budget_when_reached_then_full_until_sent),
        cmocka_unit_test(test_change_when_the_peer_would_not_take_it_then_refused),
        cmocka_unit_test(test_next_when_out_has_no_room_then_all_waits_as_before),
        cmocka_unit_test(test_sender_when_driven_at_random_then_the_peer_ends_up_with_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
