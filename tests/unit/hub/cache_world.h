/* SPDX-License-Identifier: Apache-2.0 */
/* A cache with its clock and revisions, and short ways to put things in. */
#ifndef TESTS_UNIT_HUB_CACHE_WORLD_H
#define TESTS_UNIT_HUB_CACHE_WORLD_H

#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/cache.h"
#include "wire/digest.h"

#define WALL_MS INT64_C(1700000000000)
#define UID_A "0a1b2c3d-0001-4000-8000-00000000000a"
#define UID_B "0a1b2c3d-0001-4000-8000-00000000000b"

struct world {
    struct kr_sched sched;
    struct hub_revision revision;
    struct hub_cache *cache;
    struct hub_type *pods;
};

static inline struct hub_cache_limits roomy(void)
{
    return (struct hub_cache_limits){.types = 10,
                                     .cluster_bytes = 1u << 30,
                                     .log_events = 1000,
                                     .log_ms = 60000,
                                     .log_bytes = 1u << 28,
                                     .pins = 100,
                                     .pin_ms = 60000};
}

static inline void world_init(struct world *w, struct hub_cache_limits limits)
{
    kr_sched_init(&w->sched, 1000, WALL_MS);
    assert_int_equal(hub_revision_init(&w->revision, NULL, 3, WALL_MS * 1000, NULL), 0);
    w->cache = hub_cache_create(&w->sched, &w->revision, &limits);
    assert_non_null(w->cache);
    w->pods = hub_cache_add_type(w->cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    assert_non_null(w->pods);
}

static inline void world_deinit(struct world *w)
{
    hub_cache_destroy(w->cache);
    hub_revision_deinit(&w->revision);
    kr_sched_deinit(&w->sched);
}

/* One turn of the loop, so many milliseconds later. */
static inline void turn(struct world *w, int64_t later_ms)
{
    (void)kr_sched_run(&w->sched, w->sched.now_ms + later_ms, w->sched.now_wall_ms + later_ms);
}

static inline struct hub_shelf *shelf(struct world *w, const char *cluster)
{
    struct hub_shelf *s = hub_type_add_shelf(w->pods, kr_bytes_str(cluster));

    assert_non_null(s);
    return s;
}

/* A pod whose content is its hash, with at most one label "app". */
static inline struct hub_incoming pod(const char *ns, const char *name, uint64_t hash)
{
    return (struct hub_incoming){.ns = kr_bytes_str(ns),
                                 .name = kr_bytes_str(name),
                                 .uid = KR_LIT(UID_A),
                                 .version = KR_LIT("100"),
                                 .hash = hash,
                                 .dictionary = 1,
                                 .size = 1000,
                                 .packed = KR_LIT("packed bytes")};
}

static inline int put(struct hub_shelf *s, const char *ns, const char *name, uint64_t hash)
{
    struct hub_incoming in = pod(ns, name, hash);

    return hub_shelf_put(s, &in);
}

static inline int put_labelled(struct hub_shelf *s, const char *ns, const char *name, uint64_t hash,
                               const char *app)
{
    struct kr_label label = {.key = KR_LIT("app"), .value = kr_bytes_str(app)};
    struct hub_incoming in = pod(ns, name, hash);

    in.labels = &label;
    in.label_count = 1;
    return hub_shelf_put(s, &in);
}

static inline bool delete (struct hub_shelf *s, const char *ns, const char *name)
{
    return hub_shelf_delete(s, kr_bytes_str(ns), kr_bytes_str(name));
}

static inline const struct hub_object *get(struct hub_shelf *s, const char *ns, const char *name)
{
    return hub_shelf_get(s, kr_bytes_str(ns), kr_bytes_str(name));
}

/* All that is left of a walk, as "ns/name@cluster " after "ns/name@cluster ". */
static inline void expect_walk(struct hub_walk *walk, const char *expected)
{
    struct hub_object *o;
    const char *cluster;
    struct kr_buf out;

    assert_non_null(walk);
    kr_buf_init(&out, 1u << 20);
    assert_int_equal(kr_buf_append_str(&out, ""), 0);
    while ((o = hub_walk_next(walk, &cluster)) != NULL) {
        struct kr_bytes ns = hub_object_ns(o);
        struct kr_bytes name = hub_object_name(o);

        assert_int_equal(kr_buf_printf(&out, "%s%.*s/%.*s@%s", out.n != 0 ? " " : "", (int)ns.n,
                                       (const char *)ns.p, (int)name.n, (const char *)name.p,
                                       cluster),
                         0);
    }
    assert_int_equal(kr_buf_append(&out, kr_bytes_of("", 1)), 0);
    assert_string_equal((const char *)out.p, expected);
    kr_buf_deinit(&out);
    hub_walk_destroy(walk);
}

#endif
