/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the fleet view: they list in pages, or begin with initial events; watch; leave, or are
 * cut off; come back after a while with the version that they have, like any informer. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "fleet.h"

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
#define PARTIAL "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
#define PARTIAL_LIST "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
#define BODY_MAX (8u << 20)

#define POD_PATH "/api/v1/pods"
#define WIDGET_PATH "/apis/example.io/v1/widgets"
#define ALL .ns = -1, .cluster = -1

const struct view fleet_views[READERS + AUDITORS] = {
    {PODS, "alice", POD_PATH, "", NULL, ALL},
    {PODS, "alice", POD_PATH, "labelSelector=app%3Da&", NULL, ALL, .app = 'a'},
    {PODS, "alice", "/api/v1/namespaces/n1/pods", "", TABLE, .ns = 1, .cluster = -1},
    {PODS, "alice", POD_PATH, "fieldSelector=status.phase%3DRunning&", NULL, ALL, .running = true},
    {PODS, "bob", POD_PATH, "", NULL, .ns = 0, .cluster = -1},
    {WIDGETS, "alice", WIDGET_PATH, "", NULL, ALL},
    {WIDGETS, "alice", WIDGET_PATH, "labelSelector=kuberelay.io%2Fcluster%3Dedge-1&", NULL,
     .ns = -1, .cluster = 1},
    {PODS, "alice", POD_PATH, "clusters=edge-0&", PARTIAL, .ns = -1, .cluster = 0, .partial = true},
    {PODS, "alice", POD_PATH, "", NULL, ALL},
    {WIDGETS, "alice", WIDGET_PATH, "", TABLE, ALL},
};

static struct kr_rand *rand_of(struct reader *r)
{
    return &r->f->w.rand;
}

static bool one_in(struct reader *r, unsigned n)
{
    return world_one_in(&r->f->w, n);
}

void reader_again(struct reader *r, int64_t after_ms)
{
    kr_timer_start(&r->f->w.sched, &r->timer, after_ms);
}

/* Mostly soon; now and then so late that the hub may have forgotten. */
static int64_t pause_ms(struct reader *r)
{
    if (r->f->w.calm)
        return kr_rand_ms(rand_of(r), 1, 1500);
    return one_in(r, 40) ? kr_rand_ms(rand_of(r), 200000, 800000)
                         : kr_rand_ms(rand_of(r), 0, one_in(r, 4) ? 30000 : 1500);
}

static void forget_pages(struct reader *r)
{
    r->entry_count = 0;
    r->cont[0] = '\0';
}

/* The answer is over, or given up. */
static void rest(struct reader *r)
{
    r->ex = NULL;
    r->owed = 0;
    kr_timer_stop(&r->f->w.sched, &r->sip);
    r->body.n = 0;
    if (r->cont[0] == '\0')
        r->doing = IDLE;
    if (r->id < READERS)
        reader_again(r, pause_ms(r));
}

/* ---- what comes ---- */

static void on_head(void *user)
{
    struct reader *r = user;

    r->status = r->ex->head.status;
    r->warned = kr_head_find(&r->ex->head, KR_LIT("warning")) != NULL;
    if (r->status == 200 && r->doing == WATCHING)
        judge_start(r);
}

static void sip(struct kr_timer *t)
{
    struct reader *r = KR_CONTAINER_OF(t, struct reader, sip);
    size_t n = r->owed;

    r->owed = 0;
    kr_exchange_consumed(r->ex, n);
}

static void leave(struct reader *r)
{
    struct kr_exchange *ex = r->ex;

    r->ex = NULL;
    kr_exchange_abort(ex, KR_ABORT_CANCEL);
    forget_pages(r);
    rest(r);
}

/* Whole lines are judged as they come; what is cut off is nobody's. */
static void take_lines(struct reader *r)
{
    size_t at = 0;

    for (;;) {
        struct kr_bytes left = kr_bytes_skip(kr_buf_bytes(&r->body), at);
        size_t n = kr_bytes_find(left, '\n');

        if (n == left.n)
            break;
        judge_line(r, kr_bytes_of(left.p, n));
        at += n + 1;
    }
    kr_buf_drop(&r->body, at);
}

static void on_body(void *user, struct kr_bytes in)
{
    struct reader *r = user;

    KR_ASSERT(kr_buf_append(&r->body, in) == 0);
    if (r->doing == WATCHING && r->status == 200)
        take_lines(r);
    r->owed += in.n;
    if (!r->slow || r->f->w.calm)
        sip(&r->sip);
    else if (!kr_timer_running(&r->sip))
        kr_timer_start(&r->f->w.sched, &r->sip, kr_rand_ms(rand_of(r), 1, 3000));
    if (r->doing == WATCHING && r->status == 200 &&
        r->generation != r->f->pasts[r->view->type].generation) {
        r->placed = false; /* nobody can judge it any more */
        leave(r);
    }
}

static void on_end(void *user, const struct kr_head *trailers)
{
    struct reader *r = user;

    (void)trailers;
    r->ended = true;
}

static size_t available(void *user, bool *end)
{
    (void)user;
    *end = true;
    return 0;
}

static void take(void *user, uint8_t *out, size_t n)
{
    (void)user, (void)out, (void)n;
}

