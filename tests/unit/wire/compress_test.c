/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/compress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zstd.h>

#include "base/err.h"
#include "base/rand.h"
#include "wire/dictionary.h"
#include "wire/digest.h"

static const char pod[] =
    "[\"web-7d4b9c-x2x4z\",\"1/1\",\"Running\",\"0\",\"5d\",\"10.1.2.3\",\"node-3\",\"\\u003cnone"
    "\\u003e\",\"\\u003cnone\\u003e\"]\n{\"metadata\":{\"name\":\"web-7d4b9c-x2x4z\","
    "\"generateName\":\"web-7d4b9c-\",\"namespace\":\"shop\",\"uid\":"
    "\"5a8c4b1e-90d2-4f7a-8c3b-1d2e3f405162\",\"generation\":1,\"creationTimestamp\":"
    "\"2026-06-01T11:22:33Z\",\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"7d4b9c\"},"
    "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
    "\"web-7d4b9c\",\"uid\":\"c0ffee00-1234-4abc-9def-0123456789ab\",\"controller\":true,"
    "\"blockOwnerDeletion\":true}]},\"spec\":{\"containers\":[{\"name\":\"web\",\"image\":"
    "\"docker.io/library/nginx:1.29.1\"}],\"nodeName\":\"node-3\"},\"status\":{\"phase\":"
    "\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":"
    "\"2026-06-01T11:22:40Z\"}],\"hostIP\":\"192.168.4.3\",\"podIP\":\"10.1.2.3\"}}";

struct world {
    struct kr_dictionaries *d;
    struct kr_packer *p;
    struct kr_unpacker *u;
    struct kr_buf packed;
    uint8_t *out;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->d = kr_dictionaries_create(true, true);
    assert_non_null(w->d);
    w->p = kr_packer_create(w->d);
    w->u = kr_unpacker_create(w->d);
    assert_true(w->p != NULL && w->u != NULL);
    kr_buf_init(&w->packed, KR_PLAIN_MAX + 100);
    w->out = malloc(KR_PLAIN_MAX);
    assert_non_null(w->out);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    kr_packer_destroy(w->p);
    kr_unpacker_destroy(w->u);
    kr_dictionaries_destroy(w->d);
    kr_buf_deinit(&w->packed);
    free(w->out);
    free(w);
    return 0;
}

static struct kr_bytes pod_text(void)
{
    return kr_bytes_of(pod, sizeof pod - 1);
}

static uint32_t round_trip(struct world *w, struct kr_bytes plain)
{
    uint32_t dictionary = 99;

    w->packed.n = 0;
    assert_int_equal(kr_pack(w->p, plain, &w->packed, &dictionary), 0);
    assert_true(w->packed.n <= plain.n);
    assert_int_equal(kr_unpack(w->u, kr_buf_bytes(&w->packed), dictionary, w->out, plain.n), 0);
    assert_true(plain.n == 0 || memcmp(w->out, plain.p, plain.n) == 0);
    return dictionary;
}

static void test_pod_when_packed_then_small_and_the_same_again(void **state)
{
    struct world *w = *state;

    assert_int_equal(round_trip(w, pod_text()), 1);
    assert_in_range(w->packed.n, 50, sizeof pod / 3);
    /* It stands behind what is there already. */
    w->packed.n = 0;
    kr_buf_append_str(&w->packed, "before");
    assert_int_equal(kr_pack(w->p, pod_text(), &w->packed, &(uint32_t){0}), 0);
    assert_memory_equal(w->packed.p, "before", 6);
}

/* As the protocol says: RFC 8878 without the magic number; any zstd can read it. */
static void test_frame_when_magic_is_put_before_it_then_stock_zstd_reads_it(void **state)
{
    struct world *w = *state;
    ZSTD_DCtx *ctx = ZSTD_createDCtx();
    struct kr_buf frame;

    assert_int_equal(round_trip(w, pod_text()), 1);
    kr_buf_init(&frame, 10000);
    kr_buf_append(&frame, kr_bytes_of("\x28\xB5\x2F\xFD", 4));
    kr_buf_append(&frame, kr_buf_bytes(&w->packed));
    assert_int_equal(ZSTD_getFrameContentSize(frame.p, frame.n), sizeof pod - 1);
    assert_int_equal(ZSTD_decompress_usingDict(ctx, w->out, KR_PLAIN_MAX, frame.p, frame.n,
                                               kr_dictionary_1, kr_dictionary_1_size),
                     sizeof pod - 1);
    assert_memory_equal(w->out, pod, sizeof pod - 1);
    kr_buf_deinit(&frame);
    ZSTD_freeDCtx(ctx);
}

/* Agents and hubs of different versions must have the same bytes under the same number. When this
 * fails, templates or head.h were changed: that makes a new dictionary with a new number. */
