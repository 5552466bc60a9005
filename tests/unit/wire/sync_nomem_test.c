/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out at the Nth allocation, for every N, in what Catalog and Sync are made of:
 * the code is KR_ENOMEM, what was there before is there still, nothing leaks. The allocator is
 * replaced in this program only, zstd's included. */
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../every_alloc.h"
#include "base/err.h"
#include "wire/compress.h"
#include "wire/messages.h"
#include "wire/sync_sender.h"
#include "wire/sync_table.h"

/* A step that failed for want of memory changed nothing: the same once more succeeds. */
#define TRY_TWICE(rc, call)                                                                        \
    do {                                                                                           \
        (rc) = (call);                                                                             \
        if ((rc) == KR_ENOMEM)                                                                     \
            (rc) = (call);                                                                         \
    } while (0)

static int use_table(void)
{
    struct kr_sync_table t;
    uint64_t object = 0;
    int rc = 0;

    kr_sync_table_init(&t, 1000);
    for (uint64_t i = 0; i < 400 && rc == 0; i++) {
        TRY_TWICE(rc, kr_sync_table_put(&t, i * 0x9e3779b97f4a7c15u, i));
        if (i % 3 == 0)
            kr_sync_table_remove(&t, i * 0x9e3779b97f4a7c15u);
    }
    assert_int_equal(t.digest.objects, 266);
    for (uint64_t i = 0; i < 400; i++)
        assert_int_equal(kr_sync_table_get(&t, i * 0x9e3779b97f4a7c15u, &object), i % 3 != 0);
    kr_sync_table_deinit(&t);
    return rc;
}

static int fill_sender(struct kr_sync_sender *s)
{
    const struct kr_upsert u = {.name = KR_LIT("a"), .size = 3, .packed = KR_LIT("\n{}")};
    const uint32_t wanted[] = {1, 2};
    int rc;

    TRY_TWICE(rc, kr_sync_sender_columns(s, KR_LIT("[]")));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_want(s, wanted, 2));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_put(s, 1, &u));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_put(s, 2, &u));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_delete(s, 2));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_snapshot_end(s));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_progress(s, KR_LIT("1")));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_progress(s, KR_LIT("2")));
    if (rc == 0)
        TRY_TWICE(rc, kr_sync_sender_problem(s, KR_SYNC_FAILING, KR_LIT("why")));
    return rc;
}

static int use_sender(void)
{
    struct kr_sync_sender *s = kr_sync_sender_create(1000);
    struct kr_sync_batch m;
    struct kr_arena arena;
    struct kr_note why;
    struct kr_buf out;
    int rc;

    if (s == NULL)
        return KR_ENOMEM;
    kr_buf_init(&out, 10000);
    kr_arena_init(&arena, 10000, 100000);
    rc = fill_sender(s);
    assert_int_equal(rc, 0); /* one failure at most */
    TRY_TWICE(rc, kr_sync_sender_next(s, &out));
    assert_int_equal(rc, 1);
    TRY_TWICE(rc, kr_sync_batch_decode(&m, kr_buf_bytes(&out), &arena, &why));
    assert_int_equal(rc, 0);
    assert_true(kr_bytes_is(m.columns, "[]") && m.want_count == 2 && m.upsert_count == 1);
    assert_true(m.delete_count == 1 && m.snapshot_end && kr_bytes_is(m.progress, "2"));
    assert_true(kr_bytes_is(m.problem_text, "why"));
    assert_true(kr_sync_sender_empty(s));
    kr_sync_sender_destroy(s);
    kr_arena_deinit(&arena);
    kr_buf_deinit(&out);
    return 0;
}

/* Some of it stays behind and is freed with the sender. */
static int leave_sender(void)
{
    struct kr_sync_sender *s = kr_sync_sender_create(1000);
    int rc = s != NULL ? fill_sender(s) : KR_ENOMEM;

    kr_sync_sender_destroy(s);
    return rc;
}

static int use_messages(void)
{
    struct kr_resource_type t = {
        .version = KR_LIT("v1"), .resource = KR_LIT("pods"), .kind = KR_LIT("Pod")};
    struct kr_catalog_update m = {.types = &t, .n = 1};
    struct kr_catalog_update got;
    struct kr_arena arena;
    struct kr_note why;
    struct kr_buf out;
    int rc;

    kr_buf_init(&out, 10000);
    kr_arena_init(&arena, 16, 100000);
    rc = kr_catalog_update_encode(&m, &out);
    if (rc == 0)
        rc = kr_catalog_update_decode(&got, kr_buf_bytes(&out), &arena, &why);
    assert_true(rc != 0 || got.n == 1);
    kr_arena_deinit(&arena);
    kr_buf_deinit(&out);
    return rc;
}

static int pack_and_unpack(struct kr_packer *p, struct kr_unpacker *u)
{
    static const char text[] = "[\"a\"]\n{\"metadata\":{\"name\":\"a\"}}";
    uint8_t plain[sizeof text];
    uint32_t dictionary;
    struct kr_buf out;
    int rc;

    kr_buf_init(&out, 1000);
    rc = kr_pack(p, kr_bytes_of(text, sizeof text), &out, &dictionary);
    if (rc == 0)
        rc = kr_unpack(u, kr_buf_bytes(&out), dictionary, plain, sizeof text);
    assert_true(rc != 0 || memcmp(plain, text, sizeof text) == 0);
    kr_buf_deinit(&out);
    return rc;
}

static int use_compress(void)
{
    struct kr_dictionaries *d = kr_dictionaries_create(true, true);
    struct kr_packer *p = d != NULL ? kr_packer_create(d) : NULL;
    struct kr_unpacker *u = d != NULL ? kr_unpacker_create(d) : NULL;
    int rc = p != NULL && u != NULL ? pack_and_unpack(p, u) : KR_ENOMEM;

    kr_packer_destroy(p);
    kr_unpacker_destroy(u);
    kr_dictionaries_destroy(d);
    return rc;
}

#define NOMEM_TEST(what)                                                                           \
    static void test_##what##_when_memory_runs_out_then_told_and_unchanged(void **state)           \
    {                                                                                              \
        (void)state;                                                                               \
        for_every_allocation(what);                                                                \
    }

NOMEM_TEST(use_table)
NOMEM_TEST(use_sender)
NOMEM_TEST(leave_sender)
NOMEM_TEST(use_messages)
NOMEM_TEST(use_compress)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_use_table_when_memory_runs_out_then_told_and_unchanged),
        cmocka_unit_test(test_use_sender_when_memory_runs_out_then_told_and_unchanged),
        cmocka_unit_test(test_leave_sender_when_memory_runs_out_then_told_and_unchanged),
        cmocka_unit_test(test_use_messages_when_memory_runs_out_then_told_and_unchanged),
        cmocka_unit_test(test_use_compress_when_memory_runs_out_then_told_and_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
