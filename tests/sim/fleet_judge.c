/* SPDX-License-Identifier: Apache-2.0 */
/* What readers were told, against the past of the type that they read. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "fleet.h"
#include "hub/catalogs.h"
#include "kube/injected.h"
#include "kube/json_scan.h"

#define SLACK_MS 1000

static struct past *past_of(const struct reader *r)
{
    return &r->f->pasts[r->view->type];
}

static const char *word_of(enum hub_change c)
{
    static const char *const words[] = {"ADDED", "MODIFIED", "DELETED"};

    return words[c];
}

/* ---- views ---- */

bool judge_selects(const struct view *v, unsigned cluster, unsigned index, const struct facts *x)
{
    if (v->ns >= 0 && index / 10 != (unsigned)v->ns)
        return false;
    if (v->cluster >= 0 && cluster != (unsigned)v->cluster)
        return false;
    return (v->app == 0 || x->app == v->app) && (!v->running || x->running);
}

static bool same(const struct view *v, const struct facts *a, const struct facts *b)
{
    return strcmp(a->uid, b->uid) == 0 && a->meta == b->meta &&
           (v->partial || a->whole == b->whole);
}

/* What a step is to a view; false: nothing. `facts` is what is shown. */
static bool seen_as(const struct view *v, const struct step *s, enum hub_change *change,
                    const struct facts **facts)
{
    bool before = s->change == HUB_MODIFIED && judge_selects(v, s->cluster, s->index, &s->before);
    bool now = judge_selects(v, s->cluster, s->index, &s->now);

    *facts = &s->now;
    *change = s->change;
    if (s->change != HUB_MODIFIED)
        return now;
    if (now && !before)
        *change = HUB_ADDED;
    if (before && !now) {
        *change = HUB_DELETED;
        *facts = &s->before;
    }
    return now || before;
}

/* ---- reading what came ---- */

static struct kr_bytes member(struct kr_bytes object, const char *name)
{
    struct kr_bytes v;

    return kr_scan_find(object, name, &v) ? v : (struct kr_bytes){NULL, 0};
}

static uint64_t version_of(const struct reader *r, struct kr_bytes object)
{
    struct kr_bytes v = member(member(object, "metadata"), "resourceVersion");
    uint64_t n = 0;

    world_check(&r->f->w, kr_scan_plain(v, &v) && kr_bytes_to_u64(v, UINT64_MAX, &n),
                "reader %u: no version: %.*s", r->id, (int)object.n, (const char *)object.p);
    if (n > r->f->highest)
        r->f->highest = n;
    return n;
}

static void read_entry(struct reader *r, struct kr_bytes object, struct entry *out)
{
    struct world *w = &r->f->w;
    struct kr_bytes meta = member(object, "metadata");
    struct kr_bytes notes = member(meta, "annotations");
    struct kr_bytes label = member(member(meta, "labels"), KR_LABEL_CLUSTER);

    *out = (struct entry){.revision = version_of(r, object)};
    world_check(w, facts_read(object, &out->facts, r->view->type, &out->index),
                "reader %u: not one of ours: %.*s", r->id, (int)object.n, (const char *)object.p);
    world_check(w, label.n > 2 && kr_bytes_eq(label, member(notes, KR_NOTE_KCP_CLUSTER)),
                "reader %u: of which cluster: %.*s", r->id, (int)object.n, (const char *)object.p);
    while (out->cluster < CLUSTERS &&
           !kr_bytes_is(kr_bytes_of(label.p + 1, label.n - 2), w->edges[out->cluster].name))
        out->cluster++;
    world_check(w, out->cluster < CLUSTERS, "reader %u: a cluster that is none", r->id);
    out->stale = member(notes, KR_NOTE_STALE).n != 0;
}

static struct entry *add(struct reader *r)
{
    if (r->entry_count == r->entry_cap) {
        r->entry_cap = r->entry_cap != 0 ? 2 * r->entry_cap : 64;
        r->entries = realloc(r->entries, r->entry_cap * sizeof *r->entries);
        KR_ASSERT(r->entries != NULL);
    }
    return &r->entries[r->entry_count++];
}

