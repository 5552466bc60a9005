/* SPDX-License-Identifier: Apache-2.0 */
/* policy: what this edge lets a hub do, whoever the hub says is asking. It comes from a local file
 * that no hub can read or change, and is asked for every relayed request, on the same request info
 * that is forwarded.
 *
 *   mode: read-only           # read-write, or off; without a file: read-only
 *   identity: hub-asserted    # fixed: all run as the agent's own account
 *                             # verified: the agent checks the user's own token
 *   exec: false               # exec, attach, port-forward and ephemeral containers of pods
 *   rules:                    # nothing but these; without rules all that the mode allows
 *   - namespaces: [shop]      # default: all, and what has no namespace
 *     resources: [pods, pods/log, deployments.apps, "*"]
 *     verbs: [get, list, watch, "*"]
 *   open: [secrets]           # what is closed otherwise, by name: see agent_policy_closed
 *   ownNamespace: kuberelay   # default: that of the agent's service account
 *   groups:                   # a group of the hub that becomes another one here
 *     ops: edge-operators
 *   limits: {requests: 200, watches: 1000, upgrades: 16}
 *   verified: {issuer: URL, audience: TEXT, jwksFile: FILE, usernameClaim: sub, groupsClaim:
 * groups}
 *
 * Rules:  in read-only mode only GET and HEAD without an upgrade, and nothing that connects.
 *         `*` in resources does not open what is closed. A list over all namespaces needs a rule
 *         for all namespaces.
 * Memory: a policy owns its texts. Errors: KR_EINVAL and those of files, with "FILE:LINE: what".
 * Threads: the agent's. */
#ifndef AGENT_POLICY_H
#define AGENT_POLICY_H

#include "base/arena.h"
#include "base/yaml_map.h"
#include "certs/jwk.h"
#include "kube/request_info.h"

enum agent_policy_mode { AGENT_READ_ONLY, AGENT_READ_WRITE, AGENT_OFF };
enum agent_identity_mode { AGENT_HUB_ASSERTED, AGENT_FIXED, AGENT_VERIFIED };

struct agent_policy_rule {
    struct kr_names namespaces;
    struct kr_names resources;
    struct kr_names verbs;
};

struct agent_verified { /* of identity mode verified */
    const char *issuer;
    const char *audience;
    const char *jwks_file;
    const char *username_claim;
    const char *groups_claim;
};

struct agent_policy { /* read it */
    enum agent_policy_mode mode;
    enum agent_identity_mode identity;
    bool exec;
    const struct agent_policy_rule *rules;
    size_t rule_count; /* 0: all that the mode allows */
    struct kr_names open;
    const char *own_namespace; /* NULL: not known */
    struct kr_yaml_texts groups;
    uint32_t max_requests; /* 0: no limit of its own */
    uint32_t max_watches;
    uint32_t max_upgrades;
    struct agent_verified verified;
    struct kr_jwks *keys; /* of verified.jwksFile; verified.c reads them again */
    int64_t keys_mtime_ns;
    int64_t keys_looked_ms;
    struct kr_bytes text; /* the file as it was read */
    struct kr_arena arena;
};

struct agent_verdict {
    bool allowed;
    char rule[48]; /* which rule decided: "rules[2]", "mode", "closed:secrets", "exec" */
    char text[128];
};

/* `file` NULL: the default. `own_namespace` is used if the file does not say one; may be NULL. */
int agent_policy_load(struct agent_policy **out, const char *file, const char *own_namespace,
                      struct kr_note *why);
void agent_policy_destroy(struct agent_policy *p);
/* Whether both come from the same text. */
bool agent_policy_same(const struct agent_policy *a, const struct agent_policy *b);
void agent_policy_check(const struct agent_policy *p, const struct kr_request_info *ri,
                        bool upgrade, struct agent_verdict *out);
/* Whether objects of that type may be synced to a hub. */
void agent_policy_check_sync(const struct agent_policy *p, struct kr_bytes group,
                             struct kr_bytes resource, struct agent_verdict *out);
/* The name of the i-th thing that is closed unless `open` names it, and what it is; NULL behind the
 * last. */
const char *agent_policy_closed(size_t i, const char **text);
/* What the hub's group is called here; the group itself if there is no other name. */
struct kr_bytes agent_policy_group(const struct agent_policy *p, struct kr_bytes group,
                                   bool *mapped);

#endif
