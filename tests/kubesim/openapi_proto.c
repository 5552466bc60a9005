/* SPDX-License-Identifier: Apache-2.0 */
/* The v2 document as kubectl before 1.27 asks for it. Field numbers are those of gnostic's
 * OpenAPIv2.proto (https://github.com/google/gnostic-models). Definitions carry no kind: then
 * kubectl falls back to the types that it was built with. */
#include <stdio.h>

#include "openapi.h"
#include "proto.h"

enum { DOCUMENT_SWAGGER = 1, DOCUMENT_INFO = 2, DOCUMENT_PATHS = 8, DOCUMENT_DEFINITIONS = 9 };
enum { INFO_TITLE = 1, INFO_VERSION = 2 };
enum { PATHS_PATH = 2, NAMED_NAME = 1, NAMED_VALUE = 2, PATH_ITEM_PATCH = 8 };
enum { OPERATION_PARAMETERS = 8, OPERATION_RESPONSES = 9, OPERATION_EXTENSION = 13 };
enum { ITEM_PARAMETER = 1, PARAMETER_NON_BODY = 2, NON_BODY_QUERY = 3 };
enum { QUERY_IN = 2, QUERY_NAME = 4, QUERY_TYPE = 6 };
enum { ANY_YAML = 2 };
enum { SCHEMA_DESCRIPTION = 4, SCHEMA_TYPE = 22, TYPE_VALUE = 1, DEFINITIONS_ALL = 1 };
enum { RESPONSES_CODE = 1, RESPONSE_VALUE_RESPONSE = 1, RESPONSE_DESCRIPTION = 1 };

/* Empties `inner` into field `number` of `out`: the next layer outward. */
static void wrap(struct kr_buf *inner, struct kr_buf *out, unsigned number)
{
    struct kr_buf whole;

    kr_buf_init(&whole, inner->max);
    (void)sim_proto_bytes(&whole, number, kr_buf_bytes(inner));
    inner->n = 0;
    (void)kr_buf_append(out, kr_buf_bytes(&whole));
    kr_buf_deinit(&whole);
}

static void put_parameter(const char *name, struct kr_buf *operation)
{
    struct kr_buf a, b;

    kr_buf_init(&a, 4096);
    kr_buf_init(&b, 4096);
    (void)sim_proto_str(&a, QUERY_IN, "query");
    (void)sim_proto_str(&a, QUERY_NAME, name);
    (void)sim_proto_str(&a, QUERY_TYPE, "string");
    wrap(&a, &b, NON_BODY_QUERY);
    wrap(&b, &a, PARAMETER_NON_BODY);
    wrap(&a, &b, ITEM_PARAMETER);
    wrap(&b, operation, OPERATION_PARAMETERS);
    kr_buf_deinit(&a);
    kr_buf_deinit(&b);
}

static void put_kind(const struct sim_kind *k, struct kr_buf *operation)
{
    struct kr_buf named, any;
    char yaml[256];

    kr_buf_init(&named, 4096);
    kr_buf_init(&any, 4096);
    snprintf(yaml, sizeof yaml, "group: \"%s\"\nkind: %s\nversion: %s\n", k->group, k->kind,
             k->version);
    (void)sim_proto_str(&any, ANY_YAML, yaml);
    (void)sim_proto_str(&named, NAMED_NAME, "x-kubernetes-group-version-kind");
    wrap(&any, &named, NAMED_VALUE);
    wrap(&named, operation, OPERATION_EXTENSION);
    kr_buf_deinit(&named);
    kr_buf_deinit(&any);
}

static void put_responses(struct kr_buf *operation)
{
    struct kr_buf a, b;

    kr_buf_init(&a, 4096);
    kr_buf_init(&b, 4096);
    (void)sim_proto_str(&a, RESPONSE_DESCRIPTION, "OK");
    wrap(&a, &b, RESPONSE_VALUE_RESPONSE);
    (void)sim_proto_str(&a, NAMED_NAME, "200");
    wrap(&b, &a, NAMED_VALUE);
    wrap(&a, &b, RESPONSES_CODE);
    wrap(&b, operation, OPERATION_RESPONSES);
    kr_buf_deinit(&a);
    kr_buf_deinit(&b);
}

static void put_path(const struct sim_kind *k, struct kr_buf *paths)
{
    struct kr_buf a, b;
    char path[256];

    kr_buf_init(&a, 65536);
    kr_buf_init(&b, 65536);
    put_parameter("dryRun", &a);
    put_parameter("fieldManager", &a);
    put_parameter("fieldValidation", &a);
    put_responses(&a);
    put_kind(k, &a);
    wrap(&a, &b, PATH_ITEM_PATCH);
    sim_openapi_path(k, path);
    (void)sim_proto_str(&a, NAMED_NAME, path);
    wrap(&b, &a, NAMED_VALUE);
    wrap(&a, paths, PATHS_PATH);
    kr_buf_deinit(&a);
    kr_buf_deinit(&b);
}

static void put_definition(const struct sim_kind *k, struct kr_buf *definitions)
{
    struct kr_buf schema, other;
    char name[192];

    kr_buf_init(&schema, 4096);
    kr_buf_init(&other, 4096);
    (void)sim_proto_str(&schema, SCHEMA_DESCRIPTION, "A simulated kind.");
    (void)sim_proto_str(&other, TYPE_VALUE, "object");
    wrap(&other, &schema, SCHEMA_TYPE);
    sim_openapi_name(k, name);
    (void)sim_proto_str(&other, NAMED_NAME, name);
    wrap(&schema, &other, NAMED_VALUE);
    wrap(&other, definitions, DEFINITIONS_ALL);
    kr_buf_deinit(&schema);
    kr_buf_deinit(&other);
}

int sim_openapi_v2_proto(struct kr_buf *out)
{
    struct kr_buf part;
    int rc;

    kr_buf_init(&part, 4u << 20);
    rc = sim_proto_str(out, DOCUMENT_SWAGGER, "2.0");
    (void)sim_proto_str(&part, INFO_TITLE, "Kubernetes (kubesim, a simulator)");
    (void)sim_proto_str(&part, INFO_VERSION, SIM_VERSION);
    wrap(&part, out, DOCUMENT_INFO);
    for (size_t i = 0; i < sim_kind_count; i++)
        if ((sim_kinds[i].flags & SIM_CREATE_ONLY) == 0)
            put_path(&sim_kinds[i], &part);
    wrap(&part, out, DOCUMENT_PATHS);
    for (size_t i = 0; i < sim_kind_count; i++)
        put_definition(&sim_kinds[i], &part);
    wrap(&part, out, DOCUMENT_DEFINITIONS);
    kr_buf_deinit(&part);
    return rc;
}
