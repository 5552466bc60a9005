/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_answer: short answers of the fleet view: documents, and Status errors in the words of
 * kube-apiserver. Each answers the exchange, counts and logs it if it is an error, and ends the
 * request. */
#ifndef HUB_FLEET_ANSWER_H
#define HUB_FLEET_ANSWER_H

#include "hub/request.h"
#include "kube/status.h"

/* `ex` was released from the request. The details name the resource that was asked for. */
void hub_fleet_status(struct hub_request *r, struct kr_exchange *ex, const struct kr_status *st);
/* The same for a code, a reason and a message. */
void hub_fleet_refuse(struct hub_request *r, struct kr_exchange *ex, int code, const char *reason,
                      const char *message);
/* 200. With an ETag if `cached`: 304 for whom that has. */
void hub_fleet_document(struct hub_request *r, struct kr_exchange *ex, const char *type,
                        struct kr_bytes body, bool cached);

#endif
