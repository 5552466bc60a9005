/* SPDX-License-Identifier: Apache-2.0 */
/* head: the head of one HTTP message (or its trailers), the same for HTTP/1.1 and HTTP/2.
 * Field names are lower-case (RFC 9113 section 8.2.1); order and repetition are kept. Pseudo-header
 * fields are members of their own, never in `fields`.
 * Memory: text that kr_head_add copies lives in the head's arena; kr_head_add_ref borrows.
 * Limits: `max` bytes in all, counted as RFC 9113 section 6.5.2 does (name + value + 32). */
#ifndef KR_HTTP_HEAD_H
#define KR_HTTP_HEAD_H

#include "base/arena.h"
#include "base/bytes.h"

struct kr_field {
    struct kr_bytes name;
    struct kr_bytes value;
    bool no_index; /* keep it out of HPACK's dynamic table: it differs in every message */
};

struct kr_head { /* read the fields; change them only through these functions or head.c's owner */
    struct kr_bytes method;    /* request */
    struct kr_bytes scheme;    /* request */
    struct kr_bytes authority; /* request; Host of HTTP/1.1 */
    struct kr_bytes path;      /* request: path and query as they came */
    struct kr_bytes protocol;  /* to upgrade to: extended CONNECT (RFC 8441), or
                                  HTTP/1.1's Upgrade in an opened request; else empty */
    int status;                /* response; 0 in a request */
    struct kr_field *fields;
    size_t n;
    size_t cap;
    size_t size; /* bytes so far, by the rule above */
    size_t max;
    struct kr_arena arena;
};

/* The largest field and head that are accepted anywhere; nghttp2 cannot send larger fields. */
#define KR_FIELD_MAX (60u * 1024)
#define KR_HEAD_MAX (256u * 1024)

void kr_head_init(struct kr_head *h, size_t max);
void kr_head_deinit(struct kr_head *h); /* a zeroed head is fine; it may be used again afterwards */
/* KR_ENOMEM or KR_ETOOBIG. Name and value are copied; the name is taken as it is. */
int kr_head_add(struct kr_head *h, struct kr_bytes name, struct kr_bytes value);
/* The same without a copy: name and value must outlive the head. */
int kr_head_add_ref(struct kr_head *h, struct kr_bytes name, struct kr_bytes value);
int kr_head_add_str(struct kr_head *h, const char *name, const char *value); /* copies */
int kr_head_add_u64(struct kr_head *h, const char *name, uint64_t value);
/* The first field of that (lower-case) name; NULL if there is none. */
const struct kr_field *kr_head_find(const struct kr_head *h, struct kr_bytes name);
struct kr_bytes kr_head_get(const struct kr_head *h, struct kr_bytes name); /* .n 0: none */
/* Whether `token` is in the comma separated values of all fields of that name (case folded). */
bool kr_head_has_token(const struct kr_head *h, struct kr_bytes name, struct kr_bytes token);
/* content-length of the head, or -1 if there is none or it is no number. */
int64_t kr_head_content_length(const struct kr_head *h);

#endif
