/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/revocation.h"

#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"
#include "hub/counters.h"

#define FILE_MAX (1u << 20) /* as TLS reads it */

static int load(struct hub_revocation *r, struct kr_note *why)
{
    struct kr_buf pem = {0};
    struct kr_crl *crl = NULL;
    int rc = kr_file_read(&pem, r->w->options->crl_file, FILE_MAX, why);

    if (rc == 0)
        rc = kr_crl_load(&crl, kr_buf_bytes(&pem), why);
    kr_buf_deinit(&pem);
    if (rc != 0)
        return kr_note_wrap(why, rc, "crlFile");
    kr_crl_destroy(r->crl);
    r->crl = crl;
    r->told_expired = false;
    return 0;
}

static void check_due(struct hub_revocation *r)
{
    if (r->told_expired || r->w->sched->now_wall_ms < kr_crl_due_wall_ms(r->crl))
        return;
    r->told_expired = true;
    hub_worker_count(r->w, HUB_ALARMS, "crl-expired");
    KR_LOG_AT(r->w->log, KR_LOG_ERROR, "alarm", KR_S("kind", "crl-expired"),
              KR_S("file", r->w->options->crl_file),
              KR_S("reason", "new connections of its issuer are refused until there is a new one"));
}

void hub_revocation_reload(struct hub_revocation *r)
{
    struct kr_note why = {""};

    if (r->crl == NULL)
        return;
    if (load(r, &why) != 0) {
        KR_LOG_AT(r->w->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
        return;
    }
    KR_LOG_AT(r->w->log, KR_LOG_INFO, "revocations", KR_S("file", r->w->options->crl_file),
              KR_I("due-ms", kr_crl_due_wall_ms(r->crl)));
    r->on_news(r->owner, r->crl);
    check_due(r);
}

static void on_timer(struct kr_timer *t)
{
    struct hub_revocation *r = KR_CONTAINER_OF(t, struct hub_revocation, timer);
    struct kr_note why = {""};

    kr_timer_start(r->w->sched, &r->timer, KR_FILE_WATCH_MS);
    check_due(r);
    if (!kr_file_watch_look(&r->watch))
        return;
    if (hub_worker_load_tls(r->w, &why) != 0)
        KR_LOG_AT(r->w->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
    hub_revocation_reload(r);
}

int hub_revocation_start(struct hub_revocation *r, struct hub_worker *w,
                         void (*on_news)(void *owner, const struct kr_crl *crl), void *owner,
                         struct kr_note *why)
{
    int rc;

    if (w->options->crl_file == NULL)
        return 0;
    *r = (struct hub_revocation){.w = w, .on_news = on_news, .owner = owner};
    rc = load(r, why);
    if (rc != 0)
        return rc;
    kr_file_watch_init(&r->watch, &w->options->crl_file, 1);
    kr_timer_init(&r->timer, on_timer);
    kr_timer_start(w->sched, &r->timer, KR_FILE_WATCH_MS);
    check_due(r);
    return 0;
}

void hub_revocation_stop(struct hub_revocation *r)
{
    if (r->w == NULL)
        return;
    kr_timer_stop(r->w->sched, &r->timer);
    kr_crl_destroy(r->crl);
    *r = (struct hub_revocation){.w = NULL};
}
