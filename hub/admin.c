/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/admin.h"

#include "base/assert.h"
#include "hub/cache.h"
#include "hub/counters.h"

static void set(struct hub_worker *w, size_t family, int64_t value)
{
    kr_metric_set(kr_metrics_series(w->metrics, family, NULL, 0), value);
}

static void measure_cache(struct hub_worker *w)
{
    size_t objects = 0;

    KR_LIST_FOREACH(node, hub_cache_types(w->cache))
    {
        objects += KR_CONTAINER_OF(node, struct hub_type, link)->objects;
    }
    set(w, HUB_CACHE_OBJECTS, (int64_t)objects);
    set(w, HUB_CACHE_BYTES, (int64_t)hub_cache_bytes(w->cache));
}

static void measure(void *owner)
{
    struct hub_worker *w = owner;

    set(w, HUB_WINDOW_LEFT, w->h2.window_left);
    if (w->cache != NULL)
        measure_cache(w);
}

static const char *unready(void *owner)
{
    const struct hub_worker *w = owner;

    return w->unready ? "shutting down\n" : NULL;
}

int hub_admin_open(struct kr_admin *a, struct hub_worker *w, struct kr_note *why)
{
    struct kr_admin_config cfg = {
        .io = w->io,
        .listen = w->options->admin_listen,
        .loopback_only = true,
        .metrics = w->metrics,
        .measure = measure,
        .unready = unready,
        .owner = w,
    };
    int rc = kr_admin_open(a, &cfg, why);

    return rc == 0 ? 0 : kr_note_wrap(why, rc, "adminListen");
}
