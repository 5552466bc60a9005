/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/walk_filter.h"

#include <stdlib.h>

#include "base/err.h"

#define ARENA_MAX (4u * 1024 * 1024)
#define WORDS_STEP 256

static int copy_text(struct kr_arena *a, struct kr_bytes in, struct kr_bytes *out)
{
    *out = kr_arena_copy(a, in);
    return out->p != NULL ? 0 : KR_ENOMEM;
}

static int copy_values(struct kr_arena *a, const struct kr_requirement *in,
                       struct kr_requirement *out)
{
    struct kr_bytes *values;
    int rc = 0;

    out->values = NULL;
    if (in->value_count == 0)
        return 0;
    values = kr_arena_alloc(a, in->value_count * sizeof *values);
    if (values == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; rc == 0 && i < in->value_count; i++)
        rc = copy_text(a, in->values[i], &values[i]);
    out->values = values;
    return rc;
}

/* Those that speak of the cluster, or those that do not. */
static int copy_some(struct kr_arena *a, const struct kr_label_selector *in, bool cluster,
                     struct kr_label_selector *out)
{
    struct kr_requirement *all = kr_arena_alloc(a, (in->n + 1) * sizeof *all);
    int rc = 0;

    if (all == NULL)
        return KR_ENOMEM;
    out->all = all;
    out->n = 0;
    for (size_t i = 0; rc == 0 && i < in->n; i++) {
        struct kr_requirement *r = &all[out->n];

        if (kr_bytes_is(in->all[i].key, HUB_CLUSTER_LABEL) != cluster)
            continue;
        *r = in->all[i];
        rc = copy_text(a, in->all[i].key, &r->key);
        if (rc == 0)
            rc = copy_values(a, &in->all[i], r);
        out->n++;
    }
    return rc;
}

/* The marks that a set needs for one requirement: any of the pairs, and the key. */
static uint64_t pair_mask(const struct kr_requirement *r)
{
    uint64_t mask = 0;

    for (size_t i = 0; i < r->value_count; i++)
        mask |= hub_label_pair_mark(r->key, r->values[i]);
    return mask;
}

static int make_masks(struct hub_walk_filter *f)
{
    f->masks = kr_arena_alloc(&f->arena, (f->rest.n * 2 + 1) * sizeof *f->masks);
    if (f->masks == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < f->rest.n; i++) {
        const struct kr_requirement *r = &f->rest.all[i];

        if (r->op == KR_OP_NOT_IN || r->op == KR_OP_NOT_EXISTS)
            continue;
        f->masks[f->mask_count++] = hub_label_key_mark(r->key);
        if (r->op == KR_OP_IN)
            f->masks[f->mask_count++] = pair_mask(r);
    }
    return 0;
}

int hub_walk_filter_init(struct hub_walk_filter *f, struct hub_label_sets *sets,
                         const struct kr_label_selector *selector)
{
    int rc;

    *f = (struct hub_walk_filter){.sets = sets};
    kr_arena_init(&f->arena, 1024, ARENA_MAX);
    if (selector == NULL || selector->n == 0)
        return 0;
    rc = copy_some(&f->arena, selector, false, &f->rest);
    if (rc == 0)
        rc = copy_some(&f->arena, selector, true, &f->cluster);
    return rc == 0 ? make_masks(f) : rc;
}

void hub_walk_filter_deinit(struct hub_walk_filter *f)
{
    kr_arena_deinit(&f->arena);
    free(f->known);
    *f = (struct hub_walk_filter){.sets = NULL};
}

bool hub_walk_filter_cluster(const struct hub_walk_filter *f, const char *cluster)
{
    struct kr_bytes value = kr_bytes_str(cluster);

    for (size_t i = 0; i < f->cluster.n; i++) {
        if (!kr_requirement_matches(&f->cluster.all[i], &value))
            return false;
    }
    return true;
}

/* Room to remember the set; without memory it is judged again each time. */
static bool reserve(struct hub_walk_filter *f, size_t word)
{
    size_t words = word + word / 2 + WORDS_STEP;
    uint64_t *known;

    if (word < f->words)
        return true;
    known = realloc(f->known, words * sizeof *known);
    if (known == NULL)
        return false;
    memset(known + f->words, 0, (words - f->words) * sizeof *known);
    f->known = known;
    f->words = words;
    return true;
}

static bool may_match(const struct hub_walk_filter *f, uint64_t marks)
{
    for (size_t i = 0; i < f->mask_count; i++) {
        if ((marks & f->masks[i]) == 0)
            return false;
    }
    return true;
}

static bool matches(const struct hub_walk_filter *f, uint32_t set)
{
    size_t n;
    const struct kr_label *labels = hub_label_sets_get(f->sets, set, &n);

    return kr_label_selector_matches(&f->rest, labels, n);
}

bool hub_walk_filter_judge(struct hub_walk_filter *f, uint32_t set)
{
    bool match = may_match(f, hub_label_sets_marks(f->sets, set)) && matches(f, set);

    if (reserve(f, set / 32))
        f->known[set / 32] |= (uint64_t)(match ? 3 : 1) << (set % 32 * 2);
    return match;
}
