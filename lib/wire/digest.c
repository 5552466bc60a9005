/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/digest.h"

#include <xxhash.h>

/* The same on every machine: numbers are hashed as little-endian bytes. */
static void put64(uint8_t *out, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(v >> (8 * i));
}

/* The namespace as the seed: no pair of texts runs into another one. */
uint64_t kr_key_hash(struct kr_bytes ns, struct kr_bytes name)
{
    return XXH3_64bits_withSeed(name.p, name.n, XXH3_64bits(ns.p, ns.n));
}

uint64_t kr_object_hash(struct kr_bytes uid, struct kr_bytes slim, struct kr_bytes cells)
{
    uint8_t parts[24];

    put64(parts, XXH3_64bits(uid.p, uid.n));
    put64(parts + 8, XXH3_64bits(slim.p, slim.n));
    put64(parts + 16, XXH3_64bits(cells.p, cells.n));
    return XXH3_64bits(parts, sizeof parts);
}

/* Sums of hashes: two entries never cancel each other out as they would with exclusive or. */
static uint64_t term(uint64_t key, uint64_t object)
{
    uint8_t pair[16];

    put64(pair, key);
    put64(pair + 8, object);
    return XXH3_64bits(pair, sizeof pair);
}

void kr_digest_add(struct kr_digest *d, uint64_t key, uint64_t object)
{
    d->sums[kr_bucket_of(key)] += term(key, object);
    d->objects++;
}

void kr_digest_remove(struct kr_digest *d, uint64_t key, uint64_t object)
{
    d->sums[kr_bucket_of(key)] -= term(key, object);
    d->objects--;
}
