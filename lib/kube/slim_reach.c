/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/slim_reach.h"

#include <stdlib.h>

#include "base/err.h"
#include "kube/slim_path.h"

#define PATHS_MAX 64

struct kr_reach {
    uint64_t keep; /* which paths keep; the others drop */
    uint64_t all;
    bool keeps; /* there are such, or nothing but metadata is kept */
    struct kr_buf names;
    size_t count;
    struct kr_path paths[PATHS_MAX];
};

static int read_paths(struct kr_reach *r, const struct kr_bytes *texts, size_t n, bool keep,
                      struct kr_note *why)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        uint64_t bit;

        if (r->count == PATHS_MAX)
            return kr_note_set(why, KR_EINVAL, "more than %d paths", PATHS_MAX);
        bit = (uint64_t)1 << r->count;
        r->all |= bit;
        r->keep |= keep ? bit : 0;
        rc = kr_path_read(texts[i], keep, &r->names, &r->paths[r->count++], why);
    }
    return rc;
}

static size_t text_size(const struct kr_profile_paths *in)
{
    size_t n = 1;

    for (size_t i = 0; i < in->keep_count; i++)
        n += in->keep[i].n;
    for (size_t i = 0; i < in->drop_count; i++)
        n += in->drop[i].n;
    return n;
}

struct kr_reach *kr_reach_create(const struct kr_profile_paths *in, struct kr_note *why)
{
    struct kr_reach *r = calloc(1, sizeof *r);
    int rc;

    if (r == NULL) {
        kr_note_text(why, "out of memory");
        return NULL;
    }
    kr_buf_init(&r->names, text_size(in));
    r->keeps = in->keep_count != 0 || in->metadata_only;
    rc = kr_buf_reserve(&r->names, text_size(in)); /* the names must not move */
    if (rc != 0)
        kr_note_text(why, "out of memory");
    if (rc == 0)
        rc = read_paths(r, in->keep, in->keep_count, true, why);
    if (rc == 0)
        rc = read_paths(r, in->drop, in->drop_count, false, why);
    if (rc == 0)
        return r;
    kr_reach_destroy(r);
    return NULL;
}

void kr_reach_destroy(struct kr_reach *r)
{
    if (r == NULL)
        return;
    kr_buf_deinit(&r->names);
    free(r);
}

/* The paths of `among` whose step at `depth` is this name, or [*] (name NULL: an element). *ends:
 * those of them that end here. */
static uint64_t matching(const struct kr_reach *r, uint64_t among, unsigned depth,
                         const struct kr_bytes *name, uint64_t *ends)
{
    uint64_t found = 0;

    *ends = 0;
    for (size_t i = 0; i < r->count; i++) {
        uint64_t bit = (uint64_t)1 << i;
        const struct kr_path *p = &r->paths[i];

        if ((among & bit) == 0 || p->count <= depth ||
            !(p->steps[depth].any || (name != NULL && kr_bytes_eq(p->steps[depth].name, *name))))
            continue;
        found |= bit;
        *ends |= p->count == depth + 1 ? bit : 0;
    }
    return found;
}

static struct kr_place judge(const struct kr_reach *r, const struct kr_place *p, bool whole,
                             const struct kr_bytes *name)
{
    struct kr_place out = {.kind = KR_PLACE_BELOW, .depth = p->depth + 1};
    uint64_t ends;
    uint64_t paths;

    if (r == NULL) {
        out.left_out = true;
        return out;
    }
    paths = matching(r, p->paths, p->depth, name, &ends);
    out.left_out = (ends & ~r->keep) != 0;
    out.whole = whole || (ends & r->keep) != 0;
    out.paths = out.whole ? paths & ~r->keep : paths;
    if (!out.whole && (paths & r->keep) == 0)
        out.left_out = true;
    if (out.left_out) {
        out.whole = false;
        out.paths = 0;
    }
    out.complete = out.whole && out.paths == 0;
    return out;
}

static struct kr_place always(const struct kr_place *p)
{
    return (struct kr_place){
        .complete = true, .kind = KR_PLACE_BELOW, .whole = true, .depth = p->depth + 1};
}

struct kr_place kr_place_top(const struct kr_reach *r)
{
    struct kr_place p = {.kind = KR_PLACE_TOP};

    if (r != NULL) {
        p.paths = r->all;
        p.whole = !r->keeps;
        p.complete = p.whole && r->all == 0;
    }
    return p;
}

struct kr_place kr_place_member(const struct kr_reach *r, const struct kr_place *p,
                                struct kr_bytes name)
{
    if (p->kind == KR_PLACE_TOP && kr_bytes_is(name, "metadata")) {
        uint64_t ends;
        struct kr_place out = {.kind = KR_PLACE_METADATA, .whole = true, .depth = 1};

        if (r != NULL)
            out.paths = matching(r, p->paths & ~r->keep, 0, &name, &ends);
        out.complete = r != NULL && out.paths == 0;
        return out;
    }
    if (p->complete || (p->kind == KR_PLACE_METADATA && !kr_bytes_is(name, "annotations")))
        return always(p);
    return judge(r, p, p->whole, &name);
}

struct kr_place kr_place_element(const struct kr_reach *r, const struct kr_place *p)
{
    if (p->complete)
        return always(p);
    return judge(r, p, p->whole, NULL);
}