static void test_dictionary_1_when_built_then_these_bytes_for_ever(void **state)
{
    struct kr_bytes all = kr_bytes_of(kr_dictionary_1, kr_dictionary_1_size);

    (void)state;
    assert_int_equal(kr_dictionary_1_size, 78959);
    assert_int_equal(kr_key_hash(KR_LIT(""), all), 0x88eaffdf73e17e56u);
}

static void test_dictionaries_when_asked_then_known_by_number(void **state)
{
    struct world *w = *state;
    const uint32_t *all = kr_dictionaries_all(w->d);
    size_t n = 0;

    while (all[n] != 0)
        n++;
    assert_int_equal(n, 1);
    assert_int_equal(all[n - 1], kr_dictionaries_newest(w->d));
}

static void test_text_when_of_any_size_then_the_same_again(void **state)
{
    static const size_t sizes[] = {0,    1,     2,     7,      100,     1000,
                                   5000, 16384, 20000, 100000, 1 << 20, KR_PLAIN_MAX};
    struct world *w = *state;
    uint8_t *text = malloc(KR_PLAIN_MAX);

    assert_non_null(text);
    for (size_t i = 0; i < KR_PLAIN_MAX; i++)
        text[i] = (uint8_t)pod[(i + i / 5000) % (sizeof pod - 1)];
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            uint32_t dictionary = round_trip(w, kr_bytes_of(text, sizes[i]));

            assert_true(sizes[i] < 100 || dictionary == 1);
        }
    }
    free(text);
}

static void test_noise_when_packed_then_left_as_it_is(void **state)
{
    struct world *w = *state;
    uint8_t noise[3000];
    struct kr_rand r;

    kr_rand_seed(&r, 1);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)kr_rand_u64(&r);
    assert_int_equal(round_trip(w, kr_bytes_of(noise, sizeof noise)), 0);
    assert_int_equal(w->packed.n, sizeof noise);
    assert_memory_equal(w->packed.p, noise, sizeof noise);
}

static void test_sizes_when_beyond_the_maximum_then_refused(void **state)
{
    struct world *w = *state;
    uint8_t *large = calloc(1, KR_PLAIN_MAX + 1);
    uint32_t dictionary;

    assert_non_null(large);
    assert_int_equal(kr_pack(w->p, kr_bytes_of(large, KR_PLAIN_MAX + 1), &w->packed, &dictionary),
                     KR_ETOOBIG);
    assert_int_equal(w->packed.n, 0);
    assert_int_equal(kr_unpack(w->u, pod_text(), 0, w->out, (size_t)KR_PLAIN_MAX + 1), KR_ETOOBIG);
    w->packed.max = 100;
    assert_int_equal(kr_pack(w->p, pod_text(), &w->packed, &dictionary), KR_ETOOBIG);
    assert_int_equal(w->packed.n, 0);
    free(large);
}

static void test_unpack_when_the_size_is_another_then_refused(void **state)
{
    struct world *w = *state;
    struct kr_bytes packed;

    assert_int_equal(round_trip(w, pod_text()), 1);
    packed = kr_buf_bytes(&w->packed);
    assert_int_equal(kr_unpack(w->u, packed, 1, w->out, sizeof pod), KR_EPROTO);
    assert_int_equal(kr_unpack(w->u, packed, 1, w->out, sizeof pod - 2), KR_EPROTO);
    assert_int_equal(kr_unpack(w->u, packed, 0, w->out, sizeof pod - 1), KR_EPROTO);
    assert_int_equal(kr_unpack(w->u, pod_text(), 0, w->out, sizeof pod), KR_EPROTO);
    assert_int_equal(kr_unpack(w->u, packed, 2, w->out, sizeof pod - 1), KR_ENOENT);
    assert_int_equal(kr_unpack(w->u, KR_LIT(""), 1, w->out, 0), KR_EPROTO);
}

static void test_unpack_when_cut_or_followed_by_something_then_refused(void **state)
{
    struct world *w = *state;
    size_t n;

    assert_int_equal(round_trip(w, pod_text()), 1);
    n = w->packed.n;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = malloc(i != 0 ? i : 1); /* so that a sanitizer sees its end */

        assert_non_null(copy);
        memcpy(copy, w->packed.p, i);
        assert_int_equal(kr_unpack(w->u, kr_bytes_of(copy, i), 1, w->out, sizeof pod - 1),
                         KR_EPROTO);
        free(copy);
    }
    kr_buf_append_str(&w->packed, "x");
    assert_int_equal(kr_unpack(w->u, kr_buf_bytes(&w->packed), 1, w->out, sizeof pod - 1),
                     KR_EPROTO);
    /* The same frame once more does not fit either. */
    w->packed.n = n;
    assert_int_equal(kr_buf_reserve(&w->packed, n), 0);
    kr_buf_append(&w->packed, kr_bytes_of(w->packed.p, n));
    assert_int_equal(kr_unpack(w->u, kr_buf_bytes(&w->packed), 1, w->out, sizeof pod - 1),
                     KR_EPROTO);
}

