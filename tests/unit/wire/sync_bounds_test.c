/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding the messages of Catalog and Sync: cut anywhere, with little memory, with many elements.
 */
#include "wire/sync_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "wire/messages.h"
#include "wire/proto_scan.h"

#include "sync_samples.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static struct kr_note why;

static int decode_any(int which, struct kr_bytes in, struct kr_arena *arena)
{
    struct kr_catalog_update catalog;
    struct kr_sync_control control;
    struct kr_sync_batch got;

    switch (which) {
    case 0:
        return kr_catalog_update_decode(&catalog, in, arena, &why);
    case 1:
        return kr_sync_control_decode(&control, in, arena, &why);
    default:
        return kr_sync_batch_decode(&got, in, arena, &why);
    }
}

static void encode_any(int which, struct kr_buf *out)
{
    struct kr_sync_open open = {.subscription = subscription, .holds = true};
    struct kr_sync_control control = {.open = &open, .buckets = buckets, .bucket_count = 2};
    struct kr_catalog_update catalog = {.types = types, .n = COUNT(types)};

    if (which == 0)
        assert_int_equal(kr_catalog_update_encode(&catalog, out), 0);
    else if (which == 1)
        assert_int_equal(kr_sync_control_encode(&control, out), 0);
    else
        assert_int_equal(kr_sync_batch_encode(&batch, out), 0);
}

static void test_messages_when_cut_anywhere_then_no_crash(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct kr_buf out;

        kr_buf_init(&out, KR_SYNC_MESSAGE_MAX);
        encode_any(which, &out);
        for (size_t n = 0; n < out.n; n++) {
            uint8_t *copy = malloc(n != 0 ? n : 1); /* so that a sanitizer sees its end */
            struct kr_arena arena;

            assert_non_null(copy);
            memcpy(copy, out.p, n);
            kr_arena_init(&arena, 16, KR_DECODE_ARENA(n));
            decode_any(which, kr_bytes_of(copy, n), &arena);
            kr_arena_deinit(&arena);
            free(copy);
        }
        kr_buf_deinit(&out);
    }
}

static void test_messages_when_memory_is_short_then_told(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct kr_buf out;
        int rc = KR_ENOMEM;
        size_t max = 0;

        kr_buf_init(&out, KR_SYNC_MESSAGE_MAX);
        encode_any(which, &out);
        for (; rc != 0; max += 8) {
            struct kr_arena arena;

            kr_arena_init(&arena, 16, max);
            rc = decode_any(which, kr_buf_bytes(&out), &arena);
            assert_true(rc == 0 || rc == KR_ENOMEM);
            kr_arena_deinit(&arena);
        }
        assert_in_range(max, 64, KR_DECODE_ARENA(out.n));
        kr_buf_deinit(&out);
    }
}

/* The smallest upserts that are taken: the list of them stays within the bound that is promised. */
static void test_batch_when_many_small_upserts_then_arena_is_enough(void **state)
{
    const struct kr_upsert u = {.name = L("a"), .size = 1, .packed = L("x")};
    struct kr_sync_batch got;
    struct kr_arena arena;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, KR_SYNC_MESSAGE_MAX);
    for (int i = 0; i < KR_SYNC_UPSERTS_MAX; i++)
        assert_int_equal(kr_upsert_encode(&u, &out), 0);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(out.n));
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&out), &arena, &why), 0);
    assert_int_equal(got.upsert_count, KR_SYNC_UPSERTS_MAX);
    kr_arena_deinit(&arena);
    /* Empty ones are found out before any memory is spent on them. */
    out.n = 0;
    for (int i = 0; i < KR_SYNC_UPSERTS_MAX; i++)
        kr_proto_put_element(&out, 3, kr_bytes_str(""));
    kr_arena_init(&arena, 16, 0);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&out), &arena, &why), KR_EPROTO);
    kr_arena_deinit(&arena);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_when_cut_anywhere_then_no_crash),
        cmocka_unit_test(test_messages_when_memory_is_short_then_told),
        cmocka_unit_test(test_batch_when_many_small_upserts_then_arena_is_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
