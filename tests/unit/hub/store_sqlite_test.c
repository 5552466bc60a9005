/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/store_sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/err.h"

struct world {
    char dir[32];
    char path[64];
    struct hub_store *s;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    snprintf(w->dir, sizeof w->dir, "/tmp/kr-store-XXXXXX");
    if (mkdtemp(w->dir) == NULL)
        return -1;
    snprintf(w->path, sizeof w->path, "%s/registry.db", w->dir);
    *state = w;
    return hub_store_sqlite_open(&w->s, w->path, false, NULL);
}

static int teardown(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    struct world *w = *state;
    char path[80];

    if (w->s != NULL)
        w->s->ops->close(w->s);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", w->path, ends[i]);
        unlink(path);
    }
    rmdir(w->dir);
    free(w);
    return 0;
}

static void reopen(struct world *w)
{
    w->s->ops->close(w->s);
    assert_int_equal(hub_store_sqlite_open(&w->s, w->path, false, NULL), 0);
}

static struct hub_token token(const char *id)
{
    struct hub_token t = {.expires_wall_ms = 5000, .auto_accept = true};

    snprintf(t.id, sizeof t.id, "%s", id);
    snprintf(t.cluster, sizeof t.cluster, "edge-1");
    memset(t.secret_sha256, 7, sizeof t.secret_sha256);
    return t;
}

static void test_token_is_claimed_by_one_key_and_only_that(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    struct hub_token t = token("aaaaaaaa");
    uint8_t mine[HUB_SPKI_SIZE] = {1};
    uint8_t yours[HUB_SPKI_SIZE] = {2};

    assert_int_equal(ops->token_add(w->s, &t, NULL), 0);
    assert_int_equal(ops->token_add(w->s, &t, NULL), KR_EEXIST);
    assert_int_equal(ops->token_claim(w->s, t.id, mine, "a", NULL), 0);
    assert_int_equal(ops->token_claim(w->s, t.id, mine, "a", NULL), 0);
    assert_int_equal(ops->token_claim(w->s, t.id, mine, "b", NULL), KR_EEXIST);
    assert_int_equal(ops->token_claim(w->s, t.id, yours, "a", NULL), KR_EEXIST);
    assert_int_equal(ops->token_claim(w->s, "bbbbbbbb", mine, "a", NULL), KR_EEXIST);
    reopen(w);
    assert_int_equal(ops->token_find(w->s, "aaaaaaaa", &t, NULL), 0);
    assert_true(t.used && t.auto_accept);
    assert_memory_equal(t.spki, mine, sizeof mine);
    assert_string_equal(t.instance, "a");
}

static void test_token_counts_failures_and_expires(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    struct hub_token t = token("aaaaaaaa");

    ops->token_add(w->s, &t, NULL);
    assert_int_equal(ops->token_failed(w->s, "aaaaaaaa", NULL), 0);
    assert_int_equal(ops->token_failed(w->s, "aaaaaaaa", NULL), 0);
    assert_int_equal(ops->token_find(w->s, "aaaaaaaa", &t, NULL), 0);
    assert_int_equal(t.failures, 2);
    assert_false(t.used);
    assert_int_equal(ops->tokens_expire(w->s, 5000, NULL), 0);
    assert_int_equal(ops->token_find(w->s, "aaaaaaaa", &t, NULL), 0);
    assert_int_equal(ops->tokens_expire(w->s, 5001, NULL), 0);
    assert_int_equal(ops->token_find(w->s, "aaaaaaaa", &t, NULL), KR_ENOENT);
    assert_int_equal(ops->token_remove(w->s, "aaaaaaaa", NULL), KR_ENOENT);
}

static struct hub_instance instance(uint64_t generation)
{
    struct hub_instance i = {.generation = generation, .has_next = true, .chain.max = 100};

    snprintf(i.cluster, sizeof i.cluster, "edge-1");
    snprintf(i.name, sizeof i.name, "a");
    snprintf(i.serial, sizeof i.serial, "00ff");
    memset(i.spki, 1, sizeof i.spki);
    memset(i.next_spki, 2, sizeof i.next_spki);
    kr_buf_append_str(&i.chain, "PEM");
    return i;
}

