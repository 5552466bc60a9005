/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written codec of Catalog and Sync against protobuf-c's. */
#include "wire/sync_messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <kuberelay/v1/kuberelay.pb-c.h>

#include "base/err.h"
#include "wire/messages.h"
#include "wire/proto_scan.h"

#include "sync_samples.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static struct kr_note why;

struct scratch {
    struct kr_buf out;
    struct kr_buf again;
    struct kr_arena arena;
};

static void setup(struct scratch *s)
{
    kr_buf_init(&s->out, KR_SYNC_MESSAGE_MAX);
    kr_buf_init(&s->again, KR_SYNC_MESSAGE_MAX);
    kr_arena_init(&s->arena, 256, KR_DECODE_ARENA(KR_SYNC_MESSAGE_MAX));
}

static void teardown(struct scratch *s)
{
    kr_buf_deinit(&s->out);
    kr_buf_deinit(&s->again);
    kr_arena_deinit(&s->arena);
}

static void check_same(const struct scratch *s)
{
    assert_true(s->out.n != 0);
    assert_true(kr_bytes_eq(kr_buf_bytes(&s->out), kr_buf_bytes(&s->again)));
}

/* --- both codecs --------------------------------------------------------------------------- */

static void test_catalog_when_written_then_protobuf_c_writes_the_same(void **state)
{
    struct kr_catalog_update m = {.types = types, .n = COUNT(types), .more = true};
    struct kr_catalog_update got;
    Kuberelay__V1__CatalogUpdate *p;
    struct scratch s;

    (void)state;
    setup(&s);
    assert_int_equal(kr_catalog_update_encode(&m, &s.out), 0);
    p = kuberelay__v1__catalog_update__unpack(NULL, s.out.n, s.out.p);
    assert_non_null(p);
    assert_int_equal(p->n_types, 2);
    assert_string_equal(p->types[0]->resource, "pods");
    assert_string_equal(p->types[0]->short_names[1], "caf\xC3\xA9");
    assert_true(p->types[0]->namespaced && p->types[0]->preferred && p->more);
    assert_string_equal(p->types[1]->group, "apps");
    assert_int_equal(kuberelay__v1__catalog_update__get_packed_size(p), s.out.n);
    kuberelay__v1__catalog_update__free_unpacked(p, NULL);
    assert_int_equal(kr_catalog_update_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.types[0].short_name_count, 2);
    assert_int_equal(kr_catalog_update_encode(&got, &s.again), 0);
    check_same(&s);
    teardown(&s);
}

