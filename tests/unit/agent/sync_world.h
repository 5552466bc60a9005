/* SPDX-License-Identifier: Apache-2.0 */
/* sync_world: an agent between a scripted API server and a hub that applies what it gets. */
#ifndef KR_TESTS_SYNC_WORLD_H
#define KR_TESTS_SYNC_WORLD_H

#include "agent/catalog.h"
#include "agent/sync_out.h"
#include "api_double.h"
#include "hub_double.h"
#include "kube_text.h"

static const char *allow_all[] = {"*", NULL};
static const char *deny_secrets[] = {"secrets", NULL};

struct world {
    struct api_world w;
    struct hub hub;
    struct hub_call k;
    struct text t;
    struct kr_subscription pods;
    bool calling;
};

static __attribute__((unused)) const struct pod a1 = {"d", "a", "u1", "101", "i1"};
static __attribute__((unused)) const struct pod b1 = {"d", "b", "u2", "102", "i1"};
static __attribute__((unused)) const struct pod c1 = {"e", "c", "u3", "103", "i1"};
static __attribute__((unused)) const struct pod a2 = {"d", "a", "u1", "210", "i2"};
static __attribute__((unused))
const struct pod a_beat = {"d", "a", "u1", "205", "i1"}; /* nothing but its version differs */
static __attribute__((unused)) const struct pod b_end = {"d", "b", "u2", "211", "i1"};
static __attribute__((unused))
const struct pod a_other = {"d", "a", "u9", "220", "i1"}; /* created anew */

static __attribute__((unused)) struct world *set_up(void)
{
    struct world *x = calloc(1, sizeof *x);

    assert_non_null(x);
    api_world_init(&x->w);
    x->w.options.sync_allow = (struct kr_strings){allow_all, 1};
    x->w.options.sync_deny = (struct kr_strings){deny_secrets, 1};
    snprintf(x->w.c.health.version, sizeof x->w.c.health.version, "v1.20.0");
    x->w.c.catalog = agent_catalog_create(&x->w.c);
    assert_non_null(x->w.c.catalog);
    assert_int_equal(agent_sync_create(&x->w.c), 0);
    hub_init(&x->hub);
    x->pods = (struct kr_subscription){
        .id = 7, .group = KR_LIT(""), .version = KR_LIT("v1"), .resource = KR_LIT("pods")};
    return x;
}

static __attribute__((unused)) void run(struct world *x, int64_t ms)
{
    for (int i = 0; i < 20; i++) {
        api_world_run(&x->w, i == 0 ? ms : 0);
        if (x->calling)
            fake_pump(&x->k.wire, 4096);
    }
}

static __attribute__((unused)) void call(struct world *x, const struct kr_subscription *s)
{
    hub_call_init(&x->k, &x->hub, &x->w.c, "hub-1");
    x->calling = true;
    hub_open(&x->k, s);
    run(x, 0);
}

static __attribute__((unused)) void cut(struct world *x)
{
    x->calling = false;
    hub_call_cut(&x->k);
    run(x, 0);
}

static __attribute__((unused)) void tear_down(struct world *x)
{
    if (x->calling)
        cut(x);
    agent_sync_destroy(&x->w.c);
    agent_catalog_destroy(x->w.c.catalog);
    hub_deinit(&x->hub);
    api_world_deinit(&x->w);
    free(x);
}

static __attribute__((unused)) struct turn *next(struct world *x)
{
    return api_next(&x->w.api);
}

static __attribute__((unused)) struct turn *later(struct world *x)
{
    run(x, 31000);
    return next(x);
}

/* The whole answer to a list; the watch that follows it. */
static __attribute__((unused)) struct turn *answer_list(struct world *x, const struct pod *pods,
                                                        size_t n, const char *version)
{
    struct turn *t = next(x);

    assert_true(turn_asks(t, "limit=500"));
    turn_answer(t, 200, table_of(&x->t, pods, n, version, ""));
    run(x, 0);
    if (x->w.api.n == x->w.api.looked || !turn_asks(x->w.api.turns[x->w.api.looked], "watch=true"))
        return NULL; /* another list follows */
    t = next(x);
    turn_head(t, 200, NULL, NULL);
    return t;
}

/* What stands between a version that is gone on from and the watch. */
static __attribute__((unused)) struct turn *answer_look(struct world *x, const char *version)
{
    struct turn *t = next(x);

    assert_true(turn_asks(t, "limit=1&"));
    turn_answer(t, 200, glance_of(&x->t, version));
    t = next(x);
    assert_true(turn_asks(t, "watch=true"));
    turn_head(t, 200, NULL, NULL);
    return t;
}

static __attribute__((unused)) void say(struct world *x, struct turn *t, const char *text)
{
    turn_say(t, text);
    run(x, 0);
}

/* Synced: a1, b1 at version 200. */
static __attribute__((unused)) struct turn *synced(struct world *x)
{
    const struct pod both[] = {a1, b1};

    call(x, &x->pods);
    return answer_list(x, both, 2, "200");
}

#endif
