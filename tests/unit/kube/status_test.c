/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const struct kr_request_info on_resource = {.is_resource = true,
                                                   .class = KR_REQUEST_RESOURCE};
static const struct kr_request_info on_discovery = {.class = KR_REQUEST_DISCOVERY};

/* What each case looks like to a client; written down a second time, from the rules and not from
 * the table: code, reason, Retry-After on a resource path, on a discovery path. */
static const struct {
    enum kr_case which;
    int code;
    const char *reason;
    unsigned resource_s;
    unsigned discovery_s;
} want[] = {
    {KR_CASE_UNAUTHORIZED, 401, "Unauthorized", 0, 0},
    {KR_CASE_AGENT_UNAUTHORIZED, 401, "Unauthorized", 0, 0},
    {KR_CASE_UNKNOWN_CLUSTER, 403, "Forbidden", 0, 0},
    {KR_CASE_DENIED, 403, "Forbidden", 0, 0},
    {KR_CASE_AGENT_DENIED, 403, "Forbidden", 0, 0},
    {KR_CASE_IMPERSONATION, 403, "Forbidden", 0, 0},
    {KR_CASE_BAD_PATH, 400, "BadRequest", 0, 0},
    {KR_CASE_BAD_HEADER, 400, "BadRequest", 0, 0},
    {KR_CASE_BAD_NAME, 400, "BadRequest", 0, 0},
    {KR_CASE_BAD_REQUEST, 400, "BadRequest", 0, 0},
    {KR_CASE_NO_PREFIX, 400, "BadRequest", 0, 0},
    {KR_CASE_NO_UPGRADE, 400, "BadRequest", 0, 0},
    {KR_CASE_BAD_METHOD, 405, "MethodNotAllowed", 0, 0},
    {KR_CASE_BODY_STALLED, 408, "Timeout", 0, 0},
    {KR_CASE_BODY_TOO_LARGE, 413, "RequestEntityTooLarge", 0, 0},
    {KR_CASE_PATH_TOO_LONG, 414, "RequestURITooLong", 0, 0},
    {KR_CASE_UNREADABLE_BODY, 415, "UnsupportedMediaType", 0, 0},
    {KR_CASE_WRONG_HOST, 421, "BadRequest", 0, 0},
    {KR_CASE_HEAD_TOO_LARGE, 431, "RequestHeaderFieldsTooLarge", 0, 0},
    {KR_CASE_CONFLICT, 409, "Conflict", 0, 0},
    {KR_CASE_LOSSY_WRITE, 422, "Invalid", 0, 0},
    {KR_CASE_NOT_IN_STEP, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_INTERNAL, 500, "InternalError", 0, 0},
    {KR_CASE_NOT_OFFERED, 501, "NotImplemented", 0, 0},
    {KR_CASE_OVERLOADED, 429, "TooManyRequests", 7, 7},
    {KR_CASE_DRAINING, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_DRAINING_WATCH, 429, "TooManyRequests", 1, 0},
    {KR_CASE_STARTING, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_STARTING_WATCH, 429, "TooManyRequests", 1, 0},
    {KR_CASE_NO_AUDIT, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_AGENT_NO_AUDIT, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_AWAY_WATCH, 429, "TooManyRequests", 3, 3},
    {KR_CASE_AWAY_DISCOVERY, 503, "ServiceUnavailable", 0, 0},
    {KR_CASE_AWAY, 503, "ServiceUnavailable", 0, 0},
    {KR_CASE_LOST_READ, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_LOST_WRITE, 504, "Timeout", 0, 0},
    {KR_CASE_DEADLINE, 504, "Timeout", 0, 0},
    {KR_CASE_BAD_AGENT, 502, "InternalError", 0, 0},
    {KR_CASE_API_UNREACHABLE, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_API_LOST_READ, 503, "ServiceUnavailable", 1, 0},
    {KR_CASE_API_LOST_WRITE, 504, "Timeout", 0, 0},
    {KR_CASE_API_TLS, 502, "InternalError", 0, 0},
    {KR_CASE_API_TOKEN, 502, "InternalError", 0, 0},
    {KR_CASE_API_PROTOCOL, 502, "InternalError", 0, 0},
    {KR_CASE_REDIRECT, 502, "InternalError", 0, 0},
    {KR_CASE_UPGRADE_FAILED, 502, "InternalError", 0, 0},
};

