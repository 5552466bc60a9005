/* SPDX-License-Identifier: Apache-2.0 */
/* Every mapping of the file has a table of its fields, so that an unknown, doubled or misplaced key
 * is a fault with its line; what the values mean together is checked behind that. */
#include "hub/fleet_config_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "kube/label_names.h"
#include "kube/slim.h"

struct loader {
    struct kr_yaml_reader r;
    struct hub_fleet_config *f;
};

/* A record that is being read, for faults. */
struct place {
    const char *list; /* "readers" */
    size_t i;
    const struct kr_yaml_node *node;
};

__attribute__((format(printf, 3, 4))) static int fault(struct loader *l, const struct place *at,
                                                       const char *fmt, ...)
{
    char text[120];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return kr_yaml_fault(&l->r, at->node, "%s[%zu]: %s", at->list, at->i, text);
}

static int no_memory(struct loader *l)
{
    return kr_note_set(l->r.why, KR_ENOMEM, "%.80s: out of memory", l->r.file);
}

static void *take(struct loader *l, size_t count, size_t size)
{
    void *p = kr_arena_alloc(l->r.arena, count * size + 1);

    if (p != NULL)
        memset(p, 0, count * size + 1);
    return p;
}

static int read_record(struct loader *l, const struct place *at, const struct kr_yaml_field *fields,
                       size_t n, void *out)
{
    char what[40];

    snprintf(what, sizeof what, "%s[%zu]", at->list, at->i);
    return kr_yaml_map_read(&l->r, what, at->node, fields, n, out);
}

/* ---- values ---- */

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
    return !is_star(v);
}

/* "pods", "deployments.apps" or "*"; no subresources. */
static bool is_resource(struct kr_bytes v)
{
    if (is_star(v))
        return true;
    if (v.n > 317 || v.p[0] == '.' || v.p[0] == '-' || v.p[v.n - 1] == '.')
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if (!((v.p[i] >= 'a' && v.p[i] <= 'z') || (v.p[i] >= '0' && v.p[i] <= '9') ||
              v.p[i] == '-' || v.p[i] == '.'))
            return false;
    }
    return true;
}

/* ---- clusters ---- */

static int read_labels(struct loader *l, const struct kr_yaml_node *node,
                       struct hub_cluster_labels *out)
{
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;
    struct kr_note why = {""};

    if (kr_yaml_kind(node) != KR_YAML_MAP)
        return kr_yaml_fault(&l->r, node, "clusters: a mapping of labels is expected");
    out->labels = take(l, HUB_FLEET_LABELS_MAX, sizeof *out->labels);
    if (out->labels == NULL)
        return no_memory(l);
    for (size_t i = 0; kr_yaml_entry(l->r.doc, node, i, &key, &value); i++) {
        const char *name;
        const char *text;
        int rc = kr_yaml_text_read(&l->r, "clusters", key, NULL, &name);

        if (rc == 0 && i == HUB_FLEET_LABELS_MAX)
            rc = kr_yaml_fault(&l->r, key, "clusters: more than %d labels", HUB_FLEET_LABELS_MAX);
        if (rc == 0)
            rc = kr_yaml_text_read(&l->r, name, value, NULL, &text);
        if (rc != 0)
            return rc;
        for (size_t j = 0; j < i; j++) {
            if (kr_bytes_is(out->labels[j].key, name))
                return kr_yaml_fault(&l->r, key, "clusters: the label %.60s is given twice", name);
        }
        if (kr_label_key_check(kr_bytes_str(name), &why) != 0 ||
            kr_label_value_check(kr_bytes_str(text), &why) != 0)
            return kr_yaml_fault(&l->r, key, "clusters: %.40s: %.90s", name, why.text);
        out->labels[i] = (struct kr_label){kr_bytes_str(name), kr_bytes_str(text)};
        out->n++;
    }
    kr_labels_sort(out->labels, out->n);
    return 0;
}

