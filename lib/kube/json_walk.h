/* SPDX-License-Identifier: Apache-2.0 */
/* json_walk: goes through a JSON text from its start and into those values that are of interest,
 * whose ends need not be known before, so that no byte is looked at twice. What it goes into must
 * have its commas, colons and brackets where they belong; what it passes over is framed only
 * (json_frame.h). Nothing outside of the text is read.
 * Memory: borrows the text. Errors stick: see kr_walk_end. Pure; an inner part of the scanners. */
#ifndef KR_KUBE_JSON_WALK_H
#define KR_KUBE_JSON_WALK_H

#include "kube/json_frame.h"

struct kr_walk { /* embed it; read `at`, the rest belongs to json_walk.c */
    const uint8_t *at;
    const uint8_t *end;
    enum kr_frame_way way;
    bool fresh; /* right behind an opening bracket */
    int failed;
};

void kr_walk_start(struct kr_walk *w, struct kr_bytes text);
/* Into the value that comes next, if it starts with `bracket`; false: it does not, and comes next
 * as before. */
bool kr_walk_enter(struct kr_walk *w, uint8_t bracket);
/* Up to the value of the next member of the object, or up to the next element of the array, that
 * was entered last. False: there is none, and the object or array was left; or it failed. `key` is
 * what stands between the quotes. */
bool kr_walk_member(struct kr_walk *w, struct kr_bytes *key);
bool kr_walk_element(struct kr_walk *w);
/* Over the value that comes next; nothing if it failed. */
struct kr_bytes kr_walk_value(struct kr_walk *w);
/* 0: nothing failed, and nothing but white space is left. KR_EPROTO, KR_ETOOBIG (a value deeper
 * than KR_FRAME_DEPTH_MAX was passed over). */
int kr_walk_end(struct kr_walk *w);

#endif
