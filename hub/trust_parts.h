/* SPDX-License-Identifier: Apache-2.0 */
/* trust_parts: what a hub has to do with certificates beside handshakes: who is registered,
 * enrolling, revocation, and files that others renew. Threads: the worker's. */
#ifndef HUB_TRUST_PARTS_H
#define HUB_TRUST_PARTS_H

#include "hub/enroll.h"
#include "hub/file_news.h"
#include "hub/front.h"
#include "hub/gate.h"
#include "hub/revocation.h"
#include "hub/signing.h"

struct hub_trust_parts { /* embed it; the fields belong to trust_parts.c */
    struct hub_worker *w;
    struct hub_bundle bundle;
    struct hub_signer *signer; /* NULL: agents cannot enroll here */
    struct hub_enroll *enroll; /* the same */
    struct hub_revocation revocation;
    struct hub_file_news file_news;
    struct hub_front *front;
    struct hub_gate *gate;
};

/* Sets w->registry, w->bundle and w->issuer. */
int hub_trust_parts_create(struct hub_trust_parts *p, struct hub_worker *w, struct kr_note *why);
/* The ports are there: watches files, and ends what is revoked. */
int hub_trust_parts_start(struct hub_trust_parts *p, struct hub_front *front, struct hub_gate *gate,
                          struct kr_note *why);
/* SIGHUP: reads certificates, keys, roots and lists anew. */
void hub_trust_parts_reload(struct hub_trust_parts *p);
void hub_trust_parts_destroy(struct hub_trust_parts *p); /* after the ports; half-built is fine */

#endif
