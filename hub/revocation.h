/* SPDX-License-Identifier: Apache-2.0 */
/* revocation: the crlFile of a hub at work: read anew when it changes, its end watched. New
 * handshakes are TLS's to refuse; connections that are there are ended by whoever gets on_news.
 * An expired list refuses everybody of its issuer: that is an alarm.
 * Threads: the worker's. */
#ifndef HUB_REVOCATION_H
#define HUB_REVOCATION_H

#include "certs/crl.h"
#include "certs/file_watch.h"
#include "hub/worker.h"

struct hub_revocation { /* embed it; the fields belong to revocation.c */
    struct hub_worker *w;
    struct kr_file_watch watch;
    struct kr_timer timer;
    struct kr_crl *crl;
    bool told_expired;
    void (*on_news)(void *owner, const struct kr_crl *crl);
    void *owner;
};

/* Does nothing without a crlFile. */
int hub_revocation_start(struct hub_revocation *r, struct hub_worker *w,
                         void (*on_news)(void *owner, const struct kr_crl *crl), void *owner,
                         struct kr_note *why);
void hub_revocation_stop(struct hub_revocation *r); /* zeroed is fine */
/* Reads it now (SIGHUP); the TLS contexts are the caller's. */
void hub_revocation_reload(struct hub_revocation *r);

#endif