/* ---- a state ---- */

/* The first n entries are what the view shows of it, in order. False, with *why: they are not. */
static bool shows(const struct reader *r, const struct state *state, size_t n, char why[160])
{
    size_t at = 0;

    for (unsigned index = 0; index < THINGS; index++) {
        for (unsigned cluster = 0; cluster < CLUSTERS; cluster++) {
            const struct held *h = &state->held[cluster][index];
            const struct entry *e = at < n ? &r->entries[at] : NULL;

            if (!h->there || !judge_selects(r->view, cluster, index, &h->facts))
                continue;
            if (e == NULL || e->cluster != cluster || e->index != index ||
                e->revision != h->revision || !same(r->view, &e->facts, &h->facts)) {
                snprintf(why, 160,
                         "%u of cluster %u at %llu is wanted, %u of cluster %u at %llu came", index,
                         cluster, (unsigned long long)h->revision, e != NULL ? e->index : THINGS,
                         e != NULL ? e->cluster : CLUSTERS,
                         e != NULL ? (unsigned long long)e->revision : 0);
                return false;
            }
            at++;
        }
    }
    snprintf(why, 160, "%zu are wanted, %zu came", at, n);
    return at == n;
}

/* ---- lists ---- */

/* A list that says nothing of what is missing has all that the known clusters serve. */
static void judge_silence(const struct reader *r)
{
    const struct past *p = past_of(r);

    for (unsigned i = 0; i < CLUSTERS && !r->warned; i++) {
        const struct hub_shelf *s =
            hub_type_find_shelf(p->type, kr_bytes_str(r->f->w.edges[i].name));

        if (s != NULL && s->problem == 0)
            world_check(&r->f->w, s->synced,
                        "reader %u: a list without a warning, and %s is not synced", r->id,
                        s->cluster);
    }
}

static void judge_whole(struct reader *r, uint64_t revision)
{
    struct past *p = past_of(r);
    struct state state;
    char why[160];

    r->f->tally->lists++;
    if (revision >= p->begin) { /* else it is of a past that is gone */
        past_at(p, revision, &state);
        world_check(&r->f->w, shows(r, &state, r->entry_count, why), "reader %u: list at %llu: %s",
                    r->id, (unsigned long long)revision, why);
    }
    r->placed = revision >= p->begin;
    r->version = revision;
    r->epoch = r->f->epoch;
    r->audited = true;
}

static void read_items(struct reader *r, struct kr_bytes body)
{
    bool table = kr_bytes_is(member(body, "kind"), "\"Table\"");
    struct kr_scan it;
    struct kr_bytes item;
    size_t n = 0;

    world_check(&r->f->w, kr_scan_array(member(body, table ? "rows" : "items"), &it),
                "reader %u: no list: %.*s", r->id, (int)body.n, (const char *)body.p);
    for (; kr_scan_element(&it, &item); n++)
        read_entry(r, table ? member(item, "object") : item, add(r));
    world_check(&r->f->w, r->limit == 0 || n <= r->limit, "reader %u: more than the limit", r->id);
}

void judge_page(struct reader *r)
{
    struct world *w = &r->f->w;
    struct kr_bytes body = kr_buf_bytes(&r->body);
    bool first = r->cont[0] == '\0';
    struct kr_bytes cont;
    uint64_t revision;

    past_read(r->f);
    world_check(w, kr_scan_check(body, 64, NULL) == 0, "reader %u: no JSON", r->id);
    revision = version_of(r, body);
    if (first) {
        r->entry_count = 0;
        r->version = revision;
        r->epoch = r->f->epoch;
        judge_silence(r);
    }
    world_check(w, revision == r->version && r->epoch == r->f->epoch,
                "reader %u: a page of %llu behind one of %llu", r->id, (unsigned long long)revision,
                (unsigned long long)r->version);
    read_items(r, body);
    r->f->tally->pages++;
    r->page_ms = w->sched.now_ms;
    cont = member(member(body, "metadata"), "continue");
    r->cont[0] = '\0';
    if (kr_scan_plain(cont, &cont) && cont.n != 0)
        snprintf(r->cont, sizeof r->cont, "%.*s", (int)cont.n, (const char *)cont.p);
    else
        judge_whole(r, revision);
}

