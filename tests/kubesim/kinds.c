/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"

#include <stdio.h>

#define N SIM_NAMESPACED
#define S SIM_STATUS
#define G SIM_GENERATION
#define SC SIM_SCALE
#define REVIEW SIM_CREATE_ONLY
#define RBAC "rbac.authorization.k8s.io"

/* The order inside a group is the order of discovery; the first rows are enum sim_kind_index. */
const struct sim_kind sim_kinds[] = {
    {"", "v1", "namespaces", "namespace", "Namespace", "ns", "", S},
    {"", "v1", "nodes", "node", "Node", "no", "", S},
    {"", "v1", "pods", "pod", "Pod", "po", "all", N | S | G},
    {"apps", "v1", "deployments", "deployment", "Deployment", "deploy", "all", N | S | SC | G},
    {"apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs", "all", N | S | SC | G},
    {"", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount", "sa", "", N},
    {"", "v1", "configmaps", "configmap", "ConfigMap", "cm", "", N},
    {"", "v1", "services", "service", "Service", "svc", "all", N | S},
    {"", "v1", "secrets", "secret", "Secret", "", "", N},
    {"", "v1", "endpoints", "endpoints", "Endpoints", "ep", "", N},
    {"", "v1", "events", "event", "Event", "ev", "", N},
    {"", "v1", "limitranges", "limitrange", "LimitRange", "limits", "", N},
    {"", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "pvc",
     "", N | S},
    {"", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", "pv", "", S},
    {"", "v1", "podtemplates", "podtemplate", "PodTemplate", "", "", N | G},
    {"", "v1", "replicationcontrollers", "replicationcontroller", "ReplicationController", "rc",
     "all", N | S | SC | G},
    {"", "v1", "resourcequotas", "resourcequota", "ResourceQuota", "quota", "", N | S},
    {"apps", "v1", "daemonsets", "daemonset", "DaemonSet", "ds", "all", N | S | G},
    {"apps", "v1", "statefulsets", "statefulset", "StatefulSet", "sts", "all", N | S | SC | G},
    {"apps", "v1", "controllerrevisions", "controllerrevision", "ControllerRevision", "", "", N},
    {"authentication.k8s.io", "v1", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview",
     "", "", REVIEW},
    {"authentication.k8s.io", "v1", "tokenreviews", "tokenreview", "TokenReview", "", "", REVIEW},
    {"authorization.k8s.io", "v1", "localsubjectaccessreviews", "localsubjectaccessreview",
     "LocalSubjectAccessReview", "", "", N | REVIEW},
    {"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "selfsubjectaccessreview",
     "SelfSubjectAccessReview", "", "", REVIEW},
    {"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "selfsubjectrulesreview",
     "SelfSubjectRulesReview", "", "", REVIEW},
    {"authorization.k8s.io", "v1", "subjectaccessreviews", "subjectaccessreview",
     "SubjectAccessReview", "", "", REVIEW},
    {"autoscaling", "v2", "horizontalpodautoscalers", "horizontalpodautoscaler",
     "HorizontalPodAutoscaler", "hpa", "all", N | S},
    {"batch", "v1", "jobs", "job", "Job", "", "all", N | S | G},
    {"batch", "v1", "cronjobs", "cronjob", "CronJob", "cj", "all", N | S | G},
    {"coordination.k8s.io", "v1", "leases", "lease", "Lease", "", "", N},
    {"discovery.k8s.io", "v1", "endpointslices", "endpointslice", "EndpointSlice", "", "", N | G},
    {"networking.k8s.io", "v1", "ingresses", "ingress", "Ingress", "ing", "", N | S | G},
    {"networking.k8s.io", "v1", "ingressclasses", "ingressclass", "IngressClass", "", "", G},
    {"networking.k8s.io", "v1", "networkpolicies", "networkpolicy", "NetworkPolicy", "netpol", "",
     N | G},
    {"policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb",
     "", N | S | G},
    {RBAC, "v1", "clusterroles", "clusterrole", "ClusterRole", "", "", 0},
    {RBAC, "v1", "clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding", "", "", 0},
    {RBAC, "v1", "roles", "role", "Role", "", "", N},
    {RBAC, "v1", "rolebindings", "rolebinding", "RoleBinding", "", "", N},
    {"scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass", "pc", "", G},
    {"storage.k8s.io", "v1", "storageclasses", "storageclass", "StorageClass", "sc", "", 0},
};
const size_t sim_kind_count = sizeof sim_kinds / sizeof *sim_kinds;

int sim_kind_find(struct kr_bytes group, struct kr_bytes version, struct kr_bytes plural)
{
    for (size_t i = 0; i < sim_kind_count; i++)
        if (kr_bytes_is(plural, sim_kinds[i].plural) && kr_bytes_is(group, sim_kinds[i].group) &&
            kr_bytes_is(version, sim_kinds[i].version))
            return (int)i;
    return -1;
}

bool sim_group_exists(struct kr_bytes group, const struct kr_bytes *version)
{
    for (size_t i = 0; i < sim_kind_count; i++)
        if (kr_bytes_is(group, sim_kinds[i].group) &&
            (version == NULL || kr_bytes_is(*version, sim_kinds[i].version)))
            return true;
    return false;
}

bool sim_kind_first_of_group(size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(sim_kinds[i].group, sim_kinds[j].group) == 0 &&
            strcmp(sim_kinds[i].version, sim_kinds[j].version) == 0)
            return false;
    return true;
}

void sim_kind_api_version(const struct sim_kind *k, char out[64])
{
    snprintf(out, 64, "%s%s%s", k->group, k->group[0] != '\0' ? "/" : "", k->version);
}
