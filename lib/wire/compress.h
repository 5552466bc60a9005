/* SPDX-License-Identifier: Apache-2.0 */
/* compress: objects compressed one by one (zstd) against a dictionary that ships with the program,
 * so that each stands alone: it can be replaced while it waits, kept as it came, and served later.
 * Dictionaries have numbers; number 0 is "not compressed". A peer's bytes are never trusted: a
 * frame that does not unpack to exactly the size that was told is KR_EPROTO.
 * A frame is zstd's (RFC 8878) without the magic number, with its size and its dictionary's number.
 * Memory: a packer takes 49 KiB, 117 KiB once it has packed a large object; an unpacker 94 KiB; the
 *         tables of all of one program (kr_dictionaries) 47 KiB for packing, 27 KiB for unpacking.
 * Limits: KR_PLAIN_MAX. Errors: KR_EPROTO, KR_ETOOBIG, KR_ENOENT (unknown dictionary), KR_ENOMEM.
 * Threads: kr_dictionaries may be shared once made; a packer and an unpacker have one owner. */
#ifndef KR_WIRE_COMPRESS_H
#define KR_WIRE_COMPRESS_H

#include "base/buf.h"
#include "base/bytes.h"

#define KR_PLAIN_MAX (4u * 1024 * 1024) /* largest object text, cells included */

struct kr_dictionaries;
struct kr_packer;
struct kr_unpacker;

/* `packing`, `unpacking`: which tables are made. */
struct kr_dictionaries *kr_dictionaries_create(bool packing, bool unpacking);
void kr_dictionaries_destroy(struct kr_dictionaries *d);
/* The number of the newest one, and those that can be unpacked (ascending, ends in 0). */
uint32_t kr_dictionaries_newest(const struct kr_dictionaries *d);
const uint32_t *kr_dictionaries_all(const struct kr_dictionaries *d);

struct kr_packer *kr_packer_create(const struct kr_dictionaries *d);
void kr_packer_destroy(struct kr_packer *p);
/* Appends the packed form to `out`; *dictionary says with which (0 if packing does not help).
 * `out` must have room for the plain text. */
int kr_pack(struct kr_packer *p, struct kr_bytes plain, struct kr_buf *out, uint32_t *dictionary);

struct kr_unpacker *kr_unpacker_create(const struct kr_dictionaries *d);
void kr_unpacker_destroy(struct kr_unpacker *u);
/* Writes exactly `size` bytes to `out`. */
int kr_unpack(struct kr_unpacker *u, struct kr_bytes packed, uint32_t dictionary, uint8_t *out,
              size_t size);

#endif
