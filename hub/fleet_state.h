/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_state: what the parts of the fleet view share: the unpacked text of an object, the key of
 * continue tokens, who reads, the counters. Includers: hub/fleet*.c. */
#ifndef HUB_FLEET_STATE_H
#define HUB_FLEET_STATE_H

#include "certs/hmac.h"
#include "hub/fleet_columns.h"
#include "hub/worker.h"
#include "wire/compress.h"

#define HUB_PLAINS 2 /* an object, and what it was before */

/* The text of an object, split. */
struct hub_plain {
    struct kr_bytes cells; /* of a Table's row; empty if it came without */
    struct kr_bytes slim;
};

struct hub_fleet {
    struct hub_worker *w;
    struct kr_dictionaries *dictionaries;
    struct kr_unpacker *unpacker;
    struct hub_plain_slot {    /* belongs to fleet_state.c */
        struct hub_object *of; /* counted */
        struct hub_plain text;
        uint8_t *room;
        size_t cap;
    } plains[HUB_PLAINS];
    unsigned next_plain;
    struct hub_columns *columns; /* that were used last, and of which type */
    const struct hub_type *columns_of;
    uint8_t token_key[KR_HMAC_SIZE];
    struct kr_list reads; /* hub_read.link */
    struct kr_metric *m_lists;
    struct kr_metric *m_watchers;
    struct kr_metric *m_events;
    struct kr_metric *m_list_bytes;
};

int hub_fleet_state_init(struct hub_fleet *f, struct hub_worker *w);
void hub_fleet_state_deinit(struct hub_fleet *f);
/* The text stays valid until the next call but one. KR_EPROTO: it does not unpack. */
int hub_fleet_plain(struct hub_fleet *f, struct hub_object *o, struct hub_plain *out);
/* The columns of the moment, with one more reference. NULL: memory. */
struct hub_columns *hub_fleet_columns(struct hub_fleet *f, const struct hub_type *type);

#endif
