/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as text, whole and as a profile leaves them, and read back. */
#include <stdio.h>

#include "base/assert.h"
#include "fleet_source.h"
#include "kube/json_scan.h"

const struct api_type api_types[TYPES] = {
    {"", "pods", "Pod", "v1", "api/v1", true},
    {"example.io", "widgets", "Widget", "example.io/v1", "apis/example.io/v1", false},
};

const struct shape shapes[] = {
    {.type = PODS},
    {.type = PODS, .labels = "app=a", .always = true},
    {.type = PODS, .labels = "app!=c", .no_status = true},
    {.type = PODS, .namespaces = "[n1]", .ns_mask = 2, .always = true},
    {.type = PODS, .namespaces = "[n0, n1]", .ns_mask = 3, .image_only = true},
    {.type = PODS, .fields = "status.phase=Running"},
    {.type = PODS, .labels = "app in (a,b)", .fields = "metadata.namespace!=n2"},
    {.type = PODS, .metadata_only = true, .always = true},
    {.type = PODS, .labels = "app=a", .first_only = true, .image_only = true},
    {.type = WIDGETS},
    {.type = WIDGETS, .labels = "app in (a,b)"},
    {.type = WIDGETS, .image_only = true, .always = true},
    {.type = WIDGETS, .labels = "app!=c", .metadata_only = true},
};
const size_t shape_count = sizeof shapes / sizeof shapes[0];

static const struct shape whole = {.type = PODS};

/* The default has no profile in the file: a first_only shape leaves others to it. */
static const struct shape *shape_of(const struct shape *s, unsigned cluster)
{
    return s == NULL || (s->first_only && cluster != 0) ? &whole : s;
}

bool shape_selects(const struct shape *s, unsigned cluster, const struct thing *t, unsigned index)
{
    const struct shape *own = shape_of(s, cluster);
    bool known;

    if (own->ns_mask != 0 && (own->ns_mask >> (index / 10) & 1) == 0)
        return false;
    return source_selects(t, index, kr_bytes_str(own->labels), kr_bytes_str(own->fields), &known);
}

/* ---- writing ---- */

void source_name(unsigned type, unsigned index, char ns[8], char name[8])
{
    if (type == PODS)
        snprintf(ns, 8, "n%u", index / 10 % 10);
    else
        ns[0] = '\0';
    snprintf(name, 8, type == PODS ? "p%u" : "w%02u", type == PODS ? index % 10 : index % 100);
}

static void put_metadata(struct kr_buf *out, unsigned type, const struct thing *t, unsigned index)
{
    char ns[8];
    char name[8];

    source_name(type, index, ns, name);
    kr_buf_printf(out, "\"metadata\":{\"name\":\"%s\",", name);
    if (ns[0] != '\0')
        kr_buf_printf(out, "\"namespace\":\"%s\",", ns);
    kr_buf_printf(out,
                  "\"uid\":\"u-%llu\",\"resourceVersion\":\"%llu\",\"labels\":{\"app\":\"%c\"},"
                  "\"annotations\":{\"note\":\"%u\"},\"managedFields\":[{\"manager\":\"m\","
                  "\"time\":\"%u\"}]}",
                  (unsigned long long)t->uid, (unsigned long long)t->version, t->app, t->note,
                  t->noise);
}

static void put_spec(struct kr_buf *out, unsigned type, const struct thing *t, bool image_only)
{
    kr_buf_append_str(out, ",\"spec\":{");
    if (type == PODS)
        kr_buf_append_str(out, "\"nodeName\":\"m1\",");
    kr_buf_printf(out, "\"image\":\"i%u\"", t->image);
    if (!image_only) {
        kr_buf_append_str(out, ",\"pad\":\"");
        for (unsigned i = 0; i < t->pad; i++)
            kr_buf_printf(out, "%c", 'a' + (i * i + t->image) % 26);
        kr_buf_append_str(out, "\"");
    }
    kr_buf_append_str(out, "}");
}

static void put_status(struct kr_buf *out, const struct thing *t)
{
    kr_buf_printf(out, ",\"status\":{\"phase\":\"%s\"}", t->running ? "Running" : "Failed");
}

void source_text(struct kr_buf *out, unsigned type, const struct thing *t, unsigned index,
                 enum form form)
{
    bool all = form == FORM_WHOLE;

    kr_buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",",
                  all ? api_types[type].kind : "PartialObjectMetadata",
                  all ? api_types[type].api_version : "meta.k8s.io/v1");
    put_metadata(out, type, t, index);
    if (all) {
        put_spec(out, type, t, false);
        put_status(out, t);
    }
    kr_buf_append_str(out, "}");
}

/* Of a pod, what field selectors look at is kept with whatever is. */
void shape_text(struct kr_buf *out, const struct shape *s, unsigned cluster, const struct thing *t,
                unsigned index, unsigned type)
{
    const struct shape *own = shape_of(s, cluster);

    kr_buf_append_str(out, "{");
    put_metadata(out, type, t, index);
    if (!own->metadata_only) {
        put_spec(out, type, t, own->image_only);
        if (!own->no_status && (!own->image_only || type == PODS))
            put_status(out, t);
    }
    kr_buf_append_str(out, "}");
}

/* ---- reading ---- */

static uint64_t mix(uint64_t h, struct kr_bytes in)
{
    for (size_t i = 0; i < in.n; i++)
        h = (h ^ in.p[i]) * UINT64_C(0x100000001B3);
    return (h ^ in.n) * UINT64_C(0x9E3779B97F4A7C15);
}

static struct kr_bytes member(struct kr_bytes object, const char *name)
{
    struct kr_bytes v;

    return kr_scan_find(object, name, &v) ? v : (struct kr_bytes){NULL, 0};
}

static struct kr_bytes word(struct kr_bytes object, const char *name)
{
    struct kr_bytes v = member(object, name);

    return kr_scan_plain(v, &v) ? v : (struct kr_bytes){NULL, 0};
}

static bool find_index(struct kr_bytes meta, unsigned type, unsigned *index)
{
    struct kr_bytes ns = word(meta, "namespace");
    struct kr_bytes name = word(meta, "name");

    for (unsigned i = 0; i < THINGS; i++) {
        char own_ns[8];
        char own_name[8];

        source_name(type, i, own_ns, own_name);
        if (kr_bytes_is(ns, own_ns) && kr_bytes_is(name, own_name)) {
            *index = i;
            return true;
        }
    }
    return false;
}

bool facts_read(struct kr_bytes object, struct facts *out, unsigned type, unsigned *index)
{
    struct kr_bytes meta = member(object, "metadata");
    struct kr_bytes uid = word(meta, "uid");
    struct kr_bytes app = word(member(meta, "labels"), "app");
    struct kr_bytes status = member(object, "status");

    *out = (struct facts){.app = app.n == 1 ? (char)app.p[0] : '?'};
    snprintf(out->uid, sizeof out->uid, "%.*s", (int)uid.n, (const char *)uid.p);
    out->running = kr_bytes_is(word(status, "phase"), "Running");
    out->meta = mix(mix(mix(1, uid), app), word(member(meta, "annotations"), "note"));
    out->whole = mix(mix(out->meta, member(object, "spec")), status);
    return find_index(meta, type, index) && member(meta, "managedFields").n == 0;
}
