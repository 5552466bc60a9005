/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery, in the aggregated form (apidiscovery.k8s.io v2 and v2beta1) and in the old one (/api,
 * /apis, one document a group and version).
 * https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api */
#include <openssl/sha.h>
#include <stdio.h>

#include "api.h"
#include "base/err.h"

#define READ_WRITE                                                                                 \
    "\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\",\"watch\""

/* ---- ETag */

void sim_answer_cached(struct sim_call *call, const char *content_type)
{
    uint8_t sum[SHA512_DIGEST_LENGTH];
    char etag[2 * SHA512_DIGEST_LENGTH + 3];
    size_t n = 0;

    SHA512(call->out->body.p, call->out->body.n, sum);
    etag[n++] = '"';
    for (size_t i = 0; i < sizeof sum; i++)
        n += (size_t)snprintf(etag + n, sizeof etag - n, "%02X", sum[i]);
    etag[n++] = '"';
    call->out->content_type = content_type;
    (void)kr_head_add(&call->out->more, KR_LIT("etag"), kr_bytes_of(etag, n));
    (void)kr_head_add_str(&call->out->more, "vary", "Accept");
    (void)kr_head_add_str(&call->out->more, "cache-control", "public");
    if (kr_bytes_eq(kr_head_get(call->req->head, KR_LIT("if-none-match")), kr_bytes_of(etag, n))) {
        call->out->status = 304;
        call->out->body.n = 0;
    }
}

/* ---- words of one resource */

static void print_list(const char *comma_list, struct kr_buf *out)
{
    bool first = true;

    while (*comma_list != '\0') {
        size_t n = strcspn(comma_list, ",");

        kr_buf_printf(out, "%s\"%.*s\"", first ? "" : ",", (int)n, comma_list);
        first = false;
        comma_list += n + (comma_list[n] == ',');
    }
}

static const char *verbs_of(const struct sim_kind *k)
{
    return (k->flags & SIM_CREATE_ONLY) != 0 ? "\"create\"" : READ_WRITE;
}

struct sub { /* a subresource and the kind of its body */
    const char *name, *group, *version, *kind, *verbs;
};

static size_t subs_of(const struct sim_kind *k, struct sub out[4])
{
    size_t n = 0;

    if ((k->flags & SIM_SCALE) != 0)
        out[n++] =
            (struct sub){"scale", "autoscaling", "v1", "Scale", "\"get\",\"patch\",\"update\""};
    if ((k->flags & SIM_STATUS) != 0)
        out[n++] =
            (struct sub){"status", k->group, k->version, k->kind, "\"get\",\"patch\",\"update\""};
    if (strcmp(k->plural, "pods") == 0) {
        out[n++] = (struct sub){"eviction", "policy", "v1", "Eviction", "\"create\""};
        out[n++] = (struct sub){"log", "", "v1", "Pod", "\"get\""};
    }
    if (strcmp(k->plural, "serviceaccounts") == 0)
        out[n++] =
            (struct sub){"token", "authentication.k8s.io", "v1", "TokenRequest", "\"create\""};
    return n;
}

/* The next kind of a group by name, after the one called `after` ("" : the first). */
static const struct sim_kind *next_kind(struct kr_bytes group, struct kr_bytes version,
                                        const char *after)
{
    const struct sim_kind *best = NULL;

    for (size_t i = 0; i < sim_kind_count; i++) {
        const struct sim_kind *k = &sim_kinds[i];

        if (kr_bytes_is(group, k->group) && kr_bytes_is(version, k->version) &&
            strcmp(k->plural, after) > 0 && (best == NULL || strcmp(k->plural, best->plural) < 0))
            best = k;
    }
    return best;
}

/* ---- the aggregated form */

static void print_response_kind(const char *group, const char *version, const char *kind,
                                struct kr_buf *out)
{
    kr_buf_printf(out, "\"responseKind\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"}",
                  group, version, kind);
}

static void print_aggregated(const struct sim_kind *k, struct kr_buf *out)
{
    struct sub subs[4];
    size_t n = subs_of(k, subs);

    kr_buf_printf(out, "{\"resource\":\"%s\",", k->plural);
    print_response_kind(k->group, k->version, k->kind, out);
    kr_buf_printf(out, ",\"scope\":\"%s\",\"singularResource\":\"%s\",\"verbs\":[%s]",
                  (k->flags & SIM_NAMESPACED) != 0 ? "Namespaced" : "Cluster", k->singular,
                  verbs_of(k));
    if (k->short_names[0] != '\0') {
        kr_buf_append_str(out, ",\"shortNames\":[");
        print_list(k->short_names, out);
        kr_buf_append_str(out, "]");
    }
    if (k->categories[0] != '\0') {
        kr_buf_append_str(out, ",\"categories\":[");
        print_list(k->categories, out);
        kr_buf_append_str(out, "]");
    }
    for (size_t i = 0; i < n; i++) {
        kr_buf_printf(out, "%s{\"subresource\":\"%s\",", i == 0 ? ",\"subresources\":[" : ",",
                      subs[i].name);
        print_response_kind(subs[i].group, subs[i].version, subs[i].kind, out);
        kr_buf_printf(out, ",\"verbs\":[%s]}", subs[i].verbs);
    }
    kr_buf_append_str(out, n != 0 ? "]}" : "}");
}

