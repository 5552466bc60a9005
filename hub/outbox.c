/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/outbox.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

struct hub_outbox_part {
    struct hub_shown *shared; /* counted; NULL: of `own` */
    size_t from;
    size_t n;
};

void hub_outbox_init(struct hub_outbox *o, size_t own_max)
{
    *o = (struct hub_outbox){.own.max = own_max};
}

void hub_outbox_deinit(struct hub_outbox *o)
{
    for (size_t i = o->at; i < o->count; i++)
        hub_shown_unref(o->parts[i].shared);
    free(o->parts);
    kr_buf_deinit(&o->own);
    hub_outbox_init(o, o->own.max);
}

static int add(struct hub_outbox *o, struct hub_shown *shared, size_t from, size_t n)
{
    /* Doubled at each power of two, from 4 on. */
    bool full = o->count == 0 || (o->count >= 4 && (o->count & (o->count - 1)) == 0);

    if (o->count == HUB_OUTBOX_PARTS)
        return KR_EFULL;
    if (full) {
        size_t cap = o->count == 0 ? 4 : 2 * o->count;
        struct hub_outbox_part *grown = realloc(o->parts, cap * sizeof *grown);

        if (grown == NULL)
            return KR_ENOMEM;
        o->parts = grown;
    }
    KR_ASSERT(o->parts != NULL);
    o->parts[o->count++] = (struct hub_outbox_part){shared, from, n};
    o->size += n;
    return 0;
}

int hub_outbox_note(struct hub_outbox *o)
{
    size_t n = o->own.n - o->noted;
    struct hub_outbox_part *last = o->count != 0 ? &o->parts[o->count - 1] : NULL;
    int rc = 0;

    if (n == 0)
        return 0;
    if (last != NULL && last->shared == NULL) { /* right behind it */
        last->n += n;
        o->size += n;
    } else {
        rc = add(o, NULL, o->noted, n);
    }
    if (rc == 0)
        o->noted = o->own.n;
    return rc;
}

int hub_outbox_share(struct hub_outbox *o, struct hub_shown *text, size_t skip)
{
    int rc = hub_outbox_note(o);

    KR_ASSERT(skip <= text->n);
    if (rc == 0)
        rc = add(o, text, skip, text->n - skip);
    if (rc == 0)
        text->refs++;
    return rc;
}

void hub_outbox_take(struct hub_outbox *o, uint8_t *out, size_t n)
{
    KR_ASSERT(n <= o->size);
    o->size -= n;
    while (n != 0) {
        struct hub_outbox_part *part = &o->parts[o->at];
        const uint8_t *text = part->shared != NULL ? part->shared->text : o->own.p;
        size_t left = part->n - o->taken;
        size_t now = n < left ? n : left;

        memcpy(out, text + part->from + o->taken, now);
        out += now;
        n -= now;
        o->taken += now;
        if (now == left) {
            hub_shown_unref(part->shared);
            o->at++;
            o->taken = 0;
        }
    }
    if (o->size == 0)
        hub_outbox_deinit(o);
}
