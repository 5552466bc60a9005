/* SPDX-License-Identifier: Apache-2.0 */
/* sync_pack: makes of one object of the API server what goes to a hub: slimmed by a profile, hashed
 * without what tells the time, packed. All Sync calls of an agent share one, with its buffers.
 * Memory: the packer's tables, and buffers that are given back after an unusually large object.
 * Errors: KR_EPROTO (no object), KR_ETOOBIG, KR_ENOMEM. Pure; one owner. */
#ifndef AGENT_SYNC_PACK_H
#define AGENT_SYNC_PACK_H

#include "agent/reading.h"
#include "kube/cells.h"
#include "kube/slim.h"
#include "wire/compress.h"
#include "wire/sync_messages.h"

struct agent_pack { /* embed it; the fields belong to sync_pack.c */
    struct kr_dictionaries *dictionaries;
    struct kr_packer *packer;
    struct kr_profile *names; /* nothing but metadata */
    struct kr_buf plain;
    struct kr_buf steady;
    struct kr_buf packed;
};

struct agent_item { /* what was made of an object; spans of its text, and of the pack's buffers
                       until the next one */
    struct kr_slim seen;
    struct kr_bytes plain; /* cells, a newline, the slim object */
    uint64_t key;
    uint64_t hash;
};

int agent_pack_init(struct agent_pack *p);
void agent_pack_deinit(struct agent_pack *p); /* zeroed is fine */
/* `columns` NULL: the cells are left out, nobody could read them. */
int agent_pack_read(struct agent_pack *p, const struct kr_profile *profile,
                    const struct kr_columns *columns, const struct agent_seen *seen,
                    struct agent_item *out);
/* Only the names and the key. */
int agent_pack_name(struct agent_pack *p, struct kr_bytes object, struct agent_item *out);
/* `packs`: the hub can unpack the newest dictionary. */
int agent_pack_upsert(struct agent_pack *p, const struct agent_item *item, bool packs,
                      struct kr_upsert *out);
uint32_t agent_pack_dictionary(const struct agent_pack *p);

#endif
