/* SPDX-License-Identifier: Apache-2.0 */
#include "lifecycle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "faults.h"

struct due {             /* an object that is about to go */
    struct kr_list link; /* sim_cluster.dues, soonest first */
    int64_t at_ms;
    int kind;
    char key[];
};

/* ---- the end of objects */

static void delete_content(struct sim_cluster *c, const char *ns)
{
    char prefix[SIM_KEY_MAX];

    snprintf(prefix, sizeof prefix, "%.100s/", ns);
    for (int kind = 0; kind < (int)sim_kind_count; kind++) {
        struct sim_coll *coll = &c->colls[kind];

        if ((sim_kinds[kind].flags & SIM_NAMESPACED) == 0)
            continue;
        for (;;) {
            size_t i = sim_store_lower(c, kind, prefix);

            if (i >= coll->n || strncmp(coll->objs[i]->key, prefix, strlen(prefix)) != 0 ||
                sim_store_delete(c, kind, coll->objs[i]->key, NULL) != 0)
                break;
        }
    }
}

/* Removes the collector's own finalizers; whether others are left. */
static bool has_other_finalizers(struct json_object *v)
{
    struct json_object *list = sim_json_at(v, "metadata.finalizers");

    for (size_t i = sim_json_len(list); i-- > 0;) {
        const char *name = json_object_get_string(json_object_array_get_idx(list, i));

        if (name != NULL &&
            (strcmp(name, "foregroundDeletion") == 0 || strcmp(name, "orphan") == 0))
            json_object_array_del_idx(list, i, 1);
    }
    return sim_json_len(list) != 0;
}

/* The object may have gone meanwhile, or be another of the same name. */
static void finish(struct sim_cluster *c, const struct due *d)
{
    struct sim_obj *o = sim_store_get(c, d->kind, d->key);
    struct json_object *v = o != NULL ? sim_rev_tree(c, d->kind, &o->rev) : NULL;

    if (sim_json_at(v, "metadata.deletionTimestamp") != NULL) {
        if (d->kind == SIM_KIND_NAMESPACE)
            delete_content(c, d->key);
        if (has_other_finalizers(v))
            (void)sim_store_put(c, d->kind, d->key, v);
        else
            (void)sim_store_delete(c, d->kind, d->key, NULL);
    }
    json_object_put(v);
}

static void on_due(struct kr_timer *t)
{
    struct sim_cluster *c = KR_CONTAINER_OF(t, struct sim_cluster, due_timer);

    KR_LIST_FOREACH_SAFE(node, &c->dues)
    {
        struct due *d = KR_CONTAINER_OF(node, struct due, link);

        if (d->at_ms > c->sched->now_ms) {
            (void)kr_timer_start(c->sched, t, d->at_ms - c->sched->now_ms);
            return;
        }
        kr_list_remove(&d->link);
        finish(c, d);
        free(d);
    }
}

void sim_lifecycle_finish_later(struct sim_cluster *c, int kind, const char *key)
{
    struct due *d = malloc(sizeof *d + strlen(key) + 1);

    if (d == NULL)
        return;
    *d = (struct due){.at_ms = c->sched->now_ms + SIM_FINISH_MS, .kind = kind};
    memcpy(d->key, key, strlen(key) + 1);
    if (c->due_timer.fire == NULL)
        kr_timer_init(&c->due_timer, on_due);
    kr_list_append(&c->dues, &d->link);
    if (!kr_timer_running(&c->due_timer))
        (void)kr_timer_start(c->sched, &c->due_timer, SIM_FINISH_MS);
}

void sim_lifecycle_written(struct sim_cluster *c, int kind, const char *key, struct json_object *v)
{
    if (sim_json_at(v, "metadata.deletionTimestamp") == NULL ||
        sim_json_len(sim_json_at(v, "metadata.finalizers")) != 0 ||
        sim_json_len(sim_json_at(v, "spec.finalizers")) != 0 || kind == SIM_KIND_POD)
        return;
    (void)sim_store_delete(c, kind, key, NULL);
}

