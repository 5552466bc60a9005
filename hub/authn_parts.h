/* SPDX-License-Identifier: Apache-2.0 */
/* authn_parts: what the files of authn share: authn.c judges, authn_files.c reads. */
#ifndef HUB_AUTHN_PARTS_H
#define HUB_AUTHN_PARTS_H

#include "base/map.h"
#include "certs/hmac.h"
#include "hub/authn.h"
#include "hub/issuers.h"
#include "hub/token_file.h"

#define HUB_AUTHN_SEEN_MAX 10000

struct hub_jwks_fetch;

struct hub_authn {
    struct hub_worker *w;
    struct hub_authn_owner owner;
    struct hub_token_file *tokens;
    struct hub_issuers *issuers;
    struct hub_jwks_fetch *fetch; /* for issuers with a URL */
    /* A token named a key of that issuer that is not known; NULL: there is no fetch. */
    void (*want_keys)(struct hub_authn *a, const struct hub_issuer *issuer);
    struct kr_map seen;
    uint8_t secret[KR_HMAC_SIZE];
    struct kr_timer look;
    struct hub_file_mark tokens_mark;
    struct hub_file_mark issuers_mark;
};

/* What was found good is looked at anew. */
void hub_authn_forget(struct hub_authn *a);

#endif
