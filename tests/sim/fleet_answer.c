/* SPDX-License-Identifier: Apache-2.0 */
/* An API server answers: discovery, pages of lists, watches, WatchList; late, slowly, cut within,
 * or not at all, as the dice have it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "fleet.h"
#include "fleet_text.h"
#include "kube/query.h"

enum { WORD_MAX = 64, BODY_MAX = 1 << 22 };

struct asked {
    bool watch, initial, whole;
    char labels[WORD_MAX];
    char fields[WORD_MAX];
    char cont[WORD_MAX];
    char version[WORD_MAX];
    char timeout[WORD_MAX];
    int ns; /* -1: all */
};

struct answer { /* to one request */
    struct fleet *f;
    struct source *s;
    unsigned epoch; /* of the source when it was asked */
    unsigned toggles;
    struct kr_exchange *ex;
    struct kr_timer timer;
    struct asked q;
    struct writing how;
    char path[128];
    char etag[32];
    struct kr_buf body;
    size_t ready; /* of it may be taken */
    size_t taken;
    bool headed;
    bool whole; /* nothing comes behind `body` */
    bool slow;
    uint64_t until; /* bytes, then it breaks; 0: it does not */
    uint64_t sent;
    /* a watch */
    bool following;
    size_t next; /* change */
    uint64_t at; /* version up to which all was told */
    int64_t end_ms;
    int64_t bookmark_ms;
};

static struct world *world_of(const struct answer *a)
{
    return &a->f->w;
}

static bool one_in(const struct answer *a, unsigned n)
{
    return world_one_in(world_of(a), n);
}

static bool faulty(const struct answer *a, unsigned n)
{
    return !a->f->w.calm && one_in(a, n);
}

static void answer_free(struct answer *a)
{
    kr_timer_stop(&a->f->w.sched, &a->timer);
    kr_buf_deinit(&a->body);
    free(a);
}

static void give_up(struct answer *a, enum kr_abort how)
{
    kr_exchange_abort(a->ex, how);
    answer_free(a);
}

/* ---- the head ---- */

static void send_head(struct answer *a, int status, const char *type)
{
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = status;
    kr_head_add_str(&head, "content-type", type);
    if (status == 429 && one_in(a, 2))
        kr_head_add_str(&head, "retry-after", "2");
    if (a->etag[0] != '\0' && (status == 200 || status == 304))
        kr_head_add_str(&head, "etag", a->etag);
    KR_ASSERT(kr_exchange_send_head(a->ex, &head, false) == 0);
    kr_head_deinit(&head);
    a->headed = true;
}

static void refuse(struct answer *a, int code, const char *reason, const char *cause)
{
    send_head(a, code, "application/json");
    text_status(&a->body, code, reason, cause);
    a->whole = true;
}

/* ---- lists ---- */

static bool selects(const struct answer *a, const struct thing *t, unsigned index)
{
    bool known;
    bool ok =
        source_selects(t, index, kr_bytes_str(a->q.labels), kr_bytes_str(a->q.fields), &known);

    world_check(world_of(a), known, "a selector that nobody asked for: %s", a->path);
    return ok && (a->q.ns < 0 || index / 10 == (unsigned)a->q.ns);
}

static struct snapshot *snapshot_of(struct answer *a, unsigned *from)
{
    struct source *s = a->s;
    uint64_t which;
    uint64_t version;
    char *rest;
    struct snapshot *snap;

    if (a->q.cont[0] == '\0') {
        snap = &s->pages[s->page_next++ % SNAPSHOTS];
        *snap = (struct snapshot){.version = s->now.version, .type = a->how.type};
        memcpy(snap->things, s->now.things[a->how.type], sizeof snap->things);
        return snap;
    }
    which = strtoull(a->q.cont, &rest, 10);
    version = strtoull(rest + (*rest != '\0'), &rest, 10);
    *from = (unsigned)strtoul(rest + (*rest != '\0'), &rest, 10);
    world_check(world_of(a), *rest == '\0' && *from != 0, "a token that nobody gave: %s",
                a->q.cont);
    snap = &s->pages[which % SNAPSHOTS];
    return snap->version == version && version >= s->compacted && !faulty(a, 12) ? snap : NULL;
}

