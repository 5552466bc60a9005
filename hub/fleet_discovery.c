/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_discovery.h"

#include "base/err.h"
#include "base/json.h"

#define GROUP_VERSION_MAX 600

typedef const struct kr_resource_type *const *cursor;

static cursor end_of(const struct hub_shown_types *types)
{
    return types->all + types->n;
}

/* Behind the last type of the group (and version) that *at is of. */
static cursor end_of_group(cursor at, cursor end)
{
    cursor to = at;

    while (to < end && kr_bytes_eq((*to)->group, (*at)->group))
        to++;
    return to;
}

static cursor end_of_version(cursor at, cursor end)
{
    cursor to = at;

    while (to < end && kr_bytes_eq((*to)->version, (*at)->version))
        to++;
    return to;
}

/* The first type of a group; the end if there is none. */
static cursor find_group(const struct hub_shown_types *types, struct kr_bytes group)
{
    cursor at = types->all;

    while (at < end_of(types) && !kr_bytes_eq((*at)->group, group))
        at = end_of_group(at, end_of(types));
    return at;
}

/* The first type of the version that clients should use; [at, end) is one group. */
static cursor preferred(cursor at, cursor end)
{
    for (cursor i = at; i < end; i++) {
        if ((*i)->preferred)
            return i;
    }
    return at;
}

static void put_list(struct kr_json_out *w, const char *key, const struct kr_bytes *list, size_t n)
{
    if (n == 0)
        return;
    kr_json_out_array(w, key);
    for (size_t i = 0; i < n; i++)
        kr_json_out_string(w, NULL, list[i]);
    kr_json_out_end(w);
}

static void put_verbs(struct kr_json_out *w)
{
    kr_json_out_array(w, "verbs");
    kr_json_out_text(w, NULL, "list");
    kr_json_out_text(w, NULL, "watch");
    kr_json_out_end(w);
}

/* ---- the aggregated form ---- */

static void put_aggregated(struct kr_json_out *w, const struct kr_resource_type *t)
{
    kr_json_out_object(w, NULL);
    kr_json_out_string(w, "resource", t->resource);
    kr_json_out_object(w, "responseKind");
    kr_json_out_string(w, "group", t->group);
    kr_json_out_string(w, "version", t->version);
    kr_json_out_string(w, "kind", t->kind);
    kr_json_out_end(w);
    kr_json_out_text(w, "scope", t->namespaced ? "Namespaced" : "Cluster");
    kr_json_out_string(w, "singularResource", t->singular);
    put_verbs(w);
    put_list(w, "shortNames", t->short_names, t->short_name_count);
    put_list(w, "categories", t->categories, t->category_count);
    kr_json_out_end(w);
}

static void put_version(struct kr_json_out *w, cursor at, cursor end)
{
    kr_json_out_object(w, NULL);
    kr_json_out_string(w, "version", (*at)->version);
    kr_json_out_array(w, "resources");
    for (; at < end; at++)
        put_aggregated(w, *at);
    kr_json_out_end(w);
    kr_json_out_text(w, "freshness", "Current");
    kr_json_out_end(w);
}

/* Of the versions the first one is what clients use. */
static void put_versions(struct kr_json_out *w, cursor at, cursor end)
{
    cursor first = preferred(at, end);
    cursor first_end;

    while (first > at && kr_bytes_eq(first[-1]->version, (*first)->version))
        first--;
    first_end = end_of_version(first, end);
    put_version(w, first, first_end);
    while (at < end) {
        cursor to = end_of_version(at, end);

        if (at != first)
            put_version(w, at, to);
        at = to;
    }
}

static void put_aggregated_group(struct kr_json_out *w, cursor at, cursor end)
{
    kr_json_out_object(w, NULL);
    kr_json_out_object(w, "metadata");
    if ((*at)->group.n != 0)
        kr_json_out_string(w, "name", (*at)->group);
    kr_json_out_raw(w, "creationTimestamp", KR_LIT("null"));
    kr_json_out_end(w);
    kr_json_out_array(w, "versions");
    put_versions(w, at, end);
    kr_json_out_end(w);
    kr_json_out_end(w);
}

int hub_discovery_aggregated(struct kr_buf *out, const struct hub_shown_types *types, bool core,
                             bool beta)
{
    struct kr_json_out w;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "APIGroupDiscoveryList");
    kr_json_out_text(&w, "apiVersion",
                     beta ? "apidiscovery.k8s.io/v2beta1" : "apidiscovery.k8s.io/v2");
    kr_json_out_object(&w, "metadata");
    kr_json_out_end(&w);
    kr_json_out_array(&w, "items");
    for (cursor at = types->all; at < end_of(types);) {
        cursor to = end_of_group(at, end_of(types));

        if (((*at)->group.n == 0) == core)
            put_aggregated_group(&w, at, to);
        at = to;
    }
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    return w.rc;
}

