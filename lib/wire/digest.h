/* SPDX-License-Identifier: Apache-2.0 */
/* digest: 64-bit hashes (XXH3) of keys and objects, and sums of them per bucket, by which both ends
 * find out what differs without sending it.
 * A peer that makes collisions only harms what it sends itself. Pure. */
#ifndef KR_WIRE_DIGEST_H
#define KR_WIRE_DIGEST_H

#include "base/bytes.h"

#define KR_BUCKETS 256

uint64_t kr_key_hash(struct kr_bytes ns, struct kr_bytes name);
/* `cells` is what kr_cells_steady (kube/cells.h) left of them. */
uint64_t kr_object_hash(struct kr_bytes uid, struct kr_bytes slim, struct kr_bytes cells);

static inline unsigned kr_bucket_of(uint64_t key)
{
    return (unsigned)(key >> 56);
}

struct kr_digest {
    uint64_t sums[KR_BUCKETS];
    uint64_t objects;
};

/* Order does not matter; kr_digest_remove undoes kr_digest_add. */
void kr_digest_add(struct kr_digest *d, uint64_t key, uint64_t object);
void kr_digest_remove(struct kr_digest *d, uint64_t key, uint64_t object);

#endif