static struct kr_case_facts facts_for(const struct kr_request_info *ri)
{
    return (struct kr_case_facts){
        .cluster = KR_LIT("edge-7"),
        .detail = KR_LIT("some \"detail\"\n"),
        .request = ri,
        .away_s = 20, /* e^(0.06 * 20) = 3.32 */
        .busy_s = 7,
    };
}

/* Body, code, reason and Retry-After agree with each other. */
/* Of what is denied by a rule the details name the object, of all else the cluster. */
static void check_body(const struct kr_buf *body, const struct kr_case_answer *a, bool of_object)
{
    struct kr_note why = {""};
    struct kr_json *doc;
    const struct kr_json *details;
    int64_t v = 0;

    if (kr_json_parse(kr_buf_bytes(body), &doc, &why) != 0)
        fail_msg("%.*s: %s", (int)body->n, (const char *)body->p, why.text);
    assert_string_equal(kr_json_text(doc, "kind"), "Status");
    assert_string_equal(kr_json_text(doc, "apiVersion"), "v1");
    assert_string_equal(kr_json_text(doc, "status"), "Failure");
    assert_string_equal(kr_json_text(doc, "reason"), a->reason);
    assert_true(kr_json_is_object(kr_json_get(doc, "metadata")));
    assert_true(kr_json_int(kr_json_get(doc, "code"), &v));
    assert_int_equal(v, a->code);
    details = kr_json_get(doc, "details");
    assert_int_equal(kr_json_get(details, "group") == NULL, of_object);
    assert_string_equal(of_object ? "clusters" : kr_json_text(details, "kind"), "clusters");
    assert_string_equal(of_object ? "edge-7" : kr_json_text(details, "name"), "edge-7");
    assert_int_equal(kr_json_int(kr_json_get(details, "retryAfterSeconds"), &v),
                     a->retry_after_s != 0);
    if (a->retry_after_s != 0)
        assert_int_equal(v, a->retry_after_s);
    assert_null(strchr(kr_json_text(doc, "message"), '{'));
    kr_json_destroy(doc);
}

static void check_case(size_t i, const struct kr_request_info *ri, unsigned retry_s)
{
    struct kr_case_facts facts = facts_for(ri);
    struct kr_case_answer answer;
    struct kr_buf body;
    struct kr_buf warning;

    kr_buf_init(&body, 8192);
    kr_buf_init(&warning, 8192);
    assert_int_equal(kr_case_write(want[i].which, &facts, &answer, &body, &warning), 0);
    if (answer.code != want[i].code || strcmp(answer.reason, want[i].reason) != 0 ||
        answer.retry_after_s != retry_s)
        fail_msg("%s: %d %s %u", kr_case_name(want[i].which), answer.code, answer.reason,
                 answer.retry_after_s);
    check_body(&body, &answer, want[i].which == KR_CASE_DENIED && ri->is_resource);
    assert_true(kr_bytes_starts(kr_buf_bytes(&warning), KR_LIT("299 kuberelay \"")));
    assert_int_equal(warning.p[warning.n - 1], '"');
    kr_buf_deinit(&body);
    kr_buf_deinit(&warning);
}

static void test_case_when_any_then_code_reason_and_retry_after_as_ruled(void **state)
{
    (void)state;
    assert_int_equal(COUNT(want), KR_CASE_COUNT);
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(want[i].which, i);
        check_case(i, &on_resource, want[i].resource_s);
        check_case(i, &on_discovery, want[i].discovery_s);
    }
}

/* What may have run is never answered with Retry-After: clients would run it again. */
static void test_case_when_outcome_is_unknown_then_never_retry_after(void **state)
{
    (void)state;
    for (size_t i = 0; i < KR_CASE_COUNT; i++) {
        struct kr_case_facts facts = facts_for(&on_resource);
        struct kr_case_answer a;

        assert_int_equal(kr_case_write((enum kr_case)i, &facts, &a, NULL, NULL), 0);
        assert_int_not_equal(a.code, 404);
        if (a.code == 504)
            assert_int_equal(a.retry_after_s, 0);
        if (a.retry_after_s != 0)
            assert_true(a.code == 429 || a.code == 503);
    }
}

