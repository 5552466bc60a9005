/* SPDX-License-Identifier: Apache-2.0 */
/* state: what an agent that enrolls keeps in its stateDir (mode 0700, files 0600):
 *   pair.pem      key and certificate chain, in one file, so that they never are of two makings
 *   previous.pem  the pair before it, until a hub has accepted the new one: then the agent could
 *                 only look like a thief with it. Until then it is what the agent goes back to if
 *                 the new pair cannot be used, or all hubs refuse it
 *   pending.key   the key of a request that was sent, so that a lost answer can be asked for again
 *   token.id      the public part of the token that it joined with
 *   bundle.pem    the roots that hubs told of, with their generation
 * Every file appears whole (temporary name, fsync, rename). Whatever moment the power fails at, one
 * whole pair is there.
 * Memory: texts land in the caller's bufs; those with keys are wiped by kr_buf_cleanse.
 * Errors: those of certs/store_file.h. Blocks on the disk. */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include "base/buf.h"
#include "base/note.h"

int agent_state_load_pair(const char *dir, struct kr_buf *pem, struct kr_note *why);
/* The pair that is there becomes the previous one. */
int agent_state_save_pair(const char *dir, struct kr_bytes key_pem, struct kr_bytes chain_pem,
                          struct kr_note *why);
/* A hub has accepted the pair. True: it was the first time since the last renewal. */
bool agent_state_accept_pair(const char *dir);
/* KR_ENOENT: there is no pair before, or a hub has accepted the one after it. */
int agent_state_load_previous(const char *dir, struct kr_buf *pem, struct kr_note *why);
bool agent_state_has_previous(const char *dir);
/* The pair before takes the place of the last one, which is lost. */
int agent_state_go_back(const char *dir, struct kr_note *why);

/* The key of the request under way; makes one if there is none, or if it is in use already (power
 * failed when the answer was kept). */
int agent_state_pending_key(const char *dir, struct kr_buf *key_pem, struct kr_note *why);

int agent_state_load_token_id(const char *dir, struct kr_buf *id, struct kr_note *why);
int agent_state_save_token_id(const char *dir, const char *id, struct kr_note *why);

/* KR_ENOENT: no hub has told of one. */
int agent_state_load_bundle(const char *dir, struct kr_buf *pem, uint64_t *generation,
                            struct kr_note *why);
int agent_state_save_bundle(const char *dir, struct kr_bytes pem, uint64_t generation,
                            struct kr_note *why);

#endif
