/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet_text.h"

#define COLUMNS                                                                                    \
    "[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":\"\","            \
    "\"priority\":0},{\"name\":\"Status\",\"type\":\"string\",\"format\":\"\","                    \
    "\"description\":\"\",\"priority\":0},{\"name\":\"Age\",\"type\":\"string\",\"format\":\"\","  \
    "\"description\":\"\",\"priority\":0}]"
#define VERBS "\"verbs\":[\"get\",\"list\",\"watch\"]"

static void put_object(struct kr_buf *out, const struct writing *w, const struct thing *t,
                       unsigned index)
{
    if (w->table && w->include == INCLUDE_NONE)
        kr_buf_append_str(out, "null");
    else
        source_text(out, w->type, t, index,
                    w->table && w->include == INCLUDE_METADATA ? FORM_METADATA : FORM_WHOLE);
}

static void put_row(struct kr_buf *out, const struct writing *w, const struct thing *t,
                    unsigned index)
{
    char ns[8];
    char name[8];

    source_name(w->type, index, ns, name);
    kr_buf_printf(out, "{\"cells\":[\"%s\",\"%s\",\"%us\"],\"object\":", name,
                  t->running ? "Running" : "Failed", t->noise);
    put_object(out, w, t, index);
    kr_buf_append_str(out, "}");
}

void text_list_begin(struct kr_buf *out, const struct writing *w, uint64_t version,
                     const char *cont)
{
    if (w->table)
        kr_buf_append_str(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",");
    else
        kr_buf_printf(out, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",", api_types[w->type].kind,
                      api_types[w->type].api_version);
    kr_buf_printf(out, "\"metadata\":{\"resourceVersion\":\"%llu\"", (unsigned long long)version);
    if (cont[0] != '\0')
        kr_buf_printf(out, ",\"continue\":\"%s\"", cont);
    kr_buf_append_str(out, w->table ? "},\"columnDefinitions\":" COLUMNS ",\"rows\":["
                                    : "},\"items\":[");
}

void text_list_item(struct kr_buf *out, const struct writing *w, const struct thing *t,
                    unsigned index, bool first)
{
    if (!first)
        kr_buf_append_str(out, ",");
    if (w->table)
        put_row(out, w, t, index);
    else
        put_object(out, w, t, index);
}

void text_list_end(struct kr_buf *out)
{
    kr_buf_append_str(out, "]}\n");
}

void text_event(struct kr_buf *out, struct writing *w, const char *word, const struct thing *t,
                unsigned index)
{
    kr_buf_printf(out, "{\"type\":\"%s\",\"object\":", word);
    if (w->table) {
        kr_buf_printf(out,
                      "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{"
                      "\"resourceVersion\":\"%llu\"},\"columnDefinitions\":%s,\"rows\":[",
                      (unsigned long long)t->version, w->columns_sent ? "null" : COLUMNS);
        put_row(out, w, t, index);
        kr_buf_append_str(out, "]}");
        w->columns_sent = true;
    } else {
        put_object(out, w, t, index);
    }
    kr_buf_append_str(out, "}\n");
}

void text_bookmark(struct kr_buf *out, const struct writing *w, uint64_t version, bool initial_end)
{
    kr_buf_printf(out,
                  "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"%s\","
                  "\"metadata\":{\"resourceVersion\":\"%llu\"%s}}}\n",
                  api_types[w->type].kind, api_types[w->type].api_version,
                  (unsigned long long)version,
                  initial_end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" : "");
}

void text_status(struct kr_buf *out, int code, const char *reason, const char *cause)
{
    kr_buf_printf(out,
                  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                  "\"Failure\",\"message\":\"no\",\"reason\":\"%s\",\"details\":{\"causes\":["
                  "{\"reason\":\"%s\"}]},\"code\":%d}",
                  reason, cause, code);
}

void text_error(struct kr_buf *out, int code, const char *reason)
{
    kr_buf_append_str(out, "{\"type\":\"ERROR\",\"object\":");
    text_status(out, code, reason, "");
    kr_buf_append_str(out, "}\n");
}

/* ---- discovery ---- */

static void put_aggregated(struct kr_buf *out, const struct source *s, unsigned type)
{
    const struct api_type *k = &api_types[type];

    kr_buf_append_str(out, "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":"
                           "\"apidiscovery.k8s.io/v2\",\"metadata\":{},\"items\":[");
    if (s->now.served[type])
        kr_buf_printf(out,
                      "{\"metadata\":{%s%s%s},\"versions\":[{\"version\":\"v1\",\"resources\":["
                      "{\"resource\":\"%s\",\"responseKind\":{\"group\":\"%s\",\"version\":\"v1\","
                      "\"kind\":\"%s\"},\"scope\":\"%s\",\"singularResource\":\"x\"," VERBS "}]}]}",
                      k->group[0] != '\0' ? "\"name\":\"" : "", k->group,
                      k->group[0] != '\0' ? "\"" : "", k->resource, k->group, k->kind,
                      k->namespaced ? "Namespaced" : "Cluster");
    kr_buf_append_str(out, "]}");
}

static void put_groups(struct kr_buf *out, const struct source *s, unsigned type)
{
    if (type == PODS) {
        kr_buf_append_str(out, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}");
        return;
    }
    kr_buf_append_str(out, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
    if (s->now.served[type])
        kr_buf_printf(out,
                      "{\"name\":\"%s\",\"versions\":[{\"groupVersion\":\"%s\",\"version\":"
                      "\"v1\"}],\"preferredVersion\":{\"groupVersion\":\"%s\",\"version\":"
                      "\"v1\"}}",
                      api_types[type].group, api_types[type].api_version,
                      api_types[type].api_version);
    kr_buf_append_str(out, "]}");
}

static void put_resources(struct kr_buf *out, unsigned type)
{
    const struct api_type *k = &api_types[type];

    kr_buf_printf(out,
                  "{\"kind\":\"APIResourceList\",\"groupVersion\":\"%s\",\"resources\":[{\"name\":"
                  "\"%s\",\"singularName\":\"x\",\"namespaced\":%s,\"kind\":\"%s\"," VERBS "}]}",
                  k->api_version, k->resource, k->namespaced ? "true" : "false", k->kind);
}

bool text_discovery(struct kr_buf *out, const struct source *s, struct kr_bytes path)
{
    for (unsigned type = 0; type < TYPES; type++) {
        if (kr_bytes_is(path, type == PODS ? "/api" : "/apis")) {
            if (s->aggregated)
                put_aggregated(out, s, type);
            else
                put_groups(out, s, type);
            return true;
        }
        if (path.n != 0 && kr_bytes_is(kr_bytes_skip(path, 1), api_types[type].path) &&
            s->now.served[type]) {
            put_resources(out, type);
            return true;
        }
    }
    return false;
}
