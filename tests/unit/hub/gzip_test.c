/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/gzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

#define SIZE (3u << 20)

/* Some of it packs well, some does not. */
static void make(uint8_t *p, size_t n)
{
    uint32_t seed = 7;

    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] =
            i / 10000 % 2 == 0 ? (uint8_t) "pods are much alike "[i % 20] : (uint8_t)(seed >> 24);
    }
}

static void unpack(struct kr_bytes packed, uint8_t *out, size_t n)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.p,
                  .avail_in = (uInt)packed.n,
                  .next_out = out,
                  .avail_out = (uInt)n};

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, n);
    inflateEnd(&z);
}

static void test_put_when_it_comes_in_pieces_then_unpacks_to_the_same(void **state)
{
    static const size_t pieces[] = {1, 1000, 65536, 131072, SIZE};
    uint8_t *in = malloc(SIZE);
    uint8_t *out = malloc(SIZE);

    (void)state;
    make(in, SIZE);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t n = pieces[i] == 1 ? 5000 : SIZE;
        struct hub_gzip *g = hub_gzip_create();
        struct kr_buf packed = {.max = 2 * (size_t)SIZE};

        assert_non_null(g);
        for (size_t at = 0; at < n;) {
            size_t step = pieces[i] < n - at ? pieces[i] : n - at;

            at += step;
            assert_int_equal(hub_gzip_put(g, kr_bytes_of(in + at - step, step), at == n, &packed),
                             0);
        }
        unpack(kr_buf_bytes(&packed), out, n);
        assert_memory_equal(in, out, n);
        hub_gzip_destroy(g);
        kr_buf_deinit(&packed);
    }
    free(in);
    free(out);
}

static void test_put_when_there_is_nothing_then_an_empty_file(void **state)
{
    struct hub_gzip *g = hub_gzip_create();
    struct kr_buf packed = {.max = 1 << 20};
    uint8_t none[1];

    (void)state;
    assert_int_equal(hub_gzip_put(g, kr_bytes_of(NULL, 0), false, &packed), 0);
    assert_int_equal(hub_gzip_put(g, kr_bytes_of(NULL, 0), true, &packed), 0);
    unpack(kr_buf_bytes(&packed), none, 0);
    hub_gzip_destroy(g);
    kr_buf_deinit(&packed);
    hub_gzip_destroy(NULL);
}

static void test_put_when_the_buffer_is_full_then_its_code(void **state)
{
    struct hub_gzip *g = hub_gzip_create();
    struct kr_buf packed = {.max = 1000};
    uint8_t in[4096];

    (void)state;
    make(in, sizeof in);
    assert_true(hub_gzip_put(g, kr_bytes_of(in, sizeof in), true, &packed) < 0);
    hub_gzip_destroy(g);
    kr_buf_deinit(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_when_it_comes_in_pieces_then_unpacks_to_the_same),
        cmocka_unit_test(test_put_when_there_is_nothing_then_an_empty_file),
        cmocka_unit_test(test_put_when_the_buffer_is_full_then_its_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