static int read_clusters(struct loader *l, const struct kr_yaml_node *node)
{
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;

    if (kr_yaml_kind(node) != KR_YAML_MAP)
        return kr_yaml_fault(&l->r, node, "clusters: a mapping of names is expected");
    for (size_t i = 0; kr_yaml_entry(l->r.doc, node, i, &key, &value); i++) {
        struct hub_cluster_labels *labels = take(l, 1, sizeof *labels);
        const char *name = NULL;
        int rc = labels != NULL ? kr_yaml_text_read(&l->r, "clusters", key, kr_is_dns_label, &name)
                                : no_memory(l);

        if (rc == 0)
            rc = read_labels(l, value, labels);
        if (rc != 0)
            return rc;
        rc = kr_map_put(&l->f->labels, kr_bytes_str(name), labels);
        if (rc == KR_EEXIST)
            return kr_yaml_fault(&l->r, key, "clusters: %s is given twice", name);
        if (rc != 0)
            return kr_yaml_fault(&l->r, key, "clusters: %s", kr_err_text(rc));
    }
    return 0;
}

/* ---- readers and profiles ---- */

/* What both have: clusters, or clusterSelector. */
static int finish_selection(struct loader *l, const struct place *at, const char *selector,
                            struct hub_selection *s)
{
    struct kr_note why = {""};

    s->given = s->names.in.n != 0 || selector != NULL;
    s->by_labels = selector != NULL;
    if (selector == NULL)
        return 0;
    if (s->names.in.n != 0)
        return fault(l, at, "give clusters or clusterSelector, not both");
    if (kr_label_selector_parse(kr_bytes_str(selector), &l->f->arena, &s->labels, &why) != 0)
        return fault(l, at, "clusterSelector: %.80s", why.text);
    return 0;
}

struct raw_reader {
    struct hub_reader_rule rule;
    const char *selector;
};

#define READER(member) offsetof(struct raw_reader, member)

static const struct kr_yaml_field reader_fields[] = {
    {"users", KR_YAML_NAMES, READER(rule.users), NULL},
    {"groups", KR_YAML_NAMES, READER(rule.groups), is_group},
    {"clusters", KR_YAML_NAMES, READER(rule.clusters.names), is_label},
    {"clusterSelector", KR_YAML_TEXT, READER(selector), NULL},
    {"namespaces", KR_YAML_NAMES, READER(rule.namespaces), is_label},
    {"resources", KR_YAML_NAMES, READER(rule.resources), is_resource},
};

static int read_reader(struct loader *l, const struct place *at)
{
    struct raw_reader raw = {.selector = NULL};
    int rc =
        read_record(l, at, reader_fields, sizeof reader_fields / sizeof reader_fields[0], &raw);

    if (rc == 0)
        rc = finish_selection(l, at, raw.selector, &raw.rule.clusters);
    if (rc != 0)
        return rc;
    if (raw.rule.users.in.n + raw.rule.groups.in.n == 0)
        return fault(l, at, "users or groups are missing");
    if (!raw.rule.clusters.given)
        return fault(l, at, "clusters are missing (\"*\" for all)");
    if (raw.rule.resources.in.n == 0)
        return fault(l, at, "resources are missing");
    raw.rule.namespaces.all = raw.rule.namespaces.all || raw.rule.namespaces.in.n == 0;
    l->f->readers[at->i] = raw.rule;
    return 0;
}

struct raw_profile {
    struct hub_profile_rule rule;
    struct kr_names namespaces;
    const char *selector;
};

#define PROFILE(member) offsetof(struct raw_profile, member)

static const struct kr_yaml_field profile_fields[] = {
    {"name", KR_YAML_TEXT, PROFILE(rule.profile.name), NULL},
    {"resources", KR_YAML_NAMES, PROFILE(rule.resources), is_resource},
    {"clusters", KR_YAML_NAMES, PROFILE(rule.clusters.names), is_label},
    {"clusterSelector", KR_YAML_TEXT, PROFILE(selector), NULL},
    {"namespaces", KR_YAML_NAMES, PROFILE(namespaces), is_label},
    {"labelSelector", KR_YAML_TEXT, PROFILE(rule.profile.label_selector), NULL},
    {"fieldSelector", KR_YAML_TEXT, PROFILE(rule.profile.field_selector), NULL},
    {"keep", KR_YAML_STRINGS, PROFILE(rule.profile.keep), NULL},
    {"drop", KR_YAML_STRINGS, PROFILE(rule.profile.drop), NULL},
    {"metadataOnly", KR_YAML_FLAG, PROFILE(rule.profile.metadata_only), NULL},
    {"always", KR_YAML_FLAG, PROFILE(rule.profile.always), NULL},
    {"priority", KR_YAML_NUMBER, PROFILE(rule.profile.priority), NULL},
};

