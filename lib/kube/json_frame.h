/* SPDX-License-Identifier: Apache-2.0 */
/* json_frame: where a JSON value ends, found without reading what is in it: brackets outside of
 * strings are counted, their kinds are not compared. Text that is malformed inside of the value is
 * not noticed here; nothing outside of the bytes given is ever read.
 * It resumes at every byte. Memory: none. Pure; inner part of the scanners. */
#ifndef KR_KUBE_JSON_FRAME_H
#define KR_KUBE_JSON_FRAME_H

#include "base/bytes.h"

#define KR_FRAME_DEPTH_MAX 2048 /* that of json_scan, which stands on this */

/* Which instructions do the work; all give the same answer. */
enum kr_frame_way {
    KR_FRAME_PLAIN, /* C alone */
    KR_FRAME_SSE2,
    KR_FRAME_AVX2,
    KR_FRAME_WAYS,
};
/* The fastest one that this processor has. */
enum kr_frame_way kr_frame_best(void);
bool kr_frame_has(enum kr_frame_way way);

struct kr_frame { /* embed it; read done and deep */
    uint64_t depth;
    uint64_t in_string; /* all ones or none: the next byte is inside a string */
    uint64_t escaped;   /* 1: the next byte stands behind a backslash */
    enum kr_frame_way way;
    uint8_t first; /* of the value; 0: not seen yet */
    bool done;
    bool deep; /* deeper than KR_FRAME_DEPTH_MAX somewhere */
};

void kr_frame_start(struct kr_frame *f, enum kr_frame_way way);
/* How many bytes of `in` belong to the value; f->done once its last byte is among them (or, of a
 * number or word, before them). The first byte of all is the first of the value. A byte that no
 * value starts with gives done with nothing taken. */
size_t kr_frame_feed(struct kr_frame *f, struct kr_bytes in);

/* Length of the value that `in` starts with; 0: none starts here, or it does not end. */
size_t kr_frame_value(struct kr_bytes in);
/* The same for a string, quotes included. */
size_t kr_frame_string(struct kr_bytes in);

static inline bool kr_is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline const uint8_t *kr_skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p <= ' ' && kr_is_space(*p))
        p++;
    return p;
}

#endif
