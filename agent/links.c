/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/links.h"

#include "base/assert.h"
#include "base/err.h"

#define LOOK_MS 250
#define CHANGE_MS 50000 /* a hub closes them after 60 s */
#define REPLACE_MS 5000

static void on_look(struct kr_timer *t);

static int make(struct agent_links *ls, struct kr_note *why)
{
    const struct agent_options *o = ls->c->options;

    if (o->hubs.n * (size_t)o->lanes > AGENT_LINKS_MAX)
        return kr_note_set(why, KR_EINVAL, "hubs times lanes is more than %d", AGENT_LINKS_MAX);
    for (size_t i = 0; i < o->hubs.n; i++) {
        for (int64_t lane = 0; lane < o->lanes; lane++) {
            struct agent_link_config cfg = {
                .c = ls->c,
                .hub = o->hubs.v[i],
                .lane = lane == 0 ? KR_LANE_INTERACTIVE : KR_LANE_BULK,
                .proxy = ls->proxy,
            };

            ls->links[ls->count] = agent_link_create(&cfg, why);
            if (ls->links[ls->count] == NULL)
                return kr_note_wrap(why, KR_EINVAL, "hubs");
            ls->count++;
        }
    }
    return 0;
}

int agent_links_init(struct agent_links *ls, struct agent_core *c, const struct kr_proxy *proxy,
                     struct kr_note *why)
{
    ls->c = c;
    ls->proxy = proxy;
    kr_timer_init(&ls->change, on_look);
    return make(ls, why);
}

void agent_links_start(struct agent_links *ls)
{
    for (size_t i = 0; i < ls->count; i++)
        agent_link_start(ls->links[i]);
}

bool agent_links_attached(const struct agent_links *ls)
{
    for (size_t i = 0; i < ls->count; i++) {
        if (agent_link_attached(ls->links[i]))
            return true;
    }
    return false;
}

void agent_links_tell(struct agent_links *ls)
{
    for (size_t i = 0; i < ls->count; i++)
        agent_link_tell(ls->links[i]);
}

void agent_links_retry(struct agent_links *ls)
{
    for (size_t i = 0; i < ls->count; i++)
        (void)agent_link_retry(ls->links[i]);
}

/* ---- another certificate ---- */

static bool end_old(struct agent_links *ls, struct agent_link *l)
{
    bool due = ls->old_until_ms != 0 &&
               (ls->c->sched->now_ms >= ls->old_until_ms || agent_link_is_idle(l));

    if (!due || !agent_link_close(l))
        return false;
    agent_link_destroy(l);
    return true;
}

static void on_look(struct kr_timer *t)
{
    struct agent_links *ls = KR_CONTAINER_OF(t, struct agent_links, change);
    size_t left = 0;

    if (ls->old_until_ms == 0 && agent_links_attached(ls)) {
        ls->old_until_ms = ls->c->sched->now_ms + CHANGE_MS;
        for (size_t i = 0; i < ls->old_count; i++)
            agent_link_drain(ls->old[i]);
    }
    if (ls->old_cut_ms != 0 && (ls->old_until_ms == 0 || ls->old_until_ms > ls->old_cut_ms) &&
        ls->c->sched->now_ms >= ls->old_cut_ms)
        ls->old_until_ms = ls->old_cut_ms;
    for (size_t i = 0; i < ls->old_count; i++) {
        if (!end_old(ls, ls->old[i]))
            ls->old[left++] = ls->old[i];
    }
    ls->old_count = left;
    if (left != 0)
        kr_timer_start(ls->c->sched, &ls->change, LOOK_MS);
}

/* Changed again while links of the certificate before are still ending: they end now. */
static void close_old(struct agent_links *ls)
{
    size_t left = 0;

    for (size_t i = 0; i < ls->old_count; i++) {
        if (agent_link_close(ls->old[i]))
            agent_link_destroy(ls->old[i]);
        else
            ls->old[left++] = ls->old[i];
    }
    ls->old_count = left;
}

void agent_links_change(struct agent_links *ls)
{
    struct kr_note why = {""};

    if (!agent_links_attached(ls)) {
        for (size_t i = 0; i < ls->count; i++) {
            if (!agent_link_retry(ls->links[i]))
                agent_link_start(ls->links[i]);
        }
        return;
    }
    close_old(ls);
    while (ls->count != 0 && ls->old_count < AGENT_LINKS_MAX)
        ls->old[ls->old_count++] = ls->links[--ls->count];
    ls->old_until_ms = 0;
    ls->old_cut_ms = 0;
    kr_timer_start(ls->c->sched, &ls->change, LOOK_MS);
    if (make(ls, &why) != 0)
        KR_LOG_AT(ls->c->log, KR_LOG_ERROR, "no-links", KR_S("reason", why.text));
    agent_links_start(ls);
}

void agent_links_replace(struct agent_links *ls)
{
    agent_links_change(ls);
    ls->old_cut_ms = ls->c->sched->now_ms + REPLACE_MS;
}

/* ---- the end ---- */

void agent_links_drain(struct agent_links *ls)
{
    for (size_t i = 0; i < ls->count; i++)
        agent_link_drain(ls->links[i]);
}

void agent_links_close(struct agent_links *ls)
{
    if (ls->c == NULL)
        return;
    kr_timer_stop(ls->c->sched, &ls->change);
    for (size_t i = 0; i < ls->count; i++)
        agent_link_close(ls->links[i]);
    for (size_t i = 0; i < ls->old_count; i++)
        agent_link_close(ls->old[i]);
}

void agent_links_deinit(struct agent_links *ls)
{
    for (size_t i = 0; i < ls->count; i++)
        agent_link_destroy(ls->links[i]);
    for (size_t i = 0; i < ls->old_count; i++)
        agent_link_destroy(ls->old[i]);
}
