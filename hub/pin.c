/* SPDX-License-Identifier: Apache-2.0 */
/* Pins. A version that leaves a shelf is kept if the newest pin of its type needs it, and hangs on
 * that pin; when a pin goes, each of its versions moves to the next older pin that needs it, or is
 * freed. So nobody ever searches for what may go, and without pins nothing is kept.
 *
 * A pin is in use (users), or waits for its next page (timer), or is broken: then it is in no list
 * and only its users know it. */
#include "hub/cache_internal.h"

struct hub_pin {
    struct kr_list in_type;  /* of hub_type_box.pins */
    struct kr_list in_cache; /* of hub_cache.pins */
    struct kr_list olds;     /* hub_old.link */
    struct hub_type_box *type;
    uint64_t revision;
    size_t users;
    bool broken;
    int64_t used_ms;
    int64_t keep_until_ms;
    struct kr_timer timer;
};

static struct hub_pin *of_type(struct kr_list *node)
{
    return KR_CONTAINER_OF(node, struct hub_pin, in_type);
}

static struct hub_pin *of_cache(struct kr_list *node)
{
    return KR_CONTAINER_OF(node, struct hub_pin, in_cache);
}

/* The newest pin of the type that is older than `p` (NULL: of all). */
static struct hub_pin *older_pin(const struct hub_type_box *t, const struct hub_pin *p)
{
    struct kr_list *node = p != NULL ? p->in_type.prev : t->pins.prev;

    return node != &t->pins ? of_type(node) : NULL;
}

static struct hub_cache *cache_of(const struct hub_pin *p)
{
    return p->type->pub.cache;
}

/* ---- old versions ---- */

static uint64_t old_bytes(const struct hub_old *old)
{
    return hub_object_bytes(old->object) + hub_footprint(sizeof *old);
}

static void old_free(struct hub_cache *c, struct hub_old *old)
{
    struct hub_shelf_box *s = hub_shelf_box(old->shelf);
    struct hub_key key = {.ns = hub_object_ns(old->object),
                          .name = hub_object_name(old->object),
                          .revision = old->object->revision};

    hub_tree_remove(&s->old, hub_tree_seek(&s->old, &key));
    c->pin_bytes -= old_bytes(old);
    hub_object_unref(c, old->object);
    hub_ledger_free(&c->ledger, old, sizeof *old);
    hub_shelf_bury(s);
}

static struct hub_old *old_create(struct hub_shelf_box *s, struct hub_object *o, uint64_t until)
{
    struct hub_cache *c = s->pub.type->cache;
    struct hub_old *old = hub_ledger_alloc(&c->ledger, sizeof *old);
    struct hub_key key = {
        .ns = hub_object_ns(o), .name = hub_object_name(o), .revision = o->revision};

    if (old == NULL)
        return NULL;
    *old = (struct hub_old){.object = o, .until = until, .shelf = &s->pub};
    if (hub_tree_insert(&s->old, hub_tree_seek(&s->old, &key), old, 0) != 0) {
        hub_ledger_free(&c->ledger, old, sizeof *old);
        return NULL;
    }
    hub_object_ref(o);
    c->pin_bytes += old_bytes(old);
    return old;
}

/* ---- the end of a pin ---- */

static void hand_down(struct hub_pin *p)
{
    struct hub_pin *older = older_pin(p->type, p);
    struct kr_list *node;

    while ((node = kr_list_pop(&p->olds)) != NULL) {
        struct hub_old *old = KR_CONTAINER_OF(node, struct hub_old, link);

        if (older != NULL && older->revision >= old->object->revision)
            kr_list_append(&older->olds, &old->link);
        else
            old_free(cache_of(p), old);
    }
}

/* Its users still hold it; without any it is gone. */
static void pin_break(struct hub_pin *p)
{
    struct hub_cache *c = cache_of(p);

    hand_down(p);
    kr_timer_stop(c->sched, &p->timer);
    kr_list_remove(&p->in_type);
    kr_list_remove(&p->in_cache);
    c->pin_count--;
    p->broken = true;
    if (p->users == 0)
        hub_ledger_free(&c->ledger, p, sizeof *p);
}

