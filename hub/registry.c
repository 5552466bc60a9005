/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/registry.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"
#include "hub/counters.h"
#include "hub/store_sqlite.h"
#include "hub/trust_audit.h"

#define TOMBSTONE_MS (INT64_C(90) * 24 * 3600 * 1000)
#define RETIRE_MS 60000 /* tunnels of the key before the one in use */
#define PEERS_MAX 512
/* Of clusters whose certificates come from elsewhere: a Secret reaches each pod that mounts it in
 * its own time, minutes after another one, so that agents which share it use both keys for a while.
 */
#define LATE_MS 600000
#define SWITCH_MS 3000 /* in which handshakes with the older key may still be under way */

struct hub_registry {
    struct hub_worker *w;
    struct hub_store *store;
    struct kr_list seats; /* hub_seat.link */
    int hold;             /* on stateDir: two hubs in one would undo each other's changes */
    bool required;
    struct kr_log_limit alarms;
};

enum key_age {
    KEY_UNKNOWN,
    KEY_CURRENT,
    KEY_NEXT, /* issued, seen for the first time */
    KEY_OLD,  /* the one before */
};

struct look { /* all that is known of an identity */
    bool has_cluster;
    struct hub_cluster_record cluster;
    bool has_instance;
    struct hub_instance instance;
    enum key_age age;
};

int hub_registry_create(struct hub_worker *w, struct hub_registry **out, struct kr_note *why)
{
    const struct hub_options *o = w->options;
    /* Who only takes note of whom it sees need not wait for the disk with each of them. */
    bool lazy = o->registration == HUB_REGISTRATION_OPEN && !hub_worker_enrolls(w);
    struct hub_registry *r;
    char path[PATH_MAX];
    int rc;

    *out = NULL;
    if (o->state_dir == NULL)
        return 0;
    if (snprintf(path, sizeof path, "%s/registry.db", o->state_dir) >= (int)sizeof path)
        return kr_note_set(why, KR_EINVAL, "stateDir: the path is too long");
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    r->w = w;
    r->hold = -1;
    r->required = o->registration == HUB_REGISTRATION_REQUIRED;
    kr_list_init(&r->seats);
    rc = kr_dir_ensure(o->state_dir, why);
    if (rc == 0)
        rc = kr_dir_hold(o->state_dir, &r->hold, why);
    if (rc == 0)
        rc = hub_store_sqlite_open(&r->store, path, lazy, why);
    if (rc != 0) {
        if (r->hold >= 0)
            close(r->hold);
        free(r);
        return kr_note_wrap(why, rc, "stateDir");
    }
    *out = r;
    return 0;
}

void hub_registry_destroy(struct hub_registry *r)
{
    if (r == NULL)
        return;
    r->store->ops->close(r->store);
    close(r->hold);
    free(r);
}

struct hub_store *hub_registry_store(struct hub_registry *r)
{
    return r->store;
}

void hub_registry_alarm(struct hub_registry *r, const char *kind, const struct kr_identity *id,
                        const char *text)
{
    uint64_t held = 0;

    hub_worker_count(r->w, HUB_ALARMS, kind);
    if (kr_log_allow(&r->alarms, r->w->sched->now_ms, 20, 1000, &held))
        KR_LOG_AT(r->w->log, KR_LOG_ERROR, "alarm", KR_S("kind", kind), KR_S("cluster", id->name),
                  KR_S("instance", id->instance), KR_S("serial", id->serial), KR_S("reason", text),
                  KR_U("held", held));
}

/* ---- the audit ---- */

static const char *address_of(const struct hub_registry *r, const struct kr_identity *id)
{
    KR_LIST_FOREACH(node, &r->seats)
    {
        const struct hub_seat *s = KR_CONTAINER_OF(node, struct hub_seat, link);

        if (s->id == id)
            return s->address;
    }
    return NULL;
}

/* Whence the others come who hold a tunnel of that agent. */
static void put_peers(const struct hub_registry *r, const struct kr_identity *id,
                      char out[PEERS_MAX])
{
    size_t n = 0;

    out[0] = '\0';
    KR_LIST_FOREACH(node, &r->seats)
    {
        const struct hub_seat *s = KR_CONTAINER_OF(node, struct hub_seat, link);
        size_t len = strlen(s->address);

        if (s->id == id || strcmp(s->id->name, id->name) != 0 ||
            strcmp(s->id->instance, id->instance) != 0 || n + len + 2 > PEERS_MAX)
            continue;
        n += (size_t)snprintf(out + n, PEERS_MAX - n, "%s%s", n != 0 ? "," : "", s->address);
    }
}

