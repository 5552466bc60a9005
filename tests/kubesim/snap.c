/* SPDX-License-Identifier: Apache-2.0 */
/* The part of store.h that looks back: what existed at an older version. */
#include <stdlib.h>

#include "base/err.h"
#include "store.h"

/* By key; what was added first is first. */
static int compare_items(const void *a, const void *b)
{
    const struct sim_snap_item *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : x->place < y->place ? -1 : 1;
}

static int add(struct sim_snap *s, const char *key, struct sim_rev rev)
{
    if (s->n == s->cap) {
        size_t cap = s->cap != 0 ? s->cap * 2 : 64;
        struct sim_snap_item *more = realloc(s->items, cap * sizeof *more);

        if (more == NULL)
            return KR_ENOMEM;
        s->items = more;
        s->cap = cap;
    }
    s->items[s->n].key = strdup(key);
    if (s->items[s->n].key == NULL)
        return KR_ENOMEM;
    s->items[s->n].place = s->n;
    s->items[s->n++].rev = sim_rev_ref(rev);
    return 0;
}

void sim_snap_deinit(struct sim_snap *s)
{
    for (size_t i = 0; i < s->n; i++) {
        sim_rev_unref(&s->items[i].rev);
        free(s->items[i].key);
    }
    free(s->items);
    *s = (struct sim_snap){0};
}

static bool in_range(const char *key, const char *prefix, const char *from)
{
    return strncmp(key, prefix, strlen(prefix)) == 0 && strcmp(key, from) >= 0;
}

/* For each key that changed after `at`: its state then, from the first event since. */
static int changed_since(const struct sim_cluster *c, int kind, const char *prefix,
                         const char *from, uint64_t at, struct sim_snap *out)
{
    const struct sim_event *e = sim_store_event_after(c, at);
    size_t kept = 0;

    for (; e != NULL; e = sim_store_event_after(c, e->rv))
        if (e->kind == kind && in_range(e->key, prefix, from) && add(out, e->key, e->prev) != 0)
            return KR_ENOMEM;
    if (out->n == 0)
        return 0;
    qsort(out->items, out->n, sizeof *out->items, compare_items);
    for (size_t i = 0; i < out->n; i++) { /* one entry a key */
        if (kept != 0 && strcmp(out->items[kept - 1].key, out->items[i].key) == 0) {
            sim_rev_unref(&out->items[i].rev);
            free(out->items[i].key);
        } else {
            out->items[kept++] = out->items[i];
        }
    }
    out->n = kept;
    return 0;
}

int sim_snap_take(const struct sim_cluster *c, int kind, const char *prefix, const char *from,
                  uint64_t at, struct sim_snap *out)
{
    const struct sim_coll *coll = &c->colls[kind];
    struct sim_snap then = {0};
    size_t i = sim_store_lower(c, kind, strcmp(from, prefix) > 0 ? from : prefix), j = 0;
    int rc = at < c->rv ? changed_since(c, kind, prefix, from, at, &then) : 0;

    *out = (struct sim_snap){0};
    while (rc == 0) {
        const struct sim_obj *o =
            i < coll->n && in_range(coll->objs[i]->key, prefix, from) ? coll->objs[i] : NULL;
        const struct sim_snap_item *t = j < then.n ? &then.items[j] : NULL;
        int order = o == NULL ? 1 : t == NULL ? -1 : strcmp(o->key, t->key);

        if (o == NULL && t == NULL)
            break;
        if (order < 0) {
            rc = add(out, o->key, o->rev);
        } else if (t->rev.rv != 0) {
            rc = add(out, t->key, t->rev);
        }
        i += order <= 0;
        j += order >= 0;
    }
    sim_snap_deinit(&then);
    if (rc != 0)
        sim_snap_deinit(out);
    return rc;
}
