/* SPDX-License-Identifier: Apache-2.0 */
/* sync_world: a hub's worker, as far as syncing needs one, and agents that do what the test says:
 * each is an HTTP/2 server at the other end of a pipe in memory, and notes what the hub asks. */
#ifndef TESTS_UNIT_HUB_SYNC_WORLD_H
#define TESTS_UNIT_HUB_SYNC_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/err.h"
#include "fakes/mem_pipe.h"
#include "hub/counters.h"
#include "hub/subscriptions.h"
#include "wire/messages.h"

#define WALL_MS INT64_C(1700000000000)
#define UID "0a1b2c3d-0001-4000-8000-00000000000a"
#define CALLS_MAX 64

struct call { /* one that the hub made */
    struct kr_grpc_stream s;
    struct agent *agent;
    bool open;
    bool is_catalog;
    size_t controls;
    /* of the opening */
    uint64_t id;
    char resource[64];
    char version[64];
    char namespaces[64];
    bool metadata_only;
    bool holds;
    uint64_t objects;
    struct kr_digest digest;
    /* of the answers to want_buckets */
    size_t buckets;
    struct kr_pair pairs[64];
    size_t pair_count;
};

struct agent {
    struct world *w;
    struct kr_mem_pair *pair;
    struct kr_conn *server; /* the agent's end */
    struct kr_conn *client; /* the hub's; NULL: closed */
    struct hub_link link;
    struct hub_cluster *cluster;
    struct call *calls[CALLS_MAX];
    size_t n;
    int refuse; /* a gRPC status: calls are answered with it */
};

struct world {
    struct kr_sched sched;
    struct kr_h2_shared shared;
    struct hub_worker w;
    struct hub_options options;
    struct hub_revision revision;
    struct kr_dictionaries *dictionaries;
    struct kr_packer *packer;
    char file[64];
};

/* ---- the agent's side ---- */

static inline void note_open(struct call *c, const struct kr_sync_open *open)
{
    const struct kr_subscription *sub = &open->subscription;

    c->id = sub->id;
    snprintf(c->resource, sizeof c->resource, "%.*s", (int)sub->resource.n,
             (const char *)sub->resource.p);
    snprintf(c->version, sizeof c->version, "%.*s", (int)open->version.n,
             (const char *)open->version.p);
    if (sub->namespace_count != 0)
        snprintf(c->namespaces, sizeof c->namespaces, "%.*s", (int)sub->namespaces[0].n,
                 (const char *)sub->namespaces[0].p);
    c->metadata_only = sub->metadata_only;
    c->holds = open->holds;
    c->digest = open->digest;
    c->objects = open->digest.objects;
}

static inline int agent_on_message(void *user, struct kr_bytes message)
{
    struct call *c = user;
    struct kr_sync_control control;
    struct kr_arena arena;
    struct kr_note why = {""};

    if (c->is_catalog) {
        assert_int_equal(message.n, 0);
        return 0;
    }
    kr_arena_init(&arena, 4096, KR_DECODE_ARENA(message.n));
    assert_int_equal(kr_sync_control_decode(&control, message, &arena, &why), 0);
    assert_int_equal(control.open != NULL, c->controls == 0);
    if (control.open != NULL)
        note_open(c, control.open);
    for (size_t i = 0; i < control.bucket_count; i++) {
        for (size_t j = 0; j < control.buckets[i].n; j++)
            c->pairs[c->pair_count++ % 64] = control.buckets[i].pairs[j];
        c->buckets += !control.buckets[i].more;
    }
    c->controls++;
    kr_arena_deinit(&arena);
    return 0;
}

static inline void agent_on_end(void *user, int status, struct kr_bytes message)
{
    struct call *c = user;

    (void)status;
    (void)message;
    c->open = false;
}

static inline void agent_on_peer_done(void *user)
{
    struct call *c = user;

    assert_true(c->is_catalog);
}

static const struct kr_grpc_user agent_user = {
    .on_message = agent_on_message, .on_peer_done = agent_on_peer_done, .on_end = agent_on_end};

