/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_match.h"

#include <stdlib.h>

#include "base/err.h"
#include "kube/json_members.h"
#include "kube/json_shape.h"

/* What names an item; the first that does for all items of both lists. */
static const struct {
    const char *field;
    const char *second; /* NULL: none */
} keys[] = {
    {"name", NULL},       {"type", NULL},
    {"uid", NULL},        {"ip", NULL},
    {"key", NULL},        {"mountPath", NULL},
    {"devicePath", NULL}, {"topologyKey", NULL},
    {"id", NULL},         {"containerPort", "protocol"},
    {"port", "protocol"},
};

struct named { /* an item and its name */
    struct kr_bytes first;
    struct kr_bytes second;
    size_t index;
};

static bool name_item(struct kr_bytes item, size_t key, struct named *out)
{
    if (kr_shape_of(item) != KR_SHAPE_OBJECT || !kr_scan_find(item, keys[key].field, &out->first) ||
        kr_shape_holds(kr_shape_of(out->first)) || kr_shape_of(out->first) == KR_SHAPE_NULL)
        return false;
    out->second = kr_bytes_of(NULL, 0);
    if (keys[key].second != NULL && !kr_scan_find(item, keys[key].second, &out->second))
        out->second = KR_LIT("\"TCP\""); /* the default of every protocol of a port */
    return true;
}

static int compare_named(const struct named *x, const struct named *y)
{
    int order = kr_bytes_compare(x->first, y->first);

    return order != 0 ? order : kr_bytes_compare(x->second, y->second);
}

static int compare(const void *a, const void *b)
{
    return compare_named(a, b);
}

/* Names all items and sorts them; false: not all have a name, or two have the same. */
static bool name_all(struct kr_items list, size_t key, struct named *out)
{
    for (size_t i = 0; i < list.n; i++) {
        out[i].index = i;
        if (!name_item(list.items[i], key, &out[i]))
            return false;
    }
    qsort(out, list.n, sizeof *out, compare);
    for (size_t i = 1; i < list.n; i++) {
        if (compare_named(&out[i - 1], &out[i]) == 0)
            return false;
    }
    return true;
}

static void join(const struct named *old, size_t old_n, const struct named *now, size_t now_n,
                 size_t *of)
{
    size_t i = 0;

    for (size_t j = 0; j < now_n; j++) {
        while (i < old_n && compare_named(&old[i], &now[j]) < 0)
            i++;
        of[now[j].index] =
            i < old_n && compare_named(&old[i], &now[j]) == 0 ? old[i].index : KR_LIST_NONE;
    }
}

int kr_list_match(struct kr_items old, struct kr_items now, struct kr_arena *arena, size_t **of)
{
    struct named *a;
    struct named *b;

    if (old.n > KR_LIST_MATCH_MAX || now.n > KR_LIST_MATCH_MAX)
        return KR_ETOOBIG;
    a = kr_arena_alloc(arena, (old.n + 1) * sizeof *a);
    b = kr_arena_alloc(arena, (now.n + 1) * sizeof *b);
    *of = kr_arena_alloc(arena, (now.n + 1) * sizeof **of);
    if (a == NULL || b == NULL || *of == NULL)
        return KR_ETOOBIG;
    for (size_t key = 0; key < sizeof keys / sizeof keys[0]; key++) {
        if (!name_all(old, key, a) || !name_all(now, key, b))
            continue;
        join(a, old.n, b, now.n, *of);
        return 0;
    }
    return KR_ENOENT;
}

bool kr_list_is_shuffled(struct kr_items old, struct kr_items now)
{
    for (size_t j = 0; j < now.n; j++) {
        if (kr_bytes_eq(old.items[j], now.items[j]))
            continue;
        for (size_t i = 0; i < old.n; i++) {
            if (i != j && kr_bytes_eq(old.items[i], now.items[j]))
                return true;
        }
    }
    return false;
}
