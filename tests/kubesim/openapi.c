/* SPDX-License-Identifier: Apache-2.0 */
#include "openapi.h"

#include <stdio.h>

#include "base/err.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

/* ---- pieces that v2 and v3 share */

static void print_gvk(const struct sim_kind *k, struct kr_buf *out)
{
    kr_buf_printf(out, "{\"group\":\"%s\",\"kind\":\"%s\",\"version\":\"%s\"}", k->group, k->kind,
                  k->version);
}

static void print_field(const struct sim_field *f, struct kr_buf *out)
{
    kr_buf_printf(out, "\"%s\":{\"description\":\"%s\",\"type\":\"%s\"", f->name, f->text, f->type);
    if (strcmp(f->type, "array") == 0)
        kr_buf_append_str(out, ",\"items\":{\"type\":\"object\"}");
    else if (strcmp(f->type, "object") == 0)
        kr_buf_append_str(out, ",\"x-kubernetes-preserve-unknown-fields\":true");
    kr_buf_append_str(out, "}");
}

static void print_fields(const struct sim_field *f, struct kr_buf *out)
{
    for (bool first = true; f->name != NULL; f++, first = false) {
        if (!first)
            kr_buf_append_str(out, ",");
        print_field(f, out);
    }
}

/* A spec whose fields are known has a schema of its own, so that explain can go into it. */
static void print_spec_schema(const struct sim_kind *k, const char *name, struct kr_buf *out)
{
    kr_buf_printf(out,
                  ",\"%sSpec\":{\"description\":\"The spec of a simulated %s.\",\"type\":"
                  "\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{",
                  name, k->kind);
    print_fields(sim_openapi_spec(k), out);
    kr_buf_append_str(out, "}}");
}

static void print_schema(const struct sim_kind *k, const char *refs, struct kr_buf *out)
{
    const struct sim_field *f = sim_openapi_fields(k);
    bool has_spec = sim_openapi_spec(k)->name != NULL;
    char name[192];

    sim_openapi_name(k, name);
    kr_buf_printf(out,
                  "\"%s\":{\"description\":\"%s, as the simulator has it.\",\"type\":\"object\","
                  "\"properties\":{\"apiVersion\":{\"description\":\"Version of the form.\","
                  "\"type\":\"string\"},\"kind\":{\"description\":\"What it is.\",\"type\":"
                  "\"string\"},\"metadata\":{\"description\":\"Name, labels and so on.\","
                  "\"allOf\":[{\"$ref\":\"%s" META "\"}]}",
                  name, k->kind, refs);
    for (; f->name != NULL; f++) {
        kr_buf_append_str(out, ",");
        if (strcmp(f->name, "spec") == 0 && has_spec)
            kr_buf_printf(out,
                          "\"spec\":{\"description\":\"%s\",\"allOf\":[{\"$ref\":\"%s%sSpec\"}]}",
                          f->text, refs, name);
        else
            print_field(f, out);
    }
    kr_buf_append_str(out, "},\"x-kubernetes-group-version-kind\":[");
    print_gvk(k, out);
    kr_buf_append_str(out, "]}");
    if (has_spec)
        print_spec_schema(k, name, out);
}

static void print_meta_schema(struct kr_buf *out)
{
    kr_buf_append_str(out,
                      "\"" META "\":{\"description\":\"What all objects have.\",\"type\":"
                      "\"object\",\"properties\":{\"name\":{\"description\":\"The name.\",\"type\":"
                      "\"string\"},\"namespace\":{\"description\":\"The namespace.\",\"type\":"
                      "\"string\"},\"labels\":{\"description\":\"Labels.\",\"type\":\"object\","
                      "\"additionalProperties\":{\"type\":\"string\"}},\"annotations\":{"
                      "\"description\":\"Annotations.\",\"type\":\"object\","
                      "\"additionalProperties\":{\"type\":\"string\"}}},"
                      "\"x-kubernetes-preserve-unknown-fields\":true}");
}

/* ---- v3 */

static void print_parameters(struct kr_buf *out, bool v3)
{
    static const char *const names[] = {"dryRun", "fieldManager", "fieldValidation"};

    for (size_t i = 0; i < 3; i++)
        kr_buf_printf(out, "%s{\"name\":\"%s\",\"in\":\"query\",%s}", i != 0 ? "," : "", names[i],
                      v3 ? "\"schema\":{\"type\":\"string\"}" : "\"type\":\"string\"");
}

static void print_v3_path(const struct sim_kind *k, struct kr_buf *out)
{
    char path[256], name[192];

    sim_openapi_path(k, path);
    sim_openapi_name(k, name);
    kr_buf_printf(out,
                  "\"%s\":{\"get\":{\"responses\":{\"200\":{\"description\":\"OK\",\"content\":{"
                  "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}}},"
                  "\"x-kubernetes-action\":\"get\",\"x-kubernetes-group-version-kind\":",
                  path, name);
    print_gvk(k, out);
    kr_buf_append_str(out, "},\"patch\":{\"parameters\":[");
    print_parameters(out, true);
    kr_buf_append_str(out, "],\"requestBody\":{\"content\":{\"application/json-patch+json\":{},"
                           "\"application/merge-patch+json\":{},\"application/apply-patch+yaml\":{}"
                           "}},\"responses\":{\"200\":{\"description\":\"OK\"}},"
                           "\"x-kubernetes-action\":\"patch\","
                           "\"x-kubernetes-group-version-kind\":");
    print_gvk(k, out);
    kr_buf_append_str(out, "}}");
}

