/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/gzip.h"

#define ZLIB_CONST
#include <stdlib.h>
#include <zlib.h>

#include "base/assert.h"

#define LEVEL 1
#define WINDOW_BITS (15 + 16) /* the largest window, and the wrapping of gzip */
#define MEMORY_LEVEL 8
#define STEP (64u * 1024)

struct hub_gzip {
    z_stream z;
};

struct hub_gzip *hub_gzip_create(void)
{
    struct hub_gzip *g = calloc(1, sizeof *g);

    if (g == NULL)
        return NULL;
    if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) ==
        Z_OK)
        return g;
    free(g);
    return NULL;
}

void hub_gzip_destroy(struct hub_gzip *g)
{
    if (g == NULL)
        return;
    deflateEnd(&g->z);
    free(g);
}

int hub_gzip_put(struct hub_gzip *g, struct kr_bytes in, bool last, struct kr_buf *out)
{
    int state = Z_OK;

    KR_ASSERT(in.n <= UINT32_MAX);
    g->z.next_in = in.p;
    g->z.avail_in = (uInt)in.n;
    do {
        int rc = kr_buf_reserve(out, STEP);

        if (rc != 0)
            return rc;
        g->z.next_out = out->p + out->n;
        g->z.avail_out = STEP;
        state = deflate(&g->z, last ? Z_FINISH : Z_NO_FLUSH);
        out->n += STEP - g->z.avail_out;
    } while (g->z.avail_out == 0 && state == Z_OK);
    KR_ASSERT(last ? state == Z_STREAM_END : state == Z_OK || state == Z_BUF_ERROR);
    return 0;
}
