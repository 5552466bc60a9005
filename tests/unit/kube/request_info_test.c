/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/request_info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "request_info_cases.h"

#define SHOW(b) (int)(b).n, (const char *)(b).p
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct parsed {
    struct kr_request_info ri;
    struct kr_arena arena;
    struct kr_note why;
    uint8_t *target; /* exactly as long as it is: a sanitizer sees every byte too many */
    int rc;
};

static void parse(struct parsed *p, const char *method, const char *target)
{
    size_t n = strlen(target);

    *p = (struct parsed){.rc = 0};
    kr_arena_init(&p->arena, 256, KR_REQUEST_INFO_ARENA(n));
    p->target = malloc(n + (n == 0));
    assert_non_null(p->target);
    memcpy(p->target, target, n);
    p->rc = kr_request_info_parse(&p->ri, kr_bytes_str(method), kr_bytes_of(p->target, n),
                                  &p->arena, &p->why);
}

static void done(struct parsed *p)
{
    kr_arena_deinit(&p->arena);
    free(p->target);
}

static void show(const struct kr_request_info *ri, char *out, size_t n)
{
    char timeout[32] = "-";

    if (ri->bad_timeout)
        snprintf(timeout, sizeof timeout, "bad");
    else if (ri->has_timeout)
        snprintf(timeout, sizeof timeout, "%lld", (long long)ri->timeout_ns);
    snprintf(out, n, "%s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%.*s|%zu|%s|%s",
             ri->is_resource ? "true" : "false", SHOW(ri->verb), SHOW(ri->prefix), SHOW(ri->group),
             SHOW(ri->version), SHOW(ri->ns), SHOW(ri->resource), SHOW(ri->name),
             SHOW(ri->subresource), ri->parts, ri->long_running ? "true" : "false", timeout);
}

static void test_parse_when_kubernetes_forms_then_as_upstream(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(upstream_cases); i++) {
        struct parsed p;
        char got[512];

        parse(&p, upstream_cases[i].method, upstream_cases[i].target);
        if (p.rc != 0)
            fail_msg("%s %s: refused: %s", upstream_cases[i].method, upstream_cases[i].target,
                     p.why.text);
        show(&p.ri, got, sizeof got);
        if (strcmp(got, upstream_cases[i].want) != 0)
            fail_msg("%s %s:\n got  %s\n want %s", upstream_cases[i].method,
                     upstream_cases[i].target, got, upstream_cases[i].want);
        assert_true(kr_bytes_is(p.ri.target, upstream_cases[i].target));
        done(&p);
    }
}