static void audit(struct hub_registry *r, const char *what, const struct kr_identity *id,
                  const char *from, struct hub_trust_event *e)
{
    char user[HUB_TRUST_USER_MAX];
    char peers[PEERS_MAX];

    if (r->w->audit == NULL)
        return;
    put_peers(r, id, peers);
    hub_trust_audit_name(id, user);
    e->verb = "update";
    e->subresource = what;
    e->user = user;
    e->from = from;
    e->peers = peers;
    hub_trust_audit_agent(r->w, id->name, id->instance, e);
}

/* ---- judging ---- */

static bool same(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, HUB_SPKI_SIZE) == 0;
}

static enum key_age age_of(const struct hub_instance *i, const uint8_t *spki)
{
    if (same(i->spki, spki))
        return KEY_CURRENT;
    if (i->has_next && same(i->next_spki, spki))
        return KEY_NEXT;
    return i->has_previous && same(i->previous_spki, spki) ? KEY_OLD : KEY_UNKNOWN;
}

static void look_end(struct look *l)
{
    kr_buf_deinit(&l->instance.chain);
}

static int look_up(struct hub_registry *r, const struct kr_identity *id, struct look *l,
                   struct kr_note *why)
{
    const struct hub_store_ops *ops = r->store->ops;
    int rc;

    *l = (struct look){.age = KEY_UNKNOWN};
    rc = ops->key_denied(r->store, id->spki_sha256, why);
    if (rc == 0)
        return kr_note_set(why, KR_EDENIED, "its key is denied");
    if (rc != KR_ENOENT)
        return rc;
    rc = ops->cluster_find(r->store, id->name, &l->cluster, why);
    l->has_cluster = rc == 0;
    if (rc == 0 || rc == KR_ENOENT)
        rc = ops->instance_find(r->store, id->name, id->instance, &l->instance, why);
    l->has_instance = rc == 0;
    if (rc == 0)
        l->age = age_of(&l->instance, id->spki_sha256);
    return rc == KR_ENOENT ? 0 : rc;
}

bool hub_registry_is_buried(const struct hub_registry *r, const struct hub_cluster_record *c)
{
    return c->state == HUB_CLUSTER_REMOVED &&
           r->w->sched->now_wall_ms - c->since_wall_ms < TOMBSTONE_MS;
}

bool hub_registry_is_barred(struct hub_registry *r, const char *cluster)
{
    struct hub_cluster_record c;

    return r != NULL && r->store->ops->cluster_find(r->store, cluster, &c, NULL) == 0 &&
           (c.state == HUB_CLUSTER_DENIED || c.state == HUB_CLUSTER_REMOVED);
}

static int judge_cluster(struct hub_registry *r, struct look *l, struct kr_note *why)
{
    if (l->has_cluster && l->cluster.state == HUB_CLUSTER_REMOVED &&
        !hub_registry_is_buried(r, &l->cluster))
        l->has_cluster = false;
    if (!l->has_cluster)
        return r->required ? kr_note_set(why, KR_EDENIED, "the cluster is not registered") : 0;
    switch (l->cluster.state) {
    case HUB_CLUSTER_PENDING:
    case HUB_CLUSTER_ACCEPTED:
        return 0;
    case HUB_CLUSTER_DENIED:
        return kr_note_set(why, KR_EDENIED, "the cluster is denied");
    case HUB_CLUSTER_REMOVED:
        return kr_note_set(why, KR_EDENIED, "the cluster was removed");
    case HUB_CLUSTER_QUARANTINED:
        break;
    }
    return kr_note_set(why, KR_EDENIED, "another cluster came under this name; accept it anew");
}

static int judge_instance(const struct look *l, struct kr_note *why)
{
    if (l->has_instance && l->instance.state == HUB_INSTANCE_LOCKED)
        return kr_note_set(why, KR_EDENIED, "the instance is locked: its key is in two hands");
    if (l->has_instance && l->instance.state == HUB_INSTANCE_DENIED)
        return kr_note_set(why, KR_EDENIED, "the instance is denied");
    return 0;
}

