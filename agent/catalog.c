/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/catalog.h"

#include <stdlib.h>

#include "agent/counters.h"
#include "agent/discovery_round.h"
#include "base/assert.h"
#include "base/err.h"
#include "wire/grpc_call.h"

#define REQUEST_MAX 4096
#define QUEUE_MAX (4u * 1024 * 1024)
#define FIRST_RETRY_MS 2000
#define OLD_FORM_MS 600000 /* many documents, and none of them has an ETag */
#define REFRESH_MS 1000
#define PATCHES_MAX 3 /* rounds before hubs are told of types among which some are missing */

struct agent_catalog {
    struct agent_core *c;
    struct agent_round round;
    struct kr_timer timer;
    struct kr_list calls;     /* call.link */
    struct kr_list listeners; /* agent_catalog_listener.link */
    size_t call_count;
    int64_t begun_ms; /* of the last round */
    uint64_t hash;    /* of what hubs were told */
    bool known;
    unsigned patches; /* rounds so far that told only of a part, and nothing is known yet */
    bool dirty;       /* it changed since hubs were told */
    bool failing;
    bool stopped;
};

struct call { /* one Catalog call of a hub */
    struct agent_catalog *cat;
    struct kr_list link;
    struct kr_grpc_stream stream;
    bool due; /* the catalog is another one than what it got */
};

/* ---- telling hubs ---- */

static size_t count(const struct agent_catalog *cat)
{
    return cat->round.documents[0].types.n + cat->round.documents[1].types.n;
}

static const struct kr_resource_type *at(const struct agent_catalog *cat, size_t i)
{
    const struct agent_types *core = &cat->round.documents[0].types;

    return i < core->n ? &core->all[i] : &cat->round.documents[1].types.all[i - core->n];
}

/* The messages one by one; `each` may be NULL when only the hash is wanted. */
static int encode(const struct agent_catalog *cat, struct kr_grpc_stream *to, uint64_t *hash)
{
    struct kr_resource_type *part = calloc(KR_CATALOG_TYPES_MAX, sizeof *part);
    struct kr_buf out = {.max = KR_SYNC_MESSAGE_MAX};
    size_t done = 0;
    int rc = part != NULL ? 0 : KR_ENOMEM;

    *hash = 0;
    while (rc == 0) {
        struct kr_catalog_update m = {.types = part};

        for (; m.n < KR_CATALOG_TYPES_MAX && done < count(cat); done++)
            part[m.n++] = *at(cat, done);
        m.more = done < count(cat);
        out.n = 0;
        rc = kr_catalog_update_encode(&m, &out);
        *hash = *hash * 31 + kr_object_hash(kr_buf_bytes(&out), (struct kr_bytes){NULL, 0},
                                            (struct kr_bytes){NULL, 0});
        if (rc == 0 && to != NULL)
            rc = kr_grpc_send(to, kr_buf_bytes(&out));
        if (!m.more)
            break;
    }
    kr_buf_deinit(&out);
    free(part);
    return rc;
}

/* A catalog goes out whole or, as long as an older one waits, not yet. */
static void tell(struct call *k)
{
    uint64_t hash;

    if (!k->due || !k->cat->known || kr_grpc_waiting(&k->stream) != 0)
        return;
    k->due = false;
    if (encode(k->cat, &k->stream, &hash) != 0)
        kr_grpc_finish(&k->stream, KR_GRPC_RESOURCE_EXHAUSTED, KR_LIT("the catalog is too long"));
}

static int on_message(void *user, struct kr_bytes message)
{
    (void)user, (void)message; /* an empty CatalogRequest */
    return 0;
}

static void on_peer_done(void *user)
{
    (void)user; /* the answers go on */
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct call *k = user;

    (void)status, (void)message;
    k->cat->call_count--;
    kr_list_remove(&k->link);
    kr_grpc_deinit(&k->stream);
    free(k);
}

static void on_room(void *user)
{
    tell(user);
}

static const struct kr_grpc_user call_user = {
    .on_message = on_message,
    .on_peer_done = on_peer_done,
    .on_end = on_end,
    .on_room = on_room,
};

void agent_catalog_accept(struct agent_catalog *cat, struct kr_exchange *ex)
{
    struct kr_grpc_limits limits = {.message = REQUEST_MAX, .queue = QUEUE_MAX};
    struct call *k = cat->call_count < AGENT_CATALOGS_MAX ? calloc(1, sizeof *k) : NULL;

    if (k == NULL) {
        kr_grpc_reject(ex, KR_GRPC_RESOURCE_EXHAUSTED, "too many Catalog calls");
        return;
    }
    k->cat = cat;
    k->due = true;
    if (kr_grpc_accept(&k->stream, ex, limits, &call_user, k) != 0) {
        kr_grpc_deinit(&k->stream);
        free(k);
        return;
    }
    cat->call_count++;
    kr_list_append(&cat->calls, &k->link);
    tell(k);
}

/* ---- rounds ---- */

