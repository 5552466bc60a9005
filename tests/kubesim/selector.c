/* SPDX-License-Identifier: Apache-2.0 */
#include "selector.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

static const struct {
    int kind; /* -1: all */
    const char *plural;
    const char *path;
} field_paths[] = {
    {-1, NULL, "metadata.name"},
    {-1, NULL, "metadata.namespace"},
    {0, "pods", "spec.nodeName"},
    {0, "pods", "spec.restartPolicy"},
    {0, "pods", "spec.schedulerName"},
    {0, "pods", "spec.serviceAccountName"},
    {0, "pods", "spec.hostNetwork"},
    {0, "pods", "status.phase"},
    {0, "pods", "status.podIP"},
    {0, "pods", "status.nominatedNodeName"},
    {0, "nodes", "spec.unschedulable"},
    {0, "namespaces", "status.phase"},
    {0, "secrets", "type"},
    {0, "services", "spec.clusterIP"},
    {0, "services", "spec.type"},
    {0, "replicasets", "status.replicas"},
    {0, "replicationcontrollers", "status.replicas"},
    {0, "jobs", "status.successful"},
    {0, "events", "involvedObject.kind"},
    {0, "events", "involvedObject.namespace"},
    {0, "events", "involvedObject.name"},
    {0, "events", "involvedObject.uid"},
    {0, "events", "involvedObject.apiVersion"},
    {0, "events", "involvedObject.resourceVersion"},
    {0, "events", "involvedObject.fieldPath"},
    {0, "events", "reason"},
    {0, "events", "reportingComponent"},
    {0, "events", "source"},
    {0, "events", "type"},
};

static bool field_is_known(int kind, const char *path)
{
    for (size_t i = 0; i < sizeof field_paths / sizeof *field_paths; i++)
        if (strcmp(field_paths[i].path, path) == 0 &&
            (field_paths[i].kind < 0 || strcmp(field_paths[i].plural, sim_kinds[kind].plural) == 0))
            return true;
    return false;
}

static bool has_own_fields(int kind)
{
    for (size_t i = 0; i < sizeof field_paths / sizeof *field_paths; i++)
        if (field_paths[i].plural != NULL &&
            strcmp(field_paths[i].plural, sim_kinds[kind].plural) == 0)
            return true;
    return false;
}

void sim_selector_deinit(struct sim_selector *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->terms[i].key);
        free(s->terms[i].values);
    }
    s->n = 0;
}

static char *trimmed(const char *p, size_t n)
{
    while (n != 0 && isspace((unsigned char)*p)) {
        p++;
        n--;
    }
    while (n != 0 && isspace((unsigned char)p[n - 1]))
        n--;
    return strndup(p, n);
}

static struct sim_term *new_term(struct sim_selector *s, enum sim_term_op op, const char *key,
                                 size_t key_n)
{
    struct sim_term *t;

    if (s->n == SIM_TERMS_MAX)
        return NULL;
    t = &s->terms[s->n];
    *t = (struct sim_term){.op = op, .key = trimmed(key, key_n)};
    if (t->key == NULL)
        return NULL;
    s->n++;
    return t;
}

/* "a,b,c" becomes a NUL b NUL c NUL. */
static int set_values(struct sim_term *t, const char *p, size_t n)
{
    char *out = malloc(n + 2);
    size_t used = 0;

    if (out == NULL)
        return KR_ENOMEM;
    for (size_t i = 0; i <= n;) {
        const char *comma = memchr(p + i, ',', n - i);
        size_t end = comma != NULL ? (size_t)(comma - p) : n;
        char *one = trimmed(p + i, end - i);

        if (one == NULL) {
            free(out);
            return KR_ENOMEM;
        }
        memcpy(out + used, one, strlen(one) + 1);
        used += strlen(one) + 1;
        t->n_values++;
        free(one);
        i = end + 1;
    }
    t->values = out;
    return 0;
}

static bool key_is_valid(const char *key)
{
    size_t n = strlen(key);

    if (n == 0 || n > 317)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)key[i]) && strchr("-_./", key[i]) == NULL)
            return false;
    return true;
}

/* key (in|notin) (a,b). */
static int parse_set_term(struct sim_selector *s, const char *p, size_t n)
{
    const char *open = memchr(p, '(', n);
    size_t word = (size_t)(open - p), key = 0;
    struct sim_term *t;
    bool in;

    if (p[n - 1] != ')')
        return KR_EINVAL;
    while (word != 0 && isspace((unsigned char)p[word - 1]))
        word--;
    key = word;
    while (key != 0 && !isspace((unsigned char)p[key - 1]))
        key--;
    in = word - key == 2 && memcmp(p + key, "in", 2) == 0;
    if (key == 0 || (!in && (word - key != 5 || memcmp(p + key, "notin", 5) != 0)))
        return KR_EINVAL;
    t = new_term(s, in ? SIM_IN : SIM_NOT_IN, p, key);
    return t == NULL ? KR_ENOMEM : set_values(t, open + 1, (size_t)(p + n - 1 - (open + 1)));
}

