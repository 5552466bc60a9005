/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fakes/mem_pipe.h"
#include "fakes/recorder.h"

/* A client and a server of ours, joined. */
static void echo_end(struct kr_rec *r)
{
    kr_buf_append(&r->out, kr_buf_bytes(&r->in));
    kr_rec_answer(r, 200, "", NULL);
}

static void test_both_ends_when_joined_then_they_understand_each_other(void **state)
{
    static const size_t steps[] = {1, 7, 4096, 0};
    static char body[20001];

    (void)state;
    memset(body, 'z', sizeof body - 1);
    for (size_t i = 0; i < 4; i++) {
        struct kr_rec_conn *ends = calloc(2, sizeof *ends); /* 0: client, 1: server */
        struct kr_sched sched;
        struct kr_mem_pair *pair;

        kr_sched_init(&sched, 0, 0);
        pair = kr_mem_pair_create(&sched);
        for (int e = 0; e < 2; e++) {
            struct kr_h1_config cfg = {
                .sched = &sched, .user_ops = &kr_rec_conn_ops, .owner = &ends[e]};
            struct kr_pipe *pipe = kr_mem_pair_end(pair, e);

            kr_mem_pair_step(pair, e, steps[i]);
            kr_rec_conn_init(&ends[e]);
            ends[e].conn =
                e == 0 ? kr_h1_client_create(&cfg, pipe) : kr_h1_server_create(&cfg, pipe);
        }
        for (size_t k = 0; k < 5; k++) {
            struct kr_rec *r = kr_rec_open(&ends[0], "PATCH", "/", false, NULL);

            ends[1].recs[k].on_end = echo_end;
            kr_rec_send(r, body + sizeof body - 1 - 5000 * k, true);
            kr_sched_run(&sched, 0, 0);
            assert_int_equal(r->done, 1);
            assert_int_equal(r->rc, 0);
            assert_int_equal(r->in.n, 5000 * k);
            assert_int_equal(ends[1].recs[k].rc, 0);
        }
        kr_conn_drain(ends[0].conn);
        kr_sched_run(&sched, 0, 0);
        for (int e = 0; e < 2; e++) {
            assert_int_equal(ends[e].closed, 1);
            kr_rec_conn_deinit(&ends[e]);
        }
        kr_sched_deinit(&sched);
        free(ends);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ends_when_joined_then_they_understand_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
