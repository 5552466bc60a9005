/* SPDX-License-Identifier: Apache-2.0 */
/* Every mapping of the file has a table of its fields, so that an unknown, doubled or misplaced key
 * is a fault with its line; what the values mean together is checked behind that. */
#include "hub/fleet_config_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/yaml.h"
#include "kube/label_names.h"
#include "kube/slim.h"

#define VALUE_MAX 4096

struct loader {
    struct hub_fleet_config *f;
    struct kr_yaml *y;
    const char *file;
    struct kr_note *why;
};

enum field_kind { STRINGS, NAMES, TEXT, FLAG, NUMBER };

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    bool (*valid)(struct kr_bytes value); /* of a text, or of each item; NULL: anything */
};

/* A mapping that is being read, for faults. */
struct place {
    const char *list; /* "readers" */
    size_t i;
    const struct kr_yaml_node *node;
};

__attribute__((format(printf, 3, 4))) static int
fault(struct loader *l, const struct kr_yaml_node *node, const char *fmt, ...)
{
    char text[160];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return kr_note_set(l->why, KR_EINVAL, "%.80s:%zu: %s", l->file, kr_yaml_line(node), text);
}

static int no_memory(struct loader *l)
{
    return kr_note_set(l->why, KR_ENOMEM, "%.80s: out of memory", l->file);
}

static void *take(struct loader *l, size_t count, size_t size)
{
    void *p = kr_arena_alloc(&l->f->arena, count * size + 1);

    if (p != NULL)
        memset(p, 0, count * size + 1);
    return p;
}

/* ---- values ---- */

static bool is_text(struct kr_bytes v)
{
    if (v.n > VALUE_MAX || !kr_bytes_is_utf8(v))
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < ' ' || v.p[i] == 0x7f)
            return false;
    }
    return true;
}

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

static int read_text(struct loader *l, const char *key, const struct kr_yaml_node *node,
                     bool (*valid)(struct kr_bytes), const char **out)
{
    struct kr_bytes v = kr_bytes_str(kr_yaml_text(node));

    if (v.n == 0)
        return fault(l, node, "%s: a text is expected", key);
    if (!is_text(v) || (valid != NULL && !valid(v)))
        return fault(l, node, "%s: \"%.60s\" is not possible here", key, (const char *)v.p);
    v = kr_arena_copy(&l->f->arena, v);
    if (v.p == NULL)
        return no_memory(l);
    *out = (const char *)v.p;
    return 0;
}

static size_t length(struct loader *l, const struct kr_yaml_node *list)
{
    size_t n = 0;

    while (n <= HUB_FLEET_ITEMS_MAX && kr_yaml_at(l->y, list, n) != NULL)
        n++;
    return n;
}

