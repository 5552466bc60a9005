/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/label_sets.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/rand.h"
#include "wire/digest.h"

#define FIRST_CAP 64
#define NUMBERS_MAX UINT32_C(0x7FFFFFFF)
#define TEXT_MAX (UINT32_C(1) << 24)

struct hub_label_set {
    uint32_t refs;
    uint32_t labels;
    uint32_t text_n;
    uint32_t hash;
    struct hub_cluster_use *payer;
    uint8_t text[]; /* per label: length, key, length, value */
};

/* ---- packed text: lengths are 7 bits a byte, low ones first ---- */

static size_t length_size(size_t n)
{
    size_t size = 1;

    for (; n >= 128; n >>= 7)
        size++;
    return size;
}

static uint8_t *pack(uint8_t *out, struct kr_bytes text)
{
    size_t n = text.n;

    for (; n >= 128; n >>= 7)
        *out++ = (uint8_t)(n | 128);
    *out++ = (uint8_t)n;
    if (text.n != 0)
        memcpy(out, text.p, text.n);
    return out + text.n;
}

static struct kr_bytes unpack(const uint8_t **in)
{
    struct kr_bytes text;
    size_t n = 0;
    unsigned shift = 0;

    for (; **in >= 128; shift += 7)
        n |= (size_t)(*(*in)++ & 127) << shift;
    n |= (size_t) * (*in)++ << shift;
    text = kr_bytes_of(*in, n);
    *in += n;
    return text;
}

static size_t packed_size(const struct kr_label *labels, size_t n)
{
    size_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += length_size(labels[i].key.n) + labels[i].key.n + length_size(labels[i].value.n) +
                labels[i].value.n;
    return size;
}

/* ---- marks ---- */

static uint64_t mark_of(uint64_t hash)
{
    return UINT64_C(1) << (hash >> 58);
}

uint64_t hub_label_key_mark(struct kr_bytes key)
{
    return mark_of(kr_key_hash(key, KR_LIT("")));
}

/* A value may be empty, too: then the mark of the pair is that of the key. */
uint64_t hub_label_pair_mark(struct kr_bytes key, struct kr_bytes value)
{
    return mark_of(kr_key_hash(key, value));
}

static uint64_t marks_of(const struct kr_label *labels, size_t n)
{
    uint64_t marks = 0;

    for (size_t i = 0; i < n; i++)
        marks |=
            hub_label_key_mark(labels[i].key) | hub_label_pair_mark(labels[i].key, labels[i].value);
    return marks;
}

/* ---- the table ---- */

void hub_label_sets_init(struct hub_label_sets *t, struct hub_ledger *ledger)
{
    *t = (struct hub_label_sets){.ledger = ledger};
    kr_rand_secret(t->key, sizeof t->key);
}

static void free_tables(struct hub_label_sets *t)
{
    hub_ledger_free(t->ledger, t->sets, t->cap * sizeof *t->sets);
    hub_ledger_free(t->ledger, t->marks, t->cap * sizeof *t->marks);
    hub_ledger_free(t->ledger, t->slots, t->slot_count * sizeof *t->slots);
    for (int i = 0; i < 2; i++) {
        hub_ledger_free(t->ledger, t->scratch[i], t->scratch_cap * sizeof *t->scratch[i]);
        t->scratch[i] = NULL;
    }
    t->sets = NULL;
    t->marks = NULL;
    t->slots = NULL;
    t->cap = t->slot_count = t->scratch_cap = 0;
    t->free_first = t->used = 0;
}

void hub_label_sets_deinit(struct hub_label_sets *t)
{
    KR_ASSERT(t->count == 0); /* objects first */
    if (t->ledger != NULL)
        free_tables(t);
}

static size_t home(const struct hub_label_sets *t, uint32_t hash)
{
    return hash & (t->slot_count - 1);
}

static void place(struct hub_label_sets *t, uint32_t number)
{
    size_t i = home(t, t->sets[number]->hash);

    while (t->slots[i] != 0)
        i = (i + 1) & (t->slot_count - 1);
    t->slots[i] = number + 1;
}

static int grow_slots(struct hub_label_sets *t)
{
    size_t old_count = t->slot_count;
    size_t count = old_count != 0 ? old_count * 2 : FIRST_CAP;
    uint32_t *old = t->slots;
    uint32_t *slots = hub_ledger_alloc(t->ledger, count * sizeof *slots);

    if (slots == NULL)
        return KR_ENOMEM;
    memset(slots, 0, count * sizeof *slots);
    t->slots = slots;
    t->slot_count = count;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i] != 0)
            place(t, old[i] - 1);
    }
    hub_ledger_free(t->ledger, old, old_count * sizeof *old);
    return 0;
}

static int grow_numbers(struct hub_label_sets *t)
{
    size_t cap = t->cap != 0 ? t->cap + t->cap / 2 : FIRST_CAP;
    struct hub_label_set **sets;
    uint64_t *marks;

    if (cap > NUMBERS_MAX)
        return KR_EFULL;
    sets = hub_ledger_alloc(t->ledger, cap * sizeof *sets);
    marks = hub_ledger_alloc(t->ledger, cap * sizeof *marks);
    if (sets == NULL || marks == NULL) {
        hub_ledger_free(t->ledger, sets, cap * sizeof *sets);
        hub_ledger_free(t->ledger, marks, cap * sizeof *marks);
        return KR_ENOMEM;
    }
    if (t->cap != 0) {
        memcpy(sets, t->sets, t->cap * sizeof *sets);
        memcpy(marks, t->marks, t->cap * sizeof *marks);
    }
    hub_ledger_free(t->ledger, t->sets, t->cap * sizeof *sets);
    hub_ledger_free(t->ledger, t->marks, t->cap * sizeof *marks);
    t->sets = sets;
    t->marks = marks;
    t->cap = cap;
    return 0;
}

