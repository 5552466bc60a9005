/* SPDX-License-Identifier: Apache-2.0 */
/* kube_model: a small API server with a history: pods that come, change and go, pages of a list at
 * one version, watches from a version, WatchList, 410 behind a compaction, a restore from a backup
 * after which versions run backwards; and faults, as a seed has it. */
#ifndef KR_TESTS_KUBE_MODEL_H
#define KR_TESTS_KUBE_MODEL_H

#include "api_double.h"
#include "base/rand.h"
#include "kube_text.h"

enum { PODS = 40, HISTORY_MAX = 4096, PAGE = 7, SNAPSHOTS = 8 };

struct model_pod {
    bool there;
    char name[8];
    char uid[16];
    char version[16];
    char image[16];
};

struct model_change {
    uint64_t version;
    const char *type;
    struct model_pod pod;
};

struct model_state {
    struct model_pod pods[PODS];
    uint64_t version;
};

struct serve { /* what became of one request so far */
    bool headed;
    uint64_t at; /* a watch: the version up to which it was told */
};

struct model {
    struct kr_rand rand;
    struct model_state now;
    struct model_state backup;
    struct model_state pages[SNAPSHOTS]; /* that continue tokens speak of */
    size_t page_next;
    struct model_change history[HISTORY_MAX];
    size_t history_count;
    uint64_t compacted; /* older versions are 410 */
    uint64_t uids;
    struct serve serves[TURNS_MAX];
    bool calm;    /* no faults */
    bool streams; /* WatchList is served */
    struct text t;
};

static bool model_one_in(struct model *m, unsigned n)
{
    return kr_rand_below(&m->rand, n) == 0;
}

static void model_init(struct model *m, uint64_t seed)
{
    *m = (struct model){.now.version = 100, .compacted = 100};
    kr_rand_seed(&m->rand, seed);
    m->streams = model_one_in(m, 2);
    for (size_t i = 0; i < PODS; i++)
        snprintf(m->now.pods[i].name, sizeof m->now.pods[i].name, "p%zu", i);
    m->backup = m->now;
}

/* ---- what happens in the cluster */

static void model_record(struct model *m, const char *type, const struct model_pod *p)
{
    if (m->history_count == HISTORY_MAX) {
        m->compacted = m->now.version - 1;
        m->history_count = 0;
    }
    m->history[m->history_count++] =
        (struct model_change){.version = m->now.version, .type = type, .pod = *p};
}

static void model_change(struct model *m)
{
    struct model_pod *p = &m->now.pods[kr_rand_below(&m->rand, PODS)];
    bool new = !p->there;

    m->now.version++;
    snprintf(p->version, sizeof p->version, "%llu", (unsigned long long)m->now.version);
    if (!new &&model_one_in(m, 4)) {
        p->there = false;
        model_record(m, "DELETED", p);
        return;
    }
    if (new) {
        p->there = true;
        snprintf(p->uid, sizeof p->uid, "u%llu", (unsigned long long)++m->uids);
    }
    if (new || !model_one_in(m, 3)) /* else it is only a heartbeat */
        snprintf(p->image, sizeof p->image, "i%llu", (unsigned long long)m->now.version);
    model_record(m, new ? "ADDED" : "MODIFIED", p);
}

static void model_compact(struct model *m)
{
    m->compacted = m->now.version;
}

static void model_restore(struct model *m)
{
    m->now = m->backup;
    m->history_count = 0;
    m->compacted = m->now.version;
    memset(m->pages, 0, sizeof m->pages);
}

/* ---- answering */

static struct pod model_view(const struct model_pod *p)
{
    return (struct pod){"d", p->name, p->uid, p->version, p->image};
}

static const char *parameter(const struct turn *t, const char *name)
{
    const char *at = strstr(t->path, name);

    return at != NULL ? at + strlen(name) : NULL;
}

static void fail_turn(struct model *m, struct turn *t)
{
    static const int codes[] = {500, 503, 429, 504, 403};
    int code = codes[kr_rand_below(&m->rand, 5)];

    if (model_one_in(m, 2))
        turn_done(t, model_one_in(m, 2) ? KR_ECONNLOST : KR_ERESET);
    else
        turn_answer(t, code, status_of(&m->t, code, "Fault"));
}

/* The whole text, or a part of it and then the end of the connection. */
static void say_all(struct model *m, struct turn *t, const char *text, bool ends)
{
    size_t n = strlen(text);
    bool cut = !m->calm && model_one_in(m, 8);
    size_t stop = cut ? kr_rand_below(&m->rand, n) : n;

    for (size_t at = 0, step; at < stop; at += step) {
        step = 1 + kr_rand_below(&m->rand, 900);
        if (step > stop - at)
            step = stop - at;
        turn_bytes(t, text + at, step);
    }
    if (t->open && cut)
        turn_done(t, model_one_in(m, 4) ? 0 : KR_ECONNLOST); /* a cut may look like an end */
    else if (t->open && ends)
        turn_done(t, 0);
}