static void tell_all(struct agent_catalog *cat)
{
    uint64_t hash;

    cat->dirty = false;
    if (encode(cat, NULL, &hash) == 0 && cat->known && hash == cat->hash)
        return;
    cat->hash = hash;
    cat->known = true;
    KR_LOG_AT(cat->c->log, KR_LOG_INFO, "catalog", KR_U("types", count(cat)));
    KR_LIST_FOREACH(node, &cat->calls)
    {
        struct call *k = KR_CONTAINER_OF(node, struct call, link);

        k->due = true;
        tell(k);
    }
}

static void tell_listeners(struct agent_catalog *cat, bool ok)
{
    struct kr_list now;
    struct kr_list *node;

    kr_list_init(&now);
    while ((node = kr_list_pop(&cat->listeners)) != NULL)
        kr_list_append(&now, node);
    while ((node = kr_list_pop(&now)) != NULL) {
        struct agent_catalog_listener *l =
            KR_CONTAINER_OF(node, struct agent_catalog_listener, link);

        kr_list_append(&cat->listeners, node); /* it stays, until it says otherwise */
        l->on_round(l, ok);
    }
}

static bool is_patchy(const struct agent_catalog *cat)
{
    return cat->round.documents[0].types.patchy || cat->round.documents[1].types.patchy;
}

/* What is missing in the first catalog would pass for not served; what is away for long is. */
static bool is_too_early(struct agent_catalog *cat)
{
    return !cat->known && is_patchy(cat) && ++cat->patches < PATCHES_MAX;
}

static int64_t pause_ms(const struct agent_catalog *cat)
{
    int64_t interval = cat->c->options->discovery_interval_ms;

    if (!cat->known)
        return FIRST_RETRY_MS;
    return cat->round.old_form && !is_patchy(cat) && interval < OLD_FORM_MS ? OLD_FORM_MS
                                                                            : interval;
}

static void on_round_end(void *user, bool ok, const char *why)
{
    struct agent_catalog *cat = user;

    cat->dirty = cat->dirty || cat->round.changed;
    if (ok && is_too_early(cat)) {
        ok = false;
        why = "what serves some of the types is away";
    }
    kr_metric_add(kr_metrics_get(cat->c->metrics, AGENT_DISCOVERIES,
                                 !ok                  ? "failed"
                                 : cat->round.changed ? "read"
                                                      : "unchanged"),
                  1);
    if (!ok && !cat->failing)
        KR_LOG_AT(cat->c->log, KR_LOG_WARN, "discovery-failed", KR_S("reason", why));
    cat->failing = !ok;
    if (ok && (cat->dirty || !cat->known))
        tell_all(cat);
    kr_timer_start(cat->c->sched, &cat->timer, pause_ms(cat));
    tell_listeners(cat, ok);
}

static void on_timer(struct kr_timer *t)
{
    struct agent_catalog *cat = KR_CONTAINER_OF(t, struct agent_catalog, timer);

    cat->begun_ms = cat->c->sched->now_ms;
    agent_round_start(&cat->round);
}

void agent_catalog_refresh(struct agent_catalog *cat)
{
    int64_t since = cat->c->sched->now_ms - cat->begun_ms;

    if (cat->stopped || agent_round_active(&cat->round))
        return;
    kr_timer_start(cat->c->sched, &cat->timer, since < REFRESH_MS ? REFRESH_MS - since : 0);
}

void agent_catalog_listen(struct agent_catalog *cat, struct agent_catalog_listener *l)
{
    if (!kr_list_linked(&l->link))
        kr_list_append(&cat->listeners, &l->link);
}

void agent_catalog_unlisten(struct agent_catalog_listener *l)
{
    kr_list_remove(&l->link);
}

/* ---- for others ---- */

bool agent_catalog_known(const struct agent_catalog *cat)
{
    return cat->known;
}

const struct kr_resource_type *agent_catalog_find(const struct agent_catalog *cat,
                                                  struct kr_bytes group, struct kr_bytes version,
                                                  struct kr_bytes resource)
{
    size_t which = group.n == 0 ? 0 : 1;

    return agent_types_find(&cat->round.documents[which].types, group, version, resource);
}

struct agent_catalog *agent_catalog_create(struct agent_core *c)
{
    struct agent_catalog *cat = calloc(1, sizeof *cat);

    if (cat == NULL)
        return NULL;
    cat->c = c;
    cat->stopped = true;
    kr_list_init(&cat->calls);
    kr_list_init(&cat->listeners);
    kr_timer_init(&cat->timer, on_timer);
    agent_round_init(&cat->round, c, on_round_end, cat);
    return cat;
}

void agent_catalog_start(struct agent_catalog *cat)
{
    cat->stopped = false;
    kr_timer_start(cat->c->sched, &cat->timer, 0);
}

void agent_catalog_stop(struct agent_catalog *cat)
{
    cat->stopped = true;
    kr_timer_stop(cat->c->sched, &cat->timer);
    agent_get_abort(&cat->round.get);
}

void agent_catalog_destroy(struct agent_catalog *cat)
{
    if (cat == NULL)
        return;
    KR_ASSERT(kr_list_empty(&cat->calls) && kr_list_empty(&cat->listeners));
    agent_catalog_stop(cat);
    agent_round_deinit(&cat->round);
    free(cat);
}
