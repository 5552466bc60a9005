/* SPDX-License-Identifier: Apache-2.0 */
/* The experimental part of zstd's interface is used for what it alone offers: dictionaries that are
 * not copied, with tables of a chosen size, and frames without the four bytes that say "this is
 * zstd". It is in the shared libraries of all versions 1.5. */
#define ZSTD_STATIC_LINKING_ONLY
#include "wire/compress.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/err.h"
#include "wire/dictionary.h"

#define NEWEST 1
/* A larger window needs a larger context, and helps only objects that are larger than it. */
#define WINDOW_LOG 14

static const uint32_t numbers[] = {NEWEST, 0};

struct kr_dictionaries {
    void *memory;              /* of `packing` */
    const ZSTD_CDict *packing; /* NULL: not made */
    ZSTD_DDict *unpacking;     /* NULL: not made */
};

struct kr_packer {
    ZSTD_CCtx *ctx;
    const ZSTD_CDict *dict;
};

struct kr_unpacker {
    ZSTD_DCtx *ctx;
    const ZSTD_DDict *dict;
};

/* In memory of our own: ZSTD_createCDict_advanced of version 1.5.4 crashes when there is none. */
static void make_packing(struct kr_dictionaries *d)
{
    /* Larger tables find hardly more, and two of them (dfast) find 2 % more in a third more time:
     * tests/perf/pack_bench.c. */
    const ZSTD_compressionParameters params = {.windowLog = WINDOW_LOG,
                                               .chainLog = 6,
                                               .hashLog = 13,
                                               .searchLog = 1,
                                               .minMatch = 7,
                                               .targetLength = 0,
                                               .strategy = ZSTD_fast};
    size_t n = ZSTD_estimateCDictSize_advanced(kr_dictionary_1_size, params, ZSTD_dlm_byRef);

    d->memory = calloc(1, n);
    if (d->memory != NULL)
        d->packing = ZSTD_initStaticCDict(d->memory, n, kr_dictionary_1, kr_dictionary_1_size,
                                          ZSTD_dlm_byRef, ZSTD_dct_fullDict, params);
}

struct kr_dictionaries *kr_dictionaries_create(bool packing, bool unpacking)
{
    struct kr_dictionaries *d = calloc(1, sizeof *d);

    if (d == NULL)
        return NULL;
    if (packing)
        make_packing(d);
    if (unpacking)
        d->unpacking = ZSTD_createDDict_byReference(kr_dictionary_1, kr_dictionary_1_size);
    if ((packing && d->packing == NULL) || (unpacking && d->unpacking == NULL)) {
        kr_dictionaries_destroy(d);
        return NULL;
    }
    return d;
}

void kr_dictionaries_destroy(struct kr_dictionaries *d)
{
    if (d == NULL)
        return;
    free(d->memory);
    ZSTD_freeDDict(d->unpacking);
    free(d);
}

uint32_t kr_dictionaries_newest(const struct kr_dictionaries *d)
{
    (void)d;
    return NEWEST;
}

const uint32_t *kr_dictionaries_all(const struct kr_dictionaries *d)
{
    (void)d;
    return numbers;
}

/* --- packing ------------------------------------------------------------------------------- */

struct kr_packer *kr_packer_create(const struct kr_dictionaries *d)
{
    struct kr_packer *p;

    if (d->packing == NULL)
        return NULL;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->dict = d->packing;
    p->ctx = ZSTD_createCCtx();
    if (p->ctx == NULL ||
        ZSTD_isError(ZSTD_CCtx_setParameter(p->ctx, ZSTD_c_windowLog, WINDOW_LOG)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(p->ctx, ZSTD_c_format, ZSTD_f_zstd1_magicless)) ||
        ZSTD_isError(ZSTD_CCtx_refCDict(p->ctx, p->dict))) {
        kr_packer_destroy(p);
        return NULL;
    }
    return p;
}

void kr_packer_destroy(struct kr_packer *p)
{
    if (p == NULL)
        return;
    ZSTD_freeCCtx(p->ctx);
    free(p);
}

int kr_pack(struct kr_packer *p, struct kr_bytes plain, struct kr_buf *out, uint32_t *dictionary)
{
    size_t n;
    int rc;

    if (plain.n > KR_PLAIN_MAX)
        return KR_ETOOBIG;
    rc = kr_buf_reserve(out, plain.n);
    if (rc != 0)
        return rc;
    /* What does not become smaller does not fit, which is an error to zstd. */
    n = ZSTD_compress2(p->ctx, out->p + out->n, plain.n, plain.p, plain.n);
    *dictionary = 0;
    if (ZSTD_isError(n) || n >= plain.n)
        return kr_buf_append(out, plain);
    *dictionary = NEWEST;
    out->n += n;
    return 0;
}

/* --- unpacking ----------------------------------------------------------------------------- */

struct kr_unpacker *kr_unpacker_create(const struct kr_dictionaries *d)
{
    struct kr_unpacker *u;

    if (d->unpacking == NULL)
        return NULL;
    u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->dict = d->unpacking;
    u->ctx = ZSTD_createDCtx();
    if (u->ctx == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(u->ctx, ZSTD_d_format, ZSTD_f_zstd1_magicless))) {
        kr_unpacker_destroy(u);
        return NULL;
    }
    return u;
}

void kr_unpacker_destroy(struct kr_unpacker *u)
{
    if (u == NULL)
        return;
    ZSTD_freeDCtx(u->ctx);
    free(u);
}

/* A frame of this dictionary that says its size. */
static bool is_our_frame(struct kr_bytes packed, size_t size)
{
    ZSTD_frameHeader h;

    return ZSTD_getFrameHeader_advanced(&h, packed.p, packed.n, ZSTD_f_zstd1_magicless) == 0 &&
           h.frameType == ZSTD_frame && h.frameContentSize == size && h.dictID == NEWEST;
}

int kr_unpack(struct kr_unpacker *u, struct kr_bytes packed, uint32_t dictionary, uint8_t *out,
              size_t size)
{
    size_t n;

    if (size > KR_PLAIN_MAX)
        return KR_ETOOBIG;
    if (dictionary == 0) {
        if (packed.n != size)
            return KR_EPROTO;
        if (size != 0)
            memcpy(out, packed.p, size);
        return 0;
    }
    if (dictionary != NEWEST)
        return KR_ENOENT;
    if (!is_our_frame(packed, size))
        return KR_EPROTO;
    /* Into a buffer of the whole size: zstd needs no window of its own. */
    n = ZSTD_decompress_usingDDict(u->ctx, out, size, packed.p, packed.n, u->dict);
    return n == size ? 0 : KR_EPROTO;
}
