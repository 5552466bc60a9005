/* SPDX-License-Identifier: Apache-2.0 */
/* h1_answer: the heads that an HTTP/1.1 server writes: how the body of an answer is framed, and the
 * lines for it. Part of h1_server.
 * Memory:  none of its own; text goes to the caller's buffer, where a failure may leave a part.
 * Errors:  KR_ENOMEM, KR_EINVAL (see h1_codec).
 * Threads: one owner, no locks. */
#ifndef KR_HTTP_H1_ANSWER_H
#define KR_HTTP_H1_ANSWER_H

#include "http/h1_codec.h"
#include "http/h1_conn.h"

struct kr_h1_date { /* embed it, zeroed; the fields belong to h1_answer.c */
    int64_t s;      /* the second that `text` shows */
    char text[40];
};

/* RFC 9110 section 5.6.7. */
const char *kr_h1_date(struct kr_h1_date *d, int64_t now_wall_ms);
/* How the body of this answer is framed (RFC 9112 section 6.3); 101 has what follows it. */
enum kr_h1_framing kr_h1_answer_framing(const struct kr_head *head, bool end, bool head_method,
                                        bool http10);
/* Status line and fields, without Connection and the end of the head. */
int kr_h1_answer_head(struct kr_buf *text, const struct kr_head *head, enum kr_h1_framing framing,
                      const char *date);
/* The whole answer to a request that is refused before it became one. */
int kr_h1_answer_bad(struct kr_buf *text, const struct kr_h1_config *cfg, int status,
                     const char *why, bool no_body, const char *date);

#endif