static void list(struct answer *a)
{
    unsigned from = 0;
    struct snapshot *snap = snapshot_of(a, &from);
    unsigned page = a->q.whole ? THINGS : a->how.include == INCLUDE_NONE ? 1 : a->s->page;
    unsigned n = 0;
    unsigned i = from;
    char cont[WORD_MAX] = "";
    struct kr_buf items = {.max = BODY_MAX};

    if (snap == NULL) {
        refuse(a, 410, "Expired", "");
        return;
    }
    for (; i < THINGS && n < page; i++) {
        if (selects(a, &snap->things[i], i))
            text_list_item(&items, &a->how, &snap->things[i], i, n++ == 0);
    }
    if (i < THINGS)
        snprintf(cont, sizeof cont, "%zu-%llu-%u", (size_t)(snap - a->s->pages),
                 (unsigned long long)snap->version, i);
    send_head(a, 200, "application/json");
    text_list_begin(&a->body, &a->how, snap->version, cont);
    kr_buf_append(&a->body, kr_buf_bytes(&items));
    text_list_end(&a->body);
    kr_buf_deinit(&items);
    a->whole = true;
}

/* ---- watches ---- */

static void expired(struct answer *a)
{
    if (!a->s->as_event) {
        refuse(a, 410, "Expired", "");
        return;
    }
    send_head(a, 200, "application/json");
    text_error(&a->body, 410, "Expired");
    a->whole = true;
}

static void begin_watch(struct answer *a)
{
    struct source *s = a->s;
    uint64_t timeout = strtoull(a->q.timeout, NULL, 10);

    a->at = a->q.initial ? s->now.version : strtoull(a->q.version, NULL, 10);
    if (a->q.initial && !s->streams) {
        refuse(a, 422, "Invalid", "");
        return;
    }
    if (a->at < s->compacted) {
        expired(a);
        return;
    }
    if (a->at > s->now.version && !s->waits) {
        refuse(a, 504, "Timeout", "ResourceVersionTooLarge");
        return;
    }
    send_head(a, 200, "application/json");
    a->following = true;
    a->bookmark_ms = a->f->w.sched.now_ms + 1000;
    a->end_ms = a->f->w.sched.now_ms + (int64_t)timeout * (one_in(a, 3) ? 100 : 1000);
    while (a->next < s->n && s->history[a->next].version <= a->at)
        a->next++;
    if (!a->q.initial)
        return;
    for (unsigned i = 0; i < THINGS; i++) {
        if (selects(a, &s->now.things[a->how.type][i], i))
            text_event(&a->body, &a->how, "ADDED", &s->now.things[a->how.type][i], i);
    }
    text_bookmark(&a->body, &a->how, a->at, true);
}

static void tell(struct answer *a, const struct change *c)
{
    bool before = selects(a, &c->before, c->index);
    bool after = selects(a, &c->after, c->index);
    struct thing last = c->before;

    if (after) {
        text_event(&a->body, &a->how, before ? "MODIFIED" : "ADDED", &c->after, c->index);
    } else if (before) {
        last.version = c->version;
        text_event(&a->body, &a->how, "DELETED", &last, c->index);
    }
}

static void go_on_watch(struct answer *a)
{
    struct source *s = a->s;
    int64_t now = a->f->w.sched.now_ms;

    while (a->next < s->n && !faulty(a, 10)) {
        const struct change *c = &s->history[a->next++];

        a->at = c->version;
        if (c->type == a->how.type)
            tell(a, c);
    }
    if (a->next == s->n && now >= a->bookmark_ms && a->at <= s->now.version) {
        a->at = s->now.version;
        text_bookmark(&a->body, &a->how, a->at, false);
        a->bookmark_ms = now + kr_rand_ms(&a->f->w.rand, 1000, 60000);
    }
    if (faulty(a, 400)) {
        text_error(&a->body, 500, "InternalError");
        a->whole = true;
    }
    a->whole = a->whole || now >= a->end_ms || faulty(a, 300);
}

