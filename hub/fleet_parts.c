/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "certs/store_file.h"
#include "hub/cache.h"
#include "hub/fleet.h"
#include "hub/fleet_source.h"
#include "hub/subscriptions.h"

#define TYPES_MAX 1000
#define LOG_MS 300000
#define LOG_BYTES (64u << 20)
#define PINS_MAX 1000
#define PIN_MS 300000

struct hub_fleet_parts {
    struct hub_worker *w;
    struct hub_fleet_source *source;
    struct hub_revision revision;
    bool has_revision;
};

/* Replicas of a set are numbered by their names ("hub-2"); others by any bits of them. Revisions of
 * two replicas need not differ, but it helps who reads them. */
static unsigned replica_number(const char *name)
{
    struct kr_bytes text = kr_bytes_str(name);
    unsigned sum = 0;
    size_t dash = text.n;
    uint64_t n;

    while (dash > 0 && text.p[dash - 1] != '-')
        dash--;
    if (dash != 0 && kr_bytes_to_u64(kr_bytes_skip(text, dash), 15, &n))
        return (unsigned)n;
    for (size_t i = 0; i < text.n; i++)
        sum = sum * 31 + text.p[i];
    return sum % 16;
}

static int start_revision(struct hub_fleet_parts *p, struct kr_note *why)
{
    struct hub_worker *w = p->w;
    const char *dir = w->options->state_dir;
    char file[PATH_MAX] = "";
    int rc = 0;

    if (dir != NULL) {
        rc = kr_dir_ensure(dir, why);
        snprintf(file, sizeof file, "%s/fleet-revision", dir);
    } else {
        KR_LOG_AT(w->log, KR_LOG_WARN, "state-not-kept", KR_S("reason", "no stateDir"),
                  KR_S("effect", "if the clock steps back over a restart, fleet revisions do too"));
    }
    if (rc == 0)
        rc = hub_revision_init(&p->revision, dir != NULL ? file : NULL,
                               replica_number(w->self.name), w->sched->now_wall_ms * 1000, why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "stateDir");
    p->revision.log = w->log;
    p->has_revision = true;
    w->revision = &p->revision;
    return 0;
}

static int start_rest(struct hub_worker *w, struct kr_note *why)
{
    const struct hub_cache_limits limits = {
        .types = TYPES_MAX,
        .cluster_bytes = (uint64_t)w->options->cache_quota,
        .log_events = (size_t)w->options->fleet_log_events,
        .log_ms = LOG_MS,
        .log_bytes = LOG_BYTES,
        .pins = PINS_MAX,
        .pin_ms = PIN_MS,
    };

    w->cache = hub_cache_create(w->sched, w->revision, &limits);
    if (w->cache != NULL)
        w->catalogs = hub_catalogs_create();
    if (w->catalogs != NULL)
        w->subscriptions = hub_subscriptions_create(w);
    if (w->subscriptions != NULL)
        w->fleet = hub_fleet_create(w);
    return w->fleet != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "out of memory");
}

int hub_fleet_parts_create(struct hub_worker *w, struct hub_fleet_parts **out, struct kr_note *why)
{
    struct hub_fleet_parts *p;
    int rc = 0;

    *out = NULL;
    if (w->options->fleet_file == NULL)
        return 0;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    p->w = w;
    p->source = hub_fleet_source_create(w, why);
    if (p->source == NULL)
        rc = KR_EINVAL;
    if (rc == 0)
        rc = start_revision(p, why);
    if (rc == 0)
        rc = start_rest(w, why);
    if (rc != 0) {
        hub_fleet_parts_destroy(p);
        return rc;
    }
    *out = p;
    return 0;
}

void hub_fleet_parts_destroy(struct hub_fleet_parts *p)
{
    struct hub_worker *w;

    if (p == NULL)
        return;
    w = p->w;
    hub_fleet_destroy(w->fleet);
    hub_subscriptions_destroy(w->subscriptions);
    hub_catalogs_destroy(w->catalogs);
    hub_cache_destroy(w->cache);
    w->fleet = NULL;
    w->subscriptions = NULL;
    w->catalogs = NULL;
    w->cache = NULL;
    w->revision = NULL;
    if (p->has_revision)
        hub_revision_deinit(&p->revision);
    hub_fleet_source_destroy(p->source);
    free(p);
}

void hub_fleet_parts_reload(struct hub_fleet_parts *p)
{
    if (p != NULL)
        hub_fleet_source_reload(p->source);
}
