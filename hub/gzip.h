/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: what is written piece by piece, as a gzip file (RFC 1952), at zlib's fastest level, as
 * kube-apiserver packs its answers. Memory: 270 KiB, whatever is packed. One owner. */
#ifndef HUB_GZIP_H
#define HUB_GZIP_H

#include "base/buf.h"

struct hub_gzip;

struct hub_gzip *hub_gzip_create(void); /* NULL: memory */
void hub_gzip_destroy(struct hub_gzip *g);
/* Appends to `out` what is packed of `in` and before it: perhaps nothing yet, but all of it with
 * `last`, after which nothing may follow. The codes of kr_buf. */
int hub_gzip_put(struct hub_gzip *g, struct kr_bytes in, bool last, struct kr_buf *out);

#endif