/* Room to unpack so many labels, so that hub_label_sets_get cannot fail. */
static int grow_scratch(struct hub_label_sets *t, size_t n)
{
    size_t cap = n + n / 2 + 8;
    struct kr_label *fresh[2];
    size_t bytes = cap * sizeof *fresh[0];

    fresh[0] = hub_ledger_alloc(t->ledger, bytes);
    fresh[1] = fresh[0] != NULL ? hub_ledger_alloc(t->ledger, bytes) : NULL;
    if (fresh[1] == NULL) {
        hub_ledger_free(t->ledger, fresh[0], bytes);
        return KR_ENOMEM;
    }
    for (int i = 0; i < 2; i++) {
        hub_ledger_free(t->ledger, t->scratch[i], t->scratch_cap * sizeof *t->scratch[i]);
        t->scratch[i] = fresh[i];
    }
    t->scratch_cap = cap;
    return 0;
}

static int make_room(struct hub_label_sets *t, size_t labels)
{
    int rc = 0;

    if (labels > t->scratch_cap || t->scratch_cap == 0)
        rc = grow_scratch(t, labels);
    if (rc == 0 && (size_t)(t->count + 1) * 4 > t->slot_count * 3)
        rc = grow_slots(t);
    if (rc == 0 && t->free_first == 0 && t->used == t->cap)
        rc = grow_numbers(t);
    return rc;
}

static uint32_t take_number(struct hub_label_sets *t)
{
    uint32_t number = t->free_first;

    if (number == 0)
        return t->used++;
    number--;
    t->free_first = (uint32_t)(uintptr_t)t->sets[number];
    return number;
}

static bool set_is(const struct hub_label_set *s, const struct hub_label_set *other)
{
    return s->hash == other->hash && s->text_n == other->text_n &&
           memcmp(s->text, other->text, s->text_n) == 0;
}

/* The slot of an equal set, or the free one where it would go. */
static size_t find(const struct hub_label_sets *t, const struct hub_label_set *like)
{
    size_t i = home(t, like->hash);

    while (t->slots[i] != 0 && !set_is(t->sets[t->slots[i] - 1], like))
        i = (i + 1) & (t->slot_count - 1);
    return i;
}

static struct hub_label_set *build(struct hub_label_sets *t, const struct kr_label *labels,
                                   size_t n)
{
    size_t size = packed_size(labels, n);
    struct hub_label_set *s;
    uint8_t *p;

    if (size > TEXT_MAX)
        return NULL;
    s = hub_ledger_alloc(t->ledger, sizeof *s + size);
    if (s == NULL)
        return NULL;
    p = s->text;
    for (size_t i = 0; i < n; i++) {
        p = pack(p, labels[i].key);
        p = pack(p, labels[i].value);
    }
    s->refs = 1;
    s->labels = (uint32_t)n;
    s->text_n = (uint32_t)size;
    s->hash = (uint32_t)kr_siphash(t->key, kr_bytes_of(s->text, size));
    return s;
}

static void drop(struct hub_label_sets *t, struct hub_label_set *s)
{
    hub_ledger_free(t->ledger, s, sizeof *s + s->text_n);
}

int hub_label_sets_take(struct hub_label_sets *t, const struct kr_label *labels, size_t n,
                        struct hub_cluster_use *payer, uint32_t *number)
{
    struct hub_label_set *s;
    size_t slot;
    int rc = make_room(t, n);

    if (rc != 0)
        return rc;
    s = build(t, labels, n);
    if (s == NULL)
        return KR_ENOMEM;
    slot = find(t, s);
    if (t->slots[slot] != 0) {
        drop(t, s);
        *number = t->slots[slot] - 1;
        hub_label_sets_ref(t, *number);
        return 0;
    }
    *number = take_number(t);
    t->sets[*number] = s;
    t->marks[*number] = marks_of(labels, n);
    t->slots[slot] = *number + 1;
    t->count++;
    s->payer = payer;
    payer->bytes += hub_footprint(sizeof *s + s->text_n);
    return 0;
}

void hub_label_sets_ref(struct hub_label_sets *t, uint32_t number)
{
    t->sets[number]->refs++;
}

/* Closes the gap: what probed past the slot moves up. */
static void vacate(struct hub_label_sets *t, size_t gap)
{
    size_t mask = t->slot_count - 1;

    t->slots[gap] = 0;
    for (size_t i = (gap + 1) & mask; t->slots[i] != 0; i = (i + 1) & mask) {
        size_t want = home(t, t->sets[t->slots[i] - 1]->hash);

        if (((i - want) & mask) < ((i - gap) & mask))
            continue;
        t->slots[gap] = t->slots[i];
        t->slots[i] = 0;
        gap = i;
    }
}

void hub_label_sets_unref(struct hub_label_sets *t, uint32_t number)
{
    struct hub_label_set *s = t->sets[number];

    if (--s->refs != 0)
        return;
    vacate(t, find(t, s));
    s->payer->bytes -= hub_footprint(sizeof *s + s->text_n);
    drop(t, s);
    t->sets[number] = (struct hub_label_set *)(uintptr_t)t->free_first;
    t->free_first = number + 1;
    if (--t->count == 0)
        free_tables(t);
}

const struct kr_label *hub_label_sets_get(struct hub_label_sets *t, uint32_t number, size_t *n)
{
    const struct hub_label_set *s = t->sets[number];
    struct kr_label *out = t->scratch[t->turn++ & 1];
    const uint8_t *p = s->text;

    for (size_t i = 0; i < s->labels; i++) {
        out[i].key = unpack(&p);
        out[i].value = unpack(&p);
    }
    *n = s->labels;
    return out;
}
