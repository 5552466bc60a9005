/* SPDX-License-Identifier: Apache-2.0 */
/* json_cursor: goes from mark to mark through a JSON text, each block of 64 bytes looked at once.
 * Marks are the bytes { } [ ] , : outside of strings; what is between two of them is a key, a
 * string, a number or a word with white space around it. Nothing is checked, nothing outside of the
 * text is read. Memory: borrows the text. Pure; an inner part of the scanners. */
#ifndef KR_KUBE_JSON_CURSOR_H
#define KR_KUBE_JSON_CURSOR_H

#include "kube/json_frame.h"

struct kr_cursor {         /* embed it; the fields belong to json_cursor.[ch] */
    uint64_t marks;        /* of the block that are still ahead */
    const uint8_t *block;  /* where it starts */
    const uint8_t *behind; /* where the next one starts */
    const uint8_t *end;    /* of the text */
    uint64_t opens;        /* of the block; those ahead are opens & marks */
    uint64_t closes;
    uint64_t backslashes;
    uint64_t in_string; /* what the block leaves to the next one */
    uint64_t escaped;
    enum kr_frame_way way;
};

/* The text is not empty. */
void kr_cursor_start(struct kr_cursor *c, struct kr_bytes text, enum kr_frame_way way);

/* Inner: makes the next block the present one; false: there is none. */
bool kr_cursor_load(struct kr_cursor *c);
/* Behind an opening bracket: goes to the one that closes it. NULL: none does. */
const uint8_t *kr_cursor_close(struct kr_cursor *c);

/* Whether the text from `from` to the last mark can hold a backslash. */
static inline bool kr_cursor_escapes(const struct kr_cursor *c, const uint8_t *from)
{
    return from < c->block || c->backslashes != 0;
}

/* The next mark; NULL: there is none. */
static inline const uint8_t *kr_cursor_next(struct kr_cursor *c)
{
    const uint8_t *at;

    while (c->marks == 0) {
        if (!kr_cursor_load(c))
            return NULL;
    }
    at = c->block + __builtin_ctzll(c->marks);
    c->marks &= c->marks - 1;
    return at;
}

#endif
