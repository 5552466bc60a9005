/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/audit_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"

/* The event with its end, read again. */
static struct kr_json *render(const struct kr_audit_request *a, const struct kr_audit_facts *f,
                              struct kr_buf *text)
{
    struct kr_buf request = {.max = KR_AUDIT_LINE_MAX};
    struct kr_json *doc = NULL;
    struct kr_note why = {""};

    kr_buf_init(text, KR_AUDIT_LINE_MAX);
    assert_int_equal(kr_audit_request_write(a, &request), 0);
    assert_int_equal(kr_audit_event_write(kr_buf_bytes(&request), f, text), 0);
    assert_int_equal(kr_buf_append_str(text, "}}"), 0);
    if (kr_json_parse(kr_buf_bytes(text), &doc, &why) != 0)
        fail_msg("%s: %.*s", why.text, (int)text->n, (const char *)text->p);
    for (size_t i = 0; i < text->n; i++)
        assert_true(text->p[i] >= ' ' && text->p[i] != 0x7F);
    kr_buf_deinit(&request);
    return doc;
}

static const struct kr_request_info pod_log = {
    .is_resource = true,
    .verb = {(const uint8_t *)"get", 3},
    .group = {(const uint8_t *)"g", 1},
    .version = {(const uint8_t *)"v1", 2},
    .ns = {(const uint8_t *)"d", 1},
    .resource = {(const uint8_t *)"pods", 4},
    .name = {(const uint8_t *)"p", 1},
    .subresource = {(const uint8_t *)"log", 3},
};

static void test_event_when_complete_then_as_kube_apiserver_writes_it(void **state)
{
    struct kr_bytes groups[] = {KR_LIT("a"), KR_LIT("b")};
    struct kr_audit_request a = {
        .id = KR_LIT("id-1"),
        .uri = KR_LIT("/x?y=z"),
        .verb = KR_LIT("get"),
        .user = {.name = KR_LIT("alice"), .uid = KR_LIT("u"), .groups = groups, .group_count = 2},
        .source = KR_LIT("::1"),
        .user_agent = KR_LIT("kubectl"),
        .info = &pod_log,
        .received_wall_us = 1700000000123456,
    };
    struct kr_audit_facts f = {
        .stage = KR_AUDIT_COMPLETE,
        .wall_us = 1700000001000000,
        .code = 403,
        .reason = "Forbidden",
        .cluster = KR_LIT("c"),
        .forbid = true,
        .rule = KR_LIT("r"),
        .instance = KR_LIT("i"),
        .request_uid = KR_LIT("q"),
        .outcome = KR_AUDIT_NOT_FORWARDED,
        .bytes_in = 1,
        .bytes_out = UINT64_MAX,
    };
    struct kr_buf text;
    struct kr_json *doc = render(&a, &f, &text);

    (void)state;
    assert_string_equal(
        (kr_buf_append(&text, kr_bytes_of("", 1)), (const char *)text.p),
        "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Metadata\","
        "\"stage\":\"ResponseComplete\",\"stageTimestamp\":\"2023-11-14T22:13:21.000000Z\","
        "\"auditID\":\"id-1\",\"requestURI\":\"/x?y=z\",\"verb\":\"get\","
        "\"user\":{\"username\":\"alice\",\"uid\":\"u\",\"groups\":[\"a\",\"b\"]},"
        "\"sourceIPs\":[\"::1\"],\"userAgent\":\"kubectl\",\"objectRef\":{\"resource\":\"pods\","
        "\"namespace\":\"d\",\"name\":\"p\",\"apiGroup\":\"g\",\"apiVersion\":\"v1\","
        "\"subresource\":\"log\"},\"requestReceivedTimestamp\":\"2023-11-14T22:13:20.123456Z\","
        "\"responseStatus\":{\"metadata\":{},\"status\":\"Failure\",\"reason\":\"Forbidden\","
        "\"code\":403},\"annotations\":{\"kuberelay.io/decision\":\"forbid\","
        "\"kuberelay.io/cluster\":\"c\",\"kuberelay.io/rule\":\"r\","
        "\"kuberelay.io/agent-instance\":\"i\",\"kuberelay.io/request-uid\":\"q\","
        "\"kuberelay.io/outcome\":\"not-forwarded\",\"kuberelay.io/bytes-in\":\"1\","
        "\"kuberelay.io/bytes-out\":\"18446744073709551615\"}}");
    kr_json_destroy(doc);
    kr_buf_deinit(&text);
}

