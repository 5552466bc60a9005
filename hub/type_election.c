/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/type_election.h"

#include <stdlib.h>

#include "kube/api_version.h"

int hub_type_order(const void *x, const void *y)
{
    const struct kr_resource_type *a = x;
    const struct kr_resource_type *b = y;
    int order = kr_bytes_compare(a->group, b->group);

    if (order == 0)
        order = kr_api_version_compare(a->version, b->version);
    if (order == 0)
        order = kr_bytes_compare(a->version, b->version); /* v1 and v01 are two names */
    return order != 0 ? order : kr_bytes_compare(a->resource, b->resource);
}

/* By what is known of both wherever and whenever it is asked: no order in which they dialled. */
bool hub_voter_is_earlier(const struct hub_voter *a, const struct hub_voter *b)
{
    if (a == NULL || b == NULL)
        return b == NULL;
    if (a->since_wall_ms != b->since_wall_ms)
        return a->since_wall_ms < b->since_wall_ms;
    return strcmp(a->cluster, b->cluster) < 0;
}

static int by_variant(const struct hub_vote *a, const struct hub_vote *b)
{
    int order = kr_bytes_compare(a->type.kind, b->type.kind);

    return order != 0 ? order : (int)a->type.namespaced - (int)b->type.namespaced;
}

static int by_vote(const void *x, const void *y)
{
    const struct hub_vote *a = x;
    const struct hub_vote *b = y;
    int order = hub_type_order(&a->type, &b->type);

    if (order == 0)
        order = by_variant(a, b);
    /* The more common set first, or the older one: its short names are shown. */
    if (order == 0)
        order = (a->clusters < b->clusters) - (a->clusters > b->clusters);
    if (order == 0 && a->first != b->first)
        order = hub_voter_is_earlier(a->first, b->first) ? -1 : 1;
    return order;
}

/* Votes that are equal by type, and variant: [from, to). */
static size_t end_of(const struct hub_vote *v, size_t n, size_t from, bool variant)
{
    size_t to = from + 1;

    while (to < n && hub_type_order(&v[from].type, &v[to].type) == 0 &&
           (!variant || by_variant(&v[from], &v[to]) == 0))
        to++;
    return to;
}

/* Elects one type of each run; the winners move to the front, with how many prefer them. */
static size_t elect(struct hub_vote *v, size_t n)
{
    size_t kept = 0;

    for (size_t at = 0; at < n;) {
        size_t end = end_of(v, n, at, false);
        struct hub_vote best = {.clusters = 0};
        size_t prefer = 0;

        while (at < end) {
            size_t next = end_of(v, end, at, true);
            struct hub_vote one = v[at];

            for (size_t i = at; i < next; i++) {
                one.clusters += i > at ? v[i].clusters : 0;
                if (hub_voter_is_earlier(v[i].first, one.first))
                    one.first = v[i].first;
                prefer += v[i].type.preferred ? v[i].clusters : 0;
            }
            /* Of as many: who was there first. A new cluster alone overrules nobody. */
            if (one.clusters > best.clusters ||
                (one.clusters == best.clusters && hub_voter_is_earlier(one.first, best.first)))
                best = one;
            at = next;
        }
        best.clusters = prefer;
        v[kept++] = best;
    }
    return kept;
}

/* One version of each group is the preferred one: that of most clusters; of as many, that which was
 * there first; or else the newest. */
static void prefer(struct hub_vote *v, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t best = at;
        size_t end = at;

        for (; end < n && kr_bytes_eq(v[at].type.group, v[end].type.group); end++) {
            if (v[end].clusters > v[best].clusters ||
                (v[end].clusters == v[best].clusters && v[end].clusters != 0 &&
                 hub_voter_is_earlier(v[end].first, v[best].first)))
                best = end;
        }
        for (size_t i = at; i < end; i++)
            v[i].type.preferred = kr_bytes_eq(v[i].type.version, v[best].type.version);
        at = end;
    }
}

size_t hub_elect_types(struct hub_vote *v, size_t n)
{
    if (n != 0)
        qsort(v, n, sizeof *v, by_vote);
    n = elect(v, n);
    prefer(v, n);
    return n;
}
