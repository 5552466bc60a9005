/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/field_types.h"

#include "kube/selector.h"

static const char *const no_paths[] = {NULL};
static const char *const pod_paths[] = {
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
    NULL,
};
static const char *const node_paths[] = {"spec.unschedulable", NULL};
static const char *const namespace_paths[] = {"status.phase", NULL};
static const char *const secret_paths[] = {"type", NULL};
static const char *const service_paths[] = {"spec.clusterIP", "spec.type", NULL};
static const char *const replica_paths[] = {"status.replicas", NULL};
static const char *const job_paths[] = {"status.succeeded", NULL};
static const char *const signing_paths[] = {"spec.signerName", NULL};
static const char *const slice_paths[] = {"spec.nodeName", "spec.driver", NULL};
static const char *const event_paths[] = {
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source.component",
    "type",
    NULL,
};
static const char *const new_event_paths[] = {
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
    NULL,
};

static const struct {
    const char *group;
    const char *resource;
    const char *const *paths;
} types[] = {
    {"", "pods", pod_paths},
    {"", "nodes", node_paths},
    {"", "namespaces", namespace_paths},
    {"", "secrets", secret_paths},
    {"", "services", service_paths},
    {"", "replicationcontrollers", replica_paths},
    {"", "events", event_paths},
    {"events.k8s.io", "events", new_event_paths},
    {"apps", "replicasets", replica_paths},
    {"batch", "jobs", job_paths},
    {"certificates.k8s.io", "certificatesigningrequests", signing_paths},
    {"resource.k8s.io", "resourceslices", slice_paths},
};

/* Fields that stand elsewhere than their name says. */
static const struct {
    const char *field;
    const char *path;
} elsewhere[] = {
    {"spec.host", "spec.nodeName"}, /* its name long ago */
    {"source", "source.component"},
    {"status.successful", "status.succeeded"},
};

static const struct {
    const char *field;
    const char *absent;
} defaults[] = {
    {"spec.hostNetwork", "false"},
    {"spec.unschedulable", "false"},
    {"status.replicas", "0"},
    {"status.successful", "0"},
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

const char *const *kr_field_paths(struct kr_bytes group, struct kr_bytes resource)
{
    for (size_t i = 0; i < COUNT(types); i++) {
        if (kr_bytes_is(group, types[i].group) && kr_bytes_is(resource, types[i].resource))
            return types[i].paths;
    }
    return no_paths;
}

struct kr_bytes kr_field_path(struct kr_bytes field)
{
    for (size_t i = 0; i < COUNT(elsewhere); i++) {
        if (kr_bytes_is(field, elsewhere[i].field))
            return kr_bytes_str(elsewhere[i].path);
    }
    return field;
}

const char *kr_field_absent(struct kr_bytes field)
{
    for (size_t i = 0; i < COUNT(defaults); i++) {
        if (kr_bytes_is(field, defaults[i].field))
            return defaults[i].absent;
    }
    return "";
}

/* Whether it is a path only, and no name that a selector may use. */
static bool is_only_path(struct kr_bytes field)
{
    return kr_bytes_is(field, "source.component") || kr_bytes_is(field, "status.succeeded");
}

bool kr_field_is_known(struct kr_bytes group, struct kr_bytes resource, struct kr_bytes field)
{
    const char *const *paths = kr_field_paths(group, resource);
    struct kr_bytes path = kr_field_path(field);

    if (kr_bytes_is(field, "metadata.name") || kr_bytes_is(field, "metadata.namespace"))
        return true;
    if (is_only_path(field))
        return false;
    while (*paths != NULL && !kr_bytes_is(path, *paths))
        paths++;
    return *paths != NULL;
}
