/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { D = KR_HEADER_DROP, P = KR_HEADER_PASS, R = KR_HEADER_REFUSE, L = KR_HEADER_LOCATION };

struct rule {
    const char *name;
    int plain;
    int upgrade;
    int proxy;
};

static const struct rule request_rules[] = {
    {"accept", P, P, P},
    {"accept-encoding", P, P, P},
    {"accept-language", P, P, P},
    {"content-type", P, P, P},
    {"content-length", P, P, P},
    {"content-encoding", P, P, P},
    {"if-none-match", P, P, P},
    {"if-match", P, P, P},
    {"if-modified-since", P, P, P},
    {"if-unmodified-since", P, P, P},
    {"if-range", P, P, P},
    {"range", P, P, P},
    {"cache-control", P, P, P},
    {"user-agent", P, P, P},
    {"traceparent", P, P, P},
    {"tracestate", P, P, P},
    {"baggage", P, P, P},
    {"kubectl-command", P, P, P},
    {"kubectl-session", P, P, P},
    {"origin", D, P, P},
    {"sec-websocket-protocol", D, P, P},
    {"sec-websocket-key", D, P, P},
    {"x-stream-protocol-version", D, P, P},
    {"x-foo", D, D, P},
    {"content-md5", D, D, P},
    {"set-cookie", D, D, P},
    /* hop-by-hop */
    {"connection", D, D, D},
    {"keep-alive", D, D, D},
    {"te", D, D, D},
    {"trailer", D, D, D},
    {"transfer-encoding", D, D, D},
    {"upgrade", D, D, D},
    {"http2-settings", D, D, D},
    {"proxy-connection", D, D, D},
    {"proxy-authorization", D, D, D},
    {"proxy-authenticate", D, D, D},
    /* identity, and what the relay sets itself */
    {"authorization", D, D, D},
    {"cookie", D, D, P},
    {"x-remote-user", D, D, D},
    {"x-remote-group", D, D, D},
    {"x-remote-extra-a", D, D, D},
    {"x-forwarded-for", D, D, D},
    {"x-forwarded-uri", D, D, D},
    {"forwarded", D, D, D},
    {"x-real-ip", D, D, D},
    {"x-original-url", D, D, D},
    {"x-rewrite-url", D, D, D},
    {"audit-id", D, D, D},
    {"host", D, D, D},
    {"expect", D, D, D},
    {"kuberelay-request-bin", D, D, D},
    {"kuberelay-", D, D, D},
    {"", D, D, D},
    {"impersonate-user", R, R, R},
    {"impersonate-group", R, R, R},
    {"impersonate-uid", R, R, R},
    {"impersonate-extra-scopes", R, R, R},
    {"impersonate-", R, R, R},
    {"impersonate-future", R, R, R},
};

static const struct rule response_rules[] = {
    {"audit-id", P, P, P},
    {"warning", P, P, P},
    {"retry-after", P, P, P},
    {"x-kubernetes-pf-flowschema-uid", P, P, P},
    {"x-kubernetes-pf-prioritylevel-uid", P, P, P},
    {"etag", P, P, P},
    {"vary", P, P, P},
    {"cache-control", P, P, P},
    {"expires", P, P, P},
    {"last-modified", P, P, P},
    {"date", P, P, P},
    {"x-content-type-options", P, P, P},
    {"content-type", P, P, P},
    {"content-length", P, P, P},
    {"content-encoding", P, P, P},
    {"content-disposition", P, P, P},
    {"content-range", P, P, P},
    {"accept-ranges", P, P, P},
    {"allow", P, P, P},
    {"x-accepted-stream-protocol-versions", P, P, P},
    {"location", L, L, L},
    {"sec-websocket-accept", D, P, P},
    {"x-stream-protocol-version", D, P, P},
    {"set-cookie", D, D, P},
    {"access-control-allow-origin", D, D, P},
    {"server", D, D, P},
    {"x-foo", D, D, P},
    {"www-authenticate", D, D, D},
    {"authentication-info", D, D, D},
    {"alt-svc", D, D, D},
    {"strict-transport-security", D, D, D},
    {"connection", D, D, D},
    {"keep-alive", D, D, D},
    {"transfer-encoding", D, D, D},
    {"trailer", D, D, D},
    {"upgrade", D, D, D},
    {"proxy-authenticate", D, D, D},
    {"kuberelay-response-bin", D, D, D},
    {"", D, D, D},
};

static void check(const struct rule *rules, size_t n,
                  enum kr_header_rule (*rule_of)(struct kr_bytes, unsigned))
{
    for (size_t i = 0; i < n; i++) {
        struct kr_bytes name = kr_bytes_str(rules[i].name);

        if ((int)rule_of(name, 0) != rules[i].plain ||
            (int)rule_of(name, KR_HEADERS_UPGRADE) != rules[i].upgrade ||
            (int)rule_of(name, KR_HEADERS_PROXY) != rules[i].proxy ||
            (int)rule_of(name, KR_HEADERS_PROXY | KR_HEADERS_UPGRADE) != rules[i].proxy)
            fail_msg("%s", rules[i].name);
    }
}