static void on_done(void *user, int rc)
{
    struct reader *r = user;
    bool whole = rc == 0 && r->ended;

    world_trace(&r->f->w, "reader %u: %s got %d, rc %d", r->id,
                r->doing == LISTING ? "list" : "watch", r->status, rc);
    r->f->tally->cut += !whole;
    if (whole && r->status != 200)
        judge_refusal(r);
    else if (whole && r->doing == LISTING)
        judge_page(r);
    else if (whole)
        world_check(&r->f->w, r->body.n == 0, "reader %u: a watch ended well within an event",
                    r->id);
    else if (r->doing == LISTING)
        forget_pages(r);
    rest(r);
}

static const struct kr_exchange_user reader_ops = {
    on_head, on_body, on_end, available, take, on_done,
};

/* ---- asking ---- */

static void ask(struct reader *r, enum doing doing, const char *words)
{
    const char *accept = r->view->accept;
    struct kr_head head;
    char path[2048];

    snprintf(path, sizeof path, "/clusters/%%2A%s?%s%s", r->view->path, r->view->query, words);
    world_trace(&r->f->w, "reader %u: %s", r->id, path);
    if (r->view->partial)
        accept = doing == LISTING ? PARTIAL_LIST : PARTIAL;
    kr_head_init(&head, KR_HEAD_MAX);
    head.method = KR_LIT("GET");
    head.scheme = KR_LIT("https");
    head.authority = KR_LIT("hub:6443");
    head.path = kr_bytes_str(path);
    if (accept != NULL)
        kr_head_add_str(&head, "accept", accept);
    r->doing = doing;
    r->status = 0;
    r->ended = false;
    r->slow = one_in(r, 5);
    r->ex = kr_conn_open(r->user.client, &head, true, &reader_ops, r);
    kr_head_deinit(&head);
    if (r->ex == NULL)
        rest(r);
}

static void ask_page(struct reader *r)
{
    char words[1600];
    int n = snprintf(words, sizeof words, "includeObject=Object");

    if (r->entry_count == 0 && r->cont[0] == '\0')
        r->limit = one_in(r, 3) || r->id >= READERS
                       ? 0
                       : 1 + (unsigned)kr_rand_below(rand_of(r), one_in(r, 2) ? 6 : 40);
    if (r->limit != 0)
        n += snprintf(words + n, sizeof words - (size_t)n, "&limit=%u", r->limit);
    if (r->cont[0] != '\0')
        snprintf(words + n, sizeof words - (size_t)n, "&continue=%s", r->cont);
    ask(r, LISTING, words);
}

static void ask_watch(struct reader *r)
{
    char words[256];
    int n = snprintf(words, sizeof words, "watch=1&includeObject=Object&allowWatchBookmarks=true");

    r->initial = !r->placed;
    r->entry_count = 0;
    if (r->initial)
        n += snprintf(words + n, sizeof words - (size_t)n,
                      "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    else
        n += snprintf(words + n, sizeof words - (size_t)n, "&resourceVersion=%llu",
                      (unsigned long long)r->version);
    if (one_in(r, 4) && !r->f->w.calm)
        snprintf(words + n, sizeof words - (size_t)n, "&timeoutSeconds=%d",
                 (int)kr_rand_ms(rand_of(r), 1, 60));
    ask(r, WATCHING, words);
    if (r->ex != NULL && !r->f->w.calm)
        reader_again(r, kr_rand_ms(rand_of(r), 10, one_in(r, 3) ? 200000 : 20000));
}

/* True: there is a connection. */
static bool dial(struct reader *r)
{
    if (r->user.client != NULL && r->user.server != NULL)
        return true;
    if (r->user.client != NULL || r->user.server != NULL || r->f->w.hub_down)
        return false;
    user_start(&r->user, &r->f->w, false);
    snprintf(r->user.peer.id.name, sizeof r->user.peer.id.name, "%s", r->view->user);
    return true;
}

static void on_timer(struct kr_timer *t)
{
    struct reader *r = KR_CONTAINER_OF(t, struct reader, timer);

    if (r->ex != NULL && r->doing == WATCHING && !r->f->w.calm) {
        if (one_in(r, 2))
            leave(r);
        else
            kr_mem_pair_cut(r->user.pair, KR_ECONNLOST);
    } else if (r->ex != NULL) {
        return;
    } else if (!dial(r)) {
        reader_again(r, kr_rand_ms(rand_of(r), 100, 3000));
    } else if (r->doing == LISTING || r->id >= READERS) {
        ask_page(r);
    } else if (r->placed || one_in(r, 2)) {
        ask_watch(r);
    } else {
        ask_page(r);
    }
}

/* ---- life ---- */

void reader_audit(struct reader *r)
{
    r->audited = false;
    forget_pages(r);
    reader_again(r, 0);
}

void reader_init(struct reader *r, struct fleet *f, unsigned id, const struct view *view)
{
    *r = (struct reader){.f = f, .id = id, .view = view};
    kr_buf_init(&r->body, BODY_MAX);
    kr_timer_init(&r->timer, on_timer);
    kr_timer_init(&r->sip, sip);
    if (id < READERS)
        reader_again(r, kr_rand_ms(&f->w.rand, 0, 5000));
}

void reader_deinit(struct reader *r)
{
    kr_timer_stop(&r->f->w.sched, &r->timer);
    kr_timer_stop(&r->f->w.sched, &r->sip);
    kr_buf_deinit(&r->body);
    free(r->entries);
}
