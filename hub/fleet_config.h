/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_config: the file that option `fleetFile` names (YAML): labels of clusters, who may read
 * what in the fleet view, and what is synced in which form. Read at the start and again on SIGHUP
 * and whenever the file changes; a bad new one is refused as a whole and the old one stays.
 *
 *   clusters:                 # labels, for selection only
 *     edge-1: {region: eu}
 *   readers:                  # default: nobody reads anything
 *   - users: [alice]          # one of users and groups must match; "*" is everybody known
 *     groups: [ops]
 *     clusters: [edge-1]      # "*" for all; or clusterSelector: region=eu
 *     namespaces: ["*"]       # default: all
 *     resources: [pods, deployments.apps, "*"]   # Secrets only by their name, never by "*"
 *   profiles:                 # the first that fits a cluster and a resource is used
 *   - name: pods
 *     resources: [pods]
 *     clusters, clusterSelector, namespaces, labelSelector, fieldSelector
 *     keep: ["spec.containers[*].image"]
 *     drop: []
 *     metadataOnly: false
 *     priority: 10
 *     always: true            # synced also while nobody reads; default: on demand
 *   projects: []              # who may do what on clusters, and see it here: hub/projects.h
 *   onDemand: true            # types without a profile are synced losslessly when asked for
 *
 * Errors: KR_EINVAL and those of files, with a note "FILE: where: what". Threads: the worker's. */
#ifndef HUB_FLEET_CONFIG_H
#define HUB_FLEET_CONFIG_H

#include "base/options.h"
#include "hub/cache.h"

struct hub_profile {
    const char *name;
    struct kr_strings resources; /* "pods", "deployments.apps" */
    struct kr_strings namespaces;
    struct kr_strings keep;
    struct kr_strings drop;
    const char *label_selector; /* NULL: none */
    const char *field_selector;
    bool metadata_only;
    bool always;
    uint32_t priority;
};

struct hub_fleet_config;

/* `file` NULL: an empty configuration (nobody reads). */
int hub_fleet_config_load(struct hub_fleet_config **out, const char *file, struct kr_note *why);
/* The same for text in memory; `name` stands for the file in notes. */
int hub_fleet_config_parse(struct hub_fleet_config **out, const char *name, struct kr_bytes text,
                           struct kr_note *why);
void hub_fleet_config_destroy(struct hub_fleet_config *f);

/* The profile for a type on a cluster; NULL: none of the file (see on_demand). */
const struct hub_profile *hub_fleet_profile(const struct hub_fleet_config *f, const char *cluster,
                                            struct kr_bytes group, struct kr_bytes resource);
/* The lossless default. */
const struct hub_profile *hub_fleet_default_profile(const struct hub_fleet_config *f);
bool hub_fleet_on_demand(const struct hub_fleet_config *f);
/* Secrets, leases and events: never synced unless a profile names them ("*" does not). */
bool hub_fleet_must_be_named(struct kr_bytes group, struct kr_bytes resource);
/* Whether the type may be synced on any cluster: a profile fits it, or it may be on demand. */
bool hub_fleet_may_sync(const struct hub_fleet_config *f, struct kr_bytes group,
                        struct kr_bytes resource);
/* Steps through the profiles; NULL at the end. */
const struct hub_profile *hub_fleet_profile_at(const struct hub_fleet_config *f, size_t i);

/* Who asks. */
struct hub_reader {
    struct kr_bytes user;
    const struct kr_bytes *groups;
    size_t group_count;
    bool watches; /* asks to watch, not to list */
};

/* What that reader may see of a resource, for as long as the configuration lives. NULL: nothing at
 * all (answer 403). The result starts with a struct hub_sight. Freed by hub_sight_destroy. */
struct hub_reader_sight;
struct hub_reader_sight *hub_fleet_sight(const struct hub_fleet_config *f,
                                         const struct hub_reader *who, struct kr_bytes group,
                                         struct kr_bytes resource, bool *nothing);
/* Whether any rule shows that namespace on any cluster, there or not. */
bool hub_reader_sight_shows(const struct hub_reader_sight *s, struct kr_bytes ns);
const struct hub_sight *hub_reader_sight_ops(const struct hub_reader_sight *s);
void hub_reader_sight_destroy(struct hub_reader_sight *s);
/* What one rule for readers gives, to tell somebody what they may do. */
struct hub_reader_rights {
    bool list;
    bool watch;
    bool all;                           /* resources: but for what must be named */
    const struct kr_strings *resources; /* those that are named */
};
/* Of the i-th rule, in a namespace (empty: any); nothing if it is not for them. False behind the
 * last. */
bool hub_fleet_rights(const struct hub_fleet_config *f, const struct hub_reader *who, size_t i,
                      struct kr_bytes ns, struct hub_reader_rights *out);
/* Whether the reader may see anything of that cluster (for discovery). */
bool hub_fleet_may_see_cluster(const struct hub_fleet_config *f, const struct hub_reader *who,
                               const char *cluster);

#endif
