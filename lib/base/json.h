/* SPDX-License-Identifier: Apache-2.0 */
/* json: our own small documents (never what passes through): a bounded, strict reader and a writer.
 * Reader: at most 1 MiB and 32 levels, RFC 8259 exactly, valid UTF-8, no key twice in one object,
 *         nothing behind the value. Values are borrowed from the document. Getters take NULL and
 *         answer NULL or false when a value is missing, null or of another type.
 * Writer: appends to a kr_buf, no tree; strings are escaped, bytes that are not UTF-8 become
 * U+FFFD. Errors: KR_EPROTO, KR_ETOOBIG, KR_ENOMEM, with a note. Threads: one owner per document.
 */
#ifndef KR_BASE_JSON_H
#define KR_BASE_JSON_H

#include "base/buf.h"
#include "base/json_check.h" /* the limits */
#include "base/note.h"

struct kr_json; /* a document or a value in it */

int kr_json_parse(struct kr_bytes text, struct kr_json **out, struct kr_note *why);
void kr_json_destroy(struct kr_json *doc); /* the document, never a value in it */

bool kr_json_is_object(const struct kr_json *v);
bool kr_json_is_array(const struct kr_json *v);
const struct kr_json *kr_json_get(const struct kr_json *object, const char *key);
size_t kr_json_len(const struct kr_json *array); /* 0 if it is none */
const struct kr_json *kr_json_at(const struct kr_json *array, size_t i);
bool kr_json_string(const struct kr_json *v, struct kr_bytes *out);
bool kr_json_int(const struct kr_json *v, int64_t *out); /* whole numbers that fit */
bool kr_json_bool(const struct kr_json *v, bool *out);
/* For a string member: its value with NUL behind it, or NULL. */
const char *kr_json_text(const struct kr_json *object, const char *key);

/* A key is NULL for the outermost value and inside arrays. The first failure sticks in rc. */
struct kr_json_out { /* read rc; the rest belongs to json_out.c */
    struct kr_buf *buf;
    int rc;
    unsigned depth;
    uint64_t objects; /* bit per level: it is an object */
    uint64_t filled;  /* bit per level: it has a member already */
};

void kr_json_out_init(struct kr_json_out *w, struct kr_buf *buf);
void kr_json_out_object(struct kr_json_out *w, const char *key); /* until the matching _end */
void kr_json_out_array(struct kr_json_out *w, const char *key);
void kr_json_out_end(struct kr_json_out *w);
void kr_json_out_string(struct kr_json_out *w, const char *key, struct kr_bytes v);
void kr_json_out_text(struct kr_json_out *w, const char *key, const char *v);
void kr_json_out_int(struct kr_json_out *w, const char *key, int64_t v);
void kr_json_out_bool(struct kr_json_out *w, const char *key, bool v);
/* `v` is a whole JSON value already. */
void kr_json_out_raw(struct kr_json_out *w, const char *key, struct kr_bytes v);
/* Appends `in` escaped, without the quotes. */
int kr_json_escape(struct kr_buf *out, struct kr_bytes in);

#endif
