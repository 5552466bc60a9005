/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the Nth allocation, for every N, while the fleet view answers: each
 * request ends once, with an error or a cut answer, and nothing leaks. The allocator is replaced in
 * this program only; the client allocates nothing. */
#include "../failing_alloc.h"
#include "fleet_world.h"

#define PODS "/clusters/*/api/v1/pods"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define PARTIAL "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

/* ---- a client that allocates nothing ---- */

struct frugal {
    struct kr_exchange ex;
    int status;
    bool over;
    bool cut;
    size_t bytes;
};

static int frugal_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    struct frugal *c = (struct frugal *)(void *)ex;

    (void)end;
    c->status = head->status;
    return 0;
}

static void frugal_ready(struct kr_exchange *ex)
{
    assert_false(((struct frugal *)(void *)ex)->over);
}

static void frugal_consumed(struct kr_exchange *ex, size_t n)
{
    (void)ex, (void)n;
}

static void frugal_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct frugal *c = (struct frugal *)(void *)ex;

    (void)how;
    assert_false(c->over);
    c->cut = c->over = true;
}

static const struct kr_exchange_ops frugal_ops = {
    .send_head = frugal_send_head,
    .ready = frugal_ready,
    .consumed = frugal_consumed,
    .abort = frugal_abort,
};

static void drain(struct fleet *f, struct frugal *c)
{
    static uint8_t sink[1000];

    for (int idle = 0; idle < 4 && !c->over;) {
        bool end = false;
        size_t n = c->status != 0 ? c->ex.user_ops->available(c->ex.user, &end) : 0;

        if (n > sizeof sink) {
            n = sizeof sink;
            end = false;
        }
        if (n != 0)
            c->ex.user_ops->take(c->ex.user, sink, n);
        c->bytes += n;
        idle = n != 0 ? 0 : idle + 1;
        if (c->status != 0 && end) {
            c->over = true;
            c->ex.user_ops->on_done(c->ex.user, 0);
        } else if (n == 0) {
            fleet_turn(f, 0);
        }
    }
}

/* One request, whose Nth allocation fails. */
static void try(struct fleet *f, const char *target, const char *accept, long n)
{
    struct frugal c = {.ex.ops = &frugal_ops, .ex.conn = &f->conn, .ex.in_ended = true};
    static int round;
    char phase[16];

    kr_head_init(&c.ex.head, KR_HEAD_MAX);
    c.ex.head.method = KR_LIT("GET");
    c.ex.head.path = kr_bytes_str(target);
    c.ex.head.authority = KR_LIT("hub");
    if (accept != NULL)
        assert_int_equal(kr_head_add_str(&c.ex.head, "accept", accept), 0);
    alloc_failed = false;
    allocs_left = n;
    hub_request_start(&f->w, &f->peer, &c.ex);
    drain(f, &c);
    allocs_left = -1;
    snprintf(phase, sizeof phase, "r%d", round++);
    put_pod(f, "c1", "a", "web", "web", phase); /* what a watch then sees */
    allocs_left = alloc_failed ? -1 : n;
    drain(f, &c);
    allocs_left = -1;
    if (!alloc_failed)
        assert_true(c.bytes != 0 && !c.cut);
    assert_true(c.over || (c.status == 200 && strstr(target, "watch") != NULL));
    if (!c.over) {
        c.over = true;
        c.ex.user_ops->on_done(c.ex.user, KR_ERESET);
    }
    assert_int_equal(f->w.requests, 0);
    assert_true(kr_list_empty(&f->subs.wants));
    kr_head_deinit(&c.ex.head);
}

static void test_fleet_when_memory_runs_out_then_every_request_ends_once(void **state)
{
    static const struct {
        const char *target, *accept;
    } cases[] = {
        {PODS, NULL},
        {PODS "?limit=2&labelSelector=app&clusters=c1,c2", TABLE},
        {PODS "?fieldSelector=status.phase%21%3DFailed&includeObject=Object", TABLE},
        {PODS, PARTIAL},
        {PODS "?watch=1&labelSelector=app%3Dweb", NULL},
        {PODS "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
              "allowWatchBookmarks=true",
         TABLE},
        {PODS "?resourceVersion=5&watch=1", NULL},
        {PODS "?continue=AAAA", NULL},
        {"/clusters/*/apis", NULL},
        {"/clusters/*/api/v1", NULL},
        {"/clusters/*/apis/none/v1/things", NULL},
        {"/clusters/*/version", NULL},
    };
    static struct fleet f;

    (void)state;
    fleet_setup(&f);
    know_cluster(&f, "c1");
    know_cluster(&f, "c2");
    put_pod(&f, "c1", "a", "web", "web", "Running");
    put_pod(&f, "c2", "a", "web", "web", "Running");
    put_pod(&f, "c2", "b", "db", "db", "Running");
    shelf_of(&f, "c2")->stale_since_wall_ms = 1;
    f.subs.completeness =
        (struct hub_completeness){.clusters = 2, .stale = 1, .names = "c2", .named = 1};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long n = 0;

        do
            try(&f, cases[i].target, cases[i].accept, n++);
        while (alloc_failed);
        assert_in_range(n, 5, 1000);
    }
    fleet_teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fleet_when_memory_runs_out_then_every_request_ends_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
