/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/file_news.h"

#include "base/assert.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static void on_timer(struct kr_timer *t)
{
    struct hub_file_news *n = KR_CONTAINER_OF(t, struct hub_file_news, timer);
    bool own = kr_file_watch_look(&n->own);
    bool signer = kr_file_watch_look(&n->signer);

    kr_timer_start(n->sched, &n->timer, KR_FILE_WATCH_MS);
    if (own || signer)
        n->on_news(n->owner);
}

void hub_file_news_start(struct hub_file_news *n, struct kr_sched *sched,
                         const struct hub_options *o, void (*on_news)(void *owner), void *owner)
{
    const char *own[] = {o->cert_file, o->key_file, o->ca_file, o->client_ca_file};
    const char *signer[] = {o->signer_cert_file, o->signer_key_file, o->bundle_file};

    *n = (struct hub_file_news){.sched = sched, .on_news = on_news, .owner = owner};
    kr_file_watch_init(&n->own, own, COUNT(own));
    kr_file_watch_init(&n->signer, signer, COUNT(signer));
    kr_timer_init(&n->timer, on_timer);
    kr_timer_start(sched, &n->timer, KR_FILE_WATCH_MS);
}

void hub_file_news_stop(struct hub_file_news *n)
{
    if (n->sched != NULL)
        kr_timer_stop(n->sched, &n->timer);
    n->sched = NULL;
}
