/* SPDX-License-Identifier: Apache-2.0 */
/* proto_read: fields of a protobuf message (wire/proto_scan.h) as values that were checked, and
 * lists of known length. What a peer sent is never trusted; unknown fields are for the caller to
 * skip.
 * Memory: text and bytes borrow the message, lists live in the caller's arena.
 * Errors: KR_EPROTO (not what it should be), KR_ETOOBIG, KR_ENOMEM, with a note that names `name`.
 * Pure. */
#ifndef KR_WIRE_PROTO_READ_H
#define KR_WIRE_PROTO_READ_H

#include "base/arena.h"
#include "base/note.h"
#include "wire/proto_scan.h"

/* UTF-8 without NUL of at most `max` bytes. */
int kr_proto_text(const struct kr_proto_field *f, size_t max, struct kr_bytes *out,
                  const char *name, struct kr_note *why);
/* The same without any control byte and not empty: what ends up in paths, keys and logs. */
int kr_proto_word(const struct kr_proto_field *f, size_t max, struct kr_bytes *out,
                  const char *name, struct kr_note *why);
int kr_proto_raw(const struct kr_proto_field *f, struct kr_bytes *out, const char *name,
                 struct kr_note *why);
/* UTF-8 without any control byte; empty is fine. */
bool kr_proto_is_word(struct kr_bytes b);
/* As proto3 reads them: what is beyond 32 bits is cut off; any number but 0 is true. */
int kr_proto_u32(const struct kr_proto_field *f, uint32_t *out, const char *name,
                 struct kr_note *why);
int kr_proto_u64(const struct kr_proto_field *f, uint64_t *out, const char *name,
                 struct kr_note *why);
int kr_proto_bool(const struct kr_proto_field *f, bool *out, const char *name, struct kr_note *why);
int kr_proto_fixed64(const struct kr_proto_field *f, uint64_t *out, const char *name,
                     struct kr_note *why);

/* How many elements the field `number` has in `in`; KR_ETOOBIG beyond `max`. Walks the whole
 * message, so that a second walk cannot fail. */
int kr_proto_count(struct kr_bytes in, uint32_t number, size_t max, size_t *n, const char *name,
                   struct kr_note *why);
/* The same for a repeated number, packed or not. */
int kr_proto_count_fixed64(struct kr_bytes in, uint32_t number, size_t max, size_t *n,
                           const char *name, struct kr_note *why);
int kr_proto_count_varints(struct kr_bytes in, uint32_t number, size_t max, size_t *n,
                           const char *name, struct kr_note *why);
/* Appends the numbers of one field to *to and moves it on; they were counted. */
int kr_proto_take_fixed64(const struct kr_proto_field *f, uint64_t **to, const char *name,
                          struct kr_note *why);
int kr_proto_take_varints(const struct kr_proto_field *f, uint32_t **to, const char *name,
                          struct kr_note *why);

/* Never NULL but for want of memory, also for 0 elements. */
void *kr_proto_list(struct kr_arena *arena, size_t n, size_t size);

#endif