/* ---- what is asked ---- */

static void discover(struct answer *a)
{
    struct kr_bytes known = kr_head_get(&a->ex->head, KR_LIT("if-none-match"));

    if (a->s->aggregated)
        snprintf(a->etag, sizeof a->etag, "\"%d-%u\"", a->s->now.served[WIDGETS], a->s->epoch);
    if (a->etag[0] != '\0' && kr_bytes_is(known, a->etag)) {
        send_head(a, 304, "application/json");
    } else if (text_discovery(&a->body, a->s, kr_bytes_str(a->path))) {
        send_head(a, 200,
                  a->s->aggregated
                      ? "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                      : "application/json");
    } else {
        a->etag[0] = '\0';
        refuse(a, 404, "NotFound", "");
    }
    a->whole = true;
}

/* Of a path that was taken apart; false: none of the types. */
static bool find_type(struct answer *a)
{
    for (unsigned i = 0; i < TYPES; i++) {
        char want[128];

        a->q.ns = -1;
        snprintf(want, sizeof want, "/%s/%s", api_types[i].path, api_types[i].resource);
        a->how.type = i;
        if (strcmp(a->path, want) == 0)
            return true;
        for (int ns = 0; ns < NAMESPACES && api_types[i].namespaced; ns++) {
            a->q.ns = ns;
            snprintf(want, sizeof want, "/%s/namespaces/n%d/%s", api_types[i].path, ns,
                     api_types[i].resource);
            if (strcmp(a->path, want) == 0)
                return true;
        }
    }
    return false;
}

static void decide(struct answer *a)
{
    static const int codes[] = {500, 503, 429, 504, 401, 500, 503, 403};
    unsigned which = (unsigned)kr_rand_below(&a->f->w.rand, one_in(a, 4) ? 8 : 7);

    if (faulty(a, 10))
        refuse(a, codes[which], "Fault", "");
    else if (!find_type(a))
        discover(a);
    else if (!a->s->now.served[a->how.type])
        refuse(a, 404, "NotFound", "");
    else if (a->q.watch)
        begin_watch(a);
    else
        list(a);
    if (faulty(a, 9))
        a->until = 1 + kr_rand_below(&a->f->w.rand, 1 + a->body.n + (a->following ? 20000 : 0));
}

/* ---- sending ---- */

static int64_t pause_ms(struct answer *a)
{
    struct kr_rand *rand = &a->f->w.rand;

    if (a->ready != a->body.n)
        return kr_rand_ms(rand, 1, a->slow ? 1500 : 20);
    return kr_rand_ms(rand, 10, a->f->w.calm ? 300 : faulty(a, 30) ? 8000 : 600);
}

static void go_on(struct kr_timer *timer)
{
    struct answer *a = KR_CONTAINER_OF(timer, struct answer, timer);
    size_t left;
    size_t n;

    if (a->epoch != a->s->epoch || (a->how.type == WIDGETS && a->toggles != a->s->toggles)) {
        give_up(a, KR_ABORT_INTERNAL);
        return;
    }
    if (!a->headed && faulty(a, 20)) {
        give_up(a, one_in(a, 2) ? KR_ABORT_REFUSED : KR_ABORT_INTERNAL);
        return;
    }
    if (!a->headed)
        decide(a);
    else if (a->following && !a->whole)
        go_on_watch(a);
    left = a->body.n - a->ready;
    n = a->slow && !a->f->w.calm ? 1 + kr_rand_below(&a->f->w.rand, 3000) : left;
    a->ready += n < left ? n : left;
    if (a->until != 0 && a->sent + a->ready >= a->until && !a->f->w.calm) {
        give_up(a, KR_ABORT_INTERNAL);
        return;
    }
    if (!a->whole || a->ready != a->body.n)
        kr_timer_start(&a->f->w.sched, &a->timer, pause_ms(a));
    kr_exchange_ready(a->ex);
}

static void on_body(void *user, struct kr_bytes in)
{
    (void)user;
    KR_ASSERT(in.n == 0);
}

static void on_end(void *user, const struct kr_head *trailers)
{
    (void)user, (void)trailers;
}

static size_t available(void *user, bool *end)
{
    struct answer *a = user;

    *end = a->headed && a->whole && a->ready == a->body.n;
    return a->ready - a->taken;
}

static void take(void *user, uint8_t *out, size_t n)
{
    struct answer *a = user;

    memcpy(out, a->body.p + a->taken, n);
    a->taken += n;
    if (a->taken != a->body.n || a->whole)
        return;
    a->sent += a->taken;
    a->body.n = a->ready = a->taken = 0;
}

static void on_done(void *user, int rc)
{
    (void)rc;
    answer_free(user);
}

static const struct kr_exchange_user answer_ops = {NULL, on_body, on_end, available, take, on_done};

/* ---- asking ---- */

static void keep(char *out, struct kr_bytes v)
{
    snprintf(out, WORD_MAX, "%.*s", (int)v.n, (const char *)v.p);
}

static void parameter(struct answer *a, struct kr_bytes name, struct kr_bytes v)
{
    if (kr_bytes_is(name, "watch"))
        a->q.watch = true;
    else if (kr_bytes_is(name, "sendInitialEvents"))
        a->q.initial = true;
    else if (kr_bytes_is(name, "limit"))
        a->q.whole = false;
    else if (kr_bytes_is(name, "labelSelector"))
        keep(a->q.labels, v);
    else if (kr_bytes_is(name, "fieldSelector"))
        keep(a->q.fields, v);
    else if (kr_bytes_is(name, "continue"))
        keep(a->q.cont, v);
    else if (kr_bytes_is(name, "resourceVersion"))
        keep(a->q.version, v);
    else if (kr_bytes_is(name, "timeoutSeconds"))
        keep(a->q.timeout, v);
    else if (kr_bytes_is(name, "includeObject"))
        a->how.include = kr_bytes_is(v, "None")       ? INCLUDE_NONE
                         : kr_bytes_is(v, "Metadata") ? INCLUDE_METADATA
                                                      : INCLUDE_OBJECT;
}

static void read_target(struct answer *a, struct kr_bytes target)
{
    size_t mark = kr_bytes_find(target, '?');
    struct kr_bytes query = kr_bytes_skip(target, mark < target.n ? mark + 1 : mark);
    struct kr_arena arena;
    struct kr_bytes name;
    struct kr_bytes value;

    a->q = (struct asked){.whole = true};
    a->how.include = INCLUDE_OBJECT;
    snprintf(a->path, sizeof a->path, "%.*s", (int)mark, (const char *)target.p);
    kr_arena_init(&arena, 1024, 1 << 20);
    while (kr_query_next(&query, &arena, &name, &value) == 1)
        parameter(a, name, value);
    kr_arena_deinit(&arena);
}

void fleet_answer(struct agent_core *core, struct kr_exchange *ex)
{
    struct edge *e = KR_CONTAINER_OF(core, struct edge, core);
    struct answer *a = calloc(1, sizeof *a);

    KR_ASSERT(a != NULL);
    a->f = fleet_of(e->w);
    a->s = &a->f->sources[e - e->w->edges];
    a->epoch = a->s->epoch;
    a->toggles = a->s->toggles;
    a->ex = ex;
    a->body.max = BODY_MAX;
    a->slow = faulty(a, 6);
    a->how.table = a->s->tables && kr_bytes_starts(kr_head_get(&ex->head, KR_LIT("accept")),
                                                   KR_LIT("application/json;as=Table"));
    read_target(a, ex->head.path);
    kr_timer_init(&a->timer, go_on);
    kr_exchange_attach(ex, &answer_ops, a);
    kr_timer_start(&a->f->w.sched, &a->timer,
                   kr_rand_ms(&a->f->w.rand, 0, faulty(a, 10) ? 9000 : 50));
}
