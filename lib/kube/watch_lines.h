/* SPDX-License-Identifier: Apache-2.0 */
/* watch_lines: where the events end in the body of a watch, so that a stream which must end early
 * can end after a whole event (an informer then goes on where it was; a cut one lists anew).
 * Framing: JSON is one event per line; protobuf has a 4-byte big-endian length before each
 *          (apimachinery util/framer); anything else, or a compressed body, is not tracked.
 * Memory:  O(1), holds no body bytes. Units: bytes of the body. Pure; cannot fail. */
#ifndef KR_KUBE_WATCH_LINES_H
#define KR_KUBE_WATCH_LINES_H

#include "base/bytes.h"

enum kr_watch_framing {
    KR_WATCH_UNTRACKED,
    KR_WATCH_JSON,
    KR_WATCH_PROTOBUF,
};

struct kr_watch_lines { /* embed it; the fields belong to watch_lines.c */
    enum kr_watch_framing framing;
    uint64_t total; /* bytes fed */
    uint64_t whole; /* of them, up to the end of the last whole event */
    uint32_t left;  /* protobuf: bytes of the event that are still to come */
    uint32_t length;
    uint8_t have; /* protobuf: bytes of the length so far */
};

/* From the response's content-type and content-encoding (empty if there is none). */
enum kr_watch_framing kr_watch_framing_of(struct kr_bytes content_type,
                                          struct kr_bytes content_encoding);

void kr_watch_lines_init(struct kr_watch_lines *w, enum kr_watch_framing framing);
/* Returns how many bytes of `in` belong to events that are whole once `in` was fed: 0 if no event
 * ends in it. What lies behind that is the start of an event. Untracked: all of it. */
size_t kr_watch_lines_feed(struct kr_watch_lines *w, struct kr_bytes in);
/* Offset of the end of the last whole event; everything if untracked. */
uint64_t kr_watch_lines_whole(const struct kr_watch_lines *w);
/* Whether the body so far ends with a whole event (or is empty). */
bool kr_watch_lines_at_boundary(const struct kr_watch_lines *w);

#endif