/* ---- the first objects */

__attribute__((format(printf, 4, 5))) static int put(struct sim_cluster *c, int kind,
                                                     const char *key, const char *fmt, ...)
{
    struct json_object *v;
    char text[2048];
    va_list ap;
    int rc;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    v = sim_json_parse(kr_bytes_str(text));
    KR_ASSERT(v != NULL);
    rc = sim_store_put(c, kind, key, v);
    json_object_put(v);
    return rc;
}

static int seed_namespace(struct sim_cluster *c, const char *ns, const char *when)
{
    char key[SIM_KEY_MAX], uid[3][40];
    int rc;

    for (size_t i = 0; i < 3; i++)
        sim_uuid(sim_random(c), uid[i]);
    rc = put(c, SIM_KIND_NAMESPACE, ns,
             "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"uid\":"
             "\"%s\",\"resourceVersion\":\"\",\"creationTimestamp\":\"%s\",\"labels\":{"
             "\"kubernetes.io/metadata.name\":\"%s\"}},\"spec\":{\"finalizers\":[\"kubernetes\"]},"
             "\"status\":{\"phase\":\"Active\"}}",
             ns, uid[0], when, ns);
    if (rc != 0)
        return rc;
    snprintf(key, sizeof key, "%s/default", ns);
    rc = put(c, SIM_KIND_SERVICEACCOUNT, key,
             "{\"kind\":\"ServiceAccount\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
             "\"default\",\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"\","
             "\"creationTimestamp\":\"%s\"}}",
             ns, uid[1], when);
    if (rc != 0)
        return rc;
    snprintf(key, sizeof key, "%s/kube-root-ca.crt", ns);
    return put(c, SIM_KIND_CONFIGMAP, key,
               "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
               "\"kube-root-ca.crt\",\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"\","
               "\"creationTimestamp\":\"%s\"},\"data\":{\"ca.crt\":\"(simulated)\"}}",
               ns, uid[2], when);
}

int sim_lifecycle_seed(struct sim_cluster *c)
{
    char when[32], uid[40];
    int rc = 0;

    sim_time(c->world.born_wall_ms - 21ll * 86400 * 1000, when);
    for (size_t i = 0; rc == 0 && sim_gen_namespace(i) != NULL; i++)
        rc = seed_namespace(c, sim_gen_namespace(i), when);
    sim_uuid(sim_random(c), uid);
    if (rc == 0)
        rc = put(c, SIM_KIND_SERVICE, "default/kubernetes",
                 "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                 "\"kubernetes\",\"namespace\":\"default\",\"uid\":\"%s\",\"resourceVersion\":\"\","
                 "\"creationTimestamp\":\"%s\",\"labels\":{\"component\":\"apiserver\","
                 "\"provider\":\"kubernetes\"}},\"spec\":{\"ports\":[{\"name\":\"https\","
                 "\"protocol\":\"TCP\",\"port\":443,\"targetPort\":6443}],\"clusterIP\":"
                 "\"10.96.0.1\",\"clusterIPs\":[\"10.96.0.1\"],\"type\":\"ClusterIP\","
                 "\"sessionAffinity\":\"None\",\"ipFamilies\":[\"IPv4\"],\"ipFamilyPolicy\":"
                 "\"SingleStack\",\"internalTrafficPolicy\":\"Cluster\"},\"status\":{"
                 "\"loadBalancer\":{}}}",
                 uid, when);
    sim_store_compact(c);
    return rc;
}

void sim_lifecycle_end(struct sim_cluster *c)
{
    kr_timer_stop(c->sched, &c->due_timer);
    KR_LIST_FOREACH_SAFE(node, &c->dues)
    {
        kr_list_remove(node);
        free(KR_CONTAINER_OF(node, struct due, link));
    }
    sim_faults_clear(c);
    sim_seen_clear(c);
}