/* ---- watches ---- */

void judge_start(struct reader *r)
{
    struct past *p = past_of(r);

    past_read(r->f);
    r->generation = p->generation;
    if (r->initial)
        return;
    r->f->tally->resumed++;
    r->next = past_behind(p, r->version);
    if (r->version < p->begin && r->epoch == r->f->epoch)
        r->generation--; /* of a past that is gone; what comes cannot be judged */
}

static void judge_event(struct reader *r, const struct entry *e)
{
    struct world *w = &r->f->w;
    struct past *p = past_of(r);
    enum hub_change change = HUB_ADDED;
    const struct facts *facts = NULL;

    while (r->next < p->n && !seen_as(r->view, &p->steps[r->next], &change, &facts))
        r->next++;
    world_check(w, r->next < p->n, "reader %u: %s %u at %llu never happened", r->id,
                word_of(e->change), e->index, (unsigned long long)e->revision);
    world_check(w,
                p->steps[r->next].revision == e->revision && change == e->change &&
                    p->steps[r->next].cluster == e->cluster &&
                    p->steps[r->next].index == e->index && same(r->view, facts, &e->facts),
                "reader %u: %s %u of cluster %u at %llu is next, %s %u of cluster %u at %llu came",
                r->id, word_of(change), p->steps[r->next].index, p->steps[r->next].cluster,
                (unsigned long long)p->steps[r->next].revision, word_of(e->change), e->index,
                e->cluster, (unsigned long long)e->revision);
    world_check(w, r->epoch == r->f->epoch, "reader %u: goes on with a version of another start",
                r->id);
    r->next++;
    r->version = e->revision;
    r->f->tally->events++;
}

/* Nothing up to it was left out. */
static void judge_bookmark(struct reader *r, uint64_t revision)
{
    struct past *p = past_of(r);
    enum hub_change change;
    const struct facts *facts;

    world_check(&r->f->w, revision >= r->version && r->epoch == r->f->epoch,
                "reader %u: a bookmark of %llu behind %llu", r->id, (unsigned long long)revision,
                (unsigned long long)r->version);
    for (; r->next < p->n && p->steps[r->next].revision <= revision; r->next++)
        world_check(&r->f->w, !seen_as(r->view, &p->steps[r->next], &change, &facts),
                    "reader %u: a bookmark of %llu, and what happened at %llu did not come", r->id,
                    (unsigned long long)revision, (unsigned long long)p->steps[r->next].revision);
    r->version = revision;
    r->f->tally->bookmarks++;
}

/* The first k entries are a state, what follows are changes of it; nobody says which k. */
static bool fits(const struct reader *r, size_t k, uint64_t revision)
{
    struct past *p = past_of(r);
    uint64_t begin = k < r->entry_count ? r->entries[k].revision - 1 : revision;
    struct state state;
    char why[160];

    if (begin < p->begin)
        return false;
    past_at(p, begin, &state);
    return shows(r, &state, k, why);
}

static void judge_initial(struct reader *r, uint64_t revision)
{
    size_t all = r->entry_count;
    size_t k = 0;

    while (k < all && r->entries[k].change == HUB_ADDED)
        k++;
    while (k > 0 && !fits(r, k, revision))
        k--;
    world_check(&r->f->w, fits(r, k, revision),
                "reader %u: the initial events (%zu, up to %llu) are of no state", r->id, all,
                (unsigned long long)revision);
    r->version = k < all ? r->entries[k].revision - 1 : revision;
    r->epoch = r->f->epoch;
    r->next = past_behind(past_of(r), r->version);
    for (; k < all; k++)
        judge_event(r, &r->entries[k]);
    r->initial = false;
    r->placed = true;
    r->f->tally->initials++;
    judge_bookmark(r, revision);
}