static int64_t since_switch(const struct hub_registry *r, const struct look *l)
{
    return r->w->sched->now_wall_ms - l->instance.switched_wall_ms;
}

/* An older key than the one in use was shown: its holder has not got the newer one. */
static int meet_old_key(struct hub_registry *r, const struct kr_identity *id, const char *from,
                        struct look *l, struct kr_note *why)
{
    bool switching = since_switch(r, l) < SWITCH_MS;
    struct hub_trust_event e = {.generation = l->instance.generation,
                                .code = r->required ? 403 : 200,
                                .message = "a key came back that a newer one had replaced"};

    if (l->cluster.external && since_switch(r, l) < LATE_MS)
        return 0;
    if (!switching)
        audit(r, r->required ? "lock" : "clone", id, from, &e);
    if (!r->required) {
        hub_registry_alarm(r, "cloned-key", id, "a key came back that a newer one had replaced");
        return 0;
    }
    if (!switching) {
        l->instance.state = HUB_INSTANCE_LOCKED;
        r->store->ops->instance_put(r->store, &l->instance, l->instance.generation, NULL);
        hub_registry_alarm(r, "cloned-key", id,
                           "a key came back that a newer one had replaced; the instance is locked");
        hub_registry_tell(r, id->name);
    }
    return kr_note_set(why, KR_EDENIED, "a newer key of this instance is in use");
}

static int judge_key(struct hub_registry *r, const struct kr_identity *id, const char *from,
                     struct look *l, struct kr_note *why)
{
    if (l->age == KEY_OLD)
        return meet_old_key(r, id, from, l, why);
    if (l->age != KEY_UNKNOWN || !r->required)
        return 0;
    if (!l->cluster.external)
        return kr_note_set(why, KR_EDENIED, "the key is not registered");
    if (l->has_instance && id->not_before_wall_ms <= l->instance.not_before_wall_ms)
        return kr_note_set(why, KR_EDENIED, "its certificate is not newer than the one in use");
    return 0;
}

static int judge(struct hub_registry *r, const struct kr_identity *id, const char *from,
                 struct look *l, struct kr_note *why)
{
    int rc = look_up(r, id, l, why);

    if (rc == 0)
        rc = judge_cluster(r, l, why);
    if (rc == 0)
        rc = judge_instance(l, why);
    return rc == 0 ? judge_key(r, id, from, l, why) : rc;
}

int hub_registry_judge(struct hub_registry *r, const struct kr_identity *id, const char *from,
                       struct kr_note *why)
{
    struct look l;
    int rc;

    if (r == NULL)
        return 0;
    rc = judge(r, id, from, &l, why);
    look_end(&l);
    return rc;
}

int hub_registry_review(struct hub_registry *r, const struct kr_identity *id, bool *pending,
                        struct kr_note *why)
{
    struct look l;
    int rc = look_up(r, id, &l, why);

    if (rc == 0)
        rc = judge_cluster(r, &l, why);
    if (rc == 0)
        rc = judge_instance(&l, why);
    *pending = l.has_cluster && l.cluster.state == HUB_CLUSTER_PENDING;
    look_end(&l);
    return rc;
}

/* ---- recording ---- */

/* Tunnels with the key before it may end what they do. */
static void retire_others(struct hub_registry *r, const struct kr_identity *id, int64_t after_ms)
{
    KR_LIST_FOREACH(node, &r->seats)
    {
        struct hub_seat *s = KR_CONTAINER_OF(node, struct hub_seat, link);

        if (strcmp(s->id->name, id->name) == 0 && strcmp(s->id->instance, id->instance) == 0 &&
            !same(s->id->spki_sha256, id->spki_sha256) && s->retire_ms == 0)
            s->retire_ms = r->w->sched->now_ms + after_ms;
    }
}

/* It may stay for as long as its key may be late. */
static void retire_late(struct hub_registry *r, const struct kr_identity *id, const struct look *l)
{
    KR_LIST_FOREACH(node, &r->seats)
    {
        struct hub_seat *s = KR_CONTAINER_OF(node, struct hub_seat, link);

        if (s->id == id)
            s->retire_ms = r->w->sched->now_ms + LATE_MS - since_switch(r, l);
    }
}

