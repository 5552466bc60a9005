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
    assert_true(agent_state_has_previous(dir));
    assert_true(agent_state_accept_pair(dir));
    assert_false(there(dir, "previous.pem"));
    assert_false(agent_state_has_previous(dir));
    assert_false(agent_state_accept_pair(dir));
    assert_int_equal(agent_state_go_back(dir, NULL), KR_ENOENT);
    assert_true(there(dir, "pair.pem"));
    kr_buf_cleanse(&pem);
    kr_buf_cleanse(&key);
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(kr_file_replace(path, kr_bytes_str(text), NULL), 0);
}

static void test_going_back_puts_the_pair_before_in_its_place(void **state)
{
    const char *dir = *state;
    struct kr_buf pem = {0};

    assert_int_equal(agent_state_save_pair(dir, KR_LIT("key1\n"), KR_LIT("cert1\n"), NULL), 0);
    assert_int_equal(agent_state_save_pair(dir, KR_LIT("key2\n"), KR_LIT("cert2\n"), NULL), 0);
    put(dir, "pending.key", "key2\n");
    assert_int_equal(agent_state_load_previous(dir, &pem, NULL), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&pem), "key1\ncert1\n"));
    assert_int_equal(agent_state_go_back(dir, NULL), 0);
    assert_int_equal(agent_state_load_pair(dir, &pem, NULL), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&pem), "key1\ncert1\n"));
    assert_false(there(dir, "previous.pem"));
    assert_false(there(dir, "pending.key"));
    kr_buf_cleanse(&pem);
}

/* What the disk holds when the power fails between two steps of a renewal, and what a start makes
 * of it: a whole pair each time, and a key for the next request that is not in use. */
static void test_T15_each_step_of_a_renewal_leaves_a_pair_and_a_way_on(void **state)
{
    static const struct {
        const char *pair;
        const char *previous;
        const char *pending;
        const char *next; /* NULL: a new one */
    } steps[] = {
        {"key1\ncert1\n", NULL, NULL, NULL},                    /* before it */
        {"key1\ncert1\n", NULL, "key2\n", "key2\n"},            /* asked */
        {"key1\ncert1\n", "key1\ncert1\n", "key2\n", "key2\n"}, /* answered, 1 */
        {"key2\ncert2\n", "key1\ncert1\n", "key2\n", NULL},     /* answered, 2 */
        {"key2\ncert2\n", "key1\ncert1\n", NULL, NULL},         /* answered, 3 */
        {"key2\ncert2\n", NULL, NULL, NULL},                    /* accepted */
    };
    const char *dir = *state;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct kr_buf pem = {0};
        struct kr_buf key = {0};

        put(dir, "pair.pem", steps[i].pair);
        if (steps[i].previous != NULL)
            put(dir, "previous.pem", steps[i].previous);
        if (steps[i].pending != NULL)
            put(dir, "pending.key", steps[i].pending);
        assert_int_equal(agent_state_load_pair(dir, &pem, NULL), 0);
        assert_true(kr_bytes_is(kr_buf_bytes(&pem), steps[i].pair));
        assert_int_equal(agent_state_pending_key(dir, &key, NULL), 0);
        if (steps[i].next != NULL)
            assert_true(kr_bytes_is(kr_buf_bytes(&key), steps[i].next));
        else
            assert_true(kr_bytes_starts(kr_buf_bytes(&key), KR_LIT("-----BEGIN")));
        kr_buf_cleanse(&pem);
        kr_buf_cleanse(&key);
        for (int k = 0; k < 2; k++)
            agent_state_accept_pair(dir);
        put(dir, "pair.pem", "x");
        put(dir, "previous.pem", "x");
        put(dir, "pending.key", "x");
        agent_state_go_back(dir, NULL); /* takes both away */
    }
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
        T(test_going_back_puts_the_pair_before_in_its_place),
        T(test_T15_each_step_of_a_renewal_leaves_a_pair_and_a_way_on),
        T(test_pending_key_stays_the_same_until_its_answer_is_saved),
        T(test_bundle_comes_back_with_its_generation_and_a_broken_one_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
