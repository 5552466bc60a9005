/* SPDX-License-Identifier: Apache-2.0 */
/* The logs: for each type a ring of its latest events, numbered one by one. A version that leaves a
 * shelf is charged to the event that made it leave, so that the weights of the events in the logs
 * are what the logs really hold. Events go when they are old and more than enough, or, when all
 * logs together are too heavy, from the heaviest log first: a type that changes a lot pushes out
 * its own past.
 *
 * What hub_place_next lends is kept until the end of the turn, whatever falls off meanwhile. */
#include <stdlib.h>

#include "hub/cache_internal.h"

#define RING_MIN 16
#define TEXTS_KEPT 1024 /* events before so many have lost their texts */
#define TIMER_MIN_MS 100
#define TIMER_MAX_MS 10000

/* ---- events ---- */

struct hub_event *hub_event_ref(struct hub_event *e)
{
    e->refs++;
    return e;
}

void hub_shown_unref(struct hub_shown *s)
{
    if (s != NULL && --s->refs == 0)
        free(s);
}

static void drop_texts(struct hub_event *e)
{
    for (size_t i = 0; i < HUB_EVENT_FORMS; i++) {
        hub_shown_unref(e->shown[i]);
        e->shown[i] = NULL;
    }
}

void hub_event_unref(struct hub_cache *c, struct hub_event *e)
{
    if (e == NULL || --e->refs != 0)
        return;
    drop_texts(e);
    hub_object_unref(c, e->object);
    hub_object_unref(c, e->before);
    hub_ledger_free(&c->ledger, e, sizeof *e);
}

static struct hub_event *event_create(struct hub_shelf_box *s, enum hub_change change,
                                      struct hub_object *object, struct hub_object *before)
{
    struct hub_cache *c = s->pub.type->cache;
    struct hub_event *e = hub_ledger_alloc(&c->ledger, sizeof *e);
    const struct hub_object *left = change == HUB_DELETED ? object : before;

    if (e == NULL)
        return NULL;
    *e = (struct hub_event){
        .refs = 1,
        .change = change,
        .revision = s->pub.type->revision,
        .cluster = s->pub.use->name,
        .object = hub_object_ref(object),
        .before = before != NULL ? hub_object_ref(before) : NULL,
        .type = s->pub.type,
        .at_ms = c->sched->now_ms,
        .weight = (uint32_t)(hub_footprint(sizeof *e) + sizeof e +
                             (left != NULL ? hub_object_bytes(left) : 0)),
    };
    return e;
}

/* ---- the ring ---- */

static struct hub_event **slot(const struct hub_log *log, uint64_t number)
{
    return &log->ring[number & (log->cap - 1)];
}

static size_t ring_bytes(size_t cap)
{
    return cap * sizeof(struct hub_event *);
}

static int ring_resize(struct hub_type_box *t, size_t cap)
{
    struct hub_log *log = &t->log;
    struct hub_ledger *ledger = &t->pub.cache->ledger;
    struct hub_log fresh = *log;

    fresh.cap = cap;
    fresh.ring = hub_ledger_alloc(ledger, ring_bytes(cap));
    if (fresh.ring == NULL)
        return KR_ENOMEM;
    for (uint64_t i = log->head; i != log->end; i++)
        *slot(&fresh, i) = *slot(log, i);
    hub_ledger_free(ledger, log->ring, ring_bytes(log->cap));
    *log = fresh;
    return 0;
}

static void weigh(struct hub_type_box *t, int64_t by)
{
    t->log.bytes += (uint64_t)by;
    t->pub.cache->log_bytes += (uint64_t)by;
}

static void count_texts(struct hub_type_box *t, struct hub_event *e)
{
    size_t n = 0;

    for (size_t i = 0; i < HUB_EVENT_FORMS; i++)
        n += e->shown[i] != NULL ? hub_footprint(sizeof *e->shown[i] + e->shown[i]->n) : 0;
    weigh(t, (int64_t)n - (int64_t)e->text_n);
    t->pub.cache->text_bytes += n - e->text_n;
    e->text_n = (uint32_t)n;
}

static void drop_oldest(struct hub_type_box *t)
{
    struct hub_cache *c = t->pub.cache;
    struct hub_event *e = *slot(&t->log, t->log.head);

    t->log.head++;
    t->log.floor = e->revision;
    if (t->log.texts < t->log.head)
        t->log.texts = t->log.head;
    weigh(t, -(int64_t)e->weight - (int64_t)e->text_n);
    c->text_bytes -= e->text_n;
    e->text_n = 0;
    hub_event_unref(c, e);
}

