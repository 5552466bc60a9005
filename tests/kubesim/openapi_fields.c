/* SPDX-License-Identifier: Apache-2.0 */
#include "openapi.h"

#include <stdio.h>

#define SPEC                                                                                       \
    {                                                                                              \
        "spec", "object", "What is wanted."                                                        \
    }
#define STATUS                                                                                     \
    {                                                                                              \
        "status", "object", "What is observed."                                                    \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }

static const struct sim_field spec_status[] = {SPEC, STATUS, END};
static const struct sim_field spec_only[] = {SPEC, END};
static const struct sim_field configmap[] = {
    {"data", "object", "Text by key."},
    {"binaryData", "object", "Bytes by key, in base64."},
    {"immutable", "boolean", "Whether the data can no longer be changed."},
    END};
static const struct sim_field secret[] = {{"data", "object", "Bytes by key, in base64."},
                                          {"stringData", "object", "Text by key; write-only."},
                                          {"type", "string", "What the secret is for."},
                                          {"immutable", "boolean", "Whether it is fixed."},
                                          END};
static const struct sim_field role[] = {{"rules", "array", "What is allowed."}, END};
static const struct sim_field binding[] = {{"roleRef", "object", "The role that is given."},
                                           {"subjects", "array", "Who it is given to."},
                                           END};
static const struct sim_field account[] = {
    {"secrets", "array", "Secrets that its pods may use."},
    {"imagePullSecrets", "array", "Secrets for pulling images."},
    {"automountServiceAccountToken", "boolean", "Whether pods get a token."},
    END};
static const struct sim_field endpoints[] = {{"subsets", "array", "Addresses with ports."}, END};
static const struct sim_field event[] = {{"involvedObject", "object", "What it is about."},
                                         {"reason", "string", "Why, in one word."},
                                         {"message", "string", "Why, for people."},
                                         {"type", "string", "Normal or Warning."},
                                         END};

static const struct {
    const char *plural;
    const struct sim_field *fields;
} own_fields[] = {
    {"configmaps", configmap}, {"secrets", secret},       {"roles", role},
    {"clusterroles", role},    {"rolebindings", binding}, {"clusterrolebindings", binding},
    {"endpoints", endpoints},  {"events", event},         {"serviceaccounts", account},
};

static const struct sim_field pod_spec[] = {
    {"containers", "array", "The containers of the pod."},
    {"initContainers", "array", "Containers that run before the others."},
    {"volumes", "array", "Volumes that containers may mount."},
    {"nodeName", "string", "The node it runs on."},
    {"nodeSelector", "object", "Labels that the node must have."},
    {"restartPolicy", "string", "Always, OnFailure or Never."},
    {"serviceAccountName", "string", "Whom its processes act as."},
    {"terminationGracePeriodSeconds", "integer", "Time to end in."},
    {"tolerations", "array", "Taints that it bears."},
    END};
static const struct sim_field workload_spec[] = {
    {"replicas", "integer", "How many pods are wanted."},
    {"selector", "object", "Which pods belong to it."},
    {"template", "object", "What its pods look like."},
    END};
static const struct sim_field service_spec[] = {{"type", "string", "How it is reached."},
                                                {"clusterIP", "string", "Its address."},
                                                {"ports", "array", "What it listens on."},
                                                {"selector", "object", "Which pods answer."},
                                                END};
static const struct sim_field any_spec[] = {END};

const struct sim_field *sim_openapi_fields(const struct sim_kind *k)
{
    for (size_t i = 0; i < sizeof own_fields / sizeof *own_fields; i++)
        if (strcmp(own_fields[i].plural, k->plural) == 0)
            return own_fields[i].fields;
    return (k->flags & SIM_STATUS) != 0 || (k->flags & SIM_CREATE_ONLY) != 0 ? spec_status
                                                                             : spec_only;
}

const struct sim_field *sim_openapi_spec(const struct sim_kind *k)
{
    if (strcmp(k->plural, "pods") == 0)
        return pod_spec;
    if (strcmp(k->plural, "services") == 0)
        return service_spec;
    return (k->flags & SIM_SCALE) != 0 ? workload_spec : any_spec;
}

void sim_openapi_path(const struct sim_kind *k, char out[256])
{
    bool core = k->group[0] == '\0';

    snprintf(out, 256, "/%s%s/%s/%s%s/{name}", core ? "api" : "apis/", k->group, k->version,
             (k->flags & SIM_NAMESPACED) != 0 ? "namespaces/{namespace}/" : "", k->plural);
}

void sim_openapi_name(const struct sim_kind *k, char out[192])
{
    size_t n = strcspn(k->group, ".");

    if (n == 0)
        snprintf(out, 192, "io.k8s.api.core.%s.%s", k->version, k->kind);
    else
        snprintf(out, 192, "io.k8s.api.%.*s.%s.%s", (int)n, k->group, k->version, k->kind);
}