static void print_group(const struct sim_kind *first, struct kr_buf *out)
{
    struct kr_bytes group = kr_bytes_str(first->group), version = kr_bytes_str(first->version);
    const struct sim_kind *k;
    bool comma = false;

    if (first->group[0] != '\0')
        kr_buf_printf(out, "{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":null}",
                      first->group);
    else
        kr_buf_append_str(out, "{\"metadata\":{\"creationTimestamp\":null}");
    kr_buf_printf(out, ",\"versions\":[{\"version\":\"%s\",\"resources\":[", first->version);
    for (k = next_kind(group, version, ""); k != NULL; k = next_kind(group, version, k->plural)) {
        if (comma)
            kr_buf_append_str(out, ",");
        comma = true;
        print_aggregated(k, out);
    }
    kr_buf_append_str(out, "],\"freshness\":\"Current\"}]}");
}

static void answer_aggregated(struct sim_call *call, bool core, const char *version)
{
    struct kr_buf *out = &call->out->body;
    bool comma = false;

    kr_buf_printf(out,
                  "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/%s\","
                  "\"metadata\":{},\"items\":[",
                  version);
    for (size_t i = 0; i < sim_kind_count; i++) {
        if (!sim_kind_first_of_group(i) || (sim_kinds[i].group[0] == '\0') != core)
            continue;
        if (comma)
            kr_buf_append_str(out, ",");
        comma = true;
        print_group(&sim_kinds[i], out);
    }
    kr_buf_append_str(out, "]}\n");
    sim_answer_cached(call,
                      strcmp(version, "v2") == 0
                          ? "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                          : "application/json;g=apidiscovery.k8s.io;v=v2beta1;as="
                            "APIGroupDiscoveryList");
}

static bool contains(struct kr_bytes text, const char *word)
{
    size_t n = strlen(word);

    for (; text.n >= n; text = kr_bytes_skip(text, 1))
        if (memcmp(text.p, word, n) == 0)
            return true;
    return false;
}

/* Which aggregated version Accept asks for first; NULL: the old form. */
static const char *wants_aggregated(const struct sim_call *call)
{
    struct kr_bytes accept = kr_head_get(call->req->head, KR_LIT("accept"));

    if (!contains(accept, "as=APIGroupDiscoveryList"))
        return NULL;
    return contains(accept, "v=v2;") || contains(accept, "v=v2,") ? "v2" : "v2beta1";
}

/* ---- the old form */

static void print_api_group(const struct sim_kind *k, bool alone, struct kr_buf *out)
{
    kr_buf_printf(out,
                  "{%s\"name\":\"%s\",\"versions\":[{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}"
                  "],\"preferredVersion\":{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}}",
                  alone ? "\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," : "", k->group, k->group,
                  k->version, k->version, k->group, k->version, k->version);
}