static int record_key(struct hub_registry *r, const struct kr_identity *id, const char *from,
                      struct look *l, struct kr_note *why)
{
    struct hub_trust_event e = {.code = 200, .message = "this key is in use from now on"};
    struct hub_instance *i = &l->instance;
    uint64_t expected = l->has_instance ? i->generation : 0;
    int rc;

    if (l->age == KEY_OLD && r->required)
        retire_late(r, id, l);
    if (l->age == KEY_CURRENT || l->age == KEY_OLD)
        return 0;
    if (l->has_instance) {
        i->has_previous = true;
        memcpy(i->previous_spki, i->spki, HUB_SPKI_SIZE);
    }
    if (l->age == KEY_UNKNOWN)
        kr_buf_deinit(&i->chain); /* it is of another key */
    snprintf(i->cluster, sizeof i->cluster, "%s", id->name);
    snprintf(i->name, sizeof i->name, "%s", id->instance);
    snprintf(i->serial, sizeof i->serial, "%s", id->serial);
    memcpy(i->spki, id->spki_sha256, HUB_SPKI_SIZE);
    i->has_next = false;
    i->generation = expected + 1;
    i->not_before_wall_ms = id->not_before_wall_ms;
    i->not_after_wall_ms = id->not_after_wall_ms;
    i->switched_wall_ms = r->w->sched->now_wall_ms;
    rc = r->store->ops->instance_put(r->store, i, expected, why);
    if (rc != 0)
        return rc;
    KR_LOG_AT(r->w->log, KR_LOG_INFO, "key-in-use", KR_S("cluster", id->name),
              KR_S("instance", id->instance), KR_U("generation", i->generation),
              KR_S("serial", id->serial));
    e.generation = i->generation;
    audit(r, "switch", id, from, &e);
    if (r->required)
        retire_others(r, id, l->cluster.external ? LATE_MS : RETIRE_MS);
    return 0;
}

static int record_cluster(struct hub_registry *r, const struct kr_identity *id, struct look *l,
                          struct kr_note *why)
{
    if (l->has_cluster)
        return 0;
    l->cluster = (struct hub_cluster_record){.state = HUB_CLUSTER_ACCEPTED,
                                             .since_wall_ms = r->w->sched->now_wall_ms};
    snprintf(l->cluster.name, sizeof l->cluster.name, "%s", id->name);
    return r->store->ops->cluster_put(r->store, &l->cluster, why);
}

int hub_registry_attach(struct hub_registry *r, const struct kr_identity *id, const char *from,
                        bool *pending, struct kr_note *why)
{
    struct look l;
    int rc;

    *pending = false;
    if (r == NULL)
        return 0;
    rc = judge(r, id, from, &l, why);
    if (rc == 0)
        rc = record_cluster(r, id, &l, why);
    if (rc == 0)
        rc = record_key(r, id, from, &l, why);
    *pending = l.cluster.state == HUB_CLUSTER_PENDING;
    look_end(&l);
    return rc;
}

int hub_registry_check_uid(struct hub_registry *r, const struct kr_identity *id,
                           struct kr_bytes uid, struct kr_note *why)
{
    struct hub_trust_event e = {.code = r != NULL && r->required ? 403 : 200,
                                .message = "another cluster came under this name"};
    struct hub_cluster_record c;
    int rc;

    if (r == NULL || uid.n == 0)
        return 0;
    rc = r->store->ops->cluster_find(r->store, id->name, &c, why);
    if (rc != 0 || kr_bytes_is(uid, c.uid))
        return rc == KR_ENOENT ? 0 : rc;
    if (c.uid[0] != '\0')
        audit(r, "other-cluster", id, address_of(r, id), &e);
    if (c.uid[0] == '\0' || !r->required) {
        if (c.uid[0] != '\0')
            hub_registry_alarm(r, "other-cluster", id, "another cluster came under this name");
        snprintf(c.uid, sizeof c.uid, "%.*s", (int)uid.n, (const char *)uid.p);
        return r->store->ops->cluster_put(r->store, &c, why);
    }
    hub_registry_alarm(r, "other-cluster", id,
                       "another cluster came under this name; it is quarantined");
    rc = hub_registry_set_cluster(r, id->name, HUB_CLUSTER_QUARANTINED, c.external, why);
    return rc != 0 ? rc : kr_note_set(why, KR_EDENIED, "this is another cluster");
}