static void test_parse_when_dangerous_form_then_refused_with_reason(void **state)
{
    static const char *const cases[][2] = {
        {"", "does not start"},
        {"api/v1/pods", "does not start"},
        {"*", "does not start"},
        {"?watch=1", "does not start"},
        {"https://h/api/v1/pods", "does not start"},
        {"//api/v1/pods", "empty path segment"},
        {"/api//v1/pods", "empty path segment"},
        {"/api/v1//pods", "empty path segment"},
        {"/api/v1/pods//", "empty path segment"},
        {"/api/v1/namespaces//pods", "empty path segment"},
        {"//", "empty path segment"},
        {"/healthz//", "empty path segment"},
        {"/api/v1/namespaces/ns/pods/../secrets", "'.' or '..'"},
        {"/api/v1/namespaces/ns/pods/./x", "'.' or '..'"},
        {"/..", "'.' or '..'"},
        {"/.", "'.' or '..'"},
        {"/api/v1/pods/%2e%2e", "'.' or '..'"},
        {"/api/v1/pods/%2E", "'.' or '..'"},
        {"/api/v1/pods/.%2e", "'.' or '..'"},
        {"/healthz/..", "'.' or '..'"},
        {"/api/v1/namespaces/a%2Fpods", "%2F"},
        {"/api/v1/namespaces/a%2fpods", "%2F"},
        {"/api%2Fv1/pods", "%2F"},
        {"/healthz%2F..", "%2F"},
        {"/api/v1/pods/a%5Cb", "%5C"},
        {"/api/v1/pods/a%5cb", "%5C"},
        {"/api/v1/pods/a%25b", "%25"},
        {"/api/v1/pods/%252e%252e", "%25"},
        {"/api/v1/pods/a%00b", "control byte %00"},
        {"/api/v1/pods/%0A", "control byte %0A"},
        {"/api/v1/pods/%0d%0aX:1", "control byte %0D"},
        {"/api/v1/pods/%7F", "control byte %7F"},
        {"/api/v1/pods/%1f", "control byte %1F"},
        {"/api/v1/pods/%", "invalid percent"},
        {"/api/v1/pods/%1", "invalid percent"},
        {"/api/v1/pods/%zz", "invalid percent"},
        {"/api/v1/pods/%u002e", "invalid percent"},
        {"/api/v1/pods/%C3", "not UTF-8"},
        {"/api/v1/pods/%ff", "not UTF-8"},
        {"/api/v1/pods#x", "holds '#'"},
        {"/api/v1/pods?a#x", "holds '#'"},
        {"/api\\v1/pods", "holds '\\'"},
        {"/api/v1/pods?a\\b", "holds '\\'"},
        {"/api/v1/po ds", "byte 0x20"},
        {"/api/v1/pods?a b", "byte 0x20"},
        {"/api/v1/pods\t", "byte 0x09"},
        {"/api/v1/pods?\r\n", "byte 0x0d"},
        {"/api/v1/pods\x7f", "byte 0x7f"},
        {"/api/v1/caf\xC3\xA9", "byte 0xc3"},
        {"/api/v1/pods?x=\xff", "byte 0xff"},
        {"/api/v1/watch", "names no resource"},
        {"/api/v1/proxy/", "names no resource"},
        {"/apis/apps/v1/watch", "names no resource"},
        /* behind /proxy nearly everything passes, but not these */
        {"/api/v1/nodes/n/proxy/%00", "control byte"},
        {"/api/v1/nodes/n/proxy/a%0Db", "control byte"},
        {"/api/v1/nodes/n/proxy/%zz", "invalid percent"},
        {"/api/v1/nodes/n/proxy/#", "holds '#'"},
        {"/api/v1/nodes/n/proxy/\\", "holds '\\'"},
        /* what only looks like /proxy stays strict */
        {"/api/v1/nodes/../proxy/x", "'.' or '..'"},
        {"/api/v1/namespaces/ns/proxy/../x", "'.' or '..'"},
        {"/api/v1/namespaces/ns/pods/p/log/proxy/..", "'.' or '..'"},
        {"/api/v1/proxy/nodes/n/..", "'.' or '..'"},
        {"/api/v1/watch/pods/p/proxy/..", "'.' or '..'"},
        {"/api/v1/proxy/pods/p/proxy//x", "empty path segment"},
        {"/api/v1/nodes/n/prox%2579/..", "%25"},
        {"/apis/apps/v1/proxy/..", "'.' or '..'"},
        {"/proxy/..", "'.' or '..'"},
        {"/x/y/z/proxy/..", "'.' or '..'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct parsed p;

        parse(&p, "GET", cases[i][0]);
        if (p.rc != KR_EINVAL || strstr(p.why.text, cases[i][1]) == NULL)
            fail_msg("%s: %d %s", cases[i][0], p.rc, p.why.text);
        done(&p);
    }
}

static void test_parse_when_below_proxy_then_forwarded_as_it_is(void **state)
{
    static const char *const targets[] = {
        "/api/v1/namespaces/ns/services/https:web:443/proxy/a//b?x=1",
        "/api/v1/namespaces/ns/services/s/proxy/../../../x",
        "/api/v1/namespaces/ns/pods/p/proxy/a%2Fb/%2e%2e/%25/%5C?x=%2B",
        "/api/v1/nodes/n/proxy/run/x",
        "/apis/apps/v1/namespaces/ns/deployments/d/proxy//",
        "/apis/example.com/v1/widgets/w/proxy/.",
        "/api/v1/namespaces/ns/services/s/%70roxy/x//y",
        "/api/v1/namespaces/ns/pods/proxy/proxy/./x",
        "/api/v1/nodes/n/proxy/%ff",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(targets); i++) {
        struct parsed p;

        parse(&p, "GET", targets[i]);
        if (p.rc != 0)
            fail_msg("%s: %s", targets[i], p.why.text);
        assert_true(kr_bytes_is(p.ri.subresource, "proxy"));
        assert_true(p.ri.proxied && p.ri.connects && p.ri.long_running);
        assert_ptr_equal(p.ri.target.p, p.target);
        done(&p);
    }
}

static void test_parse_when_class_asked_then_discovery_other_or_resource(void **state)
{
    static const struct {
        const char *target;
        enum kr_request_class want;
    } cases[] = {
        {"/api", KR_REQUEST_DISCOVERY},
        {"/api/v1", KR_REQUEST_DISCOVERY},
        {"/apis/apps/v1", KR_REQUEST_DISCOVERY},
        {"/openapi/v3", KR_REQUEST_DISCOVERY},
        {"/openapiv2", KR_REQUEST_OTHER},
        {"/version", KR_REQUEST_OTHER},
        {"/", KR_REQUEST_OTHER},
        {"/apiserver", KR_REQUEST_OTHER},
        {"/api/v1/pods", KR_REQUEST_RESOURCE},
        {"/apis/a/b/c", KR_REQUEST_RESOURCE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct parsed p;

        parse(&p, "GET", cases[i].target);
        assert_int_equal(p.rc, 0);
        assert_int_equal(p.ri.class, cases[i].want);
        done(&p);
    }
}

static void test_parse_when_escaped_then_path_is_decoded_once(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "GET", "/logs/a%20b/%41");
    assert_int_equal(p.rc, 0);
    assert_true(kr_bytes_is(p.ri.path, "/logs/a b/A"));
    done(&p);
}

static void test_parse_when_log_or_list_options_then_told(void **state)
{
    struct parsed p;

    (void)state;
    parse(&p, "GET", "/api/v1/namespaces/ns/pods/p/log?follow=true");
    assert_true(p.ri.follow);
    done(&p);
    parse(&p, "GET", "/api/v1/namespaces/ns/pods/p/log?follow=0");
    assert_false(p.ri.follow);
    done(&p);
    parse(&p, "GET", "/api/v1/namespaces/ns/pods/p?follow=true");
    assert_false(p.ri.follow);
    done(&p);
    parse(&p, "GET", "/api/v1/pods?limit=500");
    assert_int_equal(p.ri.limit, 500);
    done(&p);
    parse(&p, "GET", "/api/v1/pods?limit=500&watch=1");
    assert_int_equal(p.ri.limit, 0);
    assert_true(kr_request_is_watch(&p.ri));
    done(&p);
}

static void test_deadline_when_timeout_given_then_api_server_wins(void **state)
{
    static const struct {
        const char *target;
        int64_t want_ms;
    } cases[] = {
        {"/api/v1/pods", 65000},
        {"/api/v1/pods?timeout=2s", 7000},
        {"/api/v1/pods?timeout=1ns", 5001},
        {"/api/v1/pods?timeout=5m", 65000},
        {"/api/v1/pods?timeout=0", 65000},
        {"/api/v1/pods?timeout=-2s", 65000},
        {"/api/v1/pods?timeout=bad", 65000},
        {"/api/v1/pods?watch=1&timeout=2s", 0},
        {"/api/v1/namespaces/n/pods/p/log?timeout=2s", 0},
        {"/api/v1/nodes/n/proxy/x", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct parsed p;

        parse(&p, "GET", cases[i].target);
        assert_int_equal(p.rc, 0);
        assert_int_equal(kr_request_deadline_ms(&p.ri), cases[i].want_ms);
        done(&p);
    }
}

static void test_parse_when_more_pairs_than_go_reads_then_refused(void **state)
{
    static char target[KR_REQUEST_INFO_ARENA(20000)] = "/api/v1/pods?";
    struct parsed p;

    (void)state;
    memset(target + 13, '&', 9999);
    parse(&p, "GET", target);
    assert_int_equal(p.rc, 0);
    done(&p);
    memset(target + 13, '&', 10000);
    parse(&p, "GET", target);
    assert_int_equal(p.rc, KR_EINVAL);
    done(&p);
}

/* The arena that the header promises is enough, whatever is escaped; one byte less may fail, but
 * only as KR_ENOMEM. */
static void test_parse_when_everything_is_escaped_then_promised_arena_is_enough(void **state)
{
    struct kr_buf target;
    struct parsed p;

    (void)state;
    kr_buf_init(&target, 8192);
    for (size_t i = 0; i < 250; i++)
        kr_buf_append_str(&target, "/%41");
    kr_buf_append_str(&target, "?%41=%41");
    for (size_t i = 0; i < 250; i++)
        kr_buf_append_str(&target, "&%41=%41");
    kr_buf_append(&target, kr_bytes_of("&fieldSelector=metadata.name=%5C%3D", 36)); /* with NUL */
    parse(&p, "GET", (const char *)target.p);
    kr_buf_deinit(&target);
    assert_int_equal(p.rc, 0);
    done(&p);
}

static void test_parse_when_memory_is_short_then_enomem_and_never_another_answer(void **state)
{
    const char *target =
        "/api/v1/namespaces/a%20b/pods?fieldSelector=metadata.name=%41%5C%3D&w%61tch=1&%zz=1";
    size_t ok = 0;

    (void)state;
    for (size_t max = 0; max < 400; max++) {
        struct kr_request_info ri;
        struct kr_arena arena;
        struct kr_note why;
        int rc;

        kr_arena_init(&arena, 16, max);
        rc = kr_request_info_parse(&ri, KR_LIT("GET"), kr_bytes_str(target), &arena, &why);
        assert_true(rc == KR_ENOMEM || rc == 0);
        if (rc == 0) {
            assert_true(kr_bytes_is(ri.verb, "watch"));
            assert_true(kr_bytes_is(ri.name, "A="));
            ok++;
        }
        kr_arena_deinit(&arena);
    }
    assert_in_range(ok, 1, 399);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_when_kubernetes_forms_then_as_upstream),
        cmocka_unit_test(test_parse_when_dangerous_form_then_refused_with_reason),
        cmocka_unit_test(test_parse_when_below_proxy_then_forwarded_as_it_is),
        cmocka_unit_test(test_parse_when_class_asked_then_discovery_other_or_resource),
        cmocka_unit_test(test_parse_when_escaped_then_path_is_decoded_once),
        cmocka_unit_test(test_parse_when_log_or_list_options_then_told),
        cmocka_unit_test(test_deadline_when_timeout_given_then_api_server_wins),
        cmocka_unit_test(test_parse_when_more_pairs_than_go_reads_then_refused),
        cmocka_unit_test(test_parse_when_everything_is_escaped_then_promised_arena_is_enough),
        cmocka_unit_test(test_parse_when_memory_is_short_then_enomem_and_never_another_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
