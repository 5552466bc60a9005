/* SPDX-License-Identifier: Apache-2.0 */
/* kube_text: what an API server says of a few objects: pages of a list, events of a watch, Status.
 */
#ifndef KR_TESTS_KUBE_TEXT_H
#define KR_TESTS_KUBE_TEXT_H

#include <stdio.h>
#include <string.h>

#define POD_COLUMNS                                                                                \
    "[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":\"\","            \
    "\"priority\":0},{\"name\":\"Status\",\"type\":\"string\",\"format\":\"\","                    \
    "\"description\":\"\",\"priority\":0},{\"name\":\"Age\",\"type\":\"string\",\"format\":\"\","  \
    "\"description\":\"\",\"priority\":0}]"

struct pod {
    const char *ns;
    const char *name;
    const char *uid;
    const char *version;
    const char *image;
};

enum { TEXT_MAX = 1 << 16 };

struct text {
    char s[TEXT_MAX];
    size_t n;
};

#define TEXT_ADD(t, ...)                                                                           \
    ((t)->n += (size_t)snprintf((t)->s + (t)->n, sizeof(t)->s - (t)->n, __VA_ARGS__))

static __attribute__((unused)) void add_object(struct text *t, const struct pod *p)
{
    TEXT_ADD(t,
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\","
             "\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%s\","
             "\"managedFields\":[{\"manager\":\"x\",\"time\":\"t%s\"}]},"
             "\"spec\":{\"image\":\"%s\",\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Running\"}}",
             p->name, p->ns, p->uid, p->version, p->version, p->image);
}

static __attribute__((unused)) void add_row(struct text *t, const struct pod *p)
{
    TEXT_ADD(t, "{\"cells\":[\"%s\",\"Running\",\"%ss\"],\"object\":", p->name, p->version);
    add_object(t, p);
    TEXT_ADD(t, "}");
}

/* A page of a Table; `cont` "" for the last one. */
static __attribute__((unused)) const char *table_of(struct text *t, const struct pod *pods,
                                                    size_t n, const char *version, const char *cont)
{
    t->n = 0;
    TEXT_ADD(t,
             "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
             "\"resourceVersion\":\"%s\"%s%s%s},\"columnDefinitions\":" POD_COLUMNS ",\"rows\":[",
             version, cont[0] != '\0' ? ",\"continue\":\"" : "", cont, cont[0] != '\0' ? "\"" : "");
    for (size_t i = 0; i < n; i++) {
        TEXT_ADD(t, i == 0 ? "" : ",");
        add_row(t, &pods[i]);
    }
    TEXT_ADD(t, "]}\n");
    return t->s;
}

/* What limit=1&includeObject=None gets. */
static __attribute__((unused)) const char *glance_of(struct text *t, const char *version)
{
    t->n = 0;
    TEXT_ADD(t,
             "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
             "\"resourceVersion\":\"%s\",\"continue\":\"more\"},\"columnDefinitions\":" POD_COLUMNS
             ",\"rows\":[{\"cells\":[\"a\",\"Running\",\"5s\"],\"object\":null}]}\n",
             version);
    return t->s;
}

static __attribute__((unused)) const char *list_of(struct text *t, const struct pod *pods, size_t n,
                                                   const char *version)
{
    t->n = 0;
    TEXT_ADD(t,
             "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":"
             "\"%s\"},\"items\":[",
             version);
    for (size_t i = 0; i < n; i++) {
        TEXT_ADD(t, i == 0 ? "" : ",");
        add_object(t, &pods[i]);
    }
    TEXT_ADD(t, "]}\n");
    return t->s;
}

static __attribute__((unused)) const char *event_of(struct text *t, const char *type,
                                                    const struct pod *p)
{
    t->n = 0;
    TEXT_ADD(t,
             "{\"type\":\"%s\",\"object\":{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
             "\"metadata\":{\"resourceVersion\":\"%s\"},\"columnDefinitions\":" POD_COLUMNS
             ",\"rows\":[",
             type, p->version);
    add_row(t, p);
    TEXT_ADD(t, "]}}\n");
    return t->s;
}

static __attribute__((unused)) const char *bookmark_of(struct text *t, const char *version,
                                                       bool initial_end)
{
    t->n = 0;
    TEXT_ADD(t,
             "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
             "\"metadata\":{\"resourceVersion\":\"%s\"%s}}}\n",
             version,
             initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
    return t->s;
}

static __attribute__((unused)) const char *status_of(struct text *t, int code, const char *reason)
{
    t->n = 0;
    TEXT_ADD(t,
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
             "\"message\":\"no\",\"reason\":\"%s\",\"code\":%d}",
             reason, code);
    return t->s;
}

static __attribute__((unused)) const char *error_of(struct text *t, int code, const char *reason)
{
    struct text status;

    status_of(&status, code, reason);
    t->n = 0;
    TEXT_ADD(t, "{\"type\":\"ERROR\",\"object\":%s}\n", status.s);
    return t->s;
}

#endif
