/* SPDX-License-Identifier: Apache-2.0 */
/* A hub's fleet view without network: a worker made by hand, its cache filled by hand, and requests
 * that go through the whole pipeline. The subscriptions are a double: a type is ready one turn
 * after it was wanted, unless the test says otherwise. */
#ifndef TESTS_UNIT_HUB_FLEET_WORLD_H
#define TESTS_UNIT_HUB_FLEET_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/json.h"
#include "hub/catalogs.h"
#include "hub/counters.h"
#include "hub/fleet.h"
#include "hub/fleet_config.h"
#include "hub/front.h"
#include "hub/request.h"
#include "hub/subscriptions.h"
#include "kube/json_scan.h"

#define WALL_MS INT64_C(1700000000000)
#define READER "alice"

/* ---- the double ---- */

struct hub_subscriptions {
    struct kr_sched *sched;
    struct kr_list wants; /* hub_want.link */
    struct kr_task ready;
    uint64_t number; /* of the Sync of every cluster; 0: none is open */
    bool deny;
    bool hold; /* nothing becomes ready by itself */
    struct hub_completeness completeness;
    struct hub_completeness untold;
};

static inline void wants_are_ready(struct hub_subscriptions *s)
{
    KR_LIST_FOREACH_SAFE(node, &s->wants)
    {
        struct hub_want *w = KR_CONTAINER_OF(node, struct hub_want, link);

        kr_list_remove(&w->link);
        w->on_ready(w);
    }
}

static inline void on_ready_task(struct kr_task *t)
{
    wants_are_ready(KR_CONTAINER_OF(t, struct hub_subscriptions, ready));
}

int hub_subscriptions_want(struct hub_subscriptions *s, struct hub_type *type, struct hub_want *w,
                           int64_t deadline_ms)
{
    (void)deadline_ms;
    if (s->deny)
        return KR_EDENIED;
    w->type = type;
    w->owner = s;
    kr_list_append(&s->wants, &w->link);
    if (!s->hold)
        kr_task_post(s->sched, &s->ready);
    return 0;
}

void hub_subscriptions_release(struct hub_want *w)
{
    kr_list_remove(&w->link);
    w->owner = NULL;
}

void hub_subscriptions_completeness(struct hub_subscriptions *s, struct hub_type *type,
                                    const struct hub_sight *sight, struct hub_completeness *out)
{
    (void)type, (void)sight;
    *out = s->completeness;
}

int hub_subscriptions_expect(struct hub_subscriptions *s, const char *cluster)
{
    (void)s, (void)cluster;
    return 0;
}

void hub_subscriptions_untold(struct hub_subscriptions *s, const struct hub_sight *sight,
                              struct hub_completeness *out)
{
    (void)sight;
    *out = s->untold;
}

uint64_t hub_subscriptions_number(struct hub_subscriptions *s, const char *cluster,
                                  const struct hub_type *type)
{
    (void)cluster, (void)type;
    return s->number;
}

const struct kr_conn *hub_subscriptions_conn(struct hub_subscriptions *s, const char *cluster,
                                             const struct hub_type *type)
{
    (void)s, (void)cluster, (void)type;
    return NULL;
}

/* ---- the world ---- */

struct fleet {
    struct kr_sched sched;
    struct hub_options options;
    struct hub_worker w;
    struct hub_revision revision;
    struct hub_subscriptions subs;
    struct hub_peer peer;
    struct kr_conn conn;
    struct hub_type *pods;
    char file[64];
};

static const char everything[] = "readers:\n"
                                 "- users: [alice]\n"
                                 "  clusters: ['*']\n"
                                 "  resources: ['*']\n"
                                 "- users: [bob]\n"
                                 "  clusters: [c1]\n"
                                 "  namespaces: [a]\n"
                                 "  resources: [pods]\n";

static inline void configure(struct fleet *f, const char *text)
{
    FILE *file = fopen(f->file, "w");
    struct kr_note why = {""};

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    hub_fleet_config_destroy(f->w.fleet_config);
    f->w.fleet_config = NULL;
    if (hub_fleet_config_load(&f->w.fleet_config, f->file, &why) != 0)
        fail_msg("%s", why.text);
}

