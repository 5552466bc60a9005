/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet_source.h"

#include <stdlib.h>

#include "base/assert.h"

#define BUMP 1000000

static bool one_in(struct kr_rand *rand, unsigned n)
{
    return kr_rand_below(rand, n) == 0;
}

void source_init(struct source *s, struct kr_rand *rand)
{
    *s = (struct source){.now = {.version = 100, .served = {true, true}}, .compacted = 100};
    s->backup = s->now;
    s->tables = !one_in(rand, 3);
    s->streams = !one_in(rand, 3);
    s->aggregated = !one_in(rand, 3);
    s->as_event = one_in(rand, 2);
    s->waits = one_in(rand, 2);
    s->page = 3 + (unsigned)kr_rand_below(rand, THINGS);
}

void source_deinit(struct source *s)
{
    free(s->history);
}

static void record(struct source *s, unsigned type, unsigned index, const struct thing *before)
{
    if (s->n == s->cap) {
        s->cap = s->cap != 0 ? 2 * s->cap : 256;
        s->history = realloc(s->history, s->cap * sizeof *s->history);
        KR_ASSERT(s->history != NULL);
    }
    s->history[s->n++] = (struct change){.version = s->now.version,
                                         .type = type,
                                         .index = index,
                                         .before = *before,
                                         .after = s->now.things[type][index]};
}

static void create(struct source *s, struct kr_rand *rand, struct thing *t)
{
    *t = (struct thing){.there = true, .uid = ++s->uids, .image = (unsigned)s->now.version};
    t->app = (char)('a' + kr_rand_below(rand, APPS));
    t->running = !one_in(rand, 3);
    t->pad =
        one_in(rand, 12) ? (unsigned)kr_rand_below(rand, 9000) : (unsigned)kr_rand_below(rand, 60);
}

static void update(struct source *s, struct kr_rand *rand, struct thing *t)
{
    t->noise++;
    switch (kr_rand_below(rand, 8)) {
    case 0:
    case 1:
        break; /* nothing that anybody keeps */
    case 2:
        t->app = (char)('a' + kr_rand_below(rand, APPS));
        break;
    case 3:
        t->running = !t->running;
        break;
    case 4:
        t->note++;
        break;
    case 5: /* back to what it was */
        t->image = t->image != 1 ? 1 : 2;
        break;
    default:
        t->image = (unsigned)s->now.version;
    }
}

unsigned source_change(struct source *s, struct kr_rand *rand)
{
    unsigned type = one_in(rand, 3) ? WIDGETS : PODS;
    unsigned index = (unsigned)kr_rand_below(rand, THINGS);
    struct thing *t = &s->now.things[type][index];
    struct thing before = *t;

    if (s->frozen || !s->now.served[type])
        return type;
    s->now.version++;
    if (!t->there)
        create(s, rand, t);
    else if (one_in(rand, 4))
        t->there = false;
    else
        update(s, rand, t);
    t->version = s->now.version;
    record(s, type, index, &before);
    if (before.there && !t->there && one_in(rand, 3)) { /* the same name again, at once */
        before = *t;
        s->now.version++;
        create(s, rand, t);
        t->version = s->now.version;
        record(s, type, index, &before);
        s->left[type][index] = true;
    }
    return type;
}

void source_compact(struct source *s)
{
    s->compacted = s->now.version;
}

void source_restore(struct source *s, bool bump)
{
    uint64_t version = s->now.version;

    s->now = s->backup;
    s->n = 0;
    s->epoch++;
    s->frozen = !bump;
    if (bump)
        s->now.version = version + BUMP;
    s->compacted = s->now.version;
    memset(s->pages, 0, sizeof s->pages);
}

void source_toggle(struct source *s, unsigned type)
{
    if (s->frozen)
        return;
    s->now.version++;
    s->toggles++;
    s->now.served[type] = !s->now.served[type];
    memset(s->now.things[type], 0, sizeof s->now.things[type]);
    s->compacted = s->now.version; /* nobody goes on where it was */
    memset(s->pages, 0, sizeof s->pages);
}

/* ---- selectors ---- */

bool source_selects(const struct thing *t, unsigned index, struct kr_bytes labels,
                    struct kr_bytes fields, bool *known)
{
    bool ok = t->there;
    char ns[8];
    char name[8];

    *known = true;
    source_name(PODS, index, ns, name);
    if (kr_bytes_is(labels, "app=a"))
        ok = ok && t->app == 'a';
    else if (kr_bytes_is(labels, "app!=c"))
        ok = ok && t->app != 'c';
    else if (kr_bytes_is(labels, "app in (a,b)"))
        ok = ok && (t->app == 'a' || t->app == 'b');
    else
        *known = *known && labels.n == 0;
    if (kr_bytes_is(fields, "status.phase=Running"))
        ok = ok && t->running;
    else if (kr_bytes_is(fields, "metadata.namespace!=n2"))
        ok = ok && strcmp(ns, "n2") != 0;
    else
        *known = *known && fields.n == 0;
    return ok;
}
