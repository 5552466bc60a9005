/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_config_parts.h"

#include "base/err.h"

struct raw_project {
    struct hub_project p;
    const char *selector;
    const struct kr_yaml_node *members;
    const struct kr_yaml_node *rules;
};

static bool is_star(struct kr_bytes v)
{
    return kr_bytes_is(v, "*");
}

static bool is_label(struct kr_bytes v)
{
    return is_star(v) || kr_is_dns_label(v);
}

static bool is_group(struct kr_bytes v)
{
    return !is_star(v) && !kr_bytes_starts(v, KR_LIT("system:"));
}

static bool is_user(struct kr_bytes v)
{
    return !kr_bytes_starts(v, KR_LIT("system:"));
}

/* "pods", "pods/log", "deployments.apps/scale", "pods/" with a star, or a star. */
static bool is_resource(struct kr_bytes v)
{
    size_t slash = kr_bytes_find(v, '/');
    struct kr_bytes sub = kr_bytes_skip(v, slash < v.n ? slash + 1 : slash);

    if (is_star(v))
        return true;
    if (v.n > 317 || slash == 0 || (slash < v.n && sub.n == 0))
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if (i == slash || (i > slash && is_star(sub)))
            continue;
        if (!((v.p[i] >= 'a' && v.p[i] <= 'z') || (v.p[i] >= '0' && v.p[i] <= '9') ||
              v.p[i] == '-' || (v.p[i] == '.' && i > 0)))
            return false;
    }
    return true;
}

static bool is_verb(struct kr_bytes v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < 'a' || v.p[i] > 'z')
            return is_star(v);
    }
    return true;
}

static bool is_path(struct kr_bytes v)
{
    return v.p[0] == '/';
}

static bool is_name(struct kr_bytes v)
{
    return kr_is_dns_label(v);
}

#define PROJECT(member) offsetof(struct raw_project, member)

static const struct kr_yaml_field project_fields[] = {
    {"name", KR_YAML_TEXT, PROJECT(p.name), is_name},
    {"members", KR_YAML_NODE, PROJECT(members), NULL},
    {"clusters", KR_YAML_NAMES, PROJECT(p.clusters.names), is_label},
    {"clusterSelector", KR_YAML_TEXT, PROJECT(selector), NULL},
    {"rules", KR_YAML_NODE, PROJECT(rules), NULL},
};

#define MEMBERS(member) offsetof(struct hub_project, member)

static const struct kr_yaml_field member_fields[] = {
    {"users", KR_YAML_NAMES, MEMBERS(users), is_user},
    {"groups", KR_YAML_NAMES, MEMBERS(groups), is_group},
    {"memberTokens", KR_YAML_FLAG, MEMBERS(member_tokens), NULL},
};

#define RULE(member) offsetof(struct hub_project_rule, member)

