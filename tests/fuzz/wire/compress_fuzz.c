/* SPDX-License-Identifier: Apache-2.0 */
/* Input: 0, then a text: packed and unpacked it is the same. Or another byte, which dictionary,
 * the size (2 bytes), and a frame: unpacked it fills exactly that size, or it is refused. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "wire/compress.h"

static void round_trip(const struct kr_dictionaries *d, struct kr_bytes plain)
{
    struct kr_packer *p = kr_packer_create(d);
    struct kr_unpacker *u = kr_unpacker_create(d);
    uint8_t *out = malloc(plain.n + 1);
    uint32_t dictionary;
    struct kr_buf packed;

    KR_ASSERT(p != NULL && u != NULL && out != NULL);
    kr_buf_init(&packed, plain.n);
    KR_ASSERT(kr_pack(p, plain, &packed, &dictionary) == 0);
    KR_ASSERT(kr_unpack(u, kr_buf_bytes(&packed), dictionary, out, plain.n) == 0);
    KR_ASSERT(plain.n == 0 || memcmp(out, plain.p, plain.n) == 0);
    kr_buf_deinit(&packed);
    kr_packer_destroy(p);
    kr_unpacker_destroy(u);
    free(out);
}

static void unpack(const struct kr_dictionaries *d, struct kr_bytes in)
{
    struct kr_unpacker *u = kr_unpacker_create(d);
    uint32_t dictionary = in.p[1];
    size_t size = (size_t)in.p[2] | (size_t)in.p[3] << 8;
    uint8_t *out = malloc(size + 1); /* a sanitizer sees what goes beyond */
    int rc;

    KR_ASSERT(u != NULL && out != NULL);
    out[size] = 0x5A;
    rc = kr_unpack(u, kr_bytes_skip(in, 4), dictionary, out, size);
    KR_ASSERT(rc == 0 || rc == KR_EPROTO || (rc == KR_ENOENT && dictionary > 1));
    KR_ASSERT(out[size] == 0x5A);
    kr_unpacker_destroy(u);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct kr_dictionaries *d; /* made once: that takes longer than all else */

    if (n < 4 || n > 100000)
        return 0;
    if (d == NULL)
        d = kr_dictionaries_create(true, true);
    KR_ASSERT(d != NULL);
    if (data[0] == 0)
        round_trip(d, kr_bytes_of(data + 1, n - 1));
    else
        unpack(d, kr_bytes_of(data, n));
    return 0;
}
