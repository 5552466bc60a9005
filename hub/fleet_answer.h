/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_answer: short answers of the fleet view: documents, and Status errors in the words of
 * kube-apiserver. Each answers the exchange, counts and logs it if it is an error, and ends the
 * request. */
#ifndef HUB_FLEET_ANSWER_H
#define HUB_FLEET_ANSWER_H

#include "hub/request.h"
#include "kube/status.h"

struct hub_completeness;

/* `ex` was released from the request. The details name the resource that was asked for. */
void hub_fleet_status(struct hub_request *r, struct kr_exchange *ex, const struct kr_status *st);
/* The same for a code, a reason and a message. */
void hub_fleet_refuse(struct hub_request *r, struct kr_exchange *ex, int code, const char *reason,
                      const char *message);

struct hub_document {
    int code; /* 0: 200 */
    const char *type;
    struct kr_bytes body;
    bool cached;                            /* with an ETag: 304 for whom that has */
    const struct hub_completeness *missing; /* who had no say in it; NULL: that is no matter */
};
void hub_fleet_document(struct hub_request *r, struct kr_exchange *ex,
                        const struct hub_document *d);

#endif
