/* SPDX-License-Identifier: Apache-2.0 */
/* gate: the agent port. Demands an agent's certificate and ALPN kuberelay/1, and makes tunnels;
 * with ALPN h2 it passes connections to the service Enrollment, if there is one. Limits:
 * maxConnections, maxHandshakes. */
#ifndef HUB_GATE_H
#define HUB_GATE_H

#include "certs/crl.h"
#include "hub/worker.h"

struct hub_enroll;
struct hub_gate;

/* `enroll` is borrowed; NULL: agents cannot enroll here. */
struct hub_gate *hub_gate_create(struct hub_worker *w, struct hub_enroll *enroll,
                                 struct kr_note *why);
void hub_gate_destroy(struct hub_gate *g);
const char *hub_gate_address(const struct hub_gate *g);
void hub_gate_drain(struct hub_gate *g); /* no new tunnels; agents are told */
void hub_gate_close(struct hub_gate *g);
/* Ends the tunnels of agents whose certificates are on the lists. */
void hub_gate_drop_revoked(struct hub_gate *g, const struct kr_crl *crl);

#endif
