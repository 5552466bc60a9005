/* SPDX-License-Identifier: Apache-2.0 */
#include "churn.h"

#include <string.h>
#include <time.h>

#include "base/assert.h"

#define TICK_MS 20

static int64_t now_us(const struct sim_cluster *c)
{
    struct timespec t;

    if (!c->real_time || clock_gettime(CLOCK_REALTIME, &t) != 0)
        return c->sched->now_wall_ms * 1000;
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static struct sim_obj *pick(const struct sim_cluster *c, int kind, uint64_t r)
{
    const struct sim_coll *coll = &c->colls[kind];

    return coll->n != 0 ? coll->objs[r % coll->n] : NULL;
}

static void change(struct sim_cluster *c, int kind, enum sim_mix what, uint64_t r)
{
    struct sim_obj *o = pick(c, kind, r);
    struct sim_gen_id id;

    if (o == NULL)
        return;
    id = o->rev.gen;
    if (what == SIM_MIX_ANNOTATIONS) {
        id.touches++;
    } else {
        id.at_us = now_us(c);
        if (what == SIM_MIX_RESTARTS)
            id.restarts++;
        else
            id.change++;
    }
    sim_store_change(c, kind, o, id);
}

static void replace_pod(struct sim_cluster *c, uint64_t r)
{
    struct sim_obj *o = pick(c, SIM_KIND_POD, r);

    if (o != NULL)
        sim_store_replace(c, SIM_KIND_POD, o, now_us(c));
}

static void heartbeat(struct sim_cluster *c, uint64_t r, bool condition)
{
    change(c, SIM_KIND_NODE, condition ? SIM_MIX_RESTARTS : SIM_MIX_HEARTBEATS, r);
}

void sim_churn(struct sim_cluster *c, enum sim_mix mix)
{
    uint64_t r = sim_random(c), which = r >> 8;

    if (mix == SIM_MIX_PODS)
        mix = SIM_MIX_READINESS + r % 4;
    if (mix == SIM_MIX_HEARTBEATS)
        heartbeat(c, which, r % 50 == 0);
    else if (mix == SIM_MIX_DEFAULT && r % 10 == 0)
        heartbeat(c, which, false);
    else if (mix == SIM_MIX_REPLACEMENTS || (mix == SIM_MIX_DEFAULT && r % 50 == 1))
        replace_pod(c, which);
    else
        change(c, SIM_KIND_POD, mix, which);
}

bool sim_mix_parse(const char *name, enum sim_mix *out)
{
    static const char *const names[] = {"default",      "pods",        "readiness", "restarts",
                                        "replacements", "annotations", "heartbeats"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (enum sim_mix)i;
            return true;
        }
    }
    return false;
}

/* ---- at a pace */

static void on_tick(struct kr_timer *t)
{
    struct sim_fleet *f = KR_CONTAINER_OF(t, struct sim_fleet, timer);
    uint32_t ms = (uint32_t)(f->sched->now_ms - f->last_ms);

    f->last_ms = f->sched->now_ms;
    KR_LIST_FOREACH(node, &f->clusters)
    {
        struct sim_cluster *c = KR_CONTAINER_OF(node, struct sim_cluster, in_fleet);

        c->churn_debt += f->rate * ms;
        for (; c->churn_debt >= 1000; c->churn_debt -= 1000)
            sim_churn(c, f->mix);
    }
    (void)kr_timer_start(f->sched, t, TICK_MS);
}

void sim_fleet_init(struct sim_fleet *f, struct kr_sched *sched)
{
    *f = (struct sim_fleet){.sched = sched};
    kr_list_init(&f->clusters);
    kr_timer_init(&f->timer, on_tick);
}

void sim_fleet_deinit(struct sim_fleet *f)
{
    kr_timer_stop(f->sched, &f->timer);
}

void sim_fleet_add(struct sim_fleet *f, struct sim_cluster *c)
{
    kr_list_append(&f->clusters, &c->in_fleet);
    c->fleet = f;
}

void sim_fleet_pace(struct sim_fleet *f, uint32_t rate, enum sim_mix mix)
{
    f->rate = rate;
    f->mix = mix;
    f->last_ms = f->sched->now_ms;
    if (rate == 0)
        kr_timer_stop(f->sched, &f->timer);
    else
        (void)kr_timer_start(f->sched, &f->timer, TICK_MS);
}