static uint64_t kept(const struct hub_type_box *t)
{
    return t->log.end - t->log.head;
}

static void shrink_ring(struct hub_type_box *t)
{
    struct hub_log *log = &t->log;

    if (kept(t) == 0) {
        hub_ledger_free(&t->pub.cache->ledger, log->ring, ring_bytes(log->cap));
        log->ring = NULL;
        log->cap = 0;
    } else if (log->cap > RING_MIN && kept(t) * 8 < log->cap) {
        (void)ring_resize(t, log->cap / 4);
    }
}

/* ---- what may go ---- */

static void drop_aged(struct hub_type_box *t)
{
    const struct hub_cache *c = t->pub.cache;
    int64_t horizon = c->sched->now_ms - c->limits.log_ms;

    while (kept(t) > c->limits.log_events && (*slot(&t->log, t->log.head))->at_ms <= horizon)
        drop_oldest(t);
    shrink_ring(t);
}

static struct hub_type_box *heaviest(struct hub_cache *c)
{
    struct hub_type_box *most = NULL;

    KR_LIST_FOREACH(node, &c->types)
    {
        struct hub_type_box *t = hub_type_box(KR_CONTAINER_OF(node, struct hub_type, link));

        if (kept(t) != 0 && (most == NULL || t->log.bytes > most->log.bytes))
            most = t;
    }
    return most;
}

/* Some at a time, so that the search for the heaviest is paid by many. */
static void drop_heavy(struct hub_cache *c)
{
    while (c->log_bytes > c->limits.log_bytes) {
        struct hub_type_box *t = heaviest(c);

        if (t == NULL)
            return;
        for (uint64_t n = kept(t) / 16 + 1; n != 0; n--)
            drop_oldest(t);
        shrink_ring(t);
    }
}

/* Texts are wanted while watchers are about to send them, not by those who come back later. */
static void drop_late_texts(struct hub_type_box *t)
{
    struct hub_log *log = &t->log;

    for (; log->texts + TEXTS_KEPT < log->end; log->texts++) {
        struct hub_event *e = *slot(log, log->texts);

        if (e->lent == t->pub.cache->turn)
            return; /* somebody may be reading */
        drop_texts(e);
        count_texts(t, e);
    }
}

static int64_t timer_period(const struct hub_cache *c)
{
    int64_t period = c->limits.log_ms / 8;

    if (period < TIMER_MIN_MS)
        return TIMER_MIN_MS;
    return period > TIMER_MAX_MS ? TIMER_MAX_MS : period;
}

/* A type that has become quiet still grows older. */
static void watch_age(struct hub_cache *c, const struct hub_type_box *t)
{
    if (kept(t) > c->limits.log_events && !kr_timer_running(&c->log_timer))
        (void)kr_timer_start(c->sched, &c->log_timer,
                             timer_period(c)); /* or the next append does */
}

static void on_timer(struct kr_timer *timer)
{
    struct hub_cache *c = KR_CONTAINER_OF(timer, struct hub_cache, log_timer);

    KR_LIST_FOREACH(node, &c->types)
    {
        struct hub_type_box *t = hub_type_box(KR_CONTAINER_OF(node, struct hub_type, link));

        drop_aged(t);
        watch_age(c, t);
    }
}

/* ---- writing ---- */

static void mark_dirty(struct hub_type_box *t)
{
    struct hub_cache *c = t->pub.cache;

    if (!kr_list_linked(&t->dirty))
        kr_list_append(&c->dirty, &t->dirty);
    kr_task_post_last(c->sched, &c->turn_end);
}

void hub_log_forget(struct hub_type_box *t)
{
    while (kept(t) != 0)
        drop_oldest(t);
    shrink_ring(t);
    /* One that nobody saw, so that places at the end are told, too. */
    t->log.head = t->log.texts = ++t->log.end;
    t->log.floor = t->pub.revision;
    mark_dirty(t);
}

static bool has_room(struct hub_type_box *t)
{
    if (kept(t) < t->log.cap)
        return true;
    return ring_resize(t, t->log.cap != 0 ? t->log.cap * 2 : RING_MIN) == 0;
}

void hub_log_append(struct hub_shelf_box *s, enum hub_change change, struct hub_object *object,
                    struct hub_object *before)
{
    struct hub_type_box *t = hub_type_box(s->pub.type);
    struct hub_event *e = has_room(t) ? event_create(s, change, object, before) : NULL;