/* Whether an agent could use the selectors. */
static int check_selectors(struct loader *l, const struct place *at, const struct hub_profile *p)
{
    struct kr_label_selector labels;
    struct kr_field_selector fields = {NULL, 0};
    struct kr_note why = {""};
    int rc = 0;

    if (p->label_selector != NULL)
        rc = kr_label_selector_parse(kr_bytes_str(p->label_selector), &l->f->arena, &labels, &why);
    if (rc != 0)
        return fault(l, at, "labelSelector: %.80s", why.text);
    if (p->field_selector != NULL)
        rc = kr_field_selector_parse(kr_bytes_str(p->field_selector), &l->f->arena, &fields, &why);
    for (size_t i = 0; rc == 0 && i < p->resources.n && fields.n != 0; i++) {
        struct kr_bytes name = kr_bytes_str(p->resources.v[i]);
        size_t dot = kr_bytes_find(name, '.');

        rc = kr_field_selector_allowed(&fields, kr_bytes_skip(name, dot < name.n ? dot + 1 : dot),
                                       kr_bytes_of(name.p, dot), &why);
    }
    return rc != 0 ? fault(l, at, "fieldSelector: %.80s", why.text) : 0;
}

static int check_paths(struct loader *l, const struct place *at, const struct hub_profile *p)
{
    struct kr_bytes all[2 * 64];
    struct kr_profile_paths paths = {.keep = all, .drop = all + 64, .metadata_only = false};
    struct kr_note why = {""};
    struct kr_profile *made;

    if (p->keep.n > 64 || p->drop.n > 64)
        return fault(l, at, "more than 64 paths");
    for (; paths.keep_count < p->keep.n; paths.keep_count++)
        all[paths.keep_count] = kr_bytes_str(p->keep.v[paths.keep_count]);
    for (; paths.drop_count < p->drop.n; paths.drop_count++)
        all[64 + paths.drop_count] = kr_bytes_str(p->drop.v[paths.drop_count]);
    made = kr_profile_create(&paths, &why);
    kr_profile_destroy(made);
    return made == NULL ? fault(l, at, "%.80s", why.text) : 0;
}

static int check_profile(struct loader *l, const struct place *at, const struct hub_profile_rule *r)
{
    const struct hub_profile *p = &r->profile;
    int rc;

    if (p->name == NULL || p->resources.n == 0)
        return fault(l, at, "%s missing", p->name == NULL ? "the name is" : "resources are");
    for (size_t i = 0; i < at->i; i++) {
        if (strcmp(l->f->profiles[i].profile.name, p->name) == 0)
            return fault(l, at, "%.60s is there already", p->name);
    }
    if (p->always && r->resources.all)
        return fault(l, at, "always needs resources by their names");
    if (p->metadata_only && p->keep.n + p->drop.n != 0)
        return fault(l, at, "metadataOnly goes with neither keep nor drop");
    rc = check_selectors(l, at, p);
    return rc != 0 ? rc : check_paths(l, at, p);
}

static int read_profile(struct loader *l, const struct place *at)
{
    struct raw_profile raw = {.rule.profile.priority = l->f->fallback.priority};
    struct hub_profile *p = &raw.rule.profile;
    int rc =
        read_record(l, at, profile_fields, sizeof profile_fields / sizeof profile_fields[0], &raw);

    if (rc == 0)
        rc = finish_selection(l, at, raw.selector, &raw.rule.clusters);
    if (rc != 0)
        return rc;
    p->resources = raw.rule.resources.in;
    if (!raw.namespaces.all)
        p->namespaces = raw.namespaces.in;
    l->f->profiles[at->i] = raw.rule;
    return check_profile(l, at, &l->f->profiles[at->i]);
}