static void test_control_when_written_then_protobuf_c_reads_the_same(void **state)
{
    struct kr_sync_open open = {.subscription = subscription,
                                .holds = true,
                                .version = L("99"),
                                .dictionaries = dictionaries,
                                .dictionary_count = 2};
    struct kr_sync_control m = {.open = &open, .buckets = buckets, .bucket_count = 2};
    struct kr_sync_control got;
    Kuberelay__V1__SyncControl *p;
    struct scratch s;

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        kr_digest_add(&open.digest, i << 54, i);
    setup(&s);
    assert_int_equal(kr_sync_control_encode(&m, &s.out), 0);
    p = kuberelay__v1__sync_control__unpack(NULL, s.out.n, s.out.p);
    assert_non_null(p);
    assert_int_equal(p->open->n_buckets, KR_BUCKETS);
    assert_memory_equal(p->open->buckets, open.digest.sums, sizeof open.digest.sums);
    assert_int_equal(p->open->objects, 1000);
    assert_int_equal(p->open->dictionaries[1], 300);
    assert_true(p->open->subscription->id == 1ull << 40);
    assert_string_equal(p->open->subscription->label_selector, "app=web,tier in (a,b)");
    assert_int_equal(p->open->subscription->n_drop, 2);
    assert_int_equal(p->n_buckets, 2);
    assert_int_equal(p->buckets[0]->n_pairs, 4);
    assert_true(p->buckets[0]->pairs[3] == UINT64_MAX && p->buckets[0]->more);
    assert_int_equal(kuberelay__v1__sync_control__get_packed_size(p), s.out.n);
    kuberelay__v1__sync_control__free_unpacked(p, NULL);
    assert_int_equal(kr_sync_control_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_true(got.open->holds && got.open->digest.objects == 1000);
    assert_int_equal(kr_sync_control_encode(&got, &s.again), 0);
    check_same(&s);
    teardown(&s);
}

static void test_open_when_nothing_is_held_then_no_sums(void **state)
{
    struct kr_sync_open open = {.subscription = subscription, .version = L("99")};
    struct kr_sync_control m = {.open = &open};
    struct kr_sync_control got;
    struct scratch s;

    (void)state;
    setup(&s);
    assert_int_equal(kr_sync_control_encode(&m, &s.out), 0);
    assert_in_range(s.out.n, 1, 200);
    assert_int_equal(kr_sync_control_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_false(got.open->holds);
    assert_int_equal(got.open->version.n, 0);
    assert_int_equal(got.bucket_count, 0);
    teardown(&s);
}

static void check_batch(const Kuberelay__V1__SyncBatch *p)
{
    assert_int_equal(p->columns.len, batch.columns.n);
    assert_int_equal(p->want_buckets[1], 255);
    assert_int_equal(p->n_upserts, 2);
    assert_string_equal(p->upserts[0]->namespace_, "default");
    assert_string_equal(p->upserts[0]->name, "web-0");
    assert_string_equal(p->upserts[0]->uid, "u-1");
    assert_string_equal(p->upserts[0]->version, "12345");
    assert_true(p->upserts[0]->hash == 0x0102030405060708);
    assert_true(p->upserts[0]->lossy && !p->upserts[1]->lossy);
    assert_int_equal(p->upserts[0]->dictionary, 1);
    assert_int_equal(p->upserts[0]->size, 1638);
    assert_int_equal(p->upserts[0]->packed.len, 8);
    assert_int_equal(p->n_deletes, 2);
    assert_true(p->deletes[1] == UINT64_MAX && p->snapshot_end && p->has_problem);
    assert_string_equal(p->progress, "12346");
    assert_int_equal(p->problem, KUBERELAY__V1__SYNC_PROBLEM__SYNC_FAILING);
    assert_string_equal(p->problem_text, "two\nlines");
    assert_int_equal(p->skipped, 4);
    assert_true(p->raw_bytes == 1ull << 33);
}

static void test_batch_when_written_then_protobuf_c_reads_the_same(void **state)
{
    Kuberelay__V1__SyncBatch *p;
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    assert_int_equal(kr_sync_batch_encode(&batch, &s.out), 0);
    p = kuberelay__v1__sync_batch__unpack(NULL, s.out.n, s.out.p);
    assert_non_null(p);
    check_batch(p);
    kuberelay__v1__sync_batch__free_unpacked(p, NULL);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_int_equal(got.upserts[1].dictionary, 0);
    assert_int_equal(kr_sync_batch_encode(&got, &s.again), 0);
    check_same(&s);
    teardown(&s);
}

static void test_batch_when_protobuf_c_writes_then_read(void **state)
{
    Kuberelay__V1__SyncBatch *p;
    struct kr_sync_batch got;
    struct scratch s;
    size_t n;

    (void)state;
    setup(&s);
    assert_int_equal(kr_sync_batch_encode(&batch, &s.out), 0);
    p = kuberelay__v1__sync_batch__unpack(NULL, s.out.n, s.out.p);
    assert_int_equal(kr_buf_reserve(&s.again, kuberelay__v1__sync_batch__get_packed_size(p)), 0);
    n = kuberelay__v1__sync_batch__pack(p, s.again.p);
    kuberelay__v1__sync_batch__free_unpacked(p, NULL);
    s.out.n = 0;
    assert_int_equal(kr_sync_batch_decode(&got, kr_bytes_of(s.again.p, n), &s.arena, &why), 0);
    s.again.n = 0;
    assert_int_equal(kr_sync_batch_encode(&batch, &s.out), 0);
    assert_int_equal(kr_sync_batch_encode(&got, &s.again), 0);
    check_same(&s);
    teardown(&s);
}

/* As parsers must: numbers of a list may also come one by one, and a list in several runs. */
static void test_lists_when_not_packed_then_read_all_the_same(void **state)
{
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    kr_proto_put_varint(&s.out, 2, 9);
    kr_proto_put_fixed64(&s.out, 4, 77);
    kr_proto_put_varints(&s.out, 2, wanted, 3);
    kr_proto_put_fixed64s(&s.out, 4, deletes, 2);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_int_equal(got.want_count, 4);
    assert_int_equal(got.want_buckets[0], 9);
    assert_int_equal(got.want_buckets[3], 128);
    assert_int_equal(got.delete_count, 3);
    assert_true(got.deletes[0] == 77 && got.deletes[2] == UINT64_MAX);
    teardown(&s);
}

static void test_upsert_when_encoded_alone_then_a_part_of_a_batch(void **state)
{
    struct kr_sync_batch tail = {.deletes = deletes, .delete_count = 1};
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    for (size_t i = 0; i < 2; i++) {
        size_t before = s.out.n;

        assert_int_equal(kr_upsert_encode(&upserts[i], &s.out), 0);
        assert_int_equal(s.out.n - before, kr_upsert_size(&upserts[i]));
    }
    assert_int_equal(kr_sync_batch_encode(&tail, &s.out), 0);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_int_equal(got.upsert_count, 2);
    assert_int_equal(got.delete_count, 1);
    assert_true(kr_bytes_is(got.upserts[1].name, "node-1"));
    teardown(&s);
}

/* --- what is refused ----------------------------------------------------------------------- */

static void test_upsert_when_it_cannot_be_then_neither_written_nor_read(void **state)
{
    const struct {
        const char *what;
        struct kr_upsert u;
    } rows[] = {
        {"no name", {.size = 3, .packed = L("\n{}")}},
        {"NUL", {.name = L("a\0b"), .size = 3, .packed = L("\n{}")}},
        {"control byte", {.ns = L("a\nb"), .name = L("a"), .size = 3, .packed = L("\n{}")}},
        {"no UTF-8", {.name = L("a\xFF"), .size = 3, .packed = L("\n{}")}},
        {"no bytes", {.name = L("a"), .size = 3, .dictionary = 1}},
        {"no size", {.name = L("a"), .dictionary = 1, .packed = L("\n{}")}},
        {"size that lies", {.name = L("a"), .size = 4, .packed = L("\n{}")}},
        {"too large",
         {.name = L("a"), .dictionary = 1, .size = KR_PLAIN_MAX + 1, .packed = L("x")}},
    };
    struct scratch s;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct kr_upsert *u = &rows[i].u;
        struct kr_sync_batch got;

        setup(&s);
        assert_int_equal(kr_upsert_encode(u, &s.out), KR_EINVAL);
        assert_int_equal(s.out.n, 0);
        kr_proto_put_bytes(&s.again, 1, u->ns);
        kr_proto_put_bytes(&s.again, 2, u->name);
        kr_proto_put_fixed64(&s.again, 5, u->hash);
        kr_proto_put_varint(&s.again, 7, u->dictionary);
        kr_proto_put_varint(&s.again, 8, u->size);
        kr_proto_put_bytes(&s.again, 9, u->packed);
        kr_proto_put_element(&s.out, 3, kr_buf_bytes(&s.again));
        if (kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why) != KR_EPROTO)
            fail_msg("%s was taken", rows[i].what);
        assert_int_equal(got.upsert_count, 0);
        teardown(&s);
    }
}

