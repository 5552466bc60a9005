/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/answer.h"

#include "http/reply.h"
#include "hub/counters.h"

#define ANSWER_MAX 16384

static void fill_head(struct kr_head *head, const struct kr_case_answer *a, struct kr_bytes warning,
                      struct kr_bytes audit_id, size_t length)
{
    head->status = a->code;
    kr_head_add_str(head, "content-type", "application/json");
    kr_head_add_str(head, "cache-control", "no-cache, private");
    kr_head_add_u64(head, "content-length", length);
    if (a->retry_after_s != 0)
        kr_head_add_u64(head, "retry-after", a->retry_after_s);
    if (a->code == 401)
        kr_head_add_str(head, "www-authenticate", "Bearer realm=\"kuberelay\"");
    if (warning.n != 0)
        kr_head_add(head, KR_LIT("warning"), warning);
    if (audit_id.n != 0)
        kr_head_add(head, KR_LIT("audit-id"), audit_id);
}

static void build(struct hub_worker *w, enum kr_case which, const struct kr_case_facts *facts,
                  struct kr_bytes audit_id, struct kr_head *head, struct kr_buf *body)
{
    struct kr_case_answer a = {.code = 500};
    struct kr_buf warning = {.max = ANSWER_MAX};

    hub_worker_count(w, HUB_REFUSED, kr_case_name(which));
    kr_case_write(which, facts, &a, body, &warning);
    fill_head(head, &a, kr_buf_bytes(&warning), audit_id, body->n);
    kr_buf_deinit(&warning);
}

struct hub_answer hub_answer(struct hub_worker *w, struct kr_exchange *ex, enum kr_case which,
                             const struct kr_case_facts *facts, struct kr_bytes audit_id)
{
    bool bodiless = kr_bytes_is(ex->head.method, "HEAD");
    struct kr_buf body = {.max = ANSWER_MAX};
    struct hub_answer given;
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    build(w, which, facts, audit_id, &head, &body);
    given = (struct hub_answer){.code = head.status, .size = bodiless ? 0 : body.n};
    kr_reply(ex, &head, kr_buf_bytes(&body));
    kr_head_deinit(&head);
    kr_buf_deinit(&body);
    return given;
}

void hub_answer_text(struct kr_exchange *ex, int code, const char *type, struct kr_bytes body)
{
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    head.status = code;
    kr_head_add_str(&head, "content-type", type);
    kr_head_add_str(&head, "cache-control", "no-cache, private");
    kr_head_add_u64(&head, "content-length", body.n);
    kr_reply(ex, &head, body);
    kr_head_deinit(&head);
}

void hub_answer_bad_request(struct hub_worker *w, int status, const char *why, struct kr_head *head,
                            struct kr_buf *body)
{
    struct kr_case_facts facts = {.detail = kr_bytes_str(why)};
    enum kr_case which = status == 408   ? KR_CASE_BODY_STALLED
                         : status == 414 ? KR_CASE_PATH_TOO_LONG
                         : status == 431 ? KR_CASE_HEAD_TOO_LARGE
                         : status == 405 ? KR_CASE_BAD_METHOD
                         : status == 501 ? KR_CASE_NOT_OFFERED
                                         : KR_CASE_BAD_REQUEST;

    if (status == 414)
        facts.detail = KR_LIT("60 KiB");
    else if (status == 431)
        facts.detail = KR_LIT("60 KiB a field, 256 KiB in all");
    build(w, which, &facts, (struct kr_bytes){NULL, 0}, head, body);
}
