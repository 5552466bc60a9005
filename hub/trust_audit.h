/* SPDX-License-Identifier: Apache-2.0 */
/* trust_audit: what happens to keys, join tokens and clusters, in the hub's audit log: Events like
 * those of requests, about objects of a group kuberelay.io that no API serves.
 *
 *   jointokens/ID              create, delete; update with subresource burn
 *   clusters/NAME              update with accept, external, deny, quarantine; delete
 *   agents/CLUSTER:INSTANCE    create with join; update with renew, switch, lock, clone, deny or
 *                              unlock
 *
 *   keys/SHA256                update with deny, unlock
 *   trustbundles/fleet         update
 *   revocationlists/fleet      update
 *
 * Never in it: a token (but its id), a key (but its hash). The user is kuberelay:operator (who
 * could open the admin socket), kuberelay:join-token:ID, kuberelay:agent:CLUSTER:INSTANCE or
 * kuberelay:hub:REPLICA.
 * All of them do nothing without an audit log. Threads: the worker's. */
#ifndef HUB_TRUST_AUDIT_H
#define HUB_TRUST_AUDIT_H

#include "hub/store.h"
#include "hub/worker.h"

#define HUB_TRUST_USER_MAX 384

struct hub_trust_event { /* any text may be NULL */
    const char *verb;
    const char *resource;
    const char *subresource;
    const char *name;
    const char *user;    /* NULL: the hub itself */
    const char *from;    /* address, with or without a port */
    struct kr_bytes uri; /* what was called */
    const char *cluster;
    const char *instance;
    const char *peers;   /* addresses of others who hold the name at the same time */
    uint64_t generation; /* 0: none */
    int code;            /* HTTP's */
    const char *message;
};

void hub_trust_audit(struct hub_worker *w, const struct hub_trust_event *e);

/* Whether something may be handed out now: in strict mode not while the log takes no lines. */
bool hub_trust_audit_ready(const struct hub_worker *w, struct kr_note *why);
/* About an agent; `e` says the rest: cluster and instance may be empty, if nobody knows. */
void hub_trust_audit_agent(struct hub_worker *w, const char *cluster, const char *instance,
                           struct hub_trust_event *e);
/* The user of an event that an agent caused. */
void hub_trust_audit_name(const struct kr_identity *id, char out[HUB_TRUST_USER_MAX]);
/* A token got one wrong secret too many. */
void hub_trust_audit_burned(struct hub_worker *w, const struct hub_token *t);
/* An operator ordered it, over the admin socket; the fields of `e` that say what. */
void hub_trust_audit_order(struct hub_worker *w, struct hub_trust_event *e);

#endif
