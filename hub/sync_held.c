/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/sync_held.h"

#include <stdlib.h>

#include "base/err.h"

#define MESSAGE_PAIRS 8192 /* about so many go into one message */

static uint64_t key_of(const struct hub_object *o)
{
    return kr_key_hash(hub_object_ns(o), hub_object_name(o));
}

void hub_held_digest(struct hub_shelf *s, struct kr_digest *out)
{
    struct hub_shelf_pos pos = {0};
    const struct hub_object *o;

    *out = (struct kr_digest){.objects = 0};
    while ((o = hub_shelf_next(s, &pos)) != NULL)
        kr_digest_add(out, key_of(o), o->hash);
}

/* Where the pairs of each bucket begin, in one array. */
struct layout {
    size_t at[KR_BUCKETS + 1];
    struct kr_pair *pairs;
};

static int lay_out(struct hub_shelf *s, const bool wanted[KR_BUCKETS], struct layout *l)
{
    struct hub_shelf_pos pos = {0};
    size_t next[KR_BUCKETS];
    const struct hub_object *o;

    *l = (struct layout){.pairs = NULL};
    while ((o = hub_shelf_next(s, &pos)) != NULL) {
        unsigned bucket = kr_bucket_of(key_of(o));

        l->at[bucket + 1] += wanted[bucket];
    }
    for (size_t i = 0; i < KR_BUCKETS; i++) {
        l->at[i + 1] += l->at[i];
        next[i] = l->at[i];
    }
    l->pairs = malloc(l->at[KR_BUCKETS] * sizeof *l->pairs + 1);
    if (l->pairs == NULL)
        return KR_ENOMEM;
    pos = (struct hub_shelf_pos){0};
    while ((o = hub_shelf_next(s, &pos)) != NULL) {
        uint64_t key = key_of(o);

        if (wanted[kr_bucket_of(key)])
            l->pairs[next[kr_bucket_of(key)]++] = (struct kr_pair){key, o->hash};
    }
    return 0;
}

struct outgoing {
    struct kr_bucket_pairs buckets[KR_BUCKETS];
    size_t n;
    size_t pairs;
    int (*send)(void *user, struct kr_bytes message);
    void *user;
};

static int flush(struct outgoing *out)
{
    struct kr_sync_control control = {.buckets = out->buckets, .bucket_count = out->n};
    struct kr_buf message = {.max = KR_SYNC_MESSAGE_MAX};
    int rc = 0;

    if (out->n != 0)
        rc = kr_sync_control_encode(&control, &message);
    if (rc == 0 && out->n != 0)
        rc = out->send(out->user, kr_buf_bytes(&message));
    kr_buf_deinit(&message);
    out->n = out->pairs = 0;
    return rc;
}

static int put(struct outgoing *out, unsigned bucket, const struct kr_pair *pairs, size_t n)
{
    int rc = 0;

    do {
        size_t part = n < KR_PAIRS_MAX ? n : KR_PAIRS_MAX;

        out->buckets[out->n++] = (struct kr_bucket_pairs){bucket, pairs, part, part < n};
        out->pairs += part;
        pairs += part;
        n -= part;
        if (out->pairs >= MESSAGE_PAIRS || out->n == KR_BUCKETS)
            rc = flush(out);
    } while (rc == 0 && n != 0);
    return rc;
}

int hub_held_pairs(struct hub_shelf *s, const bool wanted[KR_BUCKETS],
                   int (*send)(void *user, struct kr_bytes message), void *user)
{
    struct outgoing out = {.send = send, .user = user};
    struct layout l;
    int rc = lay_out(s, wanted, &l);

    for (unsigned i = 0; rc == 0 && i < KR_BUCKETS; i++) {
        if (wanted[i])
            rc = put(&out, i, l.pairs + l.at[i], l.at[i + 1] - l.at[i]);
    }
    if (rc == 0)
        rc = flush(&out);
    free(l.pairs);
    return rc;
}