static void test_case_when_written_then_text_names_the_cluster(void **state)
{
    struct kr_case_facts facts = {.cluster = KR_LIT("edge-7"), .request = &on_resource};
    struct kr_case_answer answer;
    struct kr_buf body;
    struct kr_buf warning;

    (void)state;
    kr_buf_init(&body, 8192);
    kr_buf_init(&warning, 8192);
    assert_int_equal(kr_case_write(KR_CASE_UNKNOWN_CLUSTER, &facts, &answer, &body, &warning), 0);
    assert_true(kr_bytes_is(
        kr_buf_bytes(&body),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"clusters.kuberelay.io \\\"edge-7\\\" is forbidden: no such cluster, or no "
        "access to it\",\"reason\":\"Forbidden\",\"details\":{\"name\":\"edge-7\",\"group\":"
        "\"kuberelay.io\",\"kind\":\"clusters\"},\"code\":403}"));
    assert_true(kr_bytes_is(kr_buf_bytes(&warning),
                            "299 kuberelay \"clusters.kuberelay.io \\\"edge-7\\\" is forbidden: no "
                            "such cluster, or no access to it [client-hub]\""));
    kr_buf_deinit(&body);
    kr_buf_deinit(&warning);
}

static void test_status_when_causes_given_then_in_details(void **state)
{
    const struct kr_cause causes[] = {
        {"FieldValueInvalid", KR_LIT("bad"), KR_LIT("spec.x")},
        {"Other", KR_LIT(""), {NULL, 0}},
    };
    const struct kr_status st = {
        .code = 422,
        .reason = "Invalid",
        .message = KR_LIT("m\xff"),
        .causes = causes,
        .cause_count = 2,
        .retry_after_s = 3,
    };
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 4096);
    assert_int_equal(kr_status_write(&out, &st), 0);
    assert_true(kr_bytes_is(
        kr_buf_bytes(&out),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"m\\ufffd\",\"reason\":\"Invalid\",\"details\":{\"causes\":[{\"reason\":"
        "\"FieldValueInvalid\",\"message\":\"bad\",\"field\":\"spec.x\"},{\"reason\":\"Other\","
        "\"message\":\"\"}],\"retryAfterSeconds\":3},\"code\":422}"));
    kr_buf_deinit(&out);
}

static void test_status_when_buffer_is_too_small_then_error(void **state)
{
    struct kr_case_facts facts = facts_for(&on_resource);
    struct kr_case_answer answer;

    (void)state;
    for (size_t max = 0; max < 200; max++) {
        struct kr_buf out;

        kr_buf_init(&out, max);
        assert_int_equal(kr_case_write(KR_CASE_AWAY, &facts, &answer, &out, NULL), KR_ETOOBIG);
        kr_buf_deinit(&out);
    }
}

static void test_warning_when_text_is_odd_then_quoted_ascii(void **state)
{
    struct kr_buf out;
    char big[3000];

    (void)state;
    kr_buf_init(&out, 8192);
    assert_int_equal(kr_warning_write(&out, KR_LIT("a\"b\\c\r\n\xC3\xA9"), "leg"), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out), "299 kuberelay \"a\\\"b\\\\c\?\?\?\? [leg]\""));
    out.n = 0;
    memset(big, 'x', sizeof big);
    assert_int_equal(kr_warning_write(&out, kr_bytes_of(big, sizeof big), "leg"), 0);
    assert_true(out.n < 1100);
    kr_buf_deinit(&out);
}

static void test_retry_grow_when_away_longer_then_from_1_to_30(void **state)
{
    unsigned last = 1;

    (void)state;
    for (unsigned s = 0; s < 100; s++) {
        unsigned v = kr_retry_grow_s(s);

        assert_true(v >= last && v <= 30);
        last = v;
    }
    assert_int_equal(kr_retry_grow_s(0), 1);
    assert_int_equal(kr_retry_grow_s(12), 2);  /* e^0.72 = 2.05 */
    assert_int_equal(kr_retry_grow_s(40), 11); /* e^2.4 = 11.02 */
    assert_int_equal(kr_retry_grow_s(57), 30);
    assert_int_equal(kr_retry_grow_s(4000000000u), 30);
}

