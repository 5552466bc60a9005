/* SPDX-License-Identifier: Apache-2.0 */
/* reflector_world: a reflector before a scripted API server, and what it told. */
#ifndef KR_TESTS_REFLECTOR_WORLD_H
#define KR_TESTS_REFLECTOR_WORLD_H

#include "agent/reflector.h"
#include "api_double.h"
#include "kube_text.h"

struct world {
    struct api_world w;
    struct agent_target target;
    struct agent_list_gate gate;
    struct agent_reflector r;
    struct text t;
    /* what was told */
    int lists;
    int list_ends;
    int objects;
    int gone;
    int columns;
    int skipped;
    int bookmarks;
    int problems;
    enum kr_sync_problem problem;
    char last[2048]; /* object */
    size_t cells;
    bool full;        /* may_read says no */
    int object_rc;    /* on_object returns it once */
    bool stop_at_end; /* on_list_end stops the reflector */
};

static const struct pod a1 = {"d", "a", "u1", "101", "i1"};
static const struct pod b1 = {"d", "b", "u2", "102", "i1"};
static const struct pod a2 = {"d", "a", "u1", "210", "i2"};

static __attribute__((unused)) void on_list(void *user)
{
    ((struct world *)user)->lists++;
}

static __attribute__((unused)) int on_object(void *user, const struct agent_seen *seen)
{
    struct world *x = user;
    int rc = x->object_rc;

    x->object_rc = 0;
    x->objects++;
    x->cells += seen->cells.n != 0;
    snprintf(x->last, sizeof x->last, "%.*s", (int)seen->object.n, (const char *)seen->object.p);
    return rc;
}

static __attribute__((unused)) void on_gone(void *user, const struct agent_seen *seen)
{
    struct world *x = user;

    x->gone++;
    snprintf(x->last, sizeof x->last, "%.*s", (int)seen->object.n, (const char *)seen->object.p);
}

static __attribute__((unused)) void on_list_end(void *user)
{
    struct world *x = user;

    x->list_ends++;
    if (x->stop_at_end)
        agent_reflector_stop(&x->r);
}

static __attribute__((unused)) void on_columns(void *user, struct kr_bytes columns)
{
    struct world *x = user;

    assert_true(kr_bytes_is(columns, POD_COLUMNS));
    x->columns++;
}

static __attribute__((unused)) bool may_read(void *user, bool bookmark)
{
    struct world *x = user;

    x->bookmarks += bookmark;
    return !x->full;
}

static __attribute__((unused)) void on_problem(void *user, enum kr_sync_problem problem,
                                               const char *text)
{
    struct world *x = user;

    (void)text;
    x->problems++;
    x->problem = problem;
}

static __attribute__((unused)) void on_skipped(void *user)
{
    ((struct world *)user)->skipped++;
}

static const struct agent_reflector_ops ops = {on_list,    on_object, on_gone,    on_list_end,
                                               on_columns, may_read,  on_problem, on_skipped};

static __attribute__((unused)) struct world *set_up(const char *server_version)
{
    struct world *x = calloc(1, sizeof *x);
    struct agent_target_spec spec = {.version = KR_LIT("v1"),
                                     .resource = KR_LIT("pods"),
                                     .label_selector = KR_LIT("a in (b,c)")};
    struct agent_reflector_config cfg = {
        .gate = &x->gate, .target = &x->target, .ops = &ops, .user = x};

    assert_non_null(x);
    api_world_init(&x->w);
    snprintf(x->w.c.health.version, sizeof x->w.c.health.version, "%s", server_version);
    x->w.c.catalog = agent_catalog_create(&x->w.c);
    assert_non_null(x->w.c.catalog);
    agent_list_gate_init(&x->gate, &x->w.sched);
    assert_int_equal(agent_target_init(&x->target, &spec, NULL), 0);
    cfg.c = &x->w.c;
    agent_reflector_init(&x->r, &cfg);
    agent_reflector_start(&x->r, KR_LIT(""));
    api_world_run(&x->w, 0);
    return x;
}

static __attribute__((unused)) void tear_down(struct world *x)
{
    agent_reflector_deinit(&x->r);
    agent_catalog_stop(x->w.c.catalog);
    agent_catalog_destroy(x->w.c.catalog);
    api_world_run(&x->w, 0);
    agent_list_gate_deinit(&x->gate);
    agent_target_deinit(&x->target);
    api_world_deinit(&x->w);
    free(x);
}

static __attribute__((unused)) struct turn *next(struct world *x)
{
    return api_next(&x->w.api);
}

/* The longest back-off later. */
static __attribute__((unused)) struct turn *later(struct world *x)
{
    api_world_run(&x->w, 31000);
    return next(x);
}

/* Listed in pages, a1 and b1 at version 200; the watch is asked for. */
static __attribute__((unused)) struct turn *listed(struct world *x)
{
    const struct pod both[] = {a1, b1};
    struct turn *t = next(x);

    assert_true(turn_asks(t, "limit=500"));
    turn_answer(t, 200, table_of(&x->t, both, 2, "200", ""));
    t = next(x);
    assert_true(turn_asks(t, "watch=true"));
    assert_true(turn_asks(t, "resourceVersion=200&"));
    return t;
}

static __attribute__((unused)) bool version_is(const struct world *x, const char *v)
{
    return kr_bytes_is(agent_reflector_version(&x->r), v);
}

#endif
