/* SPDX-License-Identifier: Apache-2.0 */
/* Input: what an agent says on a Sync call: messages, each behind two bytes of length (the high bit
 * of the first: the loop turns in between). Whatever comes: all that lies on the shelf afterwards
 * is what was told of it, without anything that the hub adds, and of this cluster. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/counters.h"
#include "hub/sync_in.h"
#include "kube/injected.h"
#include "kube/object_facts.h"

#define WALL_MS INT64_C(1700000000000)

/* A connection with one exchange, of which nobody reads what is sent. */
struct wire {
    struct kr_conn conn;
    struct kr_exchange ex;
    bool dead;
};

static void ex_ready(struct kr_exchange *ex)
{
    uint8_t sink[4096];
    bool last = false;
    size_t n;

    while ((n = ex->user_ops->available(ex->user, &last)) != 0)
        ex->user_ops->take(ex->user, sink, n < sizeof sink ? n : sizeof sink);
}

static void ex_consumed(struct kr_exchange *ex, size_t n)
{
    (void)ex;
    (void)n;
}

static void ex_abort(struct kr_exchange *ex, enum kr_abort how)
{
    (void)how;
    KR_CONTAINER_OF(ex, struct wire, ex)->dead = true;
}

static const struct kr_exchange_ops ex_ops = {
    .ready = ex_ready, .consumed = ex_consumed, .abort = ex_abort};

static struct kr_exchange *conn_open(struct kr_conn *c, const struct kr_head *head, bool end,
                                     const struct kr_exchange_user *ops, void *user)
{
    struct wire *w = KR_CONTAINER_OF(c, struct wire, conn);

    (void)head;
    (void)end;
    w->ex = (struct kr_exchange){.ops = &ex_ops, .user_ops = ops, .user = user, .conn = c};
    return &w->ex;
}

static const struct kr_conn_ops conn_ops = {.open = conn_open};

struct world {
    struct kr_sched sched;
    struct hub_worker w;
    struct hub_options options;
    struct hub_revision revision;
    struct hub_sync_desk desk;
    struct hub_shelf *shelf;
    struct hub_shelf *other;
    struct hub_sync_stats stats;
    struct wire wire;
    struct hub_sync_in *sync;
};

static void on_news(void *owner)
{
    (void)owner;
}

static void on_end(void *owner, enum hub_sync_end how, const char *why)
{
    struct world *w = owner;

    (void)how;
    (void)why;
    hub_sync_in_close(w->sync);
    w->sync = NULL;
}

static const struct hub_sync_user sync_user = {on_news, on_end};

static void start(struct world *w)
{
    const struct hub_cache_limits limits = {
        .types = 4, .cluster_bytes = 100000, .log_events = 10, .log_bytes = 1000000, .pins = 1};
    static const struct hub_profile profile = {.name = "fuzz"};
    struct hub_sync_config cfg = {.profile = &profile, .number = 1, .ops = &sync_user};
    struct hub_type *type;

    kr_sched_init(&w->sched, 1000, WALL_MS);
    w->w.sched = &w->sched;
    w->w.options = &w->options;
    w->w.metrics = kr_metrics_create(hub_counters, HUB_COUNTERS_N);
    KR_ASSERT(hub_revision_init(&w->revision, NULL, 1, WALL_MS * 1000, NULL) == 0);
    w->w.cache = hub_cache_create(&w->sched, &w->revision, &limits);
    type = hub_cache_add_type(w->w.cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    w->shelf = hub_type_add_shelf(type, KR_LIT("edge-1"));
    w->other = hub_type_add_shelf(type, KR_LIT("edge-2"));
    KR_ASSERT(hub_sync_desk_init(&w->desk, &w->w) == 0);
    w->wire.conn.ops = &conn_ops;
    cfg.desk = &w->desk;
    cfg.conn = &w->wire.conn;
    cfg.shelf = w->shelf;
    cfg.stats = &w->stats;
    cfg.owner = w;
    w->sync = hub_sync_in_open(&cfg);
    KR_ASSERT(w->sync != NULL);
}

static void turn(struct world *w)
{
    for (int i = 0; i < 1000 && kr_sched_run(&w->sched, w->sched.now_ms, WALL_MS) == 0; i++)
        ;
}

static void give(struct world *w, struct kr_bytes in)
{
    if (!w->wire.dead && w->sync != NULL)
        w->wire.ex.user_ops->on_body(w->wire.ex.user, in);
}

static void say(struct world *w, struct kr_bytes message)
{
    uint8_t prefix[5] = {0, 0, 0, (uint8_t)(message.n >> 8), (uint8_t)message.n};

    give(w, kr_bytes_of(prefix, 5));
    if (message.n != 0)
        give(w, message);
}

static void check_map(struct kr_bytes map)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;

    if (map.n == 0)
        return;
    KR_ASSERT(kr_scan_object(map, &it));
    while (kr_scan_member(&it, &key, &value))
        KR_ASSERT(!kr_is_injected(key));
}

static void check_object(struct kr_unpacker *unpacker, const struct hub_object *o)
{
    uint8_t *plain = malloc((size_t)o->size + 1);
    struct kr_object_facts f;
    struct kr_bytes text;
    size_t newline;

    KR_ASSERT(plain != NULL);
    KR_ASSERT(kr_unpack(unpacker, hub_object_packed(o), o->dictionary, plain, o->size) == 0);
    text = kr_bytes_of(plain, o->size);
    newline = kr_bytes_find(text, '\n');
    KR_ASSERT(newline < text.n);
    KR_ASSERT(kr_object_facts(kr_bytes_skip(text, newline + 1), &f, NULL) == 0);
    KR_ASSERT(kr_bytes_eq(f.name, hub_object_name(o)) && kr_bytes_eq(f.ns, hub_object_ns(o)));
    check_map(f.labels);
    check_map(f.annotations);
    free(plain);
}

static void check_shelf(struct world *w)
{
    struct kr_unpacker *unpacker = kr_unpacker_create(w->desk.dictionaries);
    struct hub_shelf_pos pos = {0};
    const struct hub_object *o;

    KR_ASSERT(unpacker != NULL);
    while ((o = hub_shelf_next(w->shelf, &pos)) != NULL)
        check_object(unpacker, o);
    KR_ASSERT(w->other->objects == 0);
    kr_unpacker_destroy(unpacker);
}

static void stop(struct world *w)
{
    hub_sync_in_close(w->sync);
    hub_sync_desk_deinit(&w->desk);
    hub_cache_destroy(w->w.cache);
    hub_revision_deinit(&w->revision);
    kr_metrics_destroy(w->w.metrics);
    kr_sched_deinit(&w->sched);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct world w = {.sync = NULL};
    struct kr_bytes in = {data, n};

    if (n > 65536)
        return 0;
    start(&w);
    while (in.n >= 2) {
        bool pause = (in.p[0] & 0x80) != 0;
        size_t len = (size_t)(in.p[0] & 0x7f) << 8 | in.p[1];

        in = kr_bytes_skip(in, 2);
        if (len > in.n)
            len = in.n;
        say(&w, kr_bytes_of(in.p, len));
        in = kr_bytes_skip(in, len);
        if (pause)
            turn(&w);
    }
    turn(&w);
    check_shelf(&w);
    stop(&w);
    return 0;
}