/* ---- seats ---- */

void hub_registry_sit(struct hub_registry *r, struct hub_seat *s)
{
    if (r != NULL)
        kr_list_append(&r->seats, &s->link);
}

void hub_registry_leave(struct hub_registry *r, struct hub_seat *s)
{
    if (r != NULL && kr_list_linked(&s->link))
        kr_list_remove(&s->link);
}

void hub_registry_tell(struct hub_registry *r, const char *cluster)
{
    KR_LIST_FOREACH_SAFE(node, &r->seats)
    {
        struct hub_seat *s = KR_CONTAINER_OF(node, struct hub_seat, link);

        if (cluster == NULL || strcmp(s->id->name, cluster) == 0)
            s->on_change(s);
    }
}

/* So that it is known of those that are away, too. */
void hub_registry_take_told(struct hub_registry *r, struct hub_seat *s, uint64_t bundle_generation)
{
    bool news = !s->told || s->bundle_generation != bundle_generation;

    s->bundle_generation = bundle_generation;
    if (r != NULL && news)
        s->told = r->store->ops->instance_trusts(r->store, s->id->name, s->id->instance,
                                                 bundle_generation, NULL) == 0;
}

size_t hub_registry_behind(const struct hub_registry *r, uint64_t bundle_generation,
                           size_t *attached)
{
    size_t behind = 0;

    *attached = 0;
    KR_LIST_FOREACH(node, &r->seats)
    {
        const struct hub_seat *s = KR_CONTAINER_OF(node, struct hub_seat, link);

        *attached += s->attached;
        behind += s->attached && s->bundle_generation < bundle_generation;
    }
    return behind;
}

/* ---- operators ---- */

int hub_registry_set_cluster(struct hub_registry *r, const char *name, enum hub_cluster_state state,
                             bool external, struct kr_note *why)
{
    struct hub_cluster_record c;
    int rc = r->store->ops->cluster_find(r->store, name, &c, why);

    if (rc == KR_ENOENT && state == HUB_CLUSTER_REMOVED)
        return rc;
    if (rc != 0 && rc != KR_ENOENT)
        return rc;
    snprintf(c.name, sizeof c.name, "%s", name);
    /* Who accepts a cluster that is another one now accepts this one. */
    if (c.state == HUB_CLUSTER_QUARANTINED || c.state == HUB_CLUSTER_REMOVED)
        c.uid[0] = '\0';
    c.state = state;
    if (state == HUB_CLUSTER_ACCEPTED)
        c.external = external;
    c.since_wall_ms = r->w->sched->now_wall_ms;
    rc = state == HUB_CLUSTER_REMOVED /* its keys are worth nothing */
             ? r->store->ops->cluster_remove(r->store, &c, why)
             : r->store->ops->cluster_put(r->store, &c, why);
    if (rc == 0)
        rc = r->store->ops->sync(r->store, why);
    if (rc == 0)
        hub_registry_tell(r, name);
    return rc;
}

int hub_registry_set_instance(struct hub_registry *r, const char *cluster, const char *instance,
                              enum hub_instance_state state, struct kr_note *why)
{
    struct hub_instance i;
    int rc = r->store->ops->instance_find(r->store, cluster, instance, &i, why);

    if (rc != 0)
        return rc;
    i.state = state;
    rc = r->store->ops->instance_put(r->store, &i, i.generation, why);
    kr_buf_deinit(&i.chain);
    if (rc == 0)
        rc = r->store->ops->sync(r->store, why);
    if (rc == 0)
        hub_registry_tell(r, cluster);
    return rc;
}

int hub_registry_deny_key(struct hub_registry *r, const uint8_t spki[HUB_SPKI_SIZE],
                          struct kr_note *why)
{
    int rc = r->store->ops->key_deny(r->store, spki, r->w->sched->now_wall_ms, why);

    if (rc == 0)
        rc = r->store->ops->sync(r->store, why);
    if (rc == 0)
        hub_registry_tell(r, NULL);
    return rc;
}

int hub_registry_allow_key(struct hub_registry *r, const uint8_t spki[HUB_SPKI_SIZE],
                           struct kr_note *why)
{
    int rc = r->store->ops->key_allow(r->store, spki, why);

    return rc == 0 ? r->store->ops->sync(r->store, why) : rc;
}