static int read_list(struct loader *l, const char *name, const struct kr_yaml_node *node, size_t n,
                     int (*read)(struct loader *l, const struct place *at))
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct place at = {name, i, kr_yaml_at(l->r.doc, node, i)};

        rc = read(l, &at);
    }
    return rc;
}

/* Room for the records of a list: *n of them. */
static int make_room(struct loader *l, const char *name, const struct kr_yaml_node *node,
                     size_t max, size_t size, void **out, size_t *n)
{
    int rc = kr_yaml_list_length(&l->r, name, node, n);

    if (rc == 0 && *n > max)
        rc = kr_yaml_fault(&l->r, node, "%s: more than %zu", name, max);
    if (rc != 0)
        return rc;
    *out = take(l, *n, size);
    return *out != NULL ? 0 : no_memory(l);
}

static int read_readers(struct loader *l, const struct kr_yaml_node *node)
{
    void *room = NULL;
    int rc = make_room(l, "readers", node, HUB_FLEET_READERS_MAX, sizeof *l->f->readers, &room,
                       &l->f->reader_count);

    l->f->readers = room;
    return rc != 0 ? rc : read_list(l, "readers", node, l->f->reader_count, read_reader);
}

static int read_profiles(struct loader *l, const struct kr_yaml_node *node)
{
    void *room = NULL;
    int rc = make_room(l, "profiles", node, HUB_FLEET_PROFILES_MAX, sizeof *l->f->profiles, &room,
                       &l->f->profile_count);

    l->f->profiles = room;
    return rc != 0 ? rc : read_list(l, "profiles", node, l->f->profile_count, read_profile);
}

/* ---- the file ---- */

struct sections {
    const struct kr_yaml_node *clusters;
    const struct kr_yaml_node *readers;
    const struct kr_yaml_node *profiles;
    const struct kr_yaml_node *projects;
    bool on_demand;
};

static const struct kr_yaml_field section_fields[] = {
    {"clusters", KR_YAML_NODE, offsetof(struct sections, clusters), NULL},
    {"readers", KR_YAML_NODE, offsetof(struct sections, readers), NULL},
    {"profiles", KR_YAML_NODE, offsetof(struct sections, profiles), NULL},
    {"projects", KR_YAML_NODE, offsetof(struct sections, projects), NULL},
    {"onDemand", KR_YAML_FLAG, offsetof(struct sections, on_demand), NULL},
};

static int read_document(struct loader *l)
{
    const struct kr_yaml_node *root = kr_yaml_root(l->r.doc);
    struct sections all = {.on_demand = l->f->on_demand};
    int rc;

    if (root == NULL)
        return 0; /* nothing but comments */
    rc = kr_yaml_map_read(&l->r, "the file", root, section_fields,
                          sizeof section_fields / sizeof section_fields[0], &all);
    if (rc == 0 && all.clusters != NULL)
        rc = read_clusters(l, all.clusters);
    if (rc == 0 && all.readers != NULL)
        rc = read_readers(l, all.readers);
    if (rc == 0 && all.profiles != NULL)
        rc = read_profiles(l, all.profiles);
    if (rc == 0 && all.projects != NULL)
        rc = hub_projects_read(l->f, &l->r, all.projects);
    l->f->on_demand = all.on_demand;
    return rc;
}

int hub_fleet_file_parse(struct hub_fleet_config *f, const char *name, struct kr_bytes text,
                         struct kr_note *why)
{
    struct loader l = {.f = f, .r = {.arena = &f->arena, .file = name, .why = why}};
    int rc = kr_yaml_parse(text, &l.r.doc, why);

    if (rc != 0)
        return kr_note_wrap(why, rc, "%.80s", name);
    rc = read_document(&l);
    kr_yaml_destroy(l.r.doc);
    return rc;
}