static void test_event_when_received_then_no_status_and_no_outcome(void **state)
{
    struct kr_audit_request a = {.id = KR_LIT("id"), .received_wall_us = 0};
    struct kr_audit_facts f = {.stage = KR_AUDIT_RECEIVED};
    struct kr_buf text;
    struct kr_json *doc = render(&a, &f, &text);

    (void)state;
    assert_null(kr_json_get(doc, "responseStatus"));
    assert_null(kr_json_get(doc, "objectRef"));
    assert_null(kr_json_get(doc, "impersonatedUser"));
    assert_null(kr_json_get(kr_json_get(doc, "annotations"), "kuberelay.io/outcome"));
    assert_string_equal(kr_json_text(doc, "requestReceivedTimestamp"),
                        "1970-01-01T00:00:00.000000Z");
    kr_json_destroy(doc);
    kr_buf_deinit(&text);
}

/* Whatever the bytes are: one line of JSON, and no member that was not meant. */
static void test_event_when_names_are_hostile_then_still_one_line_of_json(void **state)
{
    static const char evil[] = "a\n\x1b[2J\"}},{\"stage\":\"x\\\r\t\x7f\xff\xe2\x80\xae\0z";
    struct kr_bytes e = kr_bytes_of(evil, sizeof evil - 1);
    struct kr_request_info info = {.is_resource = true,
                                   .group = e,
                                   .version = e,
                                   .ns = e,
                                   .resource = e,
                                   .name = e,
                                   .subresource = e};
    struct kr_audit_extra extra[] = {{e, &e, 1}, {KR_LIT("k"), &e, 1}, {e, &e, 1}};
    struct kr_audit_user user = {e, e, &e, 1, extra, 3};
    struct kr_audit_request a = {e, e, e, user, user, e, e, &info, 5};
    struct kr_audit_facts f = {.stage = KR_AUDIT_STARTED,
                               .code = 200,
                               .cluster = e,
                               .rule = e,
                               .instance = e,
                               .request_uid = e};
    struct kr_buf text;
    struct kr_json *doc = render(&a, &f, &text);

    (void)state;
    assert_string_equal(kr_json_text(doc, "stage"), "ResponseStarted");
    kr_json_destroy(doc);
    kr_buf_deinit(&text);
}

static void test_event_when_a_key_repeats_then_it_stands_once_with_all_values(void **state)
{
    struct kr_bytes values[] = {KR_LIT("1"), KR_LIT("2"), KR_LIT("3")};
    struct kr_audit_extra extra[] = {
        {KR_LIT("k"), values, 1}, {KR_LIT("other"), values, 1}, {KR_LIT("k"), values + 1, 2}};
    struct kr_audit_request a = {.as = {.name = KR_LIT("bob"), .extra = extra, .extra_count = 3}};
    struct kr_audit_facts f = {.stage = KR_AUDIT_COMPLETE, .code = 200};
    struct kr_buf text;
    struct kr_json *doc = render(&a, &f, &text);
    const struct kr_json *got = kr_json_get(kr_json_get(doc, "impersonatedUser"), "extra");

    (void)state;
    assert_int_equal(kr_json_len(kr_json_get(got, "k")), 3);
    assert_int_equal(kr_json_len(kr_json_get(got, "other")), 1);
    kr_json_destroy(doc);
    kr_buf_deinit(&text);
}

static void test_event_when_texts_are_long_then_cut(void **state)
{
    static char big[2 * KR_AUDIT_URI_MAX];
    struct kr_bytes b = kr_bytes_of(big, sizeof big);
    struct kr_audit_request a = {.uri = b, .user = {.name = b}, .user_agent = b};
    struct kr_audit_facts f = {.rule = b};
    struct kr_buf text;
    struct kr_json *doc;
    struct kr_bytes v;

    (void)state;
    memset(big, 'x', sizeof big);
    doc = render(&a, &f, &text);
    assert_true(kr_json_string(kr_json_get(doc, "requestURI"), &v));
    assert_int_equal(v.n, KR_AUDIT_URI_MAX);
    assert_true(kr_json_string(kr_json_get(doc, "userAgent"), &v));
    assert_int_equal(v.n, KR_AUDIT_TEXT_MAX);
    kr_json_destroy(doc);
    kr_buf_deinit(&text);
}

static void test_event_when_there_is_no_room_then_too_big(void **state)
{
    struct kr_audit_request a = {.id = KR_LIT("0123456789")};
    struct kr_buf out = {.max = 8};

    (void)state;
    assert_int_equal(kr_audit_request_write(&a, &out), KR_ETOOBIG);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_when_complete_then_as_kube_apiserver_writes_it),
        cmocka_unit_test(test_event_when_received_then_no_status_and_no_outcome),
        cmocka_unit_test(test_event_when_names_are_hostile_then_still_one_line_of_json),
        cmocka_unit_test(test_event_when_a_key_repeats_then_it_stands_once_with_all_values),
        cmocka_unit_test(test_event_when_texts_are_long_then_cut),
        cmocka_unit_test(test_event_when_there_is_no_room_then_too_big),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
