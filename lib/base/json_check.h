/* SPDX-License-Identifier: Apache-2.0 */
/* json_check: whether a text is one JSON value by RFC 8259 and nothing else.
 * Pure; no memory; no recursion. Limits: KR_JSON_MAX bytes, KR_JSON_DEPTH levels. */
#ifndef KR_BASE_JSON_CHECK_H
#define KR_BASE_JSON_CHECK_H

#include "base/bytes.h"
#include "base/note.h"

#define KR_JSON_MAX (1024 * 1024)
#define KR_JSON_DEPTH 32

/* 0 and the number of members of all objects; else KR_EPROTO or KR_ETOOBIG with a note that says
 * where. */
int kr_json_check(struct kr_bytes text, size_t *members, struct kr_note *why);

#endif
