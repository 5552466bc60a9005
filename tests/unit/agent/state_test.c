/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "certs/store_file.h"

static int setup(void **state)
{
    char *dir = strdup("/tmp/kr-state-XXXXXX");

    *state = dir;
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    static const char *const names[] = {"pair.pem", "previous.pem", "pending.key", "bundle.pem"};
    char path[128];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", (char *)*state, names[i]);
        unlink(path);
    }
    rmdir(*state);
    free(*state);
    return 0;
}

static bool there(const char *dir, const char *name)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (stat(path, &st) != 0)
        return false;
    assert_int_equal(st.st_mode & 0777, 0600);
    return true;
}

static void test_pair_is_saved_whole_and_the_one_before_is_kept_until_it_is_accepted(void **state)
{
    const char *dir = *state;
    struct kr_buf pem = {0};
    struct kr_buf key = {0};

    assert_int_equal(agent_state_load_pair(dir, &pem, NULL), KR_ENOENT);
    assert_int_equal(agent_state_pending_key(dir, &key, NULL), 0);
    assert_int_equal(agent_state_save_pair(dir, KR_LIT("key1\n"), KR_LIT("cert1\n"), NULL), 0);
    assert_false(there(dir, "pending.key"));
    assert_false(there(dir, "previous.pem"));
    assert_int_equal(agent_state_save_pair(dir, KR_LIT("key2\n"), KR_LIT("cert2\n"), NULL), 0);
    assert_true(there(dir, "previous.pem"));
    assert_int_equal(agent_state_load_pair(dir, &pem, NULL), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&pem), "key2\ncert2\n"));
    agent_state_accept_pair(dir);
    assert_false(there(dir, "previous.pem"));
    assert_true(there(dir, "pair.pem"));
    kr_buf_cleanse(&pem);
    kr_buf_cleanse(&key);
}

static void test_pending_key_stays_the_same_until_its_answer_is_saved(void **state)
{
    const char *dir = *state;
    struct kr_buf a = {0};
    struct kr_buf b = {0};

    assert_int_equal(agent_state_pending_key(dir, &a, NULL), 0);
    assert_true(there(dir, "pending.key"));
    assert_int_equal(agent_state_pending_key(dir, &b, NULL), 0);
    assert_true(kr_bytes_eq(kr_buf_bytes(&a), kr_buf_bytes(&b)));
    assert_int_equal(agent_state_save_pair(dir, kr_buf_bytes(&a), KR_LIT("cert\n"), NULL), 0);
    kr_buf_cleanse(&b);
    assert_int_equal(agent_state_pending_key(dir, &b, NULL), 0);
    assert_false(kr_bytes_eq(kr_buf_bytes(&a), kr_buf_bytes(&b)));
    kr_buf_cleanse(&a);
    kr_buf_cleanse(&b);
}

static void test_bundle_comes_back_with_its_generation_and_a_broken_one_is_refused(void **state)
{
    const char *dir = *state;
    struct kr_buf pem = {0};
    uint64_t generation = 0;
    char path[128];

    assert_int_equal(agent_state_load_bundle(dir, &pem, &generation, NULL), KR_ENOENT);
    assert_int_equal(agent_state_save_bundle(dir, KR_LIT("roots\n"), 42, NULL), 0);
    assert_int_equal(agent_state_load_bundle(dir, &pem, &generation, NULL), 0);
    assert_int_equal(generation, 42);
    assert_true(kr_bytes_is(kr_buf_bytes(&pem), "# generation 42\nroots\n"));
    snprintf(path, sizeof path, "%s/bundle.pem", dir);
    assert_int_equal(kr_file_replace(path, KR_LIT("# generation x\nroots\n"), NULL), 0);
    assert_int_equal(agent_state_load_bundle(dir, &pem, &generation, NULL), KR_EPROTO);
    assert_int_equal(kr_file_replace(path, KR_LIT("roots\n"), NULL), 0);
    assert_int_equal(agent_state_load_bundle(dir, &pem, &generation, NULL), KR_EPROTO);
    kr_buf_deinit(&pem);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_pair_is_saved_whole_and_the_one_before_is_kept_until_it_is_accepted),
        T(test_pending_key_stays_the_same_until_its_answer_is_saved),
        T(test_bundle_comes_back_with_its_generation_and_a_broken_one_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
