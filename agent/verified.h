/* SPDX-License-Identifier: Apache-2.0 */
/* verified: identity mode `verified`: the agent believes no hub about who is asking. It checks the
 * user's own ID token, with keys that its own policy names, and takes user and groups from it.
 * The key file is looked at every 2 s; a bad new one is not taken.
 * Memory: texts live in the caller's arena. Errors: KR_EDENIED with the reason, KR_ENOMEM.
 * Threads: the agent's. */
#ifndef AGENT_VERIFIED_H
#define AGENT_VERIFIED_H

#include "agent/policy.h"
#include "wire/messages.h"

/* Reads the keys for the first time; what those of files and key sets return. */
int agent_verified_load(struct agent_policy *p, struct kr_note *why);

struct agent_verified_clock {
    int64_t now_ms;
    int64_t now_wall_ms;
};

/* Replaces what the hub said of the user by what the token says. */
int agent_verified_user(struct agent_policy *p, const struct agent_verified_clock *clock,
                        struct kr_relay_request *who, struct kr_arena *arena, struct kr_note *why);

#endif
