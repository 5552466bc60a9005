/* SPDX-License-Identifier: Apache-2.0 */
/* forward_world: a client, a relay in the middle that joins its exchanges by kr_forward, and an
 * origin; HTTP/2 on both legs, in memory, under virtual time. */
#ifndef FORWARD_WORLD_H
#define FORWARD_WORLD_H

#include "base/assert.h"
#include "h2_world.h"

#include "http/forward.h"
#include "http/reply.h"

enum after_failure { /* what the owner does in on_failed */
                     SAY_502,
                     OPEN_AGAIN,
                     FINISH_AT, /* at `finish_at` */
                     CUT,
                     WAIT, /* the test goes on */
};

struct relay {
    struct kr_forward fw;
    struct kr_sched sched;
    struct kr_h2_shared client_h2; /* of the client and of the origin */
    struct kr_h2_shared relay_h2;
    struct kr_mem_pair *front; /* 0 client, 1 relay */
    struct kr_mem_pair *back;  /* 0 relay, 1 origin */
    struct kr_rec_conn client;
    struct kr_rec_conn origin;
    struct kr_conn *front_conn;
    struct kr_conn *back_conn;
    int fronts_closed;
    int64_t now_ms;
    /* set by the test */
    enum after_failure after;
    uint64_t finish_at;
    bool do_not_open;
    size_t gather_max;   /* collect the request body first, up to so much; 0: do not */
    const char *instead; /* what is sent then; NULL: the body as it came */
    int response_rc;     /* of on_response */
    /* what was seen */
    int failed;
    int failed_rc;
    int finished;
    int client_rc;
    size_t tapped;
    int gathered;
};

static struct relay *of_fw(struct kr_forward *fw)
{
    return KR_CONTAINER_OF(fw, struct relay, fw);
}

static inline void turn(struct relay *r, int64_t ms)
{
    r->now_ms += ms;
    kr_sched_run(&r->sched, r->now_ms, r->now_ms);
}

static inline int open_out(struct relay *r)
{
    struct kr_head head;
    int rc;

    kr_head_init(&head, KR_HEAD_MAX);
    head.method = r->fw.in->head.method;
    head.authority = KR_LIT("origin");
    head.path = r->fw.in->head.path;
    rc = kr_forward_open(&r->fw, r->back_conn, &head);
    kr_head_deinit(&head);
    return rc;
}

static inline void say_502(struct relay *r)
{
    struct kr_exchange *ex = kr_forward_release(&r->fw);
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = 502;
    kr_reply(ex, &head, KR_LIT("broken"));
    kr_head_deinit(&head);
}

static int relay_response(struct kr_forward *fw, struct kr_head *to)
{
    struct relay *r = of_fw(fw);

    fw->trailers = true;
    to->status = fw->out->head.status;
    for (size_t i = 0; i < fw->out->head.n; i++)
        kr_head_add_ref(to, fw->out->head.fields[i].name, fw->out->head.fields[i].value);
    return r->response_rc;
}

static void relay_tap(struct kr_forward *fw, struct kr_bytes in)
{
    of_fw(fw)->tapped += in.n;
}

static void relay_failed(struct kr_forward *fw, int rc)
{
    struct relay *r = of_fw(fw);

    r->failed++;
    r->failed_rc = rc;
    if (r->after == SAY_502)
        say_502(r);
    else if (r->after == OPEN_AGAIN)
        assert_int_equal(open_out(r), 0);
    else if (r->after == FINISH_AT)
        kr_forward_finish_at(fw, r->finish_at);
    else if (r->after == CUT)
        kr_forward_cut(fw);
}

static void relay_finished(struct kr_forward *fw, int client_rc)
{
    struct relay *r = of_fw(fw);

    r->finished++;
    r->client_rc = client_rc;
}

static void relay_gathered(struct kr_forward *fw)
{
    struct relay *r = of_fw(fw);
    struct kr_buf body = {.max = 8u << 20};

    r->gathered++;
    assert_int_equal(kr_forward_take_body(fw, &body), 0);
    assert_int_equal(fw->up.size, 0);
    assert_int_equal(kr_forward_put_body(fw, r->instead != NULL ? kr_bytes_str(r->instead)
                                                                : kr_buf_bytes(&body)),
                     0);
    kr_buf_deinit(&body);
    assert_int_equal(open_out(r), 0);
}