static void test_instance_is_written_only_over_the_generation_that_was_read(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    struct hub_instance i = instance(1);
    struct hub_instance got;

    assert_int_equal(ops->instance_put(w->s, &i, 1, NULL), KR_EEXIST);
    assert_int_equal(ops->instance_put(w->s, &i, 0, NULL), 0);
    assert_int_equal(ops->instance_put(w->s, &i, 0, NULL), KR_EEXIST);
    i.generation = 2;
    assert_int_equal(ops->instance_put(w->s, &i, 1, NULL), 0);
    assert_int_equal(ops->instance_put(w->s, &i, 1, NULL), KR_EEXIST);
    reopen(w);
    assert_int_equal(ops->instance_find(w->s, "edge-1", "a", &got, NULL), 0);
    assert_int_equal(got.generation, 2);
    assert_true(got.has_next && !got.has_previous);
    assert_memory_equal(got.next_spki, i.next_spki, HUB_SPKI_SIZE);
    assert_true(kr_bytes_is(kr_buf_bytes(&got.chain), "PEM"));
    kr_buf_deinit(&got.chain);
    kr_buf_deinit(&i.chain);
    assert_int_equal(ops->instance_find(w->s, "edge-1", "b", &got, NULL), KR_ENOENT);
}

static bool count(void *owner, const struct hub_cluster_record *c)
{
    (void)c;
    return ++*(int *)owner < 2;
}

static void test_clusters_are_kept_listed_and_removed_with_their_instances(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    struct hub_cluster_record c = {.state = HUB_CLUSTER_DENIED, .external = true};
    struct hub_instance i = instance(1);
    int n = 0;

    for (int k = 0; k < 3; k++) {
        snprintf(c.name, sizeof c.name, "edge-%d", k);
        assert_int_equal(ops->cluster_put(w->s, &c, NULL), 0);
    }
    assert_int_equal(ops->clusters_each(w->s, count, &n, NULL), 0);
    assert_int_equal(n, 2); /* the visit said stop */
    assert_int_equal(ops->cluster_find(w->s, "edge-1", &c, NULL), 0);
    assert_int_equal(c.state, HUB_CLUSTER_DENIED);
    assert_true(c.external);
    ops->instance_put(w->s, &i, 0, NULL);
    kr_buf_deinit(&i.chain);
    c.state = HUB_CLUSTER_REMOVED;
    assert_int_equal(ops->cluster_remove(w->s, &c, NULL), 0);
    assert_int_equal(ops->cluster_find(w->s, "edge-1", &c, NULL), 0);
    assert_int_equal(c.state, HUB_CLUSTER_REMOVED);
    assert_int_equal(ops->instance_find(w->s, "edge-1", "a", &i, NULL), KR_ENOENT);
}

static void test_keys_are_denied_and_numbers_kept(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    uint8_t key[HUB_SPKI_SIZE] = {9};
    uint64_t v = 1;

    assert_int_equal(ops->key_denied(w->s, key, NULL), KR_ENOENT);
    assert_int_equal(ops->key_deny(w->s, key, 5, NULL), 0);
    assert_int_equal(ops->key_deny(w->s, key, 6, NULL), 0);
    assert_int_equal(ops->key_denied(w->s, key, NULL), 0);
    assert_int_equal(ops->number_get(w->s, "n", &v, NULL), 0);
    assert_int_equal(v, 0);
    assert_int_equal(ops->number_put(w->s, "n", INT64_MAX, NULL), 0);
    assert_int_equal(ops->sync(w->s, NULL), 0);
    reopen(w);
    assert_int_equal(ops->number_get(w->s, "n", &v, NULL), 0);
    assert_int_equal(v, INT64_MAX);
}

