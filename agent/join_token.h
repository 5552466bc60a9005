/* SPDX-License-Identifier: Apache-2.0 */
/* join_token: the token of the configuration (joinToken or joinTokenFile, read each time), and the
 * public part of it, by which one that has done its work is known: kr1.ID.SECRET.
 * Memory: the token lands in the caller's buf; kr_buf_cleanse wipes it. Blocks on the disk. */
#ifndef AGENT_JOIN_TOKEN_H
#define AGENT_JOIN_TOKEN_H

#include "agent/options.h"
#include "base/buf.h"
#include "base/note.h"

#define AGENT_TOKEN_ID 8

/* KR_EDENIED: none is configured; else the errors of kr_file_read. */
int agent_join_token_read(const struct agent_options *o, struct kr_buf *token, struct kr_note *why);
/* "" if the text is no token. */
void agent_join_token_id(struct kr_bytes token, char id[AGENT_TOKEN_ID + 1]);
/* Whether there is one, with another id than the one that this agent joined with (agent/state.h)
 * and than `tried`. */
bool agent_join_token_is_new(const struct agent_options *o, const char *tried);

#endif
