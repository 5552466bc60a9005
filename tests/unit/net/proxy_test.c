/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void test_no_proxy_list_then_usual_rules(void **state)
{
    static const struct {
        const char *list;
        const char *host;
        uint16_t port;
        bool direct;
    } cases[] = {
        {"", "hub.example.com", 443, false},
        {"*", "hub.example.com", 443, true},
        {"example.com", "example.com", 443, true},
        {"example.com", "hub.example.com", 443, true},
        {"example.com", "notexample.com", 443, false},
        {"EXAMPLE.com", "Hub.Example.COM", 443, true},
        {".example.com", "hub.example.com", 443, true},
        {".example.com", "example.com", 443, false},
        {"*.example.com", "hub.example.com", 443, true},
        {"*.example.com", "example.com", 443, false},
        {"a.com, example.com ,b.com", "example.com", 443, true},
        {"a.com example.com", "example.com", 443, true},
        {"example.com:8443", "example.com", 8443, true},
        {"example.com:8443", "example.com", 443, false},
        {"example.com:", "example.com", 443, false},
        {"example.com.", "example.com", 443, true},
        {"example.com", "example.com.", 443, true},
        {"10.0.0.0/8", "10.1.2.3", 443, true},
        {"10.0.0.0/8", "11.1.2.3", 443, false},
        {"10.0.0.0/8", "hub.example.com", 443, false},
        {"10.1.2.3", "10.1.2.3", 443, true},
        {"10.1.2.3:80", "10.1.2.3", 443, false},
        {"fd00::/8", "fd12::1", 443, true},
        {"::1", "::1", 443, true},
        {"[::1]:443", "::1", 443, true},
        {"[::1]:80", "::1", 443, false},
        {"2.3", "10.1.2.3", 443, false},
        {".", "example.com", 443, false},
        {",,, ,", "example.com", 443, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (kr_no_proxy_match(cases[i].list, cases[i].host, cases[i].port) != cases[i].direct)
            fail_msg("\"%s\" with %s:%u", cases[i].list, cases[i].host, cases[i].port);
    }
}

static void test_proxy_url_then_parsed_or_refused(void **state)
{
    static const char *const bad[] = {
        "socks5://p:1", "https://p:1",  "http://",      "http://p:0",    "http://p:1/path",
        "p:1?x",        "http://%zz@p", "http://u%3@p", "http://u%00@p", "http://a%3ab:c@p",
    };
    struct kr_note why;
    struct kr_proxy p;

    (void)state;
    assert_int_equal(kr_proxy_parse("http://us%20er:p%40:ss@proxy.corp:8080/", "a,b", &p, &why), 0);
    assert_string_equal(p.user, "us er");
    assert_string_equal(p.password, "p@:ss");
    assert_string_equal(p.at.host, "proxy.corp");
    assert_int_equal(p.at.port, 8080);
    assert_string_equal(p.no_proxy, "a,b");
    assert_int_equal(kr_proxy_parse("[::1]", NULL, &p, &why), 0);
    assert_string_equal(p.at.host, "::1");
    assert_int_equal(p.at.port, 3128);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (kr_proxy_parse(bad[i], NULL, &p, &why) == 0)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_int_equal(kr_proxy_parse("http://user:secret@p:x", NULL, &p, &why), KR_EINVAL);
    assert_null(strstr(why.text, "secret"));
}

static void request_is(const char *url, const char *host, uint16_t port, const char *want)
{
    struct kr_hostport to = {.port = port};
    struct kr_proxy p;
    struct kr_buf out;

    strcpy(to.host, host);
    assert_int_equal(kr_proxy_parse(url, NULL, &p, NULL), 0);
    kr_buf_init(&out, 4096);
    assert_int_equal(kr_proxy_request(&p, &to, &out), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out), want));
    kr_buf_deinit(&out);
}

static void test_request_then_authority_form_and_basic_credentials(void **state)
{
    (void)state;
    request_is("p:1", "hub", 443, "CONNECT hub:443 HTTP/1.1\r\nHost: hub:443\r\n\r\n");
    request_is("p:1", "fd00::1", 443,
               "CONNECT [fd00::1]:443 HTTP/1.1\r\nHost: [fd00::1]:443\r\n\r\n");
    request_is("http://a@p:1", "hub", 443,
               "CONNECT hub:443 HTTP/1.1\r\nHost: hub:443\r\n"
               "Proxy-Authorization: Basic YTo=\r\n\r\n");
    request_is("http://Aladdin:open%20sesame@p:1", "hub", 443,
               "CONNECT hub:443 HTTP/1.1\r\nHost: hub:443\r\n"
               "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n");
}

static void test_answer_then_judged_by_its_status(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } cases[] = {
        {"", 0},
        {"HTTP/1.1 200 Connection established\r\n", 0},
        {"HTTP/1.1 200 Connection established\r\n\r\n", 1},
        {"HTTP/1.0 200\r\nA: b\r\n\r\n", 1},
        {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", KR_EDENIED},
        {"HTTP/1.1 403 Forbidden\r\n\r\n", KR_ECONNREFUSED},
        {"HTTP/1.1 302 Found\r\n\r\n", KR_ECONNREFUSED},
        {"HTTP/1.1 2000\r\n\r\n", KR_EPROTO},
        {"HTTP/1.1 2a0 x\r\n\r\n", KR_EPROTO},
        {"HTTP/2 200\r\n\r\n", KR_EPROTO},
        {"\r\n\r\n", KR_EPROTO},
        {"SSH-2.0-x\r\n\r\n", KR_EPROTO},
    };
    static char huge[KR_PROXY_HEAD_MAX];
    size_t used;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int rc = kr_proxy_answer(kr_bytes_str(cases[i].text), &used, NULL);

        if (rc != cases[i].rc)
            fail_msg("\"%s\" is %d", cases[i].text, rc);
        if (rc == 1)
            assert_int_equal(used, strlen(cases[i].text));
    }
    memset(huge, 'a', sizeof huge);
    assert_int_equal(kr_proxy_answer(kr_bytes_of(huge, sizeof huge - 1), &used, NULL), 0);
    assert_int_equal(kr_proxy_answer(kr_bytes_of(huge, sizeof huge), &used, NULL), KR_ETOOBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_proxy_list_then_usual_rules),
        cmocka_unit_test(test_proxy_url_then_parsed_or_refused),
        cmocka_unit_test(test_request_then_authority_form_and_basic_credentials),
        cmocka_unit_test(test_answer_then_judged_by_its_status),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