static void test_batch_when_plain_texts_are_too_large_together_then_refused(void **state)
{
    struct kr_upsert u = {.name = L("a"), .dictionary = 1, .size = KR_PLAIN_MAX, .packed = L("x")};
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    assert_int_equal(kr_upsert_encode(&u, &s.out), 0);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    u.size = 1;
    assert_int_equal(kr_upsert_encode(&u, &s.out), 0);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), KR_ETOOBIG);
    teardown(&s);
}

static void test_lists_when_beyond_their_maxima_then_refused(void **state)
{
    struct kr_sync_control control;
    struct kr_catalog_update catalog;
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    for (int i = 0; i <= KR_SYNC_UPSERTS_MAX; i++)
        kr_proto_put_fixed64(&s.out, 4, 1);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), KR_ETOOBIG);
    s.out.n = 0;
    for (int i = 0; i <= KR_CATALOG_TYPES_MAX; i++)
        kr_proto_put_element(&s.out, 1, kr_bytes_str(""));
    assert_int_equal(kr_catalog_update_decode(&catalog, kr_buf_bytes(&s.out), &s.arena, &why),
                     KR_ETOOBIG);
    s.out.n = 0;
    for (int i = 0; i <= KR_BUCKETS; i++)
        kr_proto_put_element(&s.out, 2, kr_bytes_str(""));
    assert_int_equal(kr_sync_control_decode(&control, kr_buf_bytes(&s.out), &s.arena, &why),
                     KR_ETOOBIG);
    teardown(&s);
}

static void test_batch_when_fields_are_of_a_wrong_kind_then_refused(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 11; number++) {
        bool number_field = number == 2 || number == 5 || number == 7 || number >= 9;
        struct kr_sync_batch got;
        struct scratch s;

        setup(&s);
        if (number_field)
            kr_proto_put_element(&s.out, number, kr_bytes_str("\xFF"));
        else
            kr_proto_put_varint(&s.out, number, 1);
        assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why),
                         KR_EPROTO);
        teardown(&s);
    }
}

