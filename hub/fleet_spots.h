/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_spots: where things are put into a slim object when it is shown. A lighter walk than
 * kr_object_facts: it stops as soon as it knows, and trusts that the text was checked when it came
 * (subscriptions.c): well-formed, metadata and its members once each and without escapes in their
 * keys. A text that was not never makes it read outside of it.
 * Errors: KR_EPROTO. Pure. */
#ifndef HUB_FLEET_SPOTS_H
#define HUB_FLEET_SPOTS_H

#include "base/bytes.h"

/* A map in metadata that something is put into. */
struct hub_gap {
    size_t at;  /* offset behind its '{', or of `null`; 0: there is no such member */
    bool empty; /* "{}" */
    bool null;  /* `null` stands there, to be replaced */
};

struct hub_spots {
    size_t top;      /* offset behind the '{' of the object */
    size_t metadata; /* behind the '{' of metadata */
    struct hub_gap labels;
    struct hub_gap annotations;
    /* Only with `whole`: */
    struct kr_bytes created; /* creationTimestamp, without its quotes */
    size_t metadata_end;     /* behind its '}' */
};

/* `whole`: walk to the end of metadata. */
int hub_spots_find(struct kr_bytes slim, bool whole, struct hub_spots *out);

#endif
