/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/answer.h"

#include "agent/counters.h"
#include "http/reply.h"
#include "wire/request_header.h"

#define ANSWER_MAX 16384

static void add_origin(struct kr_head *head, const char *leg, bool not_sent)
{
    struct kr_relay_response m = {
        .origin = KR_ORIGIN_AGENT, .leg = kr_bytes_str(leg), .not_sent = not_sent};
    struct kr_buf text = {.max = KR_REQUEST_HEADER_MAX};

    if (kr_response_header_write(&m, &text) == 0)
        kr_head_add(head, KR_LIT(KR_RESPONSE_HEADER), kr_buf_bytes(&text));
    kr_buf_deinit(&text);
}

int agent_answer(struct agent_core *c, struct kr_exchange *ex, enum kr_case which,
                 const struct kr_case_facts *facts, bool not_sent)
{
    struct kr_buf body = {.max = ANSWER_MAX};
    struct kr_buf warning = {.max = ANSWER_MAX};
    struct kr_case_answer a = {.code = 500};
    struct kr_head head;

    kr_metric_add(kr_metrics_get(c->metrics, AGENT_ANSWERS, kr_case_name(which)), 1);
    kr_head_init(&head, KR_HEAD_MAX);
    kr_case_write(which, facts, &a, &body, &warning);
    head.status = a.code;
    kr_head_add_str(&head, "content-type", "application/json");
    kr_head_add_str(&head, "cache-control", "no-cache, private");
    if (a.retry_after_s != 0)
        kr_head_add_u64(&head, "retry-after", a.retry_after_s);
    kr_head_add(&head, KR_LIT("warning"), kr_buf_bytes(&warning));
    add_origin(&head, a.leg, not_sent);
    kr_reply(ex, &head, kr_buf_bytes(&body));
    kr_head_deinit(&head);
    kr_buf_deinit(&body);
    kr_buf_deinit(&warning);
    return a.code;
}