static void test_request_rule_when_name_given_then_by_the_table(void **state)
{
    (void)state;
    check(request_rules, COUNT(request_rules), kr_header_request_rule);
}

static void test_response_rule_when_name_given_then_by_the_table(void **state)
{
    (void)state;
    check(response_rules, COUNT(response_rules), kr_header_response_rule);
}

/* No field passes because a longer or shorter name is on the list. */
static void test_request_rule_when_name_is_nearly_known_then_dropped(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(request_rules); i++) {
        char name[64];

        if (request_rules[i].plain != P || strncmp(request_rules[i].name, "kubectl-", 8) == 0)
            continue;
        snprintf(name, sizeof name, "%sx", request_rules[i].name);
        assert_int_equal(kr_header_request_rule(kr_bytes_str(name), 0), D);
        snprintf(name, sizeof name, "x%s", request_rules[i].name);
        assert_int_equal(kr_header_request_rule(kr_bytes_str(name), 0), D);
        assert_int_equal(kr_header_request_rule(kr_bytes_of(request_rules[i].name, 3), 0), D);
    }
}

static void test_hop_by_hop_when_connection_lists_it_then_known(void **state)
{
    (void)state;
    assert_true(kr_header_is_hop_by_hop(KR_LIT("te")));
    assert_false(kr_header_is_hop_by_hop(KR_LIT("accept")));
    assert_false(kr_header_is_hop_by_hop(KR_LIT("")));
    assert_true(kr_header_list_has(KR_LIT("close, X-Foo"), KR_LIT("x-foo")));
    assert_true(kr_header_list_has(KR_LIT("\tx-foo ,close"), KR_LIT("x-foo")));
    assert_true(kr_header_list_has(KR_LIT(",,x-foo"), KR_LIT("x-foo")));
    assert_false(kr_header_list_has(KR_LIT("x-foobar, x foo"), KR_LIT("x-foo")));
    assert_false(kr_header_list_has(KR_LIT(""), KR_LIT("x-foo")));
    assert_false(kr_header_list_has(KR_LIT(" , "), KR_LIT("")));
}

static void test_location_when_own_then_prefixed(void **state)
{
    static const char *const cases[][3] = {
        {"/openapi/v3/api/v1?hash=A", "/clusters/c1", "/clusters/c1/openapi/v3/api/v1?hash=A"},
        {"/", "/clusters/c1", "/clusters/c1/"},
        {"/a", "", "/a"},
        {"https://10.0.0.1:443/a?b=../c", "/clusters/c1", "/clusters/c1/a?b=../c"},
        {"HTTPS://10.0.0.1:443/a", "/clusters/c1", "/clusters/c1/a"},
        {"http://10.0.0.1:443/a", "/clusters/c1", "/clusters/c1/a"},
        {"/a..b/.c/...", "/clusters/c1", "/clusters/c1/a..b/.c/..."},
        {"/a/%2Fb", "", "/a/%2Fb"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_buf out;
        struct kr_note why = {""};

        kr_buf_init(&out, 1024);
        if (kr_location_rewrite(kr_bytes_str(cases[i][0]), kr_bytes_str(cases[i][1]),
                                KR_LIT("10.0.0.1:443"), &out, &why) != 0)
            fail_msg("%s: %s", cases[i][0], why.text);
        assert_true(kr_bytes_is(kr_buf_bytes(&out), cases[i][2]));
        kr_buf_deinit(&out);
    }
}

static void test_location_when_foreign_or_malformed_then_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "https://evil.example/a",
        "https://10.0.0.1:443.evil.example/a",
        "https://10.0.0.1:443@evil.example/a",
        "https://10.0.0.1/a",
        "https://10.0.0.1:443",
        "https://10.0.0.1:443?x",
        "//evil.example/a",
        "//10.0.0.1:443/a",
        "/\\evil.example",
        "https://10.0.0.1:443//evil.example",
        "a/b",
        "?x",
        "#x",
        "javascript:alert(1)",
        "ftp://10.0.0.1:443/a",
        "/a b",
        "/a\r\nX: y",
        "/caf\xC3\xA9",
        "/../clusters/c2/api",
        "/a/..",
        "/a/./b",
        "/.",
        "/%2e%2e/clusters/c2",
        "/a/.%2E/b",
        "/a/%2e",
        "/..?x",
        "/..#x",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_buf out;
        struct kr_note why = {""};

        kr_buf_init(&out, 1024);
        if (kr_location_rewrite(kr_bytes_str(cases[i]), KR_LIT(""), KR_LIT("10.0.0.1:443"), &out,
                                &why) != KR_EDENIED)
            fail_msg("%s", cases[i]);
        assert_string_not_equal(why.text, "");
        kr_buf_deinit(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_rule_when_name_given_then_by_the_table),
        cmocka_unit_test(test_response_rule_when_name_given_then_by_the_table),
        cmocka_unit_test(test_request_rule_when_name_is_nearly_known_then_dropped),
        cmocka_unit_test(test_hop_by_hop_when_connection_lists_it_then_known),
        cmocka_unit_test(test_location_when_own_then_prefixed),
        cmocka_unit_test(test_location_when_foreign_or_malformed_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
