/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_answer.h"

#include <inttypes.h>
#include <stdio.h>

#include "certs/hmac.h"
#include "http/reply.h"
#include "hub/counters.h"
#include "hub/fleet_warning.h"

#define BODY_MAX 65536
#define LEG "client-hub"

static void add_common(struct kr_head *head, const struct hub_request *r, int code,
                       const char *type)
{
    head->status = code;
    kr_head_add_str(head, "content-type", type);
    kr_head_add_str(head, "audit-id", r->audit_id);
}

/* Lets the exchange go with what is there, and ends the request. */
static void answer(struct hub_request *r, struct kr_exchange *ex, const struct kr_head *head,
                   struct kr_bytes body)
{
    r->code = head->status;
    r->own_bytes += kr_bytes_is(ex->head.method, "HEAD") ? 0 : body.n;
    kr_reply(ex, head, body);
    hub_request_end(r);
}

static void say(struct hub_request *r, const struct kr_status *st)
{
    hub_worker_count(r->w, HUB_REFUSED, "FLEET");
    KR_LOG_AT(r->w->log, KR_LOG_INFO, "request-refused", KR_S("case", "FLEET"),
              KR_I("code", st->code), KR_S("user", hub_caller_name(r->caller)),
              KR_S("cluster", r->cluster_path.text), KR_S("verb", r->verb_label),
              KR_B("path", r->info.path), KR_B("detail", st->message), KR_S("id", r->audit_id));
}

void hub_fleet_status(struct hub_request *r, struct kr_exchange *ex, const struct kr_status *st)
{
    struct kr_buf body = {.max = BODY_MAX};
    struct kr_buf warning = {.max = BODY_MAX};
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    add_common(&head, r, st->code, "application/json");
    kr_head_add_str(&head, "cache-control", "no-cache, private");
    if (st->retry_after_s != 0)
        kr_head_add_u64(&head, "retry-after", st->retry_after_s);
    kr_status_write(&body, st);
    if (kr_warning_write(&warning, st->message, LEG) == 0)
        kr_head_add(&head, KR_LIT("warning"), kr_buf_bytes(&warning));
    say(r, st);
    answer(r, ex, &head, kr_buf_bytes(&body));
    kr_head_deinit(&head);
    kr_buf_deinit(&body);
    kr_buf_deinit(&warning);
}

void hub_fleet_refuse(struct hub_request *r, struct kr_exchange *ex, int code, const char *reason,
                      const char *message)
{
    struct kr_status st = {
        .code = code,
        .reason = reason,
        .message = kr_bytes_str(message),
        .group = r->info.group,
        .kind = r->info.resource,
        .name = r->info.parts > 1 ? r->info.name : (struct kr_bytes){NULL, 0},
    };

    hub_fleet_status(r, ex, &st);
}

/* A check value of the body; the key is no secret, it only makes a hash of the MAC. */
static void write_etag(struct kr_bytes body, char out[2 * KR_HMAC_SIZE + 3])
{
    static const uint8_t key[KR_HMAC_SIZE];
    uint8_t sum[KR_HMAC_SIZE] = {0};
    size_t n = 0;

    out[n++] = '"';
    if (kr_hmac(key, body, sum) == 0) {
        for (size_t i = 0; i < sizeof sum; i++)
            n += (size_t)snprintf(out + n, 3, "%02X", sum[i]);
    }
    out[n++] = '"';
    out[n] = '\0';
}

void hub_fleet_document(struct hub_request *r, struct kr_exchange *ex, const struct hub_document *d)
{
    char etag[2 * KR_HMAC_SIZE + 3];
    int code = d->code != 0 ? d->code : 200;
    struct kr_head head;
    bool same = false;

    kr_head_init(&head, KR_HEAD_MAX);
    if (d->cached) {
        write_etag(d->body, etag);
        same = kr_bytes_is(kr_head_get(&ex->head, KR_LIT("if-none-match")), etag);
    }
    add_common(&head, r, same ? 304 : code, d->type);
    if (d->cached) {
        kr_head_add_str(&head, "etag", etag);
        kr_head_add_str(&head, "vary", "Accept");
        kr_head_add_str(&head, "cache-control", "public");
    } else {
        kr_head_add_str(&head, "cache-control", "no-cache, private");
    }
    if (d->missing != NULL)
        hub_fleet_warn(&head, KR_LIT(""), d->missing);
    answer(r, ex, &head, same ? (struct kr_bytes){NULL, 0} : d->body);
    kr_head_deinit(&head);
}
