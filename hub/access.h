/* SPDX-License-Identifier: Apache-2.0 */
/* access: what the hub's own rules say to a request, and whether they still say it while a stream
 * runs: looked at again when a configuration was read anew, every minute, and when a credential
 * expires. A stream that lost its right ends: a watch cleanly, behind a whole event (its client
 * asks again, and is refused), anything else is cut. Threads: the worker's. */
#ifndef HUB_ACCESS_H
#define HUB_ACCESS_H

#include "hub/request.h"

struct hub_access;

/* For what else is to be judged again: the fleet view. */
struct hub_access_owner {
    void (*on_look)(void *owner);
    void *owner;
};

int hub_access_create(struct hub_worker *w, const struct hub_access_owner *owner,
                      struct hub_access **out, struct kr_note *why);
void hub_access_destroy(struct hub_access *a);

enum hub_verdict {
    HUB_ALLOWED,
    HUB_FORBIDDEN,  /* some other request would be allowed on that cluster */
    HUB_UNKNOWN_TO, /* nothing would: the cluster might as well not exist */
};
#define HUB_NOT_SHOWN "the fleet view shows it by no reader and no project"
/* Also writes r->rule. */
enum hub_verdict hub_access_decide(struct hub_request *r);
/* The same for a request that is only thought of. For cluster "*" the question is what the fleet
 * view shows. `rule` has HUB_RULE_MAX bytes. */
enum hub_verdict hub_access_ask(const struct hub_worker *w, const struct hub_question *q,
                                char *rule);
/* The answer to a long-running request begins: what it is judged by is kept. */
void hub_access_keep(struct hub_request *r);
void hub_access_forget(struct hub_request *r);
/* A stream of the fleet view begins: it is judged again when that credential expires. */
void hub_access_expect(struct hub_worker *w, const struct hub_caller *caller);
/* All streams that run are judged again, in this turn. */
void hub_access_look_again(struct hub_worker *w);

#endif
