/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over both texts side by side, on a stack of its own: an object is two sorted lists of
 * members, an array a list of pairs. A value whose text is the same is never looked into. */
#include "kube/json_diff.h"

#include "base/err.h"
#include "kube/json_members.h"
#include "kube/json_shape.h"
#include "kube/list_match.h"
#include "kube/patch_out.h"

#define MEMORY_MAX (16u << 20)

struct pair {
    struct kr_bytes served; /* .p NULL: the item is new, and has been put in as a whole */
    struct kr_bytes wanted;
};

struct frame {
    struct kr_place place;
    size_t path_n; /* of the path to it */
    bool is_array;
    const struct kr_member *served;
    const struct kr_member *wanted;
    const struct pair *pairs;
    size_t served_n;
    size_t wanted_n; /* or the number of pairs */
    size_t served_i;
    size_t wanted_i; /* or the pair */
};

struct diff {
    const struct kr_reach *reach;
    struct kr_patch_out patch;
    struct kr_arena arena;
    struct kr_note *why;
    struct frame frames[KR_DIFF_DEPTH];
    size_t depth;
};

static int refuse(struct diff *d, const char *reason)
{
    return kr_note_set(d->why, KR_EDENIED, "%.*s: %s",
                       (int)(d->patch.path.n < 160 ? d->patch.path.n : 160),
                       (const char *)d->patch.path.p, reason);
}

static struct frame *push(struct diff *d, const struct kr_place *place)
{
    struct frame *f;

    if (d->depth == KR_DIFF_DEPTH)
        return NULL;
    f = &d->frames[d->depth++];
    *f = (struct frame){.place = *place, .path_n = d->patch.path.n};
    return f;
}

static int push_object(struct diff *d, const struct kr_place *place, struct kr_bytes served,
                       struct kr_bytes wanted)
{
    struct frame *f = push(d, place);
    struct kr_member *a;
    struct kr_member *b;
    int rc;

    if (f == NULL)
        return KR_ETOOBIG;
    rc = kr_members_read(served, &d->arena, &a, &f->served_n);
    if (rc == 0)
        rc = kr_members_read(wanted, &d->arena, &b, &f->wanted_n);
    if (rc != 0)
        return rc;
    f->served = a;
    f->wanted = b;
    return 0;
}

/* ---- arrays ---- */

/* of[j] is the item of `a` that the j-th of `b` is; NULL: that in the same place. */
static int push_pairs(struct diff *d, const struct kr_place *place, struct kr_items a,
                      struct kr_items b, const size_t *of)
{
    struct frame *f = push(d, place);
    struct pair *pairs = kr_arena_alloc(&d->arena, (b.n + 1) * sizeof *pairs);

    if (f == NULL || pairs == NULL)
        return KR_ETOOBIG;
    for (size_t j = 0; j < b.n; j++) {
        size_t i = of != NULL ? of[j] : j;

        pairs[j] = (struct pair){.wanted = b.items[j]};
        if (i != KR_LIST_NONE)
            pairs[j].served = a.items[i];
    }
    f->is_array = true;
    f->pairs = pairs;
    f->wanted_n = b.n;
    return 0;
}

static bool are_plain(struct kr_items list)
{
    for (size_t i = 0; i < list.n; i++) {
        if (kr_shape_holds(kr_shape_of(list.items[i])))
            return false;
    }
    return true;
}

static bool are_same(struct kr_items a, struct kr_items b)
{
    for (size_t i = 0; a.n == b.n && i < a.n; i++) {
        if (!kr_bytes_eq(a.items[i], b.items[i]))
            return false;
    }
    return a.n == b.n;
}

/* Takes out of the list what is not wanted any more, last first. */
static void remove_items(struct diff *d, const bool *stays, size_t n)
{
    size_t path_n = d->patch.path.n;

    for (size_t i = n; i-- > 0;) {
        if (stays[i])
            continue;
        kr_patch_element(&d->patch, i);
        kr_patch_remove(&d->patch);
        kr_patch_back(&d->patch, path_n);
    }
}

/* Puts every item in its place; `list` is what the list holds by now (items of the old one). */
static void order_items(struct diff *d, size_t *list, size_t n, struct kr_items wanted,
                        const size_t *of)
{
    size_t path_n = d->patch.path.n;

    for (size_t j = 0; j < wanted.n; j++) {
        size_t at = j;

        if (of[j] == KR_LIST_NONE) {
            kr_patch_element(&d->patch, j);
            kr_patch_add(&d->patch, wanted.items[j]);
            kr_patch_back(&d->patch, path_n);
            n++;
            at = n - 1;
        } else {
            while (list[at] != of[j])
                at++;
            if (at != j)
                kr_patch_move(&d->patch, at, j);
        }
        memmove(list + j + 1, list + j, (at - j) * sizeof *list);
        list[j] = of[j];
    }
}