static inline void agent_on_request(void *owner, struct kr_exchange *ex)
{
    static const struct kr_grpc_limits limits = {.message = 64u << 20, .queue = 64u << 20};
    struct agent *a = owner;
    struct call *c;

    if (a->refuse != 0) {
        kr_grpc_reject(ex, a->refuse, "no");
        return;
    }
    assert_in_range(a->n, 0, CALLS_MAX - 1);
    c = calloc(1, sizeof *c);
    c->agent = a;
    c->is_catalog = kr_bytes_is(ex->head.path, KR_GRPC_CATALOG);
    assert_true(c->is_catalog || kr_bytes_is(ex->head.path, KR_GRPC_SYNC));
    c->open = true;
    assert_int_equal(kr_grpc_accept(&c->s, ex, limits, &agent_user, c), 0);
    a->calls[a->n++] = c;
}

static inline void agent_on_close(void *owner, int rc, const struct kr_note *why)
{
    struct agent *a = owner;

    (void)rc;
    (void)why;
    a->server = NULL;
}

static const struct kr_conn_user agent_conn_user = {.on_request = agent_on_request,
                                                    .on_close = agent_on_close};

/* ---- the hub's side, as tunnel.c ---- */

static inline void hub_on_ready(void *owner)
{
    (void)owner;
}

static inline void hub_on_close(void *owner, int rc, const struct kr_note *why)
{
    struct agent *a = owner;
    struct world *w = a->w;

    (void)rc;
    (void)why;
    hub_cluster_unlink(&w->w.clusters, a->cluster, &a->link);
    a->client = NULL;
    if (w->w.subscriptions != NULL)
        hub_subscriptions_tunnel_down(w->w.subscriptions, a->cluster, NULL);
}

static const struct kr_conn_user hub_conn_user = {.on_ready = hub_on_ready,
                                                  .on_close = hub_on_close};

/* ---- time ---- */

static inline void run(struct world *w, int64_t ms)
{
    int64_t end = w->sched.now_ms + ms;

    for (int i = 0; i < 100000; i++) {
        int64_t wait = kr_sched_run(&w->sched, w->sched.now_ms, w->sched.now_wall_ms);

        if (wait < 0 || w->sched.now_ms + wait > end)
            break;
        w->sched.now_ms += wait;
        w->sched.now_wall_ms += wait;
    }
    w->sched.now_wall_ms += end - w->sched.now_ms;
    w->sched.now_ms = end;
    kr_sched_run(&w->sched, w->sched.now_ms, w->sched.now_wall_ms);
}

/* ---- the world ---- */