/* 410: only for another start, or what is old and far behind. */
static void judge_expired(struct reader *r, uint64_t version, bool page)
{
    const struct past *p = past_of(r);
    size_t i = past_behind(p, version);
    int64_t now = r->f->w.sched.now_ms;
    bool old =
        page ? now - r->page_ms >= PIN_MS - SLACK_MS
             : i < p->n && now - p->steps[i].at_ms >= LOG_MS - SLACK_MS && p->n - i >= LOG_EVENTS;

    r->f->tally->expired++;
    world_check(&r->f->w, r->epoch != r->f->epoch || version < p->begin || old,
                "reader %u: 410 for %llu, which is not old", r->id, (unsigned long long)version);
    r->placed = false;
}

static enum hub_change change_of(const struct reader *r, struct kr_bytes type)
{
    for (enum hub_change c = HUB_ADDED; c <= HUB_DELETED; c++) {
        if (kr_bytes_is(type, word_of(c)))
            return c;
    }
    world_check(&r->f->w, false, "reader %u: an event %.*s", r->id, (int)type.n,
                (const char *)type.p);
    return HUB_ADDED;
}

static void take_event(struct reader *r, struct kr_bytes type, struct kr_bytes object)
{
    struct entry e;

    read_entry(r, object, &e);
    e.change = change_of(r, type);
    if (r->initial)
        *add(r) = e;
    else
        judge_event(r, &e);
}

void judge_line(struct reader *r, struct kr_bytes line)
{
    struct world *w = &r->f->w;
    struct kr_bytes type = {NULL, 0};
    struct kr_bytes object = member(line, "object");

    past_read(r->f);
    world_check(w, kr_scan_check(line, 64, NULL) == 0 && kr_scan_plain(member(line, "type"), &type),
                "reader %u: no event: %.*s", r->id, (int)line.n, (const char *)line.p);
    if (r->generation != past_of(r)->generation)
        return; /* it is given up behind this */
    if (kr_bytes_is(type, "ERROR")) {
        world_check(w, kr_bytes_is(member(object, "code"), "410"), "reader %u: %.*s", r->id,
                    (int)line.n, (const char *)line.p);
        judge_expired(r, r->version, false);
        return;
    }
    if (kr_bytes_is(member(object, "kind"), "\"Table\"")) {
        struct kr_scan it;

        world_check(w, kr_scan_array(member(object, "rows"), &it) && kr_scan_element(&it, &object),
                    "reader %u: a Table without a row", r->id);
        object = member(object, "object");
    }
    if (!kr_bytes_is(type, "BOOKMARK"))
        take_event(r, type, object);
    else if (!r->initial)
        judge_bookmark(r, version_of(r, object));
    else if (member(member(object, "metadata"), "annotations").n != 0)
        judge_initial(r, version_of(r, object));
}

/* ---- other answers ---- */

void judge_refusal(struct reader *r)
{
    const struct fleet *f = r->f;
    bool young = f->w.sched.now_ms - f->w.hub.started_ms < f->grace_ms + SLACK_MS;
    bool told = true; /* of all clusters the hub knows what they serve */
    bool served = false;

    for (unsigned i = 0; i < CLUSTERS; i++) {
        told = told && hub_catalogs_has(f->w.hub.catalogs, f->w.edges[i].name);
        served = served || f->sources[i].now.served[r->view->type];
    }
    f->tally->refused++;
    if (r->status == 410)
        judge_expired(r, r->version, true);
    else /* 404: without a register, a hub that has just started knows of no others */
        world_check(
            &f->w,
            f->upset[r->view->type] || !told ||
                (r->status == 404 ? !served : young && (r->status == 429 || r->status == 503)),
            "reader %u: status %d: %.*s", r->id, r->status, (int)r->body.n,
            (const char *)r->body.p);
    r->cont[0] = '\0';
    r->entry_count = 0;
}

bool judge_caught_up(const struct reader *r)
{
    const struct past *p = past_of(r);
    enum hub_change change;
    const struct facts *facts;

    if (r->doing != WATCHING || r->ex == NULL || r->status != 200 || r->initial ||
        r->generation != p->generation)
        return false;
    for (size_t i = r->next; i < p->n; i++) {
        if (seen_as(r->view, &p->steps[i], &change, &facts))
            return false;
    }
    return true;
}