static void print_v3(struct kr_bytes group, struct kr_bytes version, struct kr_buf *out)
{
    bool comma = false;

    kr_buf_append_str(out, "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Kubernetes (kubesim, a "
                           "simulator)\",\"version\":\"" SIM_VERSION "\"},\"paths\":{");
    for (size_t i = 0; i < sim_kind_count; i++) {
        const struct sim_kind *k = &sim_kinds[i];

        if (!kr_bytes_is(group, k->group) || !kr_bytes_is(version, k->version))
            continue;
        if (comma)
            kr_buf_append_str(out, ",");
        comma = true;
        print_v3_path(k, out);
    }
    kr_buf_append_str(out, "},\"components\":{\"schemas\":{");
    print_meta_schema(out);
    for (size_t i = 0; i < sim_kind_count; i++) {
        const struct sim_kind *k = &sim_kinds[i];

        if (!kr_bytes_is(group, k->group) || !kr_bytes_is(version, k->version))
            continue;
        kr_buf_append_str(out, ",");
        print_schema(k, "#/components/schemas/", out);
    }
    kr_buf_append_str(out, "}}}\n");
}

/* The documents depend on nothing but this program's version. */
static const char document_hash[] = "6B75626573696D31";

static void print_index(struct kr_buf *out)
{
    bool comma = false;

    kr_buf_append_str(out, "{\"paths\":{");
    for (size_t i = 0; i < sim_kind_count; i++) {
        const struct sim_kind *k = &sim_kinds[i];
        const char *root = k->group[0] == '\0' ? "api" : "apis/";

        if (!sim_kind_first_of_group(i))
            continue;
        kr_buf_printf(out, "%s\"%s%s/%s\":{\"serverRelativeURL\":\"/openapi/v3/%s%s/%s?hash=%s\"}",
                      comma ? "," : "", root, k->group, k->version, root, k->group, k->version,
                      document_hash);
        comma = true;
    }
    kr_buf_append_str(out, "}}\n");
}

/* A hash that is not ours: 301 to the one that is, as the API server does. */
static bool redirect_stale(struct sim_call *call, struct kr_bytes path)
{
    const char *hash = sim_param(&call->q, "hash");
    char location[512];

    if (hash == NULL || strcmp(hash, document_hash) == 0)
        return false;
    snprintf(location, sizeof location, "%.*s?hash=%s", (int)path.n, (const char *)path.p,
             document_hash);
    (void)kr_head_add_str(&call->out->more, "location", location);
    call->out->status = 301;
    (void)kr_head_add_str(&call->out->more, "vary", "Accept");
    return true;
}

static bool answer_v3(struct sim_call *call, struct kr_bytes path)
{
    struct kr_bytes rest = kr_bytes_skip(path, 11), group = {NULL, 0}, version;
    size_t slash;

    if (rest.n == 0 || kr_bytes_is(rest, "/")) {
        print_index(&call->out->body);
        sim_answer_cached(call, "application/json");
        return true;
    }
    if (kr_bytes_starts(rest, KR_LIT("/apis/"))) {
        rest = kr_bytes_skip(rest, 6);
        slash = kr_bytes_find(rest, '/');
        if (slash == rest.n)
            return false;
        group = kr_bytes_of(rest.p, slash);
        version = kr_bytes_skip(rest, slash + 1);
    } else if (kr_bytes_starts(rest, KR_LIT("/api/"))) {
        version = kr_bytes_skip(rest, 5);
    } else {
        return false;
    }
    if (!sim_group_exists(group, &version))
        return false;
    if (redirect_stale(call, path))
        return true;
    print_v3(group, version, &call->out->body);
    sim_answer_cached(call, "application/json");
    return true;
}

/* ---- v2 */

static void print_v2(struct kr_buf *out)
{
    bool comma = false;
    char path[256], name[192];

    kr_buf_append_str(out, "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Kubernetes (kubesim, a "
                           "simulator)\",\"version\":\"" SIM_VERSION "\"},\"paths\":{");
    for (size_t i = 0; i < sim_kind_count; i++) {
        const struct sim_kind *k = &sim_kinds[i];

        if ((k->flags & SIM_CREATE_ONLY) != 0)
            continue;
        sim_openapi_path(k, path);
        kr_buf_printf(out, "%s\"%s\":{\"patch\":{\"parameters\":[", comma ? "," : "", path);
        comma = true;
        print_parameters(out, false);
        kr_buf_append_str(out, "],\"responses\":{\"200\":{\"description\":\"OK\"}},"
                               "\"x-kubernetes-group-version-kind\":");
        print_gvk(k, out);
        kr_buf_append_str(out, "}}");
    }
    kr_buf_append_str(out, "},\"definitions\":{");
    for (size_t i = 0; i < sim_kind_count; i++) {
        sim_openapi_name(&sim_kinds[i], name);
        kr_buf_printf(out, "%s\"%s\":{\"description\":\"A simulated kind.\",\"type\":\"object\"}",
                      i != 0 ? "," : "", name);
    }
    kr_buf_append_str(out, "}}\n");
}

bool sim_api_openapi(struct sim_call *call, struct kr_bytes path)
{
    /* What is asked for is no valid media type ('@'), so the answer is called otherwise. */
    static const char proto[] = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    static const char answer[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

    if (kr_bytes_is(path, "/openapi/v2")) {
        if (sim_accepts(call, proto) || sim_accepts(call, answer)) {
            if (sim_openapi_v2_proto(&call->out->body) != 0)
                sim_fail_no_memory(call->out);
            else
                sim_answer_cached(call, answer);
            return true;
        }
        print_v2(&call->out->body);
        sim_answer_cached(call, "application/json");
        return true;
    }
    return kr_bytes_starts(path, KR_LIT("/openapi/v3")) && path.n >= 11 &&
           (path.n == 11 || path.p[11] == '/') && answer_v3(call, path);
}