static enum kr_case pick(const char *method, const char *target,
                         enum kr_case (*by)(const struct kr_request_info *))
{
    struct kr_request_info ri;
    struct kr_arena arena;
    enum kr_case which;

    kr_arena_init(&arena, 256, 4096);
    assert_int_equal(
        kr_request_info_parse(&ri, kr_bytes_str(method), kr_bytes_str(target), &arena, NULL), 0);
    which = by(&ri);
    kr_arena_deinit(&arena);
    return which;
}

static enum kr_case lost_at_hub(const struct kr_request_info *ri)
{
    return kr_case_lost(ri, false);
}

static enum kr_case lost_at_agent(const struct kr_request_info *ri)
{
    return kr_case_lost(ri, true);
}

static void test_pick_when_agent_is_away_then_by_kind_of_request(void **state)
{
    (void)state;
    assert_int_equal(pick("GET", "/api/v1/pods?watch=1", kr_case_away), KR_CASE_AWAY_WATCH);
    assert_int_equal(pick("GET", "/api/v1/watch/pods", kr_case_away), KR_CASE_AWAY_WATCH);
    assert_int_equal(pick("GET", "/api/v1/pods", kr_case_away), KR_CASE_AWAY);
    assert_int_equal(pick("POST", "/api/v1/pods", kr_case_away), KR_CASE_AWAY);
    assert_int_equal(pick("GET", "/api", kr_case_away), KR_CASE_AWAY_DISCOVERY);
    assert_int_equal(pick("GET", "/version", kr_case_away), KR_CASE_AWAY_DISCOVERY);
    assert_int_equal(pick("GET", "/api/v1/pods?watch=1", kr_case_draining), KR_CASE_DRAINING_WATCH);
    assert_int_equal(pick("GET", "/api/v1/pods", kr_case_draining), KR_CASE_DRAINING);
}

static void test_pick_when_answer_is_lost_then_mutations_are_unknown(void **state)
{
    (void)state;
    assert_int_equal(pick("GET", "/api/v1/pods", lost_at_hub), KR_CASE_LOST_READ);
    assert_int_equal(pick("HEAD", "/api/v1/pods", lost_at_hub), KR_CASE_LOST_READ);
    assert_int_equal(pick("GET", "/version", lost_at_hub), KR_CASE_LOST_READ);
    assert_int_equal(pick("POST", "/api/v1/pods", lost_at_hub), KR_CASE_LOST_WRITE);
    assert_int_equal(pick("DELETE", "/api/v1/pods", lost_at_hub), KR_CASE_LOST_WRITE);
    assert_int_equal(pick("POST", "/healthz", lost_at_hub), KR_CASE_LOST_WRITE);
    assert_int_equal(pick("GET", "/api/v1/namespaces/n/pods/p/exec", lost_at_hub),
                     KR_CASE_LOST_WRITE);
    assert_int_equal(pick("GET", "/api/v1/nodes/n/proxy/run", lost_at_hub), KR_CASE_LOST_WRITE);
    assert_int_equal(pick("GET", "/api/v1/namespaces/n/pods/p/log", lost_at_hub),
                     KR_CASE_LOST_READ);
    assert_int_equal(pick("GET", "/api/v1/pods", lost_at_agent), KR_CASE_API_LOST_READ);
    assert_int_equal(pick("PATCH", "/api/v1/nodes/n", lost_at_agent), KR_CASE_API_LOST_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_case_when_any_then_code_reason_and_retry_after_as_ruled),
        cmocka_unit_test(test_case_when_outcome_is_unknown_then_never_retry_after),
        cmocka_unit_test(test_case_when_written_then_text_names_the_cluster),
        cmocka_unit_test(test_status_when_causes_given_then_in_details),
        cmocka_unit_test(test_status_when_buffer_is_too_small_then_error),
        cmocka_unit_test(test_warning_when_text_is_odd_then_quoted_ascii),
        cmocka_unit_test(test_retry_grow_when_away_longer_then_from_1_to_30),
        cmocka_unit_test(test_pick_when_agent_is_away_then_by_kind_of_request),
        cmocka_unit_test(test_pick_when_answer_is_lost_then_mutations_are_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