/* Items that have names: operations that make one list out of the other. */
static int rebuild_list(struct diff *d, struct kr_items a, struct kr_items b, const size_t *of)
{
    bool *stays = kr_arena_alloc(&d->arena, a.n + 1);
    size_t *list = kr_arena_alloc(&d->arena, (a.n + b.n + 1) * sizeof *list);
    size_t kept = 0;

    if (stays == NULL || list == NULL)
        return KR_ETOOBIG;
    memset(stays, 0, a.n + 1);
    for (size_t j = 0; j < b.n; j++) {
        if (of[j] == KR_LIST_NONE)
            continue;
        stays[of[j]] = true;
        kept++;
    }
    if (kept < a.n && kept < b.n)
        return refuse(d, "items go while others come, and they were not served whole");
    kept = 0;
    for (size_t i = 0; i < a.n; i++) {
        if (stays[i])
            list[kept++] = i;
    }
    remove_items(d, stays, a.n);
    order_items(d, list, kept, b, of);
    return 0;
}

/* A list of objects or lists of which parts were left out. */
static int diff_partial_list(struct diff *d, const struct kr_place *item, struct kr_items a,
                             struct kr_items b)
{
    size_t *of;
    int rc;

    if (b.n == 0) {
        kr_patch_replace(&d->patch, KR_LIT("[]"));
        return 0;
    }
    rc = kr_list_match(a, b, &d->arena, &of);
    if (rc == 0) {
        rc = rebuild_list(d, a, b, of);
        return rc != 0 ? rc : push_pairs(d, item, a, b, of);
    }
    if (rc != KR_ENOENT)
        return rc;
    if (a.n != b.n || kr_list_is_shuffled(a, b))
        return refuse(d, "its items cannot be told apart, and they were not served whole");
    return push_pairs(d, item, a, b, NULL);
}

static int diff_arrays(struct diff *d, const struct kr_place *place, struct kr_bytes served,
                       struct kr_bytes wanted)
{
    struct kr_place item = kr_place_element(d->reach, place);
    struct kr_bytes *items[2];
    struct kr_items a;
    struct kr_items b;
    int rc = kr_elements_read(served, &d->arena, &items[0], &a.n);

    if (rc == 0)
        rc = kr_elements_read(wanted, &d->arena, &items[1], &b.n);
    if (rc != 0)
        return rc;
    a.items = items[0];
    b.items = items[1];
    if (a.n == 0 && item.left_out) {
        if (kr_is_vacant(wanted))
            return 0;
        return refuse(d, "its items were not served");
    }
    if (are_plain(a) && are_plain(b)) {
        if (!are_same(a, b))
            kr_patch_replace(&d->patch, wanted);
        return 0;
    }
    if (!place->complete && a.n != 0)
        return diff_partial_list(d, &item, a, b);
    if (a.n == b.n)
        return push_pairs(d, &item, a, b, NULL);
    kr_patch_replace(&d->patch, wanted);
    return 0;
}

/* ---- values ---- */

static bool same_string(struct kr_bytes a, struct kr_bytes b)
{
    struct kr_buf x = {.max = a.n};
    struct kr_buf y = {.max = b.n};
    bool same = kr_scan_string(a, &x) == 0 && kr_scan_string(b, &y) == 0 &&
                kr_bytes_eq(kr_buf_bytes(&x), kr_buf_bytes(&y));

    kr_buf_deinit(&x);
    kr_buf_deinit(&y);
    return same;
}

/* Both are there. */
static int diff_values(struct diff *d, const struct kr_place *place, struct kr_bytes served,
                       struct kr_bytes wanted)
{
    enum kr_shape a = kr_shape_of(served);
    enum kr_shape b = kr_shape_of(wanted);

    if (kr_bytes_eq(served, wanted))
        return 0;
    if (a == KR_SHAPE_OBJECT && b == KR_SHAPE_OBJECT)
        return push_object(d, place, served, wanted);
    if (a == KR_SHAPE_ARRAY && b == KR_SHAPE_ARRAY)
        return diff_arrays(d, place, served, wanted);
    if (a != KR_SHAPE_STRING || b != KR_SHAPE_STRING || !same_string(served, wanted))
        kr_patch_replace(&d->patch, wanted);
    return 0;
}

/* ---- members ---- */

static bool is_one_of(struct kr_bytes name, const char *const *names)
{
    while (*names != NULL && !kr_bytes_is(name, *names))
        names++;
    return *names != NULL;
}

/* What a write does not speak of: the type is that of the path, the version comes first. */
static bool is_beside(enum kr_place_kind kind, struct kr_bytes name)
{
    static const char *const of_object[] = {"apiVersion", "kind", NULL};
    static const char *const of_metadata[] = {"resourceVersion", "managedFields", NULL};

    return (kind == KR_PLACE_TOP && is_one_of(name, of_object)) ||
           (kind == KR_PLACE_METADATA && is_one_of(name, of_metadata));
}

