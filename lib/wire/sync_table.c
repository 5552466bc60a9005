/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sync_table.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/rand.h"

#define FIRST_CAP 64
#define NOWHERE SIZE_MAX

struct kr_sync_slot {
    uint64_t key;
    uint64_t object;
};

enum bit { /* which of the three words of 64 slots */
           USED,
           DEAD,          /* of a slot that is not used: probes step over it */
           PLACED = DEAD, /* of a used slot, while the table is being rebuilt */
           SEEN,
           KINDS,
};

static bool is(const struct kr_sync_table *t, enum bit kind, size_t i)
{
    return (t->bits[i / 64 * KINDS + kind] >> (i % 64) & 1) != 0;
}

static void set(struct kr_sync_table *t, enum bit kind, size_t i)
{
    t->bits[i / 64 * KINDS + kind] |= (uint64_t)1 << (i % 64);
}

static void clear(struct kr_sync_table *t, enum bit kind, size_t i)
{
    t->bits[i / 64 * KINDS + kind] &= ~((uint64_t)1 << (i % 64));
}

static void clear_all(struct kr_sync_table *t, enum bit kind)
{
    for (size_t w = 0; w < t->cap / 64; w++)
        t->bits[w * KINDS + kind] = 0;
}

void kr_sync_table_init(struct kr_sync_table *t, size_t max)
{
    *t = (struct kr_sync_table){.max = max};
    kr_rand_secret(&t->spread, sizeof t->spread);
    t->spread |= 1;
}

void kr_sync_table_deinit(struct kr_sync_table *t)
{
    free(t->slots);
    free(t->bits);
    *t = (struct kr_sync_table){.max = t->max, .spread = t->spread};
}

/* Keys are hashes, but whoever names objects chooses among them: the product spreads them in a way
 * that nobody outside can foresee (multiply-shift). */
static size_t home(const struct kr_sync_table *t, uint64_t key)
{
    uint64_t mixed = (key ^ key >> 32) * t->spread;

    return (size_t)((unsigned __int128)mixed * t->cap >> 64);
}

static size_t after(const struct kr_sync_table *t, size_t i)
{
    return i + 1 < t->cap ? i + 1 : 0;
}

static size_t find(const struct kr_sync_table *t, uint64_t key)
{
    if (t->cap == 0)
        return NOWHERE;
    for (size_t i = home(t, key);; i = after(t, i)) {
        if (is(t, USED, i) ? t->slots[i].key == key : !is(t, DEAD, i))
            return is(t, USED, i) ? i : NOWHERE;
    }
}

bool kr_sync_table_get(const struct kr_sync_table *t, uint64_t key, uint64_t *object)
{
    size_t i = find(t, key);

    if (i == NOWHERE)
        return false;
    *object = t->slots[i].object;
    return true;
}

/* --- growing ------------------------------------------------------------------------------- */

static void swap(struct kr_sync_table *t, size_t i, struct kr_sync_slot *slot, bool *seen)
{
    struct kr_sync_slot other = t->slots[i];
    bool other_seen = is(t, SEEN, i);

    t->slots[i] = *slot;
    (*seen ? set : clear)(t, SEEN, i);
    *slot = other;
    *seen = other_seen;
}

/* Puts one entry, which was taken out of its slot, where it belongs, and so each one that it
 * displaces: an entry that is not yet placed may have to give way to one that is. */
static void place(struct kr_sync_table *t, struct kr_sync_slot slot, bool seen)
{
    for (;;) {
        size_t i = home(t, slot.key);
        bool displaced;

        while (is(t, USED, i) && is(t, PLACED, i))
            i = after(t, i);
        displaced = is(t, USED, i);
        swap(t, i, &slot, &seen);
        set(t, USED, i);
        set(t, PLACED, i);
        if (!displaced)
            return;
    }
}

/* All entries, each in the slot that the table's present size gives it; none is dead after. */
static void rehash(struct kr_sync_table *t)
{
    clear_all(t, PLACED);
    for (size_t i = 0; i < t->cap; i++) {
        if (!is(t, USED, i) || is(t, PLACED, i))
            continue;
        clear(t, USED, i);
        place(t, t->slots[i], is(t, SEEN, i));
    }
    clear_all(t, DEAD);
    t->dead = 0;
}

