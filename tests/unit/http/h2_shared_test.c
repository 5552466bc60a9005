/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's frame buffer, lent by all sessions of a thread: nothing of one session may be in it
 * while another one fills. */
#include "h2_world.h"

enum { PAIRS = 6 };

struct party {
    struct kr_sched sched;
    struct kr_h2_shared shared;
    struct kr_mem_pair *pairs[PAIRS];
    struct kr_rec_conn clients[PAIRS];
    struct kr_rec_conn servers[PAIRS];
};

static struct kr_conn *make(struct party *p, int i, bool server)
{
    struct kr_h2_config cfg = {.server = server,
                               .sched = &p->sched,
                               .user_ops = &kr_rec_conn_ops,
                               .owner = server ? &p->servers[i] : &p->clients[i],
                               .shared = &p->shared};

    return kr_h2_create(&cfg, kr_mem_pair_end(p->pairs[i], server));
}

static void gather(struct party *p)
{
    *p = (struct party){0};
    kr_sched_init(&p->sched, 1000, 1000);
    assert_int_equal(kr_h2_shared_init(&p->shared, BUDGET), 0);
    for (int i = 0; i < PAIRS; i++) {
        p->pairs[i] = kr_mem_pair_create(&p->sched);
        kr_rec_conn_init(&p->clients[i]);
        kr_rec_conn_init(&p->servers[i]);
    }
}

static void part(struct party *p)
{
    for (int i = 0; i < PAIRS; i++) {
        kr_conn_close(p->clients[i].conn);
        kr_conn_close(p->servers[i].conn);
    }
    kr_sched_run(&p->sched, 2000, 2000);
    for (int i = 0; i < PAIRS; i++) {
        assert_true(p->clients[i].closed == 1 && p->servers[i].closed == 1);
        kr_rec_conn_deinit(&p->clients[i]);
        kr_rec_conn_deinit(&p->servers[i]);
    }
    kr_h2_shared_deinit(&p->shared);
    kr_sched_deinit(&p->sched);
}

static void test_sessions_when_created_before_any_writes_then_each_has_its_preface(void **state)
{
    struct party p;

    (void)state;
    gather(&p);
    for (int i = 0; i < PAIRS; i++) /* all clients, then all servers, then the first byte */
        p.clients[i].conn = make(&p, i, false);
    for (int i = 0; i < PAIRS; i++) {
        p.servers[i].conn = make(&p, i, true);
        assert_non_null(kr_rec_open(&p.clients[i], "GET", "/", true, NULL));
    }
    kr_sched_run(&p.sched, 1000, 1000);
    for (int i = 0; i < PAIRS; i++) {
        assert_int_equal(p.clients[i].ready, 1);
        assert_int_equal(p.servers[i].ready, 1);
        assert_int_equal(p.servers[i].n, 1);
    }
    part(&p);
}

static void test_sessions_when_one_is_created_while_another_has_half_a_frame_out(void **state)
{
    struct party p;
    char *big = malloc(40001);
    const char *fields[] = {"x-a", big, NULL};

    (void)state;
    memset(big, '\\', 40000);
    big[40000] = '\0';
    gather(&p);
    for (int i = 0; i < PAIRS; i++) {
        p.clients[i].conn = make(&p, i, false);
        p.servers[i].conn = make(&p, i, true);
        kr_mem_pair_capacity(p.pairs[i], 1, 1, 1024); /* one run, then the stream is full */
        kr_mem_pair_stall(p.pairs[i], 1, true);
        kr_rec_open(&p.clients[i], "GET", "/", true, fields);
        kr_sched_run(&p.sched, 1000, 1000); /* stops within the HEADERS frame */
    }
    for (int i = PAIRS - 1; i >= 0; i--)
        kr_mem_pair_stall(p.pairs[i], 1, false);
    kr_sched_run(&p.sched, 1000, 1000);
    for (int i = 0; i < PAIRS; i++) {
        const struct kr_rec *r = &p.servers[i].recs[0];

        assert_int_equal(p.servers[i].n, 1);
        assert_int_equal(r->fields.n, 40005);
        for (size_t k = 4; k < 40004; k++)
            assert_int_equal(r->fields.p[k], '\\');
    }
    free(big);
    part(&p);
}

/* Bodies of all of them at once, each stopped again and again in the middle of its frames. */
static void test_sessions_when_all_are_stopped_within_frames_then_bodies_are_whole(void **state)
{
    struct party p;

    (void)state;
    gather(&p);
    for (int i = 0; i < PAIRS; i++) {
        p.clients[i].conn = make(&p, i, false);
        p.servers[i].conn = make(&p, i, true);
        kr_mem_pair_capacity(p.pairs[i], 1, 100 + 333 * i, 1024 + 77 * i);
        for (int k = 0; k < 3; k++) {
            struct kr_rec *r = kr_rec_open(&p.clients[i], "POST", "/", false, NULL);

            append_pattern(&r->out, 0, 40000 + 1000 * k);
            r->out_end = true;
            kr_exchange_ready(r->ex);
        }
    }
    kr_sched_run(&p.sched, 1000, 1000);
    for (int i = 0; i < PAIRS; i++) {
        for (int k = 0; k < 3; k++)
            assert_pattern(&p.servers[i].recs[k].in, 40000 + 1000 * k);
    }
    part(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sessions_when_created_before_any_writes_then_each_has_its_preface),
        cmocka_unit_test(test_sessions_when_one_is_created_while_another_has_half_a_frame_out),
        cmocka_unit_test(test_sessions_when_all_are_stopped_within_frames_then_bodies_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