    if (e == NULL) {
        hub_log_forget(t);
        return;
    }
    e->number = t->log.end++;
    *slot(&t->log, e->number) = e;
    weigh(t, e->weight);
    mark_dirty(t);
    drop_late_texts(t);
    drop_aged(t);
    drop_heavy(t->pub.cache);
    watch_age(t->pub.cache, t);
}

/* The number of the first event after a revision. */
static uint64_t number_after(const struct hub_log *log, uint64_t revision)
{
    uint64_t low = log->head;
    uint64_t high = log->end;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;

        if ((*slot(log, middle))->revision <= revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void hub_log_exchange(struct hub_type_box *t, struct hub_object *old, struct hub_object *twin)
{
    uint64_t number = number_after(&t->log, old->revision - 1);
    struct hub_event *e = number != t->log.end ? *slot(&t->log, number) : NULL;

    if (e == NULL || e->object != old)
        return;
    e->object = hub_object_ref(twin);
    hub_object_unref(t->pub.cache, old);
}

/* ---- reading ---- */

int hub_place_at(struct hub_type *t, uint64_t revision, struct hub_place *out)
{
    const struct hub_log *log = &hub_type_box(t)->log;

    if (revision < t->cache->revision->first || revision < log->floor)
        return KR_ENOENT;
    *out = (struct hub_place){.type = t, .next = number_after(log, revision)};
    return 0;
}

void hub_place_at_end(struct hub_type *t, struct hub_place *out)
{
    *out = (struct hub_place){.type = t, .next = hub_type_box(t)->log.end};
}

static struct hub_event *lend(struct hub_cache *c, struct hub_event *e)
{
    if (e->lent == c->turn)
        return e;
    e->lent = c->turn;
    e->next_lent = c->lent;
    c->lent = hub_event_ref(e);
    kr_task_post_last(c->sched, &c->turn_end);
    return e;
}

int hub_place_next(struct hub_place *p, struct hub_event **out)
{
    const struct hub_log *log = &hub_type_box(p->type)->log;

    if (p->next < log->head)
        return KR_ENOENT;
    if (p->next == log->end)
        return 0;
    *out = lend(p->type->cache, *slot(log, p->next));
    p->next++;
    return 1;
}

/* ---- the end of a turn ---- */

static void settle(struct hub_cache *c, struct hub_event *e)
{
    struct hub_type_box *t = hub_type_box(e->type);

    if (e->number >= t->log.head) {
        if (e->number < t->log.texts)
            drop_texts(e);
        count_texts(t, e);
    }
    hub_event_unref(c, e);
}

static void settle_lent(struct hub_cache *c)
{
    struct hub_event *e = c->lent;

    c->lent = NULL;
    c->turn++;
    while (e != NULL) {
        struct hub_event *next = e->next_lent;

        settle(c, e);
        e = next;
    }
    drop_heavy(c);
}

static void move_all(struct kr_list *from, struct kr_list *to)
{
    struct kr_list *node;

    while ((node = kr_list_pop(from)) != NULL)
        kr_list_append(to, node);
}

static void tell_listeners(struct hub_type *t)
{
    struct kr_list *node;
    struct kr_list round;

    /* Who stops is taken out of the round; who comes now is not in it. */
    kr_list_init(&round);
    move_all(&t->listeners, &round);
    while ((node = kr_list_pop(&round)) != NULL) {
        struct hub_listener *l = KR_CONTAINER_OF(node, struct hub_listener, link);

        kr_list_append(&t->listeners, node);
        l->on_events(l);
    }
}

void hub_log_turn(struct hub_cache *c)
{
    struct kr_list *node;
    struct kr_list round;

    hub_key_index_drop(c);
    kr_list_init(&round);
    move_all(&c->dirty, &round);
    while ((node = kr_list_pop(&round)) != NULL)
        tell_listeners(&KR_CONTAINER_OF(node, struct hub_type_box, dirty)->pub);
    settle_lent(c);
}

static void on_turn_end(struct kr_task *task)
{
    hub_log_turn(KR_CONTAINER_OF(task, struct hub_cache, turn_end));
}

void hub_log_init(struct hub_cache *c)
{
    c->turn = 1;
    kr_task_init(&c->turn_end, on_turn_end);
    kr_timer_init(&c->log_timer, on_timer);
}

void hub_type_listen(struct hub_type *t, struct hub_listener *l)
{
    kr_list_append(&t->listeners, &l->link);
}

void hub_listener_stop(struct hub_listener *l)
{
    kr_list_remove(&l->link);
}
