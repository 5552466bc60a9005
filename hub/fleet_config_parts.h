/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_config_parts: what the files of fleet_config share: fleet_file.c fills it, fleet_config.c
 * and fleet_sight.c look things up in it.
 * Memory: all of it lives in the arena. It is counted, since what a reader sees (hub_sight) may
 * outlive the configuration that the hub uses. */
#ifndef HUB_FLEET_CONFIG_PARTS_H
#define HUB_FLEET_CONFIG_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/yaml_map.h"
#include "hub/fleet_config.h"
#include "kube/selector.h"

#define HUB_FLEET_CLUSTERS_MAX 10000
#define HUB_FLEET_LABELS_MAX 64
#define HUB_FLEET_READERS_MAX 1000
#define HUB_FLEET_PROFILES_MAX 256
#define HUB_PROJECTS_MAX 1000
#define HUB_PROJECT_RULES_MAX 64

struct hub_cluster_labels {
    struct kr_label *labels; /* sorted */
    size_t n;
};

/* Which clusters a rule or a profile is about. */
struct hub_selection {
    bool given;
    struct kr_names names;
    bool by_labels;
    struct kr_label_selector labels;
};

struct hub_reader_rule {
    struct kr_names users;
    struct kr_names groups;
    struct hub_selection clusters;
    struct kr_names namespaces;
    struct kr_names resources;
    bool no_list; /* of a project that gives only the other verb */
    bool no_watch;
};

struct hub_profile_rule {
    struct hub_profile profile; /* its resources are those of `resources` */
    struct kr_names resources;
    struct hub_selection clusters;
};

/* See hub/projects.h. */
struct hub_project_rule {
    struct kr_names namespaces;
    struct kr_names resources;
    struct kr_names verbs;
    struct kr_strings paths;
};

struct hub_project {
    const char *name;
    struct kr_names users;
    struct kr_names groups;
    bool member_tokens;
    struct hub_selection clusters;
    struct hub_project_rule *rules;
    size_t rule_count;
};

struct hub_fleet_config {
    unsigned refs;
    struct kr_arena arena;
    struct kr_map labels; /* by the cluster's name: hub_cluster_labels */
    struct hub_reader_rule *readers;
    size_t reader_count;
    struct hub_profile_rule *profiles;
    size_t profile_count;
    struct hub_project *projects;
    size_t project_count;
    struct hub_profile fallback;
    bool on_demand;
};

#define HUB_FLEET_FILE_MAX (4u << 20)

/* Reads the text of a file into `f`, which is empty. */
int hub_fleet_file_parse(struct hub_fleet_config *f, const char *name, struct kr_bytes text,
                         struct kr_note *why);

/* projects_file.c: the list `projects`; comes behind the readers, to whom it adds. */
int hub_projects_read(struct hub_fleet_config *f, struct kr_yaml_reader *r,
                      const struct kr_yaml_node *node);

/* Whether a list of resources means this one. `*` does not mean what must be named. */
bool hub_names_have_resource(const struct kr_names *names, struct kr_bytes group,
                             struct kr_bytes resource, bool by_star);
bool hub_selection_has(const struct hub_fleet_config *f, const struct hub_selection *s,
                       const char *cluster);

#endif
