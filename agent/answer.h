/* SPDX-License-Identifier: Apache-2.0 */
/* answer: the agent's own answers to relayed requests: one case of kube/status.h. */
#ifndef AGENT_ANSWER_H
#define AGENT_ANSWER_H

#include "agent/core.h"
#include "http/exchange.h"
#include "kube/status.h"

/* Answers `ex` and lets it go. `not_sent`: no byte of the request reached the API server. */
int agent_answer(struct agent_core *c, struct kr_exchange *ex, enum kr_case which,
                 const struct kr_case_facts *facts, bool not_sent);

#endif
