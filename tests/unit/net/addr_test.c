/* SPDX-License-Identifier: Apache-2.0 */
#include "net/addr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void test_hostport_when_well_formed_then_parsed(void **state)
{
    static const struct {
        const char *text;
        uint16_t default_port;
        const char *host;
        uint16_t port;
    } good[] = {
        {"hub.example.com:8443", 0, "hub.example.com", 8443},
        {"hub.example.com.:1", 0, "hub.example.com.", 1},
        {"127.0.0.1:0", 0, "127.0.0.1", 0},
        {"[::1]:65535", 0, "::1", 65535},
        {"[::]:6443", 0, "::", 6443},
        {"hub", 8443, "hub", 8443},
        {"hub:1", 8443, "hub", 1},
        {"[fd00::1]", 443, "fd00::1", 443},
        {"my_host-1:80", 0, "my_host-1", 80},
    };
    struct kr_hostport hp;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(kr_hostport_parse(good[i].text, good[i].default_port, &hp, NULL), 0);
        assert_string_equal(hp.host, good[i].host);
        assert_int_equal(hp.port, good[i].port);
    }
}

static void test_hostport_when_malformed_then_refused_with_the_text(void **state)
{
    static const char *const bad[] = {
        "",
        ":80",
        "hub",
        "hub:",
        "hub:65536",
        "hub:+1",
        "hub:01",
        "hub: 1",
        "hub:1 ",
        "hub:1:2",
        "::1:80",
        "[::1]",
        "[::1",
        "[::1]80",
        "[::1]:",
        "[hub]:80",
        "[1.2.3.4]:80",
        "a..b:80",
        ".a:80",
        "a b:80",
        "hub:-1",
        "hub:0x10",
        "hüb:80",
        "http://h:80",
        "u@h:80",
        "hub:99999999999999999999",
        "[]:80",
        "hub/:80",
        "%31:80",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80",
    };
    char huge[400];
    struct kr_hostport hp;
    struct kr_note why;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (kr_hostport_parse(bad[i], 0, &hp, &why) != KR_EINVAL)
            fail_msg("accepted: %s", bad[i]);
        assert_true(why.text[0] != '\0');
    }
    for (size_t i = 0; i < sizeof huge; i++)
        huge[i] = i % 10 == 9 ? '.' : 'a';
    memcpy(huge + sizeof huge - 4, ":80", 4);
    assert_int_equal(kr_hostport_parse(huge, 0, &hp, &why), KR_EINVAL);
}

static void text_of(const char *ip, uint16_t port, const char *want)
{
    char text[KR_ADDR_TEXT];
    struct kr_addr a;

    assert_true(kr_addr_parse(ip, port, &a));
    assert_int_equal(kr_addr_port(&a), port);
    kr_addr_text(&a, text);
    assert_string_equal(text, want);
}

static void test_addr_text_then_v6_has_brackets_and_mapped_v4_has_none(void **state)
{
    struct kr_addr a;

    (void)state;
    text_of("10.1.2.3", 443, "10.1.2.3:443");
    text_of("2001:db8::5", 443, "[2001:db8::5]:443");
    text_of("::ffff:10.1.2.3", 1, "10.1.2.3:1");
    assert_false(kr_addr_parse("localhost", 1, &a));
    assert_false(kr_addr_parse("1.2.3", 1, &a));
    assert_false(kr_addr_parse("", 1, &a));
}

static bool in(const char *ip, const char *cidr)
{
    struct kr_addr a;

    assert_true(kr_addr_parse(ip, 0, &a));
    return kr_addr_in(&a, cidr);
}

static void test_addr_in_network_then_bits_decide(void **state)
{
    (void)state;
    assert_true(in("10.1.2.3", "10.0.0.0/8"));
    assert_true(in("10.1.2.3", "10.1.2.3"));
    assert_true(in("10.1.2.3", "10.1.2.2/31"));
    assert_false(in("10.1.2.4", "10.1.2.2/31"));
    assert_true(in("1.2.3.4", "0.0.0.0/0"));
    assert_false(in("10.1.2.3", "10.0.0.0/33"));
    assert_false(in("10.1.2.3", "10.0.0.0/"));
    assert_false(in("10.1.2.3", "fd00::/8"));
    assert_true(in("fd12::1", "fd00::/8"));
    assert_true(in("::ffff:10.1.2.3", "10.0.0.0/8"));
    assert_false(in("10.1.2.3", "nonsense"));
    assert_false(in("10.1.2.3", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostport_when_well_formed_then_parsed),
        cmocka_unit_test(test_hostport_when_malformed_then_refused_with_the_text),
        cmocka_unit_test(test_addr_text_then_v6_has_brackets_and_mapped_v4_has_none),
        cmocka_unit_test(test_addr_in_network_then_bits_decide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
