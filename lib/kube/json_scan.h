/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan: reads JSON text where it lies. Values are spans of the text, exactly as they stand;
 * nothing is decoded that nobody asks for, so numbers, escapes, order and duplicate keys survive.
 * First kr_scan_check on text that comes from outside; the steps then trust it. A text that was not
 * checked never makes them read outside of it, but what they find is then without meaning.
 * Rules:  RFC 8259 exactly; UTF-8 without surrogates; no recursion.
 * Limits: depth (the caller's, at most KR_SCAN_DEPTH_MAX).
 * Memory: borrows the text. Errors: KR_EPROTO, KR_ETOOBIG (too deep), with the offset. Pure. */
#ifndef KR_KUBE_JSON_SCAN_H
#define KR_KUBE_JSON_SCAN_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/note.h"

#define KR_SCAN_DEPTH_MAX 2048

/* Whether `text` is one JSON value with nothing but white space around it. */
int kr_scan_check(struct kr_bytes text, unsigned depth_max, struct kr_note *why);

struct kr_scan { /* the fields belong to json_scan.c */
    struct kr_bytes rest;
};

/* Steps through the members of an object, or the elements of an array, whose text is `value`
 * (white space around it is fine). False: it is none. */
bool kr_scan_object(struct kr_bytes value, struct kr_scan *it);
bool kr_scan_array(struct kr_bytes value, struct kr_scan *it);
/* The next one; false at the end. `key` is what stands between the quotes; `value` has no white
 * space around it. */
bool kr_scan_member(struct kr_scan *it, struct kr_bytes *key, struct kr_bytes *value);
bool kr_scan_element(struct kr_scan *it, struct kr_bytes *value);

/* Whether the key (as it stands, perhaps with escapes) means `name` (ASCII). */
bool kr_scan_key_is(struct kr_bytes key, const char *name);
/* Member of an object; the last one counts if there are several, as for encoding/json. False: no
 * object, or no such member. */
bool kr_scan_find(struct kr_bytes object, const char *name, struct kr_bytes *value);
static inline bool kr_scan_is_string(struct kr_bytes value)
{
    return value.n >= 2 && value.p != NULL && value.p[0] == '"';
}
/* A string that has no escapes: what stands between its quotes; false for all others. */
bool kr_scan_plain(struct kr_bytes value, struct kr_bytes *out);
/* Appends the decoded string (may hold NUL). KR_EPROTO if it is none, or those of kr_buf. */
int kr_scan_string(struct kr_bytes value, struct kr_buf *out);
/* Where in a string (its text, quotes included) the decoded byte of that number begins; its end is
 * the closing quote. False: it is no string, or is shorter, or that byte is in the middle of an
 * escape. */
bool kr_scan_string_place(struct kr_bytes value, size_t decoded, size_t *at);

#endif
