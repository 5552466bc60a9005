/* SPDX-License-Identifier: Apache-2.0 */
/* file_news: tells when the files with certificates and keys that the hub was started with have
 * changed, because whoever renews them (cert-manager, through a mounted Secret) sends no signal.
 * Threads: the worker's. */
#ifndef HUB_FILE_NEWS_H
#define HUB_FILE_NEWS_H

#include "base/sched.h"
#include "certs/file_watch.h"
#include "hub/options.h"

struct hub_file_news { /* embed it; the fields belong to file_news.c */
    struct kr_sched *sched;
    struct kr_timer timer;
    struct kr_file_watch own;    /* certFile, keyFile, caFile, clientCaFile */
    struct kr_file_watch signer; /* signerCertFile, signerKeyFile, bundleFile */
    void (*on_news)(void *owner);
    void *owner;
};

/* `on_news` is called once for each change, when the files are quiet again. Paths are borrowed. */
void hub_file_news_start(struct hub_file_news *n, struct kr_sched *sched,
                         const struct hub_options *o, void (*on_news)(void *owner), void *owner);
void hub_file_news_stop(struct hub_file_news *n); /* zeroed is fine */

#endif
