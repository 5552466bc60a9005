/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/pin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "certs/ca.h"

#define NOW_MS 1800000000123

struct fixture {
    struct kr_pem_pair root;
    struct kr_pem_pair other;
    struct kr_pem_pair hub;
    struct kr_buf roots; /* both */
};

static void setup(struct fixture *f)
{
    struct kr_leaf leaf = {.role = KR_ROLE_HUB, .name = "hub-1"};
    struct kr_ca *ca;

    *f = (struct fixture){.roots = {.max = 65536}};
    assert_int_equal(kr_ca_create_root(&f->root, "example.test", 1, NOW_MS, NULL), 0);
    assert_int_equal(kr_ca_create_root(&f->other, "example.test", 1, NOW_MS, NULL), 0);
    assert_int_equal(kr_ca_load(&ca, kr_buf_bytes(&f->root.cert), kr_buf_bytes(&f->root.key), NULL,
                                NOW_MS, NULL),
                     0);
    assert_int_equal(kr_ca_issue(ca, &leaf, NOW_MS, &f->hub, NULL), 0);
    kr_ca_destroy(ca);
    kr_buf_append(&f->roots, kr_buf_bytes(&f->other.cert));
    kr_buf_append(&f->roots, kr_buf_bytes(&f->root.cert));
}

static void teardown(struct fixture *f)
{
    kr_pem_pair_deinit(&f->root);
    kr_pem_pair_deinit(&f->other);
    kr_pem_pair_deinit(&f->hub);
    kr_buf_deinit(&f->roots);
}

static void test_parse_takes_64_digits_and_nothing_else(void **state)
{
    char good[KR_PIN_TEXT];
    uint8_t pin[KR_PIN_SIZE];

    (void)state;
    memset(good, 'a', sizeof good - 1);
    memcpy(good, "sha256:0F", 9);
    good[sizeof good - 1] = '\0';
    assert_true(kr_pin_parse(kr_bytes_str(good), pin));
    assert_int_equal(pin[0], 0x0f);
    assert_int_equal(pin[31], 0xaa);
    assert_false(kr_pin_parse(kr_bytes_of(good, sizeof good - 2), pin));
    assert_false(kr_pin_parse(kr_bytes_of(good, sizeof good), pin)); /* a NUL behind it */
    assert_false(kr_pin_parse(kr_bytes_str(good + 7), pin));
    assert_false(kr_pin_parse(KR_LIT(""), pin));
    good[20] = 'g';
    assert_false(kr_pin_parse(kr_bytes_str(good), pin));
    memcpy(good, "sha512:", 7);
    assert_false(kr_pin_parse(kr_bytes_str(good), pin));
}

static void test_pin_is_of_the_root_that_the_chain_leads_to(void **state)
{
    char text[KR_PIN_TEXT];
    uint8_t pin[KR_PIN_SIZE];
    struct fixture f;

    (void)state;
    setup(&f);
    assert_int_equal(kr_pin_of_chain(kr_buf_bytes(&f.hub.cert), kr_buf_bytes(&f.roots), text, NULL),
                     0);
    assert_int_equal(strlen(text), KR_PIN_TEXT - 1);
    assert_true(kr_pin_parse(kr_bytes_str(text), pin));
    assert_int_equal(kr_pin_check(kr_buf_bytes(&f.root.cert), pin, NULL), 0);
    assert_int_equal(kr_pin_check(kr_buf_bytes(&f.roots), pin, NULL), 0);
    assert_int_equal(kr_pin_check(kr_buf_bytes(&f.other.cert), pin, NULL), KR_EDENIED);
    assert_int_equal(kr_pin_check(kr_buf_bytes(&f.hub.cert), pin, NULL), KR_EDENIED);
    assert_int_equal(kr_pin_check(KR_LIT(""), pin, NULL), KR_EDENIED);
    assert_int_equal(
        kr_pin_of_chain(kr_buf_bytes(&f.hub.cert), kr_buf_bytes(&f.other.cert), text, NULL),
        KR_EDENIED);
    teardown(&f);
}

static void test_chain_is_completed_once(void **state)
{
    struct kr_buf chain = {.max = 65536};
    char text[KR_PIN_TEXT];
    struct fixture f;
    size_t n;

    (void)state;
    setup(&f);
    kr_buf_append(&chain, kr_buf_bytes(&f.hub.cert));
    chain.n--; /* a file that ends without a newline */
    assert_int_equal(kr_pin_complete_chain(&chain, kr_buf_bytes(&f.roots), NULL), 0);
    assert_int_equal(kr_pin_of_chain(kr_buf_bytes(&chain), kr_buf_bytes(&chain), text, NULL), 0);
    n = chain.n;
    assert_int_equal(kr_pin_complete_chain(&chain, kr_buf_bytes(&f.roots), NULL), 0);
    assert_int_equal(chain.n, n);
    chain.n = 0;
    kr_buf_append(&chain, kr_buf_bytes(&f.hub.cert));
    assert_int_equal(kr_pin_complete_chain(&chain, kr_buf_bytes(&f.other.cert), NULL), KR_EDENIED);
    kr_buf_deinit(&chain);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_takes_64_digits_and_nothing_else),
        cmocka_unit_test(test_pin_is_of_the_root_that_the_chain_leads_to),
        cmocka_unit_test(test_chain_is_completed_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
