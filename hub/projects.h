/* SPDX-License-Identifier: Apache-2.0 */
/* projects: who may do what on which cluster: rules that only ever add, and nothing else is allowed
 * once there is one (or option `authorization: projects` is set). They stand in the fleet file:
 *
 *   projects:
 *   - name: shop
 *     members:
 *       users: [alice]            # "*" is everybody known
 *       groups: [shop-dev]
 *       memberTokens: true        # tokens of the member clusters' own service accounts
 *     clusters: [edge-1]          # "*" for all; or clusterSelector: region=eu
 *     rules:
 *     - namespaces: [shop]        # default: all, and what has no namespace
 *       resources: [pods, pods/log, deployments.apps, deployments.apps/scale, "*"]
 *       verbs: [get, list, watch, "*"]
 *     - namespaces: [shop]
 *       resources: [pods/exec]
 *       verbs: [connect]          # exec, attach, portforward and proxy, whatever the method
 *     - nonResourcePaths: [/metrics, /logs*]   # a star at the end: whatever follows
 *       verbs: [get]
 *
 * Rules:  "*" in verbs is not `connect`; "*" in resources is neither Secrets nor the tokens of
 *         service accounts: those are opened by their names. `pods/` and `*` is every subresource.
 *         A list over all namespaces needs a rule for all namespaces. Members may read discovery
 * and health of their clusters, and ask what they themselves may do. Memory: part of the fleet
 * configuration. Threads: the worker's. */
#ifndef HUB_PROJECTS_H
#define HUB_PROJECTS_H

#include "hub/fleet_config.h"
#include "kube/request_info.h"

#define HUB_RULE_MAX 96

struct hub_question {
    struct hub_reader who;
    bool member_token; /* then `who` says nothing */
    struct kr_bytes cluster;
    const struct kr_request_info *info;
};

enum hub_fit { /* why a rule does not allow it */
               HUB_FIT_ALLOWED,
               HUB_FIT_MEMBER,
               HUB_FIT_CLUSTER,
               HUB_FIT_NAMESPACE,
               HUB_FIT_RESOURCE,
               HUB_FIT_VERB,
               HUB_FIT_PATH,
};

struct hub_decision {
    bool allowed;
    bool sees_cluster; /* some project gives them something there */
    char rule[HUB_RULE_MAX];
};

/* Whether there is any project. */
bool hub_projects_any(const struct hub_fleet_config *f);
/* `f` may be NULL: nothing is allowed. */
void hub_projects_decide(const struct hub_fleet_config *f, const struct hub_question *q,
                         struct hub_decision *out);
/* The i-th rule of all, and what it says; false behind the last. */
bool hub_projects_try(const struct hub_fleet_config *f, const struct hub_question *q, size_t i,
                      char rule[HUB_RULE_MAX], enum hub_fit *fit);
const char *hub_fit_text(enum hub_fit fit);
/* What a client is told, as kube-apiserver words it. */
int hub_denial_write(struct kr_bytes user, const struct kr_request_info *info, struct kr_buf *out);

#endif