static int parse_label_term(struct sim_selector *s, const char *p, size_t n)
{
    static const struct {
        const char *text;
        enum sim_term_op op;
    } ops[] = {
        {"!=", SIM_NOT_IN}, {"==", SIM_IN}, {"=", SIM_IN}, {">", SIM_GREATER}, {"<", SIM_LESS}};
    struct sim_term *t;

    while (n != 0 && isspace((unsigned char)*p)) {
        p++;
        n--;
    }
    while (n != 0 && isspace((unsigned char)p[n - 1]))
        n--;
    if (n == 0)
        return KR_EINVAL;
    if (memchr(p, '(', n) != NULL)
        return parse_set_term(s, p, n);
    if (p[0] == '!')
        return new_term(s, SIM_NOT_EXISTS, p + 1, n - 1) != NULL ? 0 : KR_ENOMEM;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const char *at = memmem(p, n, ops[i].text, strlen(ops[i].text));
        size_t skip;

        if (at == NULL)
            continue;
        skip = (size_t)(at - p) + strlen(ops[i].text);
        if (memchr(p + skip, '=', n - skip) != NULL)
            return KR_EINVAL;
        t = new_term(s, ops[i].op, p, (size_t)(at - p));
        return t == NULL ? KR_ENOMEM : set_values(t, p + skip, n - skip);
    }
    return new_term(s, SIM_EXISTS, p, n) != NULL ? 0 : KR_ENOMEM;
}

/* The length of the first term: commas inside parentheses do not end it. */
static size_t term_length(const char *p)
{
    size_t n = 0;
    int depth = 0;

    for (; p[n] != '\0' && (p[n] != ',' || depth > 0); n++)
        depth += (p[n] == '(') - (p[n] == ')');
    return n;
}

static int parse_field_term(struct sim_selector *s, const char *p, size_t n)
{
    const char *eq = memchr(p, '=', n);
    size_t value;
    struct sim_term *t;
    bool differs;

    if (eq == NULL || eq == p)
        return KR_EINVAL;
    differs = eq[-1] == '!';
    value = (size_t)(eq - p) + 1;
    if (value < n && p[value] == '=' && !differs)
        value++;
    t = new_term(s, differs ? SIM_NOT_IN : SIM_IN, p, (size_t)(eq - p) - differs);
    if (t == NULL)
        return KR_ENOMEM;
    t->field = true;
    return set_values(t, p + value, n - value);
}

static int parse_all(struct sim_selector *s, int kind, const char *text, bool fields,
                     char message[256])
{
    while (text != NULL && *text != '\0') {
        size_t n = term_length(text), before = s->n;
        int rc = fields ? parse_field_term(s, text, n) : parse_label_term(s, text, n);

        if (rc == 0 && fields && !field_is_known(kind, s->terms[before].key)) {
            if (has_own_fields(kind))
                snprintf(message, 256, "field label not supported: %.200s", s->terms[before].key);
            else
                snprintf(message, 256,
                         "\"%.150s\" is not a known field selector: only \"metadata.name\", "
                         "\"metadata.namespace\"",
                         s->terms[before].key);
            return KR_EINVAL;
        }
        if (rc == 0 && !fields && !key_is_valid(s->terms[before].key))
            rc = KR_EINVAL;
        if (rc != 0) {
            snprintf(message, 256,
                     fields ? "invalid selector: '%.*s'; can't understand '%.*s'"
                            : "unable to parse requirement: found '%.*s' in '%.*s'",
                     (int)n, text, (int)n, text);
            return rc;
        }
        text += n + (text[n] == ',');
    }
    return 0;
}

int sim_selector_parse(struct sim_selector *s, int kind, const char *labels, const char *fields,
                       char message[256])
{
    int rc;

    s->n = 0;
    message[0] = '\0';
    rc = parse_all(s, kind, labels, false, message);
    if (rc == 0)
        rc = parse_all(s, kind, fields, true, message);
    if (rc != 0)
        sim_selector_deinit(s);
    return rc;
}

static bool has_value(const struct sim_term *t, const char *value)
{
    const char *p = t->values;

    for (size_t i = 0; i < t->n_values; i++, p += strlen(p) + 1)
        if (strcmp(p, value) == 0)
            return true;
    return false;
}

static bool term_matches(const struct sim_term *t, struct json_object *object)
{
    struct json_object *found = t->field
                                    ? sim_json_at(object, t->key)
                                    : sim_json_get(sim_json_at(object, "metadata.labels"), t->key);
    const char *value = found != NULL ? json_object_get_string(found) : NULL;

    if (t->field && value == NULL)
        value = strcmp(t->key, "spec.unschedulable") == 0 || strcmp(t->key, "spec.hostNetwork") == 0
                    ? "false"
                    : "";
    switch (t->op) {
    case SIM_IN:
        return value != NULL && has_value(t, value);
    case SIM_NOT_IN:
        return value == NULL || !has_value(t, value);
    case SIM_EXISTS:
        return value != NULL;
    case SIM_NOT_EXISTS:
        return value == NULL;
    case SIM_GREATER:
        return value != NULL && strtoll(value, NULL, 10) > strtoll(t->values, NULL, 10);
    case SIM_LESS:
        return value != NULL && strtoll(value, NULL, 10) < strtoll(t->values, NULL, 10);
    }
    return false;
}

bool sim_selector_matches(const struct sim_selector *s, struct json_object *object)
{
    for (size_t i = 0; i < s->n; i++)
        if (!term_matches(&s->terms[i], object))
            return false;
    return true;
}

const char *sim_selector_name(const struct sim_selector *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->terms[i].field && s->terms[i].op == SIM_IN &&
            strcmp(s->terms[i].key, "metadata.name") == 0)
            return s->terms[i].values;
    return NULL;
}