static void test_key_when_it_is_allowed_again_then_it_is_denied_no_more(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    uint8_t key[HUB_SPKI_SIZE] = {9};
    uint8_t other[HUB_SPKI_SIZE] = {8};

    ops->key_deny(w->s, key, 5, NULL);
    ops->key_deny(w->s, other, 5, NULL);
    assert_int_equal(ops->key_allow(w->s, key, NULL), 0);
    assert_int_equal(ops->key_allow(w->s, key, NULL), KR_ENOENT);
    reopen(w);
    assert_int_equal(ops->key_denied(w->s, key, NULL), KR_ENOENT);
    assert_int_equal(ops->key_denied(w->s, other, NULL), 0);
}

static uint64_t trusted(struct world *w)
{
    struct hub_instance got;

    assert_int_equal(w->s->ops->instance_find(w->s, "edge-1", "a", &got, NULL), 0);
    kr_buf_deinit(&got.chain);
    return got.bundle_generation;
}

static void test_roots_that_an_agent_told_of_stay_known_when_its_key_changes(void **state)
{
    struct world *w = *state;
    const struct hub_store_ops *ops = w->s->ops;
    struct hub_instance i = instance(1);

    assert_int_equal(ops->instance_trusts(w->s, "edge-1", "a", 7, NULL), 0); /* unknown: nothing */
    ops->instance_put(w->s, &i, 0, NULL);
    assert_int_equal(trusted(w), 0);
    assert_int_equal(ops->instance_trusts(w->s, "edge-1", "a", 7, NULL), 0);
    i.generation = 2; /* was read before the agent told */
    assert_int_equal(ops->instance_put(w->s, &i, 1, NULL), 0);
    kr_buf_deinit(&i.chain);
    reopen(w);
    assert_int_equal(trusted(w), 7);
    assert_int_equal(ops->instance_trusts(w->s, "edge-1", "a", 3, NULL), 0);
    assert_int_equal(trusted(w), 3); /* its state was emptied */
}

static void test_file_of_the_first_version_is_brought_to_this_one(void **state)
{
    struct world *w = *state;
    struct hub_instance i = instance(1);
    sqlite3 *db;

    w->s->ops->instance_put(w->s, &i, 0, NULL);
    kr_buf_deinit(&i.chain);
    w->s->ops->close(w->s);
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "ALTER TABLE instances DROP COLUMN bundle;"
                                  "PRAGMA user_version = 1",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(hub_store_sqlite_open(&w->s, w->path, false, NULL), 0);
    assert_int_equal(trusted(w), 0);
}

static void test_file_is_private_and_one_of_a_newer_hub_is_refused(void **state)
{
    struct world *w = *state;
    struct hub_store *s;
    struct kr_note why;
    struct stat st;
    sqlite3 *db;

    assert_int_equal(stat(w->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(sqlite3_open(w->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(hub_store_sqlite_open(&s, w->path, true, &why), KR_EUNSUPPORTED);
    assert_non_null(strstr(why.text, "newer hub"));
}

static void test_file_that_is_no_database_is_refused(void **state)
{
    struct world *w = *state;
    struct hub_store *s;
    char path[80];
    FILE *f;

    snprintf(path, sizeof path, "%s/junk", w->dir);
    f = fopen(path, "w");
    for (int i = 0; i < 2000; i++)
        fputs("junk", f);
    fclose(f);
    assert_int_equal(hub_store_sqlite_open(&s, path, false, NULL), KR_EIO);
    assert_null(s);
    unlink(path);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_token_is_claimed_by_one_key_and_only_that),
        T(test_token_counts_failures_and_expires),
        T(test_instance_is_written_only_over_the_generation_that_was_read),
        T(test_clusters_are_kept_listed_and_removed_with_their_instances),
        T(test_keys_are_denied_and_numbers_kept),
        T(test_key_when_it_is_allowed_again_then_it_is_denied_no_more),
        T(test_roots_that_an_agent_told_of_stay_known_when_its_key_changes),
        T(test_file_of_the_first_version_is_brought_to_this_one),
        T(test_file_is_private_and_one_of_a_newer_hub_is_refused),
        T(test_file_that_is_no_database_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