static void answer_page(struct model *m, struct turn *t)
{
    const char *cont = parameter(t, "continue=");
    size_t which = cont != NULL ? (size_t)atoi(cont) / 1000 : m->page_next++ % SNAPSHOTS;
    size_t from = cont != NULL ? (size_t)atoi(cont) % 1000 : 0;
    bool whole = parameter(t, "limit=500") == NULL;
    struct pod pods[PODS];
    char token[16] = "";
    char version[24];
    size_t n = 0;
    size_t i;

    if (cont == NULL)
        m->pages[which] = m->now;
    if (cont != NULL && (m->pages[which].version == 0 || m->pages[which].version < m->compacted)) {
        turn_answer(t, 410, status_of(&m->t, 410, "Expired"));
        return;
    }
    for (i = from; i < PODS && (whole || n < PAGE); i++) {
        if (m->pages[which].pods[i].there)
            pods[n++] = model_view(&m->pages[which].pods[i]);
    }
    if (i < PODS)
        snprintf(token, sizeof token, "%zu", which * 1000 + i);
    snprintf(version, sizeof version, "%llu", (unsigned long long)m->pages[which].version);
    turn_head(t, 200, "content-type", "application/json");
    say_all(m, t, table_of(&m->t, pods, n, version, token), true);
}

static void answer_glance(struct model *m, struct turn *t)
{
    char version[24];

    snprintf(version, sizeof version, "%llu", (unsigned long long)m->now.version);
    turn_head(t, 200, NULL, NULL);
    say_all(m, t, glance_of(&m->t, version), true);
}

static void say_event(struct model *m, struct turn *t, const char *type, const struct model_pod *p)
{
    struct pod view = model_view(p);

    say_all(m, t, event_of(&m->t, type, &view), false);
}

static void say_bookmark(struct model *m, struct turn *t, uint64_t version, bool initial_end)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    say_all(m, t, bookmark_of(&m->t, text, initial_end), false);
}

static void begin_watch(struct model *m, struct turn *t, struct serve *s)
{
    bool all = parameter(t, "sendInitialEvents=") != NULL;

    if (all && !m->streams) {
        turn_answer(t, 422, status_of(&m->t, 422, "Invalid"));
        return;
    }
    s->at = all ? m->now.version : (uint64_t)atoll(parameter(t, "&resourceVersion="));
    turn_head(t, 200, NULL, NULL);
    s->headed = true;
    for (size_t i = 0; all && i < PODS && t->open; i++) {
        if (m->now.pods[i].there)
            say_event(m, t, "ADDED", &m->now.pods[i]);
    }
    if (all && t->open)
        say_bookmark(m, t, s->at, true);
}

static void go_on_watch(struct model *m, struct turn *t, struct serve *s)
{
    if (s->at < m->compacted) {
        say_all(m, t, error_of(&m->t, 410, "Expired"), true);
        return;
    }
    for (size_t i = 0; i < m->history_count && t->open; i++) {
        if (m->history[i].version <= s->at)
            continue;
        if (!m->calm && model_one_in(m, 6))
            return; /* the rest later */
        s->at = m->history[i].version;
        say_event(m, t, m->history[i].type, &m->history[i].pod);
    }
    if (t->open && (m->calm || model_one_in(m, 5)))
        say_bookmark(m, t, m->now.version > s->at ? m->now.version : s->at, false);
    if (t->open && !m->calm && model_one_in(m, 10))
        turn_done(t, model_one_in(m, 2) ? 0 : KR_ERESET);
}

static void model_serve(struct model *m, struct agent_apiserver *api)
{
    for (size_t i = 0; i < api->n; i++) {
        struct turn *t = api->turns[i];
        struct serve *s = &m->serves[i];

        if (!t->open || t->owed != 0)
            continue; /* one that stands still gets no more */
        if (s->headed)
            go_on_watch(m, t, s);
        else if (!m->calm && model_one_in(m, 6))
            fail_turn(m, t);
        else if (turn_asks(t, "watch=true"))
            begin_watch(m, t, s);
        else if (turn_asks(t, "limit=1&"))
            answer_glance(m, t);
        else
            answer_page(m, t);
    }
}

/* The server restarts: nothing that is open survives. */
static void model_cut_all(struct agent_apiserver *api)
{
    for (size_t i = 0; i < api->n; i++) {
        if (api->turns[i]->open)
            turn_done(api->turns[i], KR_ECONNLOST);
    }
}

#endif
