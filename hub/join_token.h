/* SPDX-License-Identifier: Apache-2.0 */
/* join_token: kr1.ID.SECRET, what an agent shows to join: an id of 8 characters, public, and a
 * secret of 32 (160 random bits), both of [a-z2-7] (RFC 4648 base32). Pure but for the kernel's
 * random numbers. */
#ifndef HUB_JOIN_TOKEN_H
#define HUB_JOIN_TOKEN_H

#include "base/bytes.h"
#include "hub/store.h"

#define HUB_JOIN_SECRET 32
#define HUB_JOIN_TOKEN_SIZE (4 + HUB_TOKEN_ID + 1 + HUB_JOIN_SECRET + 1) /* with its NUL */

/* Makes one: `text` is for the agent, `t` gets the id and the hash of the secret. */
int hub_join_token_make(char text[HUB_JOIN_TOKEN_SIZE], struct hub_token *t);
/* False: that is no token. */
bool hub_join_token_read(struct kr_bytes text, char id[HUB_TOKEN_ID + 1], uint8_t sha256[32]);
/* The id alone; "" if the text is no token. */
void hub_join_token_id(struct kr_bytes text, char id[HUB_TOKEN_ID + 1]);
/* Whether the text is an id. */
bool hub_join_token_is_id(struct kr_bytes text);

#endif