static void test_batch_when_bucket_does_not_exist_then_refused(void **state)
{
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    kr_proto_put_varint(&s.out, 2, KR_BUCKETS);
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), KR_EPROTO);
    teardown(&s);
}

static void test_batch_when_from_a_newer_version_then_read_as_far_as_known(void **state)
{
    struct kr_sync_batch got;
    struct scratch s;

    (void)state;
    setup(&s);
    kr_proto_put_varint(&s.out, 7, 99); /* a problem that is new */
    kr_proto_put_varint(&s.out, 9, 1);
    kr_proto_put_element(&s.out, 1000, kr_bytes_str("new"));
    assert_int_equal(kr_sync_batch_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why), 0);
    assert_true(got.has_problem);
    assert_int_equal(got.problem, KR_SYNC_FAILING);
    teardown(&s);
}

static void check_open(struct scratch *s, int rc)
{
    struct kr_sync_control got;

    s->again.n = 0;
    kr_proto_put_element(&s->again, 1, kr_buf_bytes(&s->out));
    assert_int_equal(kr_sync_control_decode(&got, kr_buf_bytes(&s->again), &s->arena, &why), rc);
    assert_true(rc == 0 || got.open == NULL);
    s->out.n = 0;
}

static void put_subscription(struct kr_buf *out, const char *version, const char *resource)
{
    struct kr_buf inner;

    kr_buf_init(&inner, 100);
    kr_proto_put_bytes(&inner, 3, kr_bytes_str(version));
    kr_proto_put_bytes(&inner, 4, kr_bytes_str(resource));
    kr_proto_put_element(out, 1, kr_buf_bytes(&inner));
    kr_buf_deinit(&inner);
}

static void test_open_when_incomplete_then_refused(void **state)
{
    const uint64_t sums[KR_BUCKETS] = {1};
    struct scratch s;

    (void)state;
    setup(&s);
    check_open(&s, KR_EPROTO); /* empty */
    put_subscription(&s.out, "v1", "");
    check_open(&s, KR_EPROTO);
    put_subscription(&s.out, "", "pods");
    check_open(&s, KR_EPROTO);
    put_subscription(&s.out, "v1", "pods");
    check_open(&s, 0);
    put_subscription(&s.out, "v1", "pods");
    kr_proto_put_fixed64s(&s.out, 2, sums, KR_BUCKETS - 1);
    check_open(&s, KR_EPROTO);
    put_subscription(&s.out, "v1", "pods");
    kr_proto_put_fixed64s(&s.out, 2, sums, KR_BUCKETS);
    check_open(&s, 0);
    teardown(&s);
}

static void test_pairs_when_they_cannot_be_then_refused(void **state)
{
    const struct kr_pair strange = {.key = 6ull << 56};
    const struct kr_bucket_pairs rows[] = {
        {.bucket = 5, .pairs = &strange, .n = 1},
        {.bucket = KR_BUCKETS},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kr_sync_control m = {.buckets = &rows[i], .bucket_count = 1};
        struct kr_sync_control got;
        struct scratch s;

        setup(&s);
        assert_int_equal(kr_sync_control_encode(&m, &s.out), 0);
        assert_int_equal(kr_sync_control_decode(&got, kr_buf_bytes(&s.out), &s.arena, &why),
                         KR_EPROTO);
        assert_int_equal(got.bucket_count, 0);
        teardown(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalog_when_written_then_protobuf_c_writes_the_same),
        cmocka_unit_test(test_control_when_written_then_protobuf_c_reads_the_same),
        cmocka_unit_test(test_open_when_nothing_is_held_then_no_sums),
        cmocka_unit_test(test_batch_when_written_then_protobuf_c_reads_the_same),
        cmocka_unit_test(test_batch_when_protobuf_c_writes_then_read),
        cmocka_unit_test(test_lists_when_not_packed_then_read_all_the_same),
        cmocka_unit_test(test_upsert_when_encoded_alone_then_a_part_of_a_batch),
        cmocka_unit_test(test_upsert_when_it_cannot_be_then_neither_written_nor_read),
        cmocka_unit_test(test_batch_when_plain_texts_are_too_large_together_then_refused),
        cmocka_unit_test(test_lists_when_beyond_their_maxima_then_refused),
        cmocka_unit_test(test_batch_when_fields_are_of_a_wrong_kind_then_refused),
        cmocka_unit_test(test_batch_when_bucket_does_not_exist_then_refused),
        cmocka_unit_test(test_batch_when_from_a_newer_version_then_read_as_far_as_known),
        cmocka_unit_test(test_open_when_incomplete_then_refused),
        cmocka_unit_test(test_pairs_when_they_cannot_be_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