static void on_timer(struct kr_timer *timer)
{
    pin_break(KR_CONTAINER_OF(timer, struct hub_pin, timer));
}

void hub_pins_break_all(struct hub_cache *c)
{
    while (!kr_list_empty(&c->pins))
        pin_break(of_cache(c->pins.next));
}

static void break_least_used(struct hub_cache *c)
{
    struct hub_pin *least = of_cache(c->pins.next);

    KR_LIST_FOREACH(node, &c->pins)
    {
        struct hub_pin *p = of_cache(node);

        if ((least->users != 0 && p->users == 0) ||
            ((least->users != 0) == (p->users != 0) && p->used_ms < least->used_ms))
            least = p;
    }
    pin_break(least);
}

/* ---- taking and giving back ---- */

static struct hub_pin *use(struct hub_pin *p)
{
    p->users++;
    p->used_ms = cache_of(p)->sched->now_ms;
    kr_timer_stop(cache_of(p)->sched, &p->timer);
    return p;
}

static struct hub_pin *pin_create(struct hub_type_box *t)
{
    struct hub_cache *c = t->pub.cache;
    struct hub_pin *p = hub_ledger_alloc(&c->ledger, sizeof *p);

    if (p == NULL)
        return NULL;
    *p = (struct hub_pin){.type = t, .revision = t->pub.revision};
    kr_list_init(&p->olds);
    kr_timer_init(&p->timer, on_timer);
    kr_list_append(&t->pins, &p->in_type);
    kr_list_append(&c->pins, &p->in_cache);
    c->pin_count++;
    return p;
}

struct hub_pin *hub_pin_take(struct hub_type *type)
{
    struct hub_type_box *t = hub_type_box(type);
    struct hub_pin *p = older_pin(t, NULL);

    if (p == NULL || p->revision != type->revision) {
        if (type->cache->pin_count != 0 && type->cache->pin_count >= type->cache->limits.pins)
            break_least_used(type->cache);
        p = pin_create(t);
    }
    return p != NULL ? use(p) : NULL;
}

struct hub_pin *hub_pin_find(struct hub_type *type, uint64_t revision)
{
    struct hub_type_box *t = hub_type_box(type);

    KR_LIST_FOREACH(node, &t->pins)
    {
        if (of_type(node)->revision == revision)
            return use(of_type(node));
    }
    return NULL;
}

struct hub_pin *hub_pin_ref(struct hub_pin *p)
{
    p->users++;
    return p;
}

uint64_t hub_pin_revision(const struct hub_pin *p)
{
    return p->revision;
}

bool hub_pin_broken(const struct hub_pin *p)
{
    return p->broken;
}

void hub_pin_release(struct hub_pin *p, bool keep)
{
    struct hub_cache *c = cache_of(p);
    int64_t now = c->sched->now_ms;

    p->used_ms = now;
    if (keep)
        p->keep_until_ms = now + c->limits.pin_ms;
    if (--p->users != 0)
        return;
    if (p->broken)
        hub_ledger_free(&c->ledger, p, sizeof *p);
    else if (p->keep_until_ms <= now ||
             kr_timer_start(c->sched, &p->timer, p->keep_until_ms - now) != 0)
        pin_break(p);
}

/* ---- what leaves a shelf ---- */

/* There is no memory to keep a version of that revision: its pins cannot be, either. */
static void break_needing(struct hub_type_box *t, uint64_t revision)
{
    KR_LIST_FOREACH_SAFE(node, &t->pins)
    {
        if (of_type(node)->revision >= revision)
            pin_break(of_type(node));
    }
}

void hub_pin_keep(struct hub_shelf_box *s, struct hub_object *o, uint64_t until)
{
    struct hub_type_box *t = hub_type_box(s->pub.type);
    struct hub_cache *c = t->pub.cache;
    struct hub_pin *p = older_pin(t, NULL);
    struct hub_old *old;

    if (p == NULL || p->revision < o->revision)
        return;
    old = old_create(s, o, until);
    if (old == NULL) {
        break_needing(t, o->revision);
        return;
    }
    kr_list_append(&p->olds, &old->link);
    while (c->pin_bytes > c->limits.log_bytes && !kr_list_empty(&c->pins))
        pin_break(of_cache(c->pins.next));
}