/* ---- the old form ---- */

static void put_group_version(struct kr_json_out *w, const char *key, struct kr_bytes group,
                              struct kr_bytes version)
{
    struct kr_buf text = {.max = GROUP_VERSION_MAX};
    int rc = kr_buf_append(&text, group);

    if (rc == 0 && group.n != 0)
        rc = kr_buf_append_str(&text, "/");
    if (rc == 0)
        rc = kr_buf_append(&text, version);
    if (rc == 0)
        kr_json_out_string(w, key, kr_buf_bytes(&text));
    else if (w->rc == 0)
        w->rc = rc;
    kr_buf_deinit(&text);
}

static void put_version_name(struct kr_json_out *w, const char *key,
                             const struct kr_resource_type *t)
{
    kr_json_out_object(w, key);
    put_group_version(w, "groupVersion", t->group, t->version);
    kr_json_out_string(w, "version", t->version);
    kr_json_out_end(w);
}

static void put_group(struct kr_json_out *w, cursor at, cursor end, bool alone)
{
    cursor first = preferred(at, end);

    kr_json_out_object(w, NULL);
    if (alone) {
        kr_json_out_text(w, "kind", "APIGroup");
        kr_json_out_text(w, "apiVersion", "v1");
    }
    kr_json_out_string(w, "name", (*at)->group);
    kr_json_out_array(w, "versions");
    put_version_name(w, NULL, *first);
    while (at < end) {
        if (!kr_bytes_eq((*at)->version, (*first)->version))
            put_version_name(w, NULL, *at);
        at = end_of_version(at, end);
    }
    kr_json_out_end(w);
    put_version_name(w, "preferredVersion", *first);
    kr_json_out_end(w);
}

int hub_discovery_versions(struct kr_buf *out, const struct hub_shown_types *types)
{
    struct kr_json_out w;
    cursor at = find_group(types, KR_LIT(""));
    cursor end = at < end_of(types) ? end_of_group(at, end_of(types)) : at;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "APIVersions");
    kr_json_out_array(&w, "versions");
    for (; at < end; at = end_of_version(at, end))
        kr_json_out_string(&w, NULL, (*at)->version);
    kr_json_out_end(&w);
    kr_json_out_array(&w, "serverAddressByClientCIDRs");
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    return w.rc;
}

int hub_discovery_groups(struct kr_buf *out, const struct hub_shown_types *types)
{
    struct kr_json_out w;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "APIGroupList");
    kr_json_out_text(&w, "apiVersion", "v1");
    kr_json_out_array(&w, "groups");
    for (cursor at = types->all; at < end_of(types);) {
        cursor to = end_of_group(at, end_of(types));

        if ((*at)->group.n != 0)
            put_group(&w, at, to, false);
        at = to;
    }
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    return w.rc;
}

int hub_discovery_group(struct kr_buf *out, const struct hub_shown_types *types,
                        struct kr_bytes group)
{
    struct kr_json_out w;
    cursor at = find_group(types, group);

    if (at == end_of(types))
        return KR_ENOENT;
    kr_json_out_init(&w, out);
    put_group(&w, at, end_of_group(at, end_of(types)), true);
    return w.rc;
}

static void put_resource(struct kr_json_out *w, const struct kr_resource_type *t)
{
    kr_json_out_object(w, NULL);
    kr_json_out_string(w, "name", t->resource);
    kr_json_out_string(w, "singularName", t->singular);
    kr_json_out_bool(w, "namespaced", t->namespaced);
    kr_json_out_string(w, "kind", t->kind);
    put_verbs(w);
    put_list(w, "shortNames", t->short_names, t->short_name_count);
    put_list(w, "categories", t->categories, t->category_count);
    kr_json_out_end(w);
}

int hub_discovery_resources(struct kr_buf *out, const struct hub_shown_types *types,
                            struct kr_bytes group, struct kr_bytes version)
{
    struct kr_json_out w;
    cursor at = find_group(types, group);
    cursor end = at < end_of(types) ? end_of_group(at, end_of(types)) : at;

    while (at < end && !kr_bytes_eq((*at)->version, version))
        at = end_of_version(at, end);
    if (at == end)
        return KR_ENOENT;
    end = end_of_version(at, end);
    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "APIResourceList");
    kr_json_out_text(&w, "apiVersion", "v1");
    put_group_version(&w, "groupVersion", group, version);
    kr_json_out_array(&w, "resources");
    for (; at < end; at++)
        put_resource(&w, *at);
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    return w.rc;
}