static const struct kr_forward_ops relay_ops = {
    .on_response = relay_response,
    .on_response_body = relay_tap,
    .on_failed = relay_failed,
    .on_finished = relay_finished,
    .on_gathered = relay_gathered,
};

static void front_request(void *owner, struct kr_exchange *ex)
{
    struct relay *r = owner;

    kr_forward_init(&r->fw, &relay_ops);
    r->fw.tap = true;
    kr_forward_in(&r->fw, ex);
    if (r->gather_max != 0) {
        r->fw.up_max = r->gather_max;
        kr_forward_gather(&r->fw);
    } else if (!r->do_not_open) {
        assert_int_equal(open_out(r), 0);
    }
}

static void front_close(void *owner, int rc, const struct kr_note *why)
{
    (void)rc, (void)why;
    ((struct relay *)owner)->front_conn = NULL;
}

static void back_close(void *owner, int rc, const struct kr_note *why)
{
    (void)rc, (void)why;
    ((struct relay *)owner)->back_conn = NULL;
}

static const struct kr_conn_user front_user = {front_request, NULL, NULL, front_close};
static const struct kr_conn_user back_user = {NULL, NULL, NULL, back_close};

/* (Again) a connection to the origin. */
static inline void join_back(struct relay *r, size_t step)
{
    struct kr_h2_config cfg = {
        .sched = &r->sched, .user_ops = &back_user, .owner = r, .shared = &r->relay_h2};

    r->back = kr_mem_pair_create(&r->sched);
    kr_mem_pair_step(r->back, 0, step);
    kr_mem_pair_step(r->back, 1, step);
    r->back_conn = kr_h2_create(&cfg, kr_mem_pair_end(r->back, 0));
    cfg.server = true;
    cfg.user_ops = &kr_rec_conn_ops;
    cfg.owner = &r->origin;
    cfg.shared = &r->client_h2;
    r->origin.closed = 0;
    r->origin.conn = kr_h2_create(&cfg, kr_mem_pair_end(r->back, 1));
    assert_true(r->back_conn != NULL && r->origin.conn != NULL);
    turn(r, 0);
}

static inline void begin(struct relay *r, size_t step)
{
    struct kr_h2_config cfg = {.sched = &r->sched,
                               .user_ops = &kr_rec_conn_ops,
                               .owner = &r->client,
                               .shared = &r->client_h2};

    *r = (struct relay){.now_ms = 1000};
    kr_sched_init(&r->sched, r->now_ms, r->now_ms);
    assert_int_equal(kr_h2_shared_init(&r->client_h2, 0), 0); /* windows stay at 64 KiB */
    assert_int_equal(kr_h2_shared_init(&r->relay_h2, 0), 0);
    kr_rec_conn_init(&r->client);
    kr_rec_conn_init(&r->origin);
    r->front = kr_mem_pair_create(&r->sched);
    kr_mem_pair_step(r->front, 0, step);
    kr_mem_pair_step(r->front, 1, step);
    r->client.conn = kr_h2_create(&cfg, kr_mem_pair_end(r->front, 0));
    cfg.server = true;
    cfg.user_ops = &front_user;
    cfg.owner = r;
    cfg.shared = &r->relay_h2;
    r->front_conn = kr_h2_create(&cfg, kr_mem_pair_end(r->front, 1));
    assert_true(r->client.conn != NULL && r->front_conn != NULL);
    join_back(r, step);
}

static inline void end(struct relay *r)
{
    if (r->back_conn != NULL)
        kr_conn_close(r->back_conn);
    if (r->origin.conn != NULL)
        kr_conn_close(r->origin.conn);
    if (r->front_conn != NULL)
        kr_conn_close(r->front_conn);
    if (r->client.conn != NULL)
        kr_conn_close(r->client.conn);
    turn(r, 0);
    assert_null(r->back_conn);
    assert_null(r->front_conn);
    if (r->fw.ops != NULL)
        kr_forward_deinit(&r->fw); /* asserts that both exchanges are gone */
    kr_rec_conn_deinit(&r->client);
    kr_rec_conn_deinit(&r->origin);
    kr_h2_shared_deinit(&r->client_h2);
    kr_h2_shared_deinit(&r->relay_h2);
    kr_sched_deinit(&r->sched);
}

#endif