static inline void know_cluster(struct fleet *f, const char *name)
{
    static const struct kr_bytes short_names[] = {{(const uint8_t *)"po", 2}};
    const struct kr_resource_type types[] = {
        {.group = KR_LIT(""),
         .version = KR_LIT("v1"),
         .resource = KR_LIT("pods"),
         .kind = KR_LIT("Pod"),
         .singular = KR_LIT("pod"),
         .short_names = short_names,
         .short_name_count = 1,
         .namespaced = true,
         .preferred = true},
        {.group = KR_LIT(""),
         .version = KR_LIT("v1"),
         .resource = KR_LIT("nodes"),
         .kind = KR_LIT("Node"),
         .singular = KR_LIT("node"),
         .preferred = true},
        {.group = KR_LIT("apps"),
         .version = KR_LIT("v1"),
         .resource = KR_LIT("deployments"),
         .kind = KR_LIT("Deployment"),
         .singular = KR_LIT("deployment"),
         .namespaced = true,
         .preferred = true},
    };
    struct kr_catalog_update update = {.types = types, .n = 3};

    assert_non_null(hub_clusters_add(&f->w.clusters, name));
    assert_int_equal(hub_catalogs_update(f->w.catalogs, name, &update), 0);
}

static inline void fleet_setup(struct fleet *f)
{
    static const struct hub_cache_limits limits = {.types = 10,
                                                   .cluster_bytes = UINT64_C(4) << 30,
                                                   .log_events = 100000,
                                                   .log_ms = 600000,
                                                   .log_bytes = 1u << 30,
                                                   .pins = 100,
                                                   .pin_ms = 300000};

    *f = (struct fleet){
        .options = {.max_requests = 100000,
                    .max_clusters = 100,
                    .request_timeout_ms = 65000,
                    .fleet_wait_ms = 10000,
                    .stall_timeout_ms = 60000},
    };
    kr_sched_init(&f->sched, 1000, WALL_MS);
    assert_int_equal(hub_revision_init(&f->revision, NULL, 3, WALL_MS * 1000, NULL), 0);
    f->w.revision = &f->revision;
    f->w.options = &f->options;
    f->w.sched = &f->sched;
    kr_list_init(&f->w.live);
    kr_rand_seed(&f->w.rand, 7);
    f->w.metrics = kr_metrics_create(hub_counters, HUB_COUNTERS_N);
    assert_non_null(f->w.metrics);
    f->w.m_requests_live = kr_metrics_get(f->w.metrics, HUB_EXCHANGES, "all");
    f->w.m_long_live = kr_metrics_get(f->w.metrics, HUB_EXCHANGES, "long-running");
    f->w.m_bytes_up = kr_metrics_series(f->w.metrics, HUB_BYTES_UP, NULL, 0);
    f->w.m_bytes_down = kr_metrics_series(f->w.metrics, HUB_BYTES_DOWN, NULL, 0);
    f->w.m_seconds = kr_metrics_series(f->w.metrics, HUB_REQUEST_SECONDS, NULL, 0);
    hub_clusters_init(&f->w.clusters, &f->sched, f->w.metrics, 100);
    f->w.cache = hub_cache_create(&f->sched, &f->revision, &limits);
    f->w.catalogs = hub_catalogs_create();
    assert_non_null(f->w.cache);
    assert_non_null(f->w.catalogs);
    f->subs.sched = &f->sched;
    kr_list_init(&f->subs.wants);
    kr_task_init(&f->subs.ready, on_ready_task);
    f->w.subscriptions = &f->subs;
    snprintf(f->file, sizeof f->file, "/tmp/fleet-test-%d.yaml", (int)getpid());
    configure(f, everything);
    f->w.fleet = hub_fleet_create(&f->w);
    assert_non_null(f->w.fleet);
    f->peer.known = true;
    snprintf(f->peer.id.name, sizeof f->peer.id.name, READER);
    f->pods = hub_cache_add_type(f->w.cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
}

static inline void fleet_teardown(struct fleet *f)
{
    assert_int_equal(f->w.requests, 0);
    assert_true(kr_list_empty(&f->subs.wants));
    hub_fleet_destroy(f->w.fleet);
    hub_cache_destroy(f->w.cache);
    hub_catalogs_destroy(f->w.catalogs);
    hub_clusters_deinit(&f->w.clusters);
    hub_fleet_config_destroy(f->w.fleet_config);
    kr_metrics_destroy(f->w.metrics);
    hub_revision_deinit(&f->revision);
    kr_sched_deinit(&f->sched);
    unlink(f->file);
}

static inline void fleet_turn(struct fleet *f, int64_t later_ms)
{
    (void)kr_sched_run(&f->sched, f->sched.now_ms + later_ms, f->sched.now_wall_ms + later_ms);
}

static inline struct hub_shelf *shelf_of(struct fleet *f, const char *cluster)
{
    struct hub_shelf *s = hub_type_find_shelf(f->pods, kr_bytes_str(cluster));

    return s != NULL ? s : hub_type_add_shelf(f->pods, kr_bytes_str(cluster));
}

/* A pod as an agent sends it; `app` is its one label (NULL: none), `phase` its status. */
static inline void put_slim_pod(struct fleet *f, const char *cluster, const char *ns,
                                const char *name, const char *app, const char *phase, bool lossy)
{
    char text[1024];
    char labels[128] = "";
    struct kr_label label = {.key = KR_LIT("app"), .value = kr_bytes_str(app)};
    struct hub_incoming in = {
        .ns = kr_bytes_str(ns),
        .name = kr_bytes_str(name),
        .uid = KR_LIT("0a1b2c3d-0001-4000-8000-00000000000a"),
        .version = KR_LIT("77"),
        .labels = &label,
        .label_count = app != NULL,
        .lossy = lossy,
    };

    if (app != NULL)
        snprintf(labels, sizeof labels, "\"labels\":{\"app\":\"%s\"},", app);
    snprintf(text, sizeof text,
             "[\"%s\",\"1/1\",\"%s\",\"9d\"]\n{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
             "\"uid\":\"0a1b2c3d-0001-4000-8000-00000000000a\",%s\"creationTimestamp\":"
             "\"2023-11-14T22:12:50Z\"},\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":"
             "\"%s\"}}",
             name, phase, name, ns, labels, phase);
    in.packed = kr_bytes_str(text);
    in.size = (uint32_t)in.packed.n;
    in.hash = 0;
    for (size_t i = 0; i < in.packed.n; i++)
        in.hash = in.hash * 31 + in.packed.p[i];
    assert_in_range(hub_shelf_put(shelf_of(f, cluster), &in), 0, 1);
}

static inline void put_pod(struct fleet *f, const char *cluster, const char *ns, const char *name,
                           const char *app, const char *phase)
{
    put_slim_pod(f, cluster, ns, name, app, phase, false);
}

static inline void drop_pod(struct fleet *f, const char *cluster, const char *ns, const char *name)
{
    assert_true(hub_shelf_delete(shelf_of(f, cluster), kr_bytes_str(ns), kr_bytes_str(name)));
}

/* ---- a client ---- */

struct asker {
    struct kr_exchange ex;
    struct fleet *f;
    struct kr_head answer;
    struct kr_buf body;
    bool has_head;
    bool over; /* nothing is called any more */
    bool cut;
};

static int asker_send_head(struct kr_exchange *ex, const struct kr_head *head, bool end)
{
    struct asker *a = (struct asker *)(void *)ex;

    assert_false(a->has_head);
    a->has_head = true;
    a->answer.status = head->status;
    for (size_t i = 0; i < head->n; i++)
        assert_int_equal(kr_head_add(&a->answer, head->fields[i].name, head->fields[i].value), 0);
    (void)end;
    return 0;
}

static void asker_ready(struct kr_exchange *ex)
{
    assert_false(((struct asker *)(void *)ex)->over);
}

static void asker_consumed(struct kr_exchange *ex, size_t n)
{
    (void)ex, (void)n;
}

static void asker_abort(struct kr_exchange *ex, enum kr_abort how)
{
    struct asker *a = (struct asker *)(void *)ex;

    (void)how;
    a->cut = a->over = true;
}

static const struct kr_exchange_ops asker_ops = {
    .send_head = asker_send_head,
    .ready = asker_ready,
    .consumed = asker_consumed,
    .abort = asker_abort,
};

static inline void ask_as(struct asker *a, struct fleet *f, const char *method, const char *target,
                          const char *accept)
{
    *a = (struct asker){.f = f, .body = {.max = SIZE_MAX}};
    a->ex.ops = &asker_ops;
    a->ex.conn = &f->conn;
    a->ex.in_ended = true;
    kr_head_init(&a->answer, KR_HEAD_MAX);
    kr_head_init(&a->ex.head, KR_HEAD_MAX);
    a->ex.head.method = kr_bytes_str(method);
    a->ex.head.path = kr_bytes_str(target);
    a->ex.head.authority = KR_LIT("hub");
    if (accept != NULL)
        assert_int_equal(kr_head_add_str(&a->ex.head, "accept", accept), 0);
    hub_request_start(&f->w, &f->peer, &a->ex);
}

/* With a body, which is said to be `said` bytes long. */
static inline void ask_with(struct asker *a, struct fleet *f, const char *method,
                            const char *target, const char *type, struct kr_bytes body, size_t said)
{
    char length[24];

    *a = (struct asker){.f = f, .body = {.max = SIZE_MAX}};
    a->ex.ops = &asker_ops;
    a->ex.conn = &f->conn;
    kr_head_init(&a->answer, KR_HEAD_MAX);
    kr_head_init(&a->ex.head, KR_HEAD_MAX);
    a->ex.head.method = kr_bytes_str(method);
    a->ex.head.path = kr_bytes_str(target);
    a->ex.head.authority = KR_LIT("hub");
    snprintf(length, sizeof length, "%zu", said);
    assert_int_equal(kr_head_add_str(&a->ex.head, "content-length", length), 0);
    if (type != NULL)
        assert_int_equal(kr_head_add_str(&a->ex.head, "content-type", type), 0);
    hub_request_start(&f->w, &f->peer, &a->ex);
    if (a->over || body.n == 0)
        return;
    a->ex.user_ops->on_body(a->ex.user, body);
    a->ex.in_ended = true;
    a->ex.user_ops->on_end(a->ex.user, NULL);
}

/* Takes what comes until nothing does, in turns that last no time. */
static inline void pump(struct asker *a, size_t window)
{
    for (unsigned idle = 0; idle < 4 && !a->over;) {
        bool end = false;
        size_t n = a->has_head ? a->ex.user_ops->available(a->ex.user, &end) : 0;

        if (n > window) {
            n = window;
            end = false;
        }
        if (n != 0) {
            assert_int_equal(kr_buf_reserve(&a->body, n), 0);
            a->ex.user_ops->take(a->ex.user, a->body.p + a->body.n, n);
            a->body.n += n;
            idle = 0;
        } else {
            idle++;
        }
        if (a->has_head && end) {
            a->over = true;
            a->ex.user_ops->on_done(a->ex.user, 0);
        } else if (n == 0) {
            fleet_turn(a->f, 0);
        }
    }
}

static inline void leave(struct asker *a)
{
    if (!a->over)
        a->ex.user_ops->on_done(a->ex.user, KR_ERESET);
    a->over = true;
    kr_head_deinit(&a->ex.head);
    kr_head_deinit(&a->answer);
    kr_buf_deinit(&a->body);
}

static inline void get(struct asker *a, struct fleet *f, const char *target, const char *accept)
{
    ask_as(a, f, "GET", target, accept);
    pump(a, 1000);
}

static inline const char *body_of(struct asker *a)
{
    assert_int_equal(kr_buf_reserve(&a->body, 1), 0);
    a->body.p[a->body.n] = '\0';
    return (const char *)a->body.p;
}

/* The value of a path of members, "metadata resourceVersion"; a number steps into an array. */
static inline struct kr_bytes at_path(struct kr_bytes json, const char *path)
{
    struct kr_bytes value = json;

    assert_int_equal(kr_scan_check(json, 64, NULL), 0);
    while (*path != '\0') {
        char step[64];
        size_t n = strcspn(path, " ");

        snprintf(step, sizeof step, "%.*s", (int)n, path);
        path += n + (path[n] == ' ');
        if (step[0] >= '0' && step[0] <= '9') {
            struct kr_scan it;
            int left = atoi(step) + 1;

            if (!kr_scan_array(value, &it))
                return (struct kr_bytes){NULL, 0};
            while (left-- > 0) {
                if (!kr_scan_element(&it, &value))
                    return (struct kr_bytes){NULL, 0};
            }
        } else if (!kr_scan_find(value, step, &value)) {
            return (struct kr_bytes){NULL, 0};
        }
    }
    return value;
}

static inline void assert_at(struct asker *a, const char *path, const char *expected)
{
    struct kr_bytes v = at_path(kr_buf_bytes(&a->body), path);
    char shown[512];

    snprintf(shown, sizeof shown, "%.*s", (int)v.n, v.n != 0 ? (const char *)v.p : "");
    assert_string_equal(shown, expected);
}

static inline size_t count_at(struct asker *a, const char *path)
{
    struct kr_bytes v = at_path(kr_buf_bytes(&a->body), path);
    struct kr_bytes element;
    struct kr_scan it;
    size_t n = 0;

    assert_true(kr_scan_array(v, &it));
    while (kr_scan_element(&it, &element))
        n++;
    return n;
}

#endif
