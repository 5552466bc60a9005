/* SPDX-License-Identifier: Apache-2.0 */
/* answer: the hub's own answers: one case of kube/status.h turned into head and body. */
#ifndef HUB_ANSWER_H
#define HUB_ANSWER_H

#include "hub/worker.h"
#include "kube/status.h"

struct hub_answer {
    int code;    /* of HTTP */
    size_t size; /* of the body */
};

/* Answers `ex` and lets it go; `audit_id` may be empty. */
struct hub_answer hub_answer(struct hub_worker *w, struct kr_exchange *ex, enum kr_case which,
                             const struct kr_case_facts *facts, struct kr_bytes audit_id);
/* A short answer that is no error: content type and body. */
void hub_answer_text(struct kr_exchange *ex, int code, const char *type, struct kr_bytes body);
/* For requests that HTTP/1.1 could not read. */
void hub_answer_bad_request(struct hub_worker *w, int status, const char *why, struct kr_head *head,
                            struct kr_buf *body);

#endif
