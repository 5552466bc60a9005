/* SPDX-License-Identifier: Apache-2.0 */
/* trust: what the agent shows to hubs and what it believes of them: its pair (certFile and keyFile,
 * or what is in stateDir) and the roots (the bundle that hubs told of, else caFile, else the one
 * root that rootPin is of: a hub must show it).
 * Errors: those of certs and net/tls_context.h; on failure all stays as it was. */
#ifndef AGENT_TRUST_H
#define AGENT_TRUST_H

#include "agent/core.h"

/* Reads all anew: c->hub_tls and c->self. Without a pair in stateDir hub_tls is NULL: the agent has
 * to join first. */
int agent_trust_load(struct agent_core *c, struct kr_note *why);
/* The same for files that changed on their own: only if the new certificate carries our name, fits
 * its key and leads to the roots. */
int agent_trust_reload(struct agent_core *c, struct kr_note *why);
/* Puts the pair before the last renewal in its place again, and logs why. Not 0: there is none that
 * is good (a hub has accepted the newer one, or it has expired). agent_trust_load takes it. */
int agent_trust_go_back(struct agent_core *c, const char *reason);
/* For ALPN h2. The caller unrefs it. */
struct kr_tls_context *agent_trust_enroll_context(struct agent_core *c, bool with_cert, int *rc,
                                                  struct kr_note *why);
/* 0 if a certificate and key would do as ours: they belong together, the certificate is an agent's
 * and, if we have a name already, ours; it leads to the roots. `bundle` may add roots. */
int agent_trust_check(const struct agent_core *c, struct kr_bytes key_pem,
                      struct kr_bytes chain_pem, struct kr_bytes bundle, struct kr_note *why);
/* Takes roots that a hub told of: keeps them on disk, then uses them. Refused if our own
 * certificate does not lead to one of them: it would be worth nothing. */
int agent_trust_take_bundle(struct agent_core *c, struct kr_bytes pem, uint64_t generation,
                            struct kr_note *why);

#endif
