/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/rand.h"

#define FIRST_CAP 16

struct kr_map_slot { /* free: value NULL; erased: value at `erased` */
    struct kr_bytes key;
    uint64_t hash;
    void *value;
};

/* Its address marks a slot whose entry is gone but that probes must step over. */
static const char erased;
#define ERASED ((void *)(uintptr_t)&erased)

static uint64_t rotate_left(uint64_t x, unsigned k)
{
    return x << k | x >> (64 - k);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] = rotate_left(v[2], 32);
    }
}

/* Up to eight bytes, little-endian. */
static uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t x = 0;

    for (size_t i = 0; i < n; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

uint64_t kr_siphash(const uint64_t key[2], struct kr_bytes in)
{
    uint64_t v[4] = {key[0] ^ 0x736F6D6570736575U, key[1] ^ 0x646F72616E646F6DU,
                     key[0] ^ 0x6C7967656E657261U, key[1] ^ 0x7465646279746573U};
    size_t whole = in.n & ~(size_t)7;
    uint64_t last = (uint64_t)in.n << 56;

    for (size_t i = 0; i < whole; i += 8) {
        uint64_t m = load(in.p + i, 8);

        v[3] ^= m;
        sip_rounds(v, 2);
        v[0] ^= m;
    }
    if (in.n != whole)
        last |= load(in.p + whole, in.n - whole);
    v[3] ^= last;
    sip_rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xFF;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void kr_map_init(struct kr_map *m, size_t max)
{
    *m = (struct kr_map){.max = max};
    kr_rand_secret(m->key, sizeof m->key);
}

void kr_map_deinit(struct kr_map *m)
{
    free(m->slots);
    m->slots = NULL;
    m->cap = m->count = m->dead = 0;
}

/* The slot that holds the key, or NULL. */
static struct kr_map_slot *find(const struct kr_map *m, struct kr_bytes key, uint64_t hash)
{
    for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct kr_map_slot *s = &m->slots[i];

        if (s->value == NULL)
            return NULL;
        if (s->value != ERASED && s->hash == hash && kr_bytes_eq(s->key, key))
            return s;
    }
}

/* The first slot that may take a new entry of this hash. */
static struct kr_map_slot *vacancy(const struct kr_map *m, uint64_t hash)
{
    size_t i = hash & (m->cap - 1);

    while (m->slots[i].value != NULL && m->slots[i].value != ERASED)
        i = (i + 1) & (m->cap - 1);
    return &m->slots[i];
}

/* A new table for count + 1 entries at most half full, without the dead. */
static int rebuild(struct kr_map *m)
{
    struct kr_map_slot *old = m->slots;
    size_t old_cap = m->cap;
    size_t cap = FIRST_CAP;

    while (cap < (m->count + 1) * 2)
        cap *= 2;
    m->slots = calloc(cap, sizeof *m->slots);
    if (m->slots == NULL) {
        m->slots = old;
        return KR_ENOMEM;
    }
    m->cap = cap;
    m->dead = 0;
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].value != NULL && old[i].value != ERASED)
            *vacancy(m, old[i].hash) = old[i];
    }
    free(old);
    return 0;
}

int kr_map_put(struct kr_map *m, struct kr_bytes key, void *value)
{
    uint64_t hash = kr_siphash(m->key, key);
    struct kr_map_slot *s;

    KR_ASSERT(value != NULL);
    if (m->cap != 0 && find(m, key, hash) != NULL)
        return KR_EEXIST;
    if (m->count >= m->max)
        return KR_EFULL;
    /* At most three quarters are used, so that a probe always meets a free slot. */
    if ((m->count + m->dead + 1) * 4 > m->cap * 3 && rebuild(m) != 0)
        return KR_ENOMEM;
    s = vacancy(m, hash);
    if (s->value == ERASED)
        m->dead--;
    *s = (struct kr_map_slot){.key = key, .hash = hash, .value = value};
    m->count++;
    return 0;
}

void *kr_map_get(const struct kr_map *m, struct kr_bytes key)
{
    struct kr_map_slot *s = m->count != 0 ? find(m, key, kr_siphash(m->key, key)) : NULL;

    return s != NULL ? s->value : NULL;
}

void *kr_map_erase(struct kr_map *m, struct kr_bytes key)
{
    struct kr_map_slot *s = m->count != 0 ? find(m, key, kr_siphash(m->key, key)) : NULL;
    void *value;

    if (s == NULL)
        return NULL;
    value = s->value;
    *s = (struct kr_map_slot){.value = ERASED};
    m->count--;
    m->dead++;
    return value;
}

void *kr_map_next(const struct kr_map *m, size_t *pos, struct kr_bytes *key)
{
    while (*pos < m->cap) {
        const struct kr_map_slot *s = &m->slots[(*pos)++];

        if (s->value == NULL || s->value == ERASED)
            continue;
        if (key != NULL)
            *key = s->key;
        return s->value;
    }
    return NULL;
}