/* Frames that stock zstd would take, but that are not of this dictionary. */
static void test_unpack_when_of_another_dictionary_then_refused(void **state)
{
    struct world *w = *state;
    uint8_t frame[2000];
    size_t n = ZSTD_compress(frame, sizeof frame, pod, sizeof pod - 1, 3);

    assert_false(ZSTD_isError(n));
    assert_int_equal(kr_unpack(w->u, kr_bytes_of(frame, n), 1, w->out, sizeof pod - 1), KR_EPROTO);
    assert_int_equal(kr_unpack(w->u, kr_bytes_of(frame + 4, n - 4), 1, w->out, sizeof pod - 1),
                     KR_EPROTO);
    assert_int_equal(round_trip(w, pod_text()), 1);
    w->packed.p[1] = 2; /* the dictionary's number, behind one byte of flags */
    assert_int_equal(kr_unpack(w->u, kr_buf_bytes(&w->packed), 1, w->out, sizeof pod - 1),
                     KR_EPROTO);
}

/* A frame that asks for a window of 2 TiB costs nothing: there is no window. */
static void test_unpack_when_the_window_is_huge_then_no_memory_is_taken(void **state)
{
    /* Flags: content size of 4 bytes, a dictionary of one byte; window; 1; size 5; a raw block. */
    const uint8_t frame[] = {0x81, 0xF8, 0x01, 5, 0, 0, 0, 0x29, 0, 0, 'h', 'e', 'l', 'l', 'o'};
    const uint8_t lying[] = {0x81, 0xF8, 0x01, 0, 0, 0x40, 0, 0x29, 0, 0, 'h', 'e', 'l', 'l', 'o'};
    struct world *w = *state;
    int rc = kr_unpack(w->u, kr_bytes_of(frame, sizeof frame), 1, w->out, 5);

    assert_true(rc == 0 || rc == KR_EPROTO);
    assert_int_equal(kr_unpack(w->u, kr_bytes_of(lying, sizeof lying), 1, w->out, KR_PLAIN_MAX),
                     KR_EPROTO);
}

static void test_unpack_when_bits_are_flipped_then_bounded(void **state)
{
    struct world *w = *state;
    struct kr_rand r;

    assert_int_equal(round_trip(w, pod_text()), 1);
    kr_rand_seed(&r, 7);
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t copy[sizeof pod];
        uint8_t *exact = malloc(sizeof pod - 1);
        int rc;

        assert_non_null(exact);
        memcpy(copy, w->packed.p, w->packed.n);
        for (unsigned k = 0; k <= i % 4; k++)
            copy[kr_rand_below(&r, w->packed.n)] ^= (uint8_t)(1u << kr_rand_below(&r, 8));
        rc = kr_unpack(w->u, kr_bytes_of(copy, w->packed.n), 1, exact, sizeof pod - 1);
        assert_true(rc == 0 || rc == KR_EPROTO);
        free(exact);
    }
    assert_int_equal(round_trip(w, pod_text()), 1); /* and it still works */
}

static void test_tables_when_not_made_then_no_packer_and_no_unpacker(void **state)
{
    struct kr_dictionaries *d = kr_dictionaries_create(false, true);
    struct kr_unpacker *u;

    (void)state;
    assert_non_null(d);
    assert_null(kr_packer_create(d));
    u = kr_unpacker_create(d);
    assert_non_null(u);
    kr_unpacker_destroy(u);
    kr_dictionaries_destroy(d);
    d = kr_dictionaries_create(true, false);
    assert_non_null(d);
    assert_null(kr_unpacker_create(d));
    kr_dictionaries_destroy(d);
    kr_dictionaries_destroy(NULL);
    kr_packer_destroy(NULL);
    kr_unpacker_destroy(NULL);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_pod_when_packed_then_small_and_the_same_again),
        WITH_WORLD(test_frame_when_magic_is_put_before_it_then_stock_zstd_reads_it),
        cmocka_unit_test(test_dictionary_1_when_built_then_these_bytes_for_ever),
        WITH_WORLD(test_dictionaries_when_asked_then_known_by_number),
        WITH_WORLD(test_text_when_of_any_size_then_the_same_again),
        WITH_WORLD(test_noise_when_packed_then_left_as_it_is),
        WITH_WORLD(test_sizes_when_beyond_the_maximum_then_refused),
        WITH_WORLD(test_unpack_when_the_size_is_another_then_refused),
        WITH_WORLD(test_unpack_when_cut_or_followed_by_something_then_refused),
        WITH_WORLD(test_unpack_when_of_another_dictionary_then_refused),
        WITH_WORLD(test_unpack_when_the_window_is_huge_then_no_memory_is_taken),
        WITH_WORLD(test_unpack_when_bits_are_flipped_then_bounded),
        cmocka_unit_test(test_tables_when_not_made_then_no_packer_and_no_unpacker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