static int read_strings(struct loader *l, const struct field *field,
                        const struct kr_yaml_node *node, struct kr_strings *out)
{
    size_t n = length(l, node);

    if (kr_yaml_kind(node) != KR_YAML_LIST)
        return fault(l, node, "%s: a list is expected", field->key);
    if (n == 0 || n > HUB_FLEET_ITEMS_MAX)
        return fault(l, node, "%s: %s", field->key, n == 0 ? "the list is empty" : "too long");
    out->v = take(l, n + 1, sizeof *out->v);
    if (out->v == NULL)
        return no_memory(l);
    for (; out->n < n; out->n++) {
        int rc =
            read_text(l, field->key, kr_yaml_at(l->y, node, out->n), field->valid, &out->v[out->n]);

        if (rc != 0)
            return rc;
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_names(struct loader *l, const struct field *field, const struct kr_yaml_node *node,
                      struct hub_names *out)
{
    int rc = read_strings(l, field, node, &out->in);

    if (rc != 0)
        return rc;
    qsort(out->in.v, out->in.n, sizeof *out->in.v, by_text);
    for (size_t i = 0; i < out->in.n; i++)
        out->all = out->all || strcmp(out->in.v[i], "*") == 0;
    return 0;
}

static int read_flag(struct loader *l, const char *key, const struct kr_yaml_node *node, bool *out)
{
    const char *text = kr_yaml_text(node);

    if (text == NULL || (strcmp(text, "true") != 0 && strcmp(text, "false") != 0))
        return fault(l, node, "%s: true or false is expected", key);
    *out = text[0] == 't';
    return 0;
}

static int read_number(struct loader *l, const char *key, const struct kr_yaml_node *node,
                       uint32_t *out)
{
    uint64_t n;

    if (!kr_bytes_to_u64(kr_bytes_str(kr_yaml_text(node)), 1000000, &n))
        return fault(l, node, "%s: a number from 0 to 1000000 is expected", key);
    *out = (uint32_t)n;
    return 0;
}

static int read_field(struct loader *l, const struct field *field, const struct kr_yaml_node *node,
                      void *to)
{
    switch (field->kind) {
    case STRINGS:
        return read_strings(l, field, node, to);
    case NAMES:
        return read_names(l, field, node, to);
    case TEXT:
        return read_text(l, field->key, node, field->valid, to);
    case FLAG:
        return read_flag(l, field->key, node, to);
    case NUMBER:
        return read_number(l, field->key, node, to);
    }
    return KR_EINVAL;
}

/* Reads a mapping into `out` by its table of at most 32 fields. */
static int read_map(struct loader *l, const struct place *at, const struct field *table, size_t n,
                    void *out)
{
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;
    uint32_t seen = 0;

    if (kr_yaml_kind(at->node) != KR_YAML_MAP)
        return fault(l, at->node, "%s[%zu]: a mapping is expected", at->list, at->i);
    for (size_t i = 0; kr_yaml_entry(l->y, at->node, i, &key, &value); i++) {
        const char *name = kr_yaml_text(key);
        size_t f = 0;
        int rc;

        while (f < n && (name == NULL || strcmp(name, table[f].key) != 0))
            f++;
        if (f == n)
            return fault(l, key, "%s[%zu]: unknown key \"%.40s\"", at->list, at->i,
                         name != NULL ? name : "");
        if ((seen >> f & 1) != 0)
            return fault(l, key, "%s[%zu]: %s is given twice", at->list, at->i, name);
        seen |= UINT32_C(1) << f;
        rc = read_field(l, &table[f], value, (char *)out + table[f].offset);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- clusters ---- */

static int read_labels(struct loader *l, const struct kr_yaml_node *node,
                       struct hub_cluster_labels *out)
{
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;
    struct kr_note why = {""};

    if (kr_yaml_kind(node) != KR_YAML_MAP)
        return fault(l, node, "clusters: a mapping of labels is expected");
    out->labels = take(l, HUB_FLEET_LABELS_MAX, sizeof *out->labels);
    if (out->labels == NULL)
        return no_memory(l);
    for (size_t i = 0; kr_yaml_entry(l->y, node, i, &key, &value); i++) {
        const char *name;
        const char *text;
        int rc = read_text(l, "clusters", key, NULL, &name);

        if (rc == 0 && i == HUB_FLEET_LABELS_MAX)
            rc = fault(l, key, "clusters: more than %d labels", HUB_FLEET_LABELS_MAX);
        if (rc == 0)
            rc = read_text(l, name, value, NULL, &text);
        if (rc != 0)
            return rc;
        for (size_t j = 0; j < i; j++) {
            if (kr_bytes_is(out->labels[j].key, name))
                return fault(l, key, "clusters: the label %.60s is given twice", name);
        }
        if (kr_label_key_check(kr_bytes_str(name), &why) != 0 ||
            kr_label_value_check(kr_bytes_str(text), &why) != 0)
            return fault(l, key, "clusters: %.40s: %.90s", name, why.text);
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
        return fault(l, node, "clusters: a mapping of names is expected");
    for (size_t i = 0; kr_yaml_entry(l->y, node, i, &key, &value); i++) {
        struct hub_cluster_labels *labels = take(l, 1, sizeof *labels);
        const char *name;
        int rc =
            labels != NULL ? read_text(l, "clusters", key, kr_is_dns_label, &name) : no_memory(l);

        if (rc == 0)
            rc = read_labels(l, value, labels);
        if (rc != 0)
            return rc;
        rc = kr_map_put(&l->f->labels, kr_bytes_str(name), labels);
        if (rc == KR_EEXIST)
            return fault(l, key, "clusters: %s is given twice", name);
        if (rc != 0)
            return fault(l, key, "clusters: %s", kr_err_text(rc));
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
        return fault(l, at->node, "%s[%zu]: give clusters or clusterSelector, not both", at->list,
                     at->i);
    if (kr_label_selector_parse(kr_bytes_str(selector), &l->f->arena, &s->labels, &why) != 0)
        return fault(l, at->node, "%s[%zu]: clusterSelector: %.80s", at->list, at->i, why.text);
    return 0;
}

struct raw_reader {
    struct hub_reader_rule rule;
    const char *selector;
};

#define READER(member) offsetof(struct raw_reader, member)

static const struct field reader_fields[] = {
    {"users", NAMES, READER(rule.users), NULL},
    {"groups", NAMES, READER(rule.groups), is_group},
    {"clusters", NAMES, READER(rule.clusters.names), is_label},
    {"clusterSelector", TEXT, READER(selector), NULL},
    {"namespaces", NAMES, READER(rule.namespaces), is_label},
    {"resources", NAMES, READER(rule.resources), is_resource},
};

static int read_reader(struct loader *l, const struct place *at)
{
    struct raw_reader raw = {.selector = NULL};
    int rc = read_map(l, at, reader_fields, sizeof reader_fields / sizeof reader_fields[0], &raw);

    if (rc == 0)
        rc = finish_selection(l, at, raw.selector, &raw.rule.clusters);
    if (rc != 0)
        return rc;
    if (raw.rule.users.in.n + raw.rule.groups.in.n == 0)
        return fault(l, at->node, "%s[%zu]: users or groups are missing", at->list, at->i);
    if (!raw.rule.clusters.given)
        return fault(l, at->node, "%s[%zu]: clusters are missing (\"*\" for all)", at->list, at->i);
    if (raw.rule.resources.in.n == 0)
        return fault(l, at->node, "%s[%zu]: resources are missing", at->list, at->i);
    raw.rule.namespaces.all = raw.rule.namespaces.all || raw.rule.namespaces.in.n == 0;
    l->f->readers[at->i] = raw.rule;
    return 0;
}

struct raw_profile {
    struct hub_profile_rule rule;
    struct hub_names namespaces;
    const char *selector;
};

#define PROFILE(member) offsetof(struct raw_profile, member)

static const struct field profile_fields[] = {
    {"name", TEXT, PROFILE(rule.profile.name), NULL},
    {"resources", NAMES, PROFILE(rule.resources), is_resource},
    {"clusters", NAMES, PROFILE(rule.clusters.names), is_label},
    {"clusterSelector", TEXT, PROFILE(selector), NULL},
    {"namespaces", NAMES, PROFILE(namespaces), is_label},
    {"labelSelector", TEXT, PROFILE(rule.profile.label_selector), NULL},
    {"fieldSelector", TEXT, PROFILE(rule.profile.field_selector), NULL},
    {"keep", STRINGS, PROFILE(rule.profile.keep), NULL},
    {"drop", STRINGS, PROFILE(rule.profile.drop), NULL},
    {"metadataOnly", FLAG, PROFILE(rule.profile.metadata_only), NULL},
    {"always", FLAG, PROFILE(rule.profile.always), NULL},
    {"priority", NUMBER, PROFILE(rule.profile.priority), NULL},
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
        return fault(l, at->node, "%s[%zu]: labelSelector: %.80s", at->list, at->i, why.text);
    if (p->field_selector != NULL)
        rc = kr_field_selector_parse(kr_bytes_str(p->field_selector), &l->f->arena, &fields, &why);
    for (size_t i = 0; rc == 0 && i < p->resources.n && fields.n != 0; i++) {
        struct kr_bytes name = kr_bytes_str(p->resources.v[i]);
        size_t dot = kr_bytes_find(name, '.');

        rc = kr_field_selector_allowed(&fields, kr_bytes_skip(name, dot < name.n ? dot + 1 : dot),
                                       kr_bytes_of(name.p, dot), &why);
    }
    return rc != 0 ? fault(l, at->node, "%s[%zu]: fieldSelector: %.80s", at->list, at->i, why.text)
                   : 0;
}

static int check_paths(struct loader *l, const struct place *at, const struct hub_profile *p)
{
    struct kr_bytes all[2 * 64];
    struct kr_profile_paths paths = {.keep = all, .drop = all + 64, .metadata_only = false};
    struct kr_note why = {""};
    struct kr_profile *made;

    if (p->keep.n > 64 || p->drop.n > 64)
        return fault(l, at->node, "%s[%zu]: more than 64 paths", at->list, at->i);
    for (; paths.keep_count < p->keep.n; paths.keep_count++)
        all[paths.keep_count] = kr_bytes_str(p->keep.v[paths.keep_count]);
    for (; paths.drop_count < p->drop.n; paths.drop_count++)
        all[64 + paths.drop_count] = kr_bytes_str(p->drop.v[paths.drop_count]);
    made = kr_profile_create(&paths, &why);
    kr_profile_destroy(made);
    return made == NULL ? fault(l, at->node, "%s[%zu]: %.80s", at->list, at->i, why.text) : 0;
}

static int check_profile(struct loader *l, const struct place *at, const struct hub_profile_rule *r)
{
    const struct hub_profile *p = &r->profile;
    int rc;

    if (p->name == NULL || p->resources.n == 0)
        return fault(l, at->node, "%s[%zu]: %s missing", at->list, at->i,
                     p->name == NULL ? "the name is" : "resources are");
    for (size_t i = 0; i < at->i; i++) {
        if (strcmp(l->f->profiles[i].profile.name, p->name) == 0)
            return fault(l, at->node, "%s[%zu]: %.60s is there already", at->list, at->i, p->name);
    }
    if (p->always && r->resources.all)
        return fault(l, at->node, "%s[%zu]: always needs resources by their names", at->list,
                     at->i);
    if (p->metadata_only && p->keep.n + p->drop.n != 0)
        return fault(l, at->node, "%s[%zu]: metadataOnly goes with neither keep nor drop", at->list,
                     at->i);
    rc = check_selectors(l, at, p);
    return rc != 0 ? rc : check_paths(l, at, p);
}

static int read_profile(struct loader *l, const struct place *at)
{
    struct raw_profile raw = {.rule.profile.priority = l->f->fallback.priority};
    struct hub_profile *p = &raw.rule.profile;
    int rc =
        read_map(l, at, profile_fields, sizeof profile_fields / sizeof profile_fields[0], &raw);

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

static int read_list(struct loader *l, const char *name, const struct kr_yaml_node *node,
                     size_t max, int (*read)(struct loader *l, const struct place *at))
{
    size_t n = length(l, node);
    int rc = 0;

    if (kr_yaml_kind(node) != KR_YAML_LIST)
        return fault(l, node, "%s: a list is expected", name);
    if (n > max)
        return fault(l, node, "%s: more than %zu", name, max);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct place at = {name, i, kr_yaml_at(l->y, node, i)};

        rc = read(l, &at);
    }
    return rc;
}

static int read_readers(struct loader *l, const struct kr_yaml_node *node)
{
    l->f->reader_count = length(l, node);
    l->f->readers = take(l, l->f->reader_count, sizeof *l->f->readers);
    if (l->f->readers == NULL)
        return no_memory(l);
    return read_list(l, "readers", node, HUB_FLEET_READERS_MAX, read_reader);
}

static int read_profiles(struct loader *l, const struct kr_yaml_node *node)
{
    l->f->profile_count = length(l, node);
    l->f->profiles = take(l, l->f->profile_count, sizeof *l->f->profiles);
    if (l->f->profiles == NULL)
        return no_memory(l);
    return read_list(l, "profiles", node, HUB_FLEET_PROFILES_MAX, read_profile);
}

static int read_on_demand(struct loader *l, const struct kr_yaml_node *node)
{
    return read_flag(l, "onDemand", node, &l->f->on_demand);
}

/* ---- the file ---- */

static int read_section(struct loader *l, const struct kr_yaml_node *key,
                        const struct kr_yaml_node *value, unsigned *seen)
{
    static const struct {
        const char *name;
        int (*read)(struct loader *l, const struct kr_yaml_node *node);
    } sections[] = {
        {"clusters", read_clusters},
        {"readers", read_readers},
        {"profiles", read_profiles},
        {"onDemand", read_on_demand},
    };
    const char *name = kr_yaml_text(key);

    for (size_t i = 0; name != NULL && i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(sections[i].name, name) != 0)
            continue;
        if ((*seen >> i & 1) != 0)
            return fault(l, key, "%s is given twice", name);
        *seen |= 1u << i;
        return sections[i].read(l, value);
    }
    return fault(l, key, "unknown key \"%.40s\"", name != NULL ? name : "");
}

static int read_document(struct loader *l)
{
    const struct kr_yaml_node *root = kr_yaml_root(l->y);
    const struct kr_yaml_node *key;
    const struct kr_yaml_node *value;
    unsigned seen = 0;
    int rc = 0;

    if (root == NULL)
        return 0; /* nothing but comments */
    if (kr_yaml_kind(root) != KR_YAML_MAP)
        return fault(l, root, "a mapping is expected");
    for (size_t i = 0; rc == 0 && kr_yaml_entry(l->y, root, i, &key, &value); i++)
        rc = read_section(l, key, value, &seen);
    return rc;
}

int hub_fleet_file_parse(struct hub_fleet_config *f, const char *name, struct kr_bytes text,
                         struct kr_note *why)
{
    struct loader l = {.f = f, .file = name, .why = why};
    int rc = kr_yaml_parse(text, &l.y, why);

    if (rc != 0)
        return kr_note_wrap(why, rc, "%.80s", name);
    rc = read_document(&l);
    kr_yaml_destroy(l.y);
    return rc;
}