/* What an API server fills in where a write leaves it out. */
static bool is_filled_in(enum kr_place_kind kind, struct kr_bytes name)
{
    static const char *const names[] = {"name",
                                        "namespace",
                                        "uid",
                                        "creationTimestamp",
                                        "generation",
                                        "selfLink",
                                        "deletionTimestamp",
                                        "deletionGracePeriodSeconds",
                                        NULL};

    return kind == KR_PLACE_METADATA && is_one_of(name, names);
}

static void member_is_missing(struct diff *d, const struct kr_place *place, struct kr_bytes served)
{
    if (kr_shape_of(served) != KR_SHAPE_NULL && (place->complete || !kr_is_hollow(served)))
        kr_patch_remove(&d->patch);
}

static int member_is_new(struct diff *d, const struct kr_place *place, struct kr_bytes wanted)
{
    if (kr_shape_of(wanted) == KR_SHAPE_NULL || (place->left_out && kr_is_vacant(wanted)))
        return 0;
    if (place->left_out && kr_shape_holds(kr_shape_of(wanted)))
        return refuse(d, "nothing of it was served, so that what is there would be lost");
    kr_patch_add(&d->patch, wanted);
    return 0;
}

static int diff_member(struct diff *d, const struct frame *f, const struct kr_member *served,
                       const struct kr_member *wanted)
{
    const struct kr_member *either = served != NULL ? served : wanted; /* one is there */
    struct kr_bytes name = either != NULL ? either->name : (struct kr_bytes){NULL, 0};
    struct kr_place place = kr_place_member(d->reach, &f->place, name);
    bool was = served != NULL && kr_shape_of(served->value) != KR_SHAPE_NULL;
    bool shall = wanted != NULL && kr_shape_of(wanted->value) != KR_SHAPE_NULL;

    if (is_beside(f->place.kind, name))
        return 0;
    kr_patch_member(&d->patch, name);
    if (was && shall)
        return diff_values(d, &place, served->value, wanted->value);
    if (shall)
        return member_is_new(d, &place, wanted->value);
    if (was && !is_filled_in(f->place.kind, name))
        member_is_missing(d, &place, served->value);
    return 0;
}

/* ---- the walk ---- */

static int next_member(struct diff *d, struct frame *f)
{
    const struct kr_member *a = f->served_i < f->served_n ? &f->served[f->served_i] : NULL;
    const struct kr_member *b = f->wanted_i < f->wanted_n ? &f->wanted[f->wanted_i] : NULL;
    int order = a == NULL ? 1 : b == NULL ? -1 : kr_bytes_compare(a->name, b->name);

    if (order <= 0)
        f->served_i++;
    if (order >= 0)
        f->wanted_i++;
    return diff_member(d, f, order <= 0 ? a : NULL, order >= 0 ? b : NULL);
}

static int next_pair(struct diff *d, struct frame *f)
{
    size_t index = f->wanted_i++;
    const struct pair *p = &f->pairs[index];

    if (p->served.p == NULL)
        return 0;
    kr_patch_element(&d->patch, index);
    return diff_values(d, &f->place, p->served, p->wanted);
}

static int walk(struct diff *d)
{
    int rc = 0;

    while (rc == 0 && d->patch.rc == 0 && d->depth != 0) {
        struct frame *f = &d->frames[d->depth - 1];

        kr_patch_back(&d->patch, f->path_n);
        if (f->served_i == f->served_n && f->wanted_i == f->wanted_n)
            d->depth--;
        else
            rc = f->is_array ? next_pair(d, f) : next_member(d, f);
    }
    return rc != 0 ? rc : d->patch.rc;
}

static void replace_version(struct diff *d, uint32_t *version)
{
    size_t before = d->patch.buf->n - 1; /* the bracket that opens the patch */

    kr_patch_member(&d->patch, KR_LIT("metadata"));
    kr_patch_member(&d->patch, KR_LIT("resourceVersion"));
    kr_patch_replace(&d->patch, KR_LIT("\"\""));
    *version = (uint32_t)(d->patch.buf->n - before - 2); /* before the quote and the brace */
    kr_patch_back(&d->patch, 0);
}

int kr_json_diff(const struct kr_reach *reach, struct kr_bytes served, struct kr_bytes wanted,
                 struct kr_buf *out, uint32_t *version, struct kr_note *why)
{
    struct diff d = {.reach = reach, .why = why};
    struct kr_place top = kr_place_top(reach);
    size_t before = out->n;
    int rc;

    kr_arena_init(&d.arena, 4096, MEMORY_MAX);
    kr_patch_start(&d.patch, out);
    replace_version(&d, version);
    rc = push_object(&d, &top, served, wanted);
    if (rc == 0)
        rc = walk(&d);
    kr_patch_end(&d.patch);
    if (rc == 0)
        rc = d.patch.rc;
    kr_arena_deinit(&d.arena);
    if (rc != 0)
        out->n = before;
    if (rc == KR_ETOOBIG)
        kr_note_text(why, "the change is too large");
    return rc;
}