/* Room for one more. Where many are dead it is enough to clear them away. */
static int grow(struct kr_sync_table *t)
{
    size_t cap = t->cap;
    struct kr_sync_slot *slots;
    uint64_t *bits;

    while ((t->digest.objects + 1) * 16 > cap * 11)
        cap = cap != 0 ? (cap / 3 + cap + 63) / 64 * 64 : FIRST_CAP;
    if (cap != t->cap) {
        bits = calloc(cap / 64 * KINDS, sizeof *bits);
        slots = bits != NULL ? realloc(t->slots, cap * sizeof *slots) : NULL;
        if (slots == NULL) {
            free(bits);
            return KR_ENOMEM;
        }
        if (t->cap != 0)
            memcpy(bits, t->bits, t->cap / 64 * KINDS * sizeof *bits);
        free(t->bits);
        t->slots = slots;
        t->bits = bits;
        t->cap = cap;
    }
    rehash(t);
    return 0;
}

/* --- changing ------------------------------------------------------------------------------ */

static int add(struct kr_sync_table *t, uint64_t key, uint64_t object)
{
    size_t i;

    if (t->digest.objects >= t->max)
        return KR_EFULL;
    if ((t->digest.objects + t->dead + 1) * 4 > t->cap * 3 && grow(t) != 0)
        return KR_ENOMEM;
    i = home(t, key);
    while (is(t, USED, i))
        i = after(t, i);
    if (is(t, DEAD, i))
        t->dead--;
    clear(t, DEAD, i);
    set(t, USED, i);
    set(t, SEEN, i);
    t->slots[i] = (struct kr_sync_slot){.key = key, .object = object};
    kr_digest_add(&t->digest, key, object);
    return 0;
}

int kr_sync_table_put(struct kr_sync_table *t, uint64_t key, uint64_t object)
{
    size_t i = find(t, key);

    if (i == NOWHERE)
        return add(t, key, object);
    set(t, SEEN, i);
    if (t->slots[i].object != object) {
        kr_digest_remove(&t->digest, key, t->slots[i].object);
        kr_digest_add(&t->digest, key, object);
        t->slots[i].object = object;
    }
    return 0;
}

static void erase(struct kr_sync_table *t, size_t i)
{
    size_t next = after(t, i);

    kr_digest_remove(&t->digest, t->slots[i].key, t->slots[i].object);
    clear(t, USED, i);
    /* No probe has to go on from here when the next slot ends it anyway. */
    if (is(t, USED, next) || is(t, DEAD, next)) {
        set(t, DEAD, i);
        t->dead++;
    }
}

bool kr_sync_table_remove(struct kr_sync_table *t, uint64_t key)
{
    size_t i = find(t, key);

    if (i != NOWHERE)
        erase(t, i);
    return i != NOWHERE;
}

bool kr_sync_table_see(struct kr_sync_table *t, uint64_t key)
{
    size_t i = find(t, key);

    if (i != NOWHERE)
        set(t, SEEN, i);
    return i != NOWHERE;
}

void kr_sync_table_sweep(struct kr_sync_table *t)
{
    clear_all(t, SEEN);
}

bool kr_sync_table_unseen(const struct kr_sync_table *t, size_t *pos, uint64_t *key)
{
    while (*pos < t->cap) {
        const uint64_t *w = &t->bits[*pos / 64 * KINDS];
        uint64_t left = (w[USED] & ~w[SEEN]) >> (*pos % 64);

        if (left == 0) {
            *pos = (*pos / 64 + 1) * 64;
            continue;
        }
        *pos += (size_t)__builtin_ctzll(left);
        *key = t->slots[*pos].key;
        (*pos)++;
        return true;
    }
    return false;
}

void kr_sync_table_drop_bucket(struct kr_sync_table *t, unsigned bucket)
{
    for (size_t i = 0; i < t->cap; i++) {
        if (is(t, USED, i) && kr_bucket_of(t->slots[i].key) == bucket)
            erase(t, i);
    }
}
