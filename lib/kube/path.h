/* SPDX-License-Identifier: Apache-2.0 */
/* path: the path of a request target, checked before anything is decided on it.
 * What is checked is what is forwarded: nothing is rewritten. A segment is decoded once, and may
 * then hold no '/', '\', '%', control byte and not be "." or "..", so that no later decoding can
 * shift segments (kube-apiserver splits the decoded path, requestinfo.go splitPath).
 * Memory: pure; decoded text comes from the caller's arena only where there was an escape.
 * Errors: KR_EINVAL with the reason in `why`, KR_ENOMEM. */
#ifndef KR_KUBE_PATH_H
#define KR_KUBE_PATH_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/note.h"

/* The bytes that any request target may have: starts with '/', 0x21-0x7E, no '#', no '\'. Splits it
 * at the first '?'; `query` is without it. */
int kr_path_split(struct kr_bytes target, struct kr_bytes *path, struct kr_bytes *query,
                  struct kr_note *why);

/* One segment (between slashes) that is interpreted, strictly. */
int kr_path_segment(struct kr_bytes raw, struct kr_arena *arena, struct kr_bytes *out,
                    struct kr_note *why);

/* What follows a /proxy subresource: only escapes that are none and control bytes, also encoded,
 * are refused. */
int kr_path_opaque(struct kr_bytes raw, struct kr_note *why);

/* Percent-decoding of `in`, with `plus` also '+' to space. Borrows `in` if there is nothing to
 * decode. KR_EINVAL for an invalid escape, KR_ENOMEM. */
int kr_percent_decode(struct kr_bytes in, bool plus, struct kr_arena *arena, struct kr_bytes *out);

#endif
