/* SPDX-License-Identifier: Apache-2.0 */
/* The judge when memory runs out inside OpenSSL, at every allocation in turn: it may refuse, it
 * must never take a certificate for less than it says (an unreadable URI is not "no URI"). */
#include "certs/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/crypto.h>

#include "base/err.h"
#include "cert_maker.h"

static long allocations_left = -1; /* negative: no end */

static int denied(void)
{
    if (allocations_left < 0)
        return 0;
    if (allocations_left == 0)
        return 1;
    allocations_left--;
    return 0;
}

static void *limited_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return denied() ? NULL : malloc(n);
}

static void *limited_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return denied() ? NULL : realloc(p, n);
}

static void plain_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    free(p);
}

static void check_every_fault(const struct spec *s, int expected)
{
    const struct kr_identity_rules rules = {.role = s->role, .trust_domain = "fleet.test"};
    X509 *x = make(s);
    unsigned char *der = NULL;
    int n = i2d_X509(x, &der);
    struct kr_identity id;
    int faults = 0;
    bool ran_short;

    /* Once without faults, so that what OpenSSL loads once is loaded. */
    assert_int_equal(kr_identity_judge(&id, kr_bytes_of(der, (size_t)n), &rules, NULL), expected);
    kr_identity_deinit(&id);
    do {
        int rc;

        allocations_left = faults++;
        rc = kr_identity_judge(&id, kr_bytes_of(der, (size_t)n), &rules, NULL);
        ran_short = allocations_left == 0;
        allocations_left = -1;
        if (rc == 0) {
            assert_int_equal(expected, 0);
            assert_string_equal(id.name, "alice");
            assert_string_equal(id.domain, s->uri[0] != NULL ? "fleet.test" : "");
            assert_int_equal(id.group_count, 2);
        }
        kr_identity_deinit(&id);
    } while (ran_short && faults < 10000);
    assert_in_range(faults, 20, 9999); /* the faults did reach the judge */
    OPENSSL_free(der);
    X509_free(x);
}

static void test_judge_when_memory_runs_out_then_never_less_than_it_says(void **state)
{
    const struct spec with_uri = {USER("URI", USER_URI), .o = {"dev", "ops"}};
    const struct spec classic = {USER("classic", NULL), .o = {"dev", "ops"}};
    const struct spec agent = {USER("agent", AGENT_URI), .o = {"dev", "ops"}};
    const struct spec two = {USER("two", USER_URI, AGENT_URI), .o = {"dev", "ops"}};
    const struct spec no_eku = {USER("no EKU", USER_URI), .o = {"dev", "ops"}, .eku = NONE};
    const struct spec is_ca = {USER("CA", USER_URI), .o = {"dev", "ops"}, .bc = "CA:TRUE"};

    (void)state;
    check_every_fault(&with_uri, 0);
    check_every_fault(&classic, 0);
    check_every_fault(&agent, KR_EDENIED);
    check_every_fault(&two, KR_EDENIED);
    check_every_fault(&no_eku, KR_EDENIED);
    check_every_fault(&is_ca, KR_EDENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge_when_memory_runs_out_then_never_less_than_it_says),
    };

    /* Before OpenSSL allocates anything, or it refuses. */
    if (CRYPTO_set_mem_functions(limited_malloc, limited_realloc, plain_free) != 1)
        return 1;
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