static inline void write_fleet_file(struct world *w, const char *text)
{
    FILE *f = fopen(w->file, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline struct hub_fleet_config *read_fleet_file(struct world *w)
{
    struct hub_fleet_config *config;
    struct kr_note why = {""};

    if (hub_fleet_config_load(&config, w->file, &why) != 0)
        fail_msg("%s", why.text);
    return config;
}

static inline void world_init(struct world *w, const char *fleet_file, uint64_t quota)
{
    struct hub_cache_limits limits = {.types = 16,
                                      .cluster_bytes = quota,
                                      .log_events = 1000,
                                      .log_ms = 60000,
                                      .log_bytes = 1u << 28,
                                      .pins = 10,
                                      .pin_ms = 60000};

    *w = (struct world){.options = {.cache_quota = (int64_t)quota,
                                    .unsubscribe_after_ms = 600000,
                                    .max_clusters = 100}};
    kr_sched_init(&w->sched, 1000, WALL_MS);
    assert_int_equal(kr_h2_shared_init(&w->shared, 64 << 20), 0);
    w->w.options = &w->options;
    w->w.sched = &w->sched;
    w->w.metrics = kr_metrics_create(hub_counters, HUB_COUNTERS_N);
    kr_rand_seed(&w->w.rand, 7);
    hub_clusters_init(&w->w.clusters, &w->sched, w->w.metrics, 100);
    assert_int_equal(hub_revision_init(&w->revision, NULL, 3, WALL_MS * 1000, NULL), 0);
    w->w.cache = hub_cache_create(&w->sched, &w->revision, &limits);
    w->w.catalogs = hub_catalogs_create();
    snprintf(w->file, sizeof w->file, "/tmp/kr-sync-XXXXXX");
    assert_int_not_equal(mkstemp(w->file), -1);
    write_fleet_file(w, fleet_file);
    w->w.fleet_config = read_fleet_file(w);
    w->w.subscriptions = hub_subscriptions_create(&w->w);
    assert_non_null(w->w.subscriptions);
    w->dictionaries = kr_dictionaries_create(true, false);
    w->packer = kr_packer_create(w->dictionaries);
    assert_non_null(w->packer);
}

static inline void agent_lose(struct agent *a);

static inline void world_deinit(struct world *w)
{
    hub_subscriptions_destroy(w->w.subscriptions);
    hub_catalogs_destroy(w->w.catalogs);
    hub_cache_destroy(w->w.cache);
    hub_revision_deinit(&w->revision);
    hub_fleet_config_destroy(w->w.fleet_config);
    hub_clusters_deinit(&w->w.clusters);
    kr_metrics_destroy(w->w.metrics);
    kr_h2_shared_deinit(&w->shared);
    kr_packer_destroy(w->packer);
    kr_dictionaries_destroy(w->dictionaries);
    kr_sched_deinit(&w->sched);
    remove(w->file);
}

/* ---- agents ---- */

static inline void agent_join(struct agent *a, struct world *w, const char *cluster, bool syncs)
{
    struct kr_h2_config cfg = {.sched = &w->sched, .shared = &w->shared, .window = 256 * 1024};

    *a = (struct agent){.w = w};
    a->pair = kr_mem_pair_create(&w->sched);
    a->cluster = hub_clusters_add(&w->w.clusters, cluster);
    cfg.user_ops = &hub_conn_user;
    cfg.owner = a;
    a->client = kr_h2_create(&cfg, kr_mem_pair_end(a->pair, 0));
    cfg.server = true;
    cfg.user_ops = &agent_conn_user;
    a->server = kr_h2_create(&cfg, kr_mem_pair_end(a->pair, 1));
    run(w, 0);
    a->link = (struct hub_link){.conn = a->client, .lane = HUB_LANE_BULK, .syncs = syncs};
    hub_cluster_link(&w->w.clusters, a->cluster, &a->link);
    hub_subscriptions_tunnel_up(w->w.subscriptions, a->cluster);
    run(w, 0);
}

/* The tunnel breaks, and is gone. */
static inline void agent_lose(struct agent *a)
{
    if (a->client != NULL)
        kr_mem_pair_cut(a->pair, KR_ECONNLOST);
    run(a->w, 0);
    assert_null(a->client);
    assert_null(a->server);
    for (size_t i = 0; i < a->n; i++) {
        kr_grpc_deinit(&a->calls[i]->s);
        free(a->calls[i]);
    }
    a->n = 0;
}

/* The latest call of that kind that is open; NULL: none. */
static inline struct call *open_call(struct agent *a, const char *resource)
{
    for (size_t i = a->n; i-- != 0;) {
        struct call *c = a->calls[i];

        if (c->open && (resource == NULL ? c->is_catalog : strcmp(c->resource, resource) == 0))
            return c;
    }
    return NULL;
}

static inline size_t open_calls(const struct agent *a)
{
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++)
        n += a->calls[i]->open && !a->calls[i]->is_catalog;
    return n;
}

static inline void agent_catalog(struct agent *a, const char *const *resources)
{
    struct kr_resource_type types[8];
    struct kr_catalog_update u = {.types = types};
    struct kr_buf out = {.max = 1u << 20};

    for (; resources[u.n] != NULL; u.n++)
        types[u.n] = (struct kr_resource_type){.version = KR_LIT("v1"),
                                               .resource = kr_bytes_str(resources[u.n]),
                                               .kind = KR_LIT("Kind"),
                                               .namespaced = true,
                                               .preferred = true};
    assert_int_equal(kr_catalog_update_encode(&u, &out), 0);
    assert_int_equal(kr_grpc_send(&open_call(a, NULL)->s, kr_buf_bytes(&out)), 0);
    kr_buf_deinit(&out);
    run(a->w, 0);
}

static inline void agent_send(struct call *c, const struct kr_sync_batch *b)
{
    struct kr_buf out = {.max = 64u << 20};

    assert_non_null(c);
    assert_int_equal(kr_sync_batch_encode(b, &out), 0);
    assert_int_equal(kr_grpc_send(&c->s, kr_buf_bytes(&out)), 0);
    kr_buf_deinit(&out);
    run(c->agent->w, 0);
}

static inline uint64_t hash_of(const char *text)
{
    return kr_object_hash(KR_LIT(UID), kr_bytes_str(text), KR_LIT(""));
}

/* An object of that text (cells, newline, object), packed into *room. */
static inline struct kr_upsert upsert(struct world *w, const char *ns, const char *name,
                                      const char *text, struct kr_buf *room)
{
    struct kr_upsert u = {.ns = kr_bytes_str(ns),
                          .name = kr_bytes_str(name),
                          .uid = KR_LIT(UID),
                          .version = KR_LIT("7"),
                          .hash = hash_of(text),
                          .size = (uint32_t)strlen(text)};

    *room = (struct kr_buf){.max = 8u << 20};
    assert_int_equal(kr_pack(w->packer, kr_bytes_str(text), room, &u.dictionary), 0);
    u.packed = kr_buf_bytes(room);
    return u;
}

static inline const char *object_text(const char *ns, const char *name, const char *more, char *out,
                                      size_t size)
{
    snprintf(out, size,
             "[\"%s\"]\n{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"" UID
             "\"},\"spec\":{\"x\":\"%s\"}}",
             name, name, ns, more);
    return out;
}

static inline void agent_text(struct call *c, const char *ns, const char *name, const char *text)
{
    struct kr_buf room;
    struct kr_upsert u = upsert(c->agent->w, ns, name, text, &room);
    struct kr_sync_batch b = {.upserts = &u, .upsert_count = 1};

    agent_send(c, &b);
    kr_buf_deinit(&room);
}

static inline void agent_put(struct call *c, const char *ns, const char *name, const char *more)
{
    char text[1024];

    agent_text(c, ns, name, object_text(ns, name, more, text, sizeof text));
}

static inline void agent_end_snapshot(struct call *c, const char *version)
{
    struct kr_sync_batch b = {.snapshot_end = true, .progress = kr_bytes_str(version)};

    agent_send(c, &b);
}

static inline void agent_problem(struct call *c, enum kr_sync_problem problem, const char *text)
{
    struct kr_sync_batch b = {
        .has_problem = true, .problem = problem, .problem_text = kr_bytes_str(text)};

    agent_send(c, &b);
}

/* ---- what the hub holds ---- */

static inline struct hub_type *type_of(struct world *w, const char *resource)
{
    return hub_cache_add_type(w->w.cache, KR_LIT(""), KR_LIT("v1"), kr_bytes_str(resource));
}

static inline struct hub_shelf *shelf_of(struct world *w, const char *cluster, const char *resource)
{
    return hub_type_find_shelf(type_of(w, resource), kr_bytes_str(cluster));
}

/* "a/x a/y " in no other order than that of names; the caller's buffer. */
static inline const char *content(struct world *w, const char *cluster, const char *resource,
                                  char *out, size_t size)
{
    struct hub_walk_query q = {.type = type_of(w, resource)};
    struct hub_walk *walk = hub_walk_create(&q);
    const struct hub_object *o;
    const char *from;

    out[0] = '\0';
    while ((o = hub_walk_next(walk, &from)) != NULL) {
        struct kr_bytes name = hub_object_name(o);

        if (strcmp(from, cluster) == 0)
            snprintf(out + strlen(out), size - strlen(out), "%.*s ", (int)name.n,
                     (const char *)name.p);
    }
    hub_walk_destroy(walk);
    return out;
}

static inline void assert_content(struct world *w, const char *cluster, const char *resource,
                                  const char *expected)
{
    char text[4096];

    assert_string_equal(content(w, cluster, resource, text, sizeof text), expected);
}

#endif