static void answer_groups(struct sim_call *call)
{
    struct kr_buf *out = &call->out->body;
    bool comma = false;

    kr_buf_append_str(out, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
    for (size_t i = 0; i < sim_kind_count; i++) {
        if (sim_kinds[i].group[0] == '\0' || !sim_kind_first_of_group(i))
            continue;
        if (comma)
            kr_buf_append_str(out, ",");
        comma = true;
        print_api_group(&sim_kinds[i], false, out);
    }
    kr_buf_append_str(out, "]}\n");
}

static void answer_versions(struct sim_call *call)
{
    kr_buf_append_str(&call->out->body,
                      "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                      "\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\","
                      "\"serverAddress\":\"127.0.0.1:443\"}]}\n");
}

static void print_legacy(const struct sim_kind *k, struct kr_buf *out)
{
    struct sub subs[4];
    size_t n = subs_of(k, subs);
    const char *scope = (k->flags & SIM_NAMESPACED) != 0 ? "true" : "false";

    kr_buf_printf(out,
                  "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,\"kind\":\"%s\","
                  "\"verbs\":[%s]",
                  k->plural, k->singular, scope, k->kind, verbs_of(k));
    if (k->short_names[0] != '\0') {
        kr_buf_append_str(out, ",\"shortNames\":[");
        print_list(k->short_names, out);
        kr_buf_append_str(out, "]");
    }
    if (k->categories[0] != '\0') {
        kr_buf_append_str(out, ",\"categories\":[");
        print_list(k->categories, out);
        kr_buf_append_str(out, "]");
    }
    kr_buf_append_str(out, "}");
    for (size_t i = 0; i < n; i++) {
        kr_buf_printf(out, ",{\"name\":\"%s/%s\",\"singularName\":\"\",\"namespaced\":%s,",
                      k->plural, subs[i].name, scope);
        if (strcmp(subs[i].group, k->group) != 0)
            kr_buf_printf(out, "\"group\":\"%s\",\"version\":\"%s\",", subs[i].group,
                          subs[i].version);
        kr_buf_printf(out, "\"kind\":\"%s\",\"verbs\":[%s]}", subs[i].kind, subs[i].verbs);
    }
}

static void answer_resources(struct sim_call *call, struct kr_bytes group, struct kr_bytes version)
{
    struct kr_buf *out = &call->out->body;
    const struct sim_kind *k;
    bool comma = false;

    kr_buf_printf(out,
                  "{\"kind\":\"APIResourceList\",%s\"groupVersion\":\"%.*s%s%.*s\","
                  "\"resources\":[",
                  group.n != 0 ? "\"apiVersion\":\"v1\"," : "", (int)group.n, (const char *)group.p,
                  group.n != 0 ? "/" : "", (int)version.n, (const char *)version.p);
    for (k = next_kind(group, version, ""); k != NULL; k = next_kind(group, version, k->plural)) {
        if (comma)
            kr_buf_append_str(out, ",");
        comma = true;
        print_legacy(k, out);
    }
    kr_buf_append_str(out, "]}\n");
}

/* /apis/GROUP and /apis/GROUP/VERSION. */
static bool answer_group_path(struct sim_call *call, struct kr_bytes rest)
{
    size_t slash = kr_bytes_find(rest, '/');
    struct kr_bytes group = {rest.p, slash}, version = {NULL, 0};

    if (slash < rest.n)
        version = kr_bytes_skip(rest, slash + 1);
    if (kr_bytes_find(version, '/') < version.n || group.n == 0)
        return false;
    if (!sim_group_exists(group, version.n != 0 ? &version : NULL))
        return false;
    if (version.n != 0) {
        answer_resources(call, group, version);
        return true;
    }
    for (size_t i = 0; i < sim_kind_count; i++)
        if (kr_bytes_is(group, sim_kinds[i].group)) {
            print_api_group(&sim_kinds[i], true, &call->out->body);
            kr_buf_append_str(&call->out->body, "\n");
            return true;
        }
    return false;
}

static void answer_paths(struct sim_call *call)
{
    static const char *const fixed[] = {"/api",    "/api/v1",  "/apis",       "/healthz",
                                        "/livez",  "/metrics", "/openapi/v2", "/openapi/v3",
                                        "/readyz", "/version"};
    struct kr_buf *out = &call->out->body;

    kr_buf_append_str(out, "{\"paths\":[");
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        kr_buf_printf(out, "%s\"%s\"", i != 0 ? "," : "", fixed[i]);
    for (size_t i = 0; i < sim_kind_count; i++)
        if (sim_kinds[i].group[0] != '\0' && sim_kind_first_of_group(i))
            kr_buf_printf(out, ",\"/apis/%s\",\"/apis/%s/%s\"", sim_kinds[i].group,
                          sim_kinds[i].group, sim_kinds[i].version);
    kr_buf_append_str(out, "]}\n");
}

bool sim_api_discovery(struct sim_call *call, struct kr_bytes path)
{
    const char *aggregated = wants_aggregated(call);
    bool core;

    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    core = kr_bytes_is(path, "/api");
    if (kr_bytes_is(path, "/"))
        answer_paths(call);
    else if ((core || kr_bytes_is(path, "/apis")) && aggregated != NULL)
        answer_aggregated(call, core, aggregated);
    else if (core)
        answer_versions(call);
    else if (kr_bytes_is(path, "/apis"))
        answer_groups(call);
    else if (kr_bytes_is(path, "/api/v1"))
        answer_resources(call, kr_bytes_of(NULL, 0), KR_LIT("v1"));
    else if (kr_bytes_starts(path, KR_LIT("/apis/")))
        return answer_group_path(call, kr_bytes_skip(path, 6));
    else
        return false;
    return true;
}
