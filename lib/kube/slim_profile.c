/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/slim_profile.h"

#include <stdlib.h>

#include "base/err.h"

static const struct {
    unsigned level;
    const char *name;
    enum kr_name_rule rule;
} rules[] = {
    {0, "apiVersion", KR_NAME_LEFT_OUT},
    {0, "kind", KR_NAME_LEFT_OUT},
    {0, "metadata", KR_NAME_METADATA},
    {KR_LEVEL_OF_METADATA, "name", KR_NAME_NAME},
    {KR_LEVEL_OF_METADATA, "namespace", KR_NAME_NAMESPACE},
    {KR_LEVEL_OF_METADATA, "uid", KR_NAME_UID},
    {KR_LEVEL_OF_METADATA, "resourceVersion", KR_NAME_VERSION},
    {KR_LEVEL_OF_METADATA, "managedFields", KR_NAME_LEFT_OUT},
    {KR_LEVEL_OF_METADATA, "annotations", KR_NAME_ANNOTATIONS},
};

#define RULES (sizeof rules / sizeof rules[0])

static uint64_t load8(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return v;
}

static uint64_t load4(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v;
}

/* The first and last bytes of a name in two words. With its length they say all of a name of up to
 * sixteen bytes. */
static inline void pack(struct kr_bytes name, uint64_t *head, uint64_t *tail)
{
    const size_t n = name.n;

    *tail = 0;
    if (n >= 8) {
        *head = load8(name.p);
        *tail = load8(name.p + n - 8);
    } else if (n >= 4) {
        *head = load4(name.p);
        *tail = load4(name.p + n - 4);
    } else {
        *head = n == 0 ? 0 : (uint64_t)(name.p[0] | name.p[n / 2] << 8 | name.p[n - 1] << 16);
    }
}

static inline size_t slot_of(uint64_t head, uint64_t tail, size_t n, unsigned bits)
{
    const uint64_t mix = (head ^ tail * 0xC2B2AE3D27D4EB4F) + n;

    return (size_t)(mix * 0x9E3779B97F4A7C15 >> (64 - bits));
}

const struct kr_profile_name *kr_profile_find(const struct kr_profile_level *level,
                                              struct kr_bytes name)
{
    const size_t mask = ((size_t)1 << level->bits) - 1;
    uint64_t head;
    uint64_t tail;

    pack(name, &head, &tail);
    for (size_t i = slot_of(head, tail, name.n, level->bits);; i = (i + 1) & mask) {
        const struct kr_profile_name *slot = &level->slots[i];

        if (!slot->used)
            return NULL;
        if (slot->head == head && slot->tail == tail && slot->name.n == name.n &&
            (name.n <= 16 || memcmp(slot->name.p, name.p, name.n) == 0))
            return slot;
    }
}

/* The name at a level, put there if need be: there is room. */
static struct kr_profile_name *put_name(struct kr_profile_level *level, struct kr_bytes name)
{
    struct kr_profile_name *found = (struct kr_profile_name *)kr_profile_find(level, name);
    const size_t mask = ((size_t)1 << level->bits) - 1;
    struct kr_profile_name new = {.name = name, .used = true};
    size_t i;

    if (found != NULL)
        return found;
    pack(name, &new.head, &new.tail);
    i = slot_of(new.head, new.tail, name.n, level->bits);
    while (level->slots[i].used)
        i = (i + 1) & mask;
    level->slots[i] = new;
    return &level->slots[i];
}

static bool make_slots(struct kr_profile_level *level, size_t names)
{
    level->bits = 1;
    while ((size_t)1 << level->bits < 2 * names)
        level->bits++;
    level->slots = calloc((size_t)1 << level->bits, sizeof *level->slots);
    return level->slots != NULL;
}

static void put_step(struct kr_profile_level *level, const struct kr_path *path, size_t at,
                     uint64_t bit)
{
    if (path->count <= at)
        return;
    if (path->steps[at].any)
        level->any |= bit;
    else
        put_name(level, path->steps[at].name)->paths |= bit;
    if (path->count == at + 1)
        level->ends |= bit;
}

static int build_levels(struct kr_profile *p, const struct kr_path *paths, size_t count)
{
    for (size_t at = 0; at <= KR_PATH_STEPS_MAX; at++) {
        /* Under metadata the paths are at their second step. */
        const size_t step = at == KR_LEVEL_OF_METADATA ? 1 : at;

        if (!make_slots(&p->levels[at], count + RULES))
            return KR_ENOMEM;
        for (size_t i = 0; i < count; i++)
            put_step(&p->levels[at], &paths[i], step, (uint64_t)1 << i);
    }
    for (size_t i = 0; i < RULES; i++)
        put_name(&p->levels[rules[i].level], kr_bytes_str(rules[i].name))->rule = rules[i].rule;
    return 0;
}

static int read_paths(struct kr_profile *p, const struct kr_profile_paths *in,
                      struct kr_path *paths, struct kr_note *why)
{
    size_t count = 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < in->keep_count; i++, count++) {
        rc = kr_path_read(in->keep[i], true, &p->names, &paths[count], why);
        p->keep |= (uint64_t)1 << count;
        p->all |= (uint64_t)1 << count;
    }
    for (size_t i = 0; rc == 0 && i < in->drop_count; i++, count++) {
        rc = kr_path_read(in->drop[i], false, &p->names, &paths[count], why);
        p->all |= (uint64_t)1 << count;
    }
    p->keeps = in->keep_count != 0 || in->metadata_only;
    if (rc != 0)
        return rc;
    rc = build_levels(p, paths, count);
    return rc == 0 ? 0 : kr_note_set(why, rc, "out of memory");
}

static size_t size_of(const struct kr_bytes *paths, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += paths[i].n;
    return n;
}

struct kr_profile *kr_profile_create(const struct kr_profile_paths *in, struct kr_note *why)
{
    struct kr_profile *p = NULL;
    struct kr_path *paths = NULL;
    size_t size;
    int rc;

    if (in->keep_count > KR_PATHS_MAX || in->drop_count > KR_PATHS_MAX - in->keep_count) {
        kr_note_text(why, "more than %d paths", KR_PATHS_MAX);
        return NULL;
    }
    p = calloc(1, sizeof *p);
    paths = calloc(KR_PATHS_MAX, sizeof *paths);
    size = 1 + size_of(in->keep, in->keep_count) + size_of(in->drop, in->drop_count);
    if (p != NULL)
        kr_buf_init(&p->names, size);
    if (p == NULL || paths == NULL || kr_buf_reserve(&p->names, size) != 0)
        rc = kr_note_set(why, KR_ENOMEM, "out of memory");
    else
        rc = read_paths(p, in, paths, why);
    free(paths);
    if (rc == 0)
        return p;
    kr_profile_destroy(p);
    return NULL;
}

void kr_profile_destroy(struct kr_profile *p)
{
    if (p == NULL)
        return;
    for (size_t at = 0; at <= KR_PATH_STEPS_MAX; at++)
        free(p->levels[at].slots);
    kr_buf_deinit(&p->names);
    free(p);
}