static const struct kr_yaml_field rule_fields[] = {
    {"namespaces", KR_YAML_NAMES, RULE(namespaces), is_label},
    {"resources", KR_YAML_NAMES, RULE(resources), is_resource},
    {"verbs", KR_YAML_NAMES, RULE(verbs), is_verb},
    {"nonResourcePaths", KR_YAML_STRINGS, RULE(paths), is_path},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static void *take(struct kr_yaml_reader *r, size_t count, size_t size)
{
    void *p = kr_arena_alloc(r->arena, count * size + 1);

    if (p != NULL)
        memset(p, 0, count * size + 1);
    else
        kr_note_set(r->why, KR_ENOMEM, "%.80s: out of memory", r->file);
    return p;
}

static int read_rule(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                     struct hub_project_rule *rule)
{
    int rc = kr_yaml_map_read(r, "projects: rules", node, rule_fields, COUNT(rule_fields), rule);

    if (rc == 0 && (rule->verbs.in.n == 0 || rule->resources.in.n + rule->paths.n == 0))
        rc = kr_yaml_fault(r, node,
                           "projects: a rule needs verbs, and resources or nonResourcePaths");
    rule->namespaces.all = rule->namespaces.all || rule->namespaces.in.n == 0;
    return rc;
}

static int read_rules(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                      struct hub_project *p)
{
    size_t n;
    int rc = kr_yaml_list_length(r, "projects: rules", node, &n);

    if (rc == 0 && (n == 0 || n > HUB_PROJECT_RULES_MAX))
        rc = kr_yaml_fault(r, node, "projects: 1 to %d rules", HUB_PROJECT_RULES_MAX);
    if (rc != 0)
        return rc;
    p->rules = take(r, n, sizeof *p->rules);
    if (p->rules == NULL)
        return KR_ENOMEM;
    for (; p->rule_count < n && rc == 0; p->rule_count++)
        rc = read_rule(r, kr_yaml_at(r->doc, node, p->rule_count), &p->rules[p->rule_count]);
    return rc;
}

static int read_clusters(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                         struct raw_project *raw)
{
    struct hub_selection *s = &raw->p.clusters;
    struct kr_note why = {""};

    s->given = true;
    s->by_labels = raw->selector != NULL;
    if ((s->names.in.n != 0) == s->by_labels)
        return kr_yaml_fault(r, node, "projects: give clusters (\"*\" for all) or clusterSelector");
    if (s->by_labels &&
        kr_label_selector_parse(kr_bytes_str(raw->selector), r->arena, &s->labels, &why) != 0)
        return kr_yaml_fault(r, node, "projects: clusterSelector: %.80s", why.text);
    return 0;
}

static int read_project(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                        struct hub_fleet_config *f)
{
    struct raw_project raw = {.selector = NULL};
    int rc = kr_yaml_map_read(r, "projects", node, project_fields, COUNT(project_fields), &raw);

    if (rc == 0 && (raw.p.name == NULL || raw.members == NULL || raw.rules == NULL))
        rc = kr_yaml_fault(r, node, "projects: name, members and rules are needed");
    for (size_t i = 0; i < f->project_count && rc == 0; i++) {
        if (strcmp(f->projects[i].name, raw.p.name) == 0)
            rc = kr_yaml_fault(r, node, "projects: %.63s is there already", raw.p.name);
    }
    if (rc == 0)
        rc = kr_yaml_map_read(r, "projects: members", raw.members, member_fields,
                              COUNT(member_fields), &raw.p);
    if (rc == 0 && raw.p.users.in.n + raw.p.groups.in.n == 0 && !raw.p.member_tokens)
        rc = kr_yaml_fault(r, node, "projects: %.63s has no members", raw.p.name);
    if (rc == 0)
        rc = read_clusters(r, node, &raw);
    if (rc == 0)
        rc = read_rules(r, raw.rules, &raw.p);
    if (rc == 0)
        f->projects[f->project_count++] = raw.p;
    return rc;
}

/* ---- what projects show in the fleet view ---- */

static bool shows(const struct hub_project_rule *rule, const char *verb)
{
    return rule->resources.in.n != 0 && kr_names_have(&rule->verbs, kr_bytes_str(verb));
}

static void add_reader(struct hub_fleet_config *f, const struct hub_project *p,
                       const struct hub_project_rule *rule)
{
    f->readers[f->reader_count++] = (struct hub_reader_rule){
        .users = p->users,
        .groups = p->groups,
        .clusters = p->clusters,
        .namespaces = rule->namespaces,
        .resources = rule->resources,
        .no_list = !shows(rule, "list"),
        .no_watch = !shows(rule, "watch"),
    };
}

/* A rule that lets list or watch is a reader's, too. */
static int add_readers(struct kr_yaml_reader *r, struct hub_fleet_config *f)
{
    struct hub_reader_rule *own = f->readers;
    size_t n = f->reader_count;

    for (size_t i = 0; i < f->project_count; i++)
        n += f->projects[i].rule_count;
    f->readers = take(r, n, sizeof *f->readers);
    if (f->readers == NULL)
        return KR_ENOMEM;
    if (f->reader_count != 0)
        memcpy(f->readers, own, f->reader_count * sizeof *own);
    for (size_t i = 0; i < f->project_count; i++) {
        const struct hub_project *p = &f->projects[i];

        for (size_t j = 0; j < p->rule_count; j++) {
            if (shows(&p->rules[j], "list") || shows(&p->rules[j], "watch"))
                add_reader(f, p, &p->rules[j]);
        }
    }
    return 0;
}

int hub_projects_read(struct hub_fleet_config *f, struct kr_yaml_reader *r,
                      const struct kr_yaml_node *node)
{
    size_t n;
    int rc = kr_yaml_list_length(r, "projects", node, &n);

    if (rc == 0 && n > HUB_PROJECTS_MAX)
        rc = kr_yaml_fault(r, node, "projects: more than %d", HUB_PROJECTS_MAX);
    if (rc != 0)
        return rc;
    f->projects = take(r, n, sizeof *f->projects);
    if (f->projects == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_project(r, kr_yaml_at(r->doc, node, i), f);
    return rc == 0 ? add_readers(r, f) : rc;
}
