/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults of the API server that clients look at; many others are left out. */
#include <stdio.h>

#include "object.h"

static void default_str(struct json_object *v, const char *key, const char *value)
{
    if (sim_json_get(v, key) == NULL)
        sim_json_set_str(v, key, value);
}

static void default_int(struct json_object *v, const char *key, int64_t value)
{
    if (sim_json_get(v, key) == NULL)
        sim_json_set_int(v, key, value);
}

static void container_defaults(struct json_object *list)
{
    for (size_t i = 0; i < sim_json_len(list); i++) {
        struct json_object *one = json_object_array_get_idx(list, i);
        struct json_object *ports = sim_json_get(one, "ports");

        if (!sim_json_is_object(one))
            continue;
        if (sim_json_get(one, "resources") == NULL)
            sim_json_child(one, "resources");
        default_str(one, "terminationMessagePath", "/dev/termination-log");
        default_str(one, "terminationMessagePolicy", "File");
        default_str(one, "imagePullPolicy",
                    strchr(sim_json_str(one, "image"), ':') != NULL ? "IfNotPresent" : "Always");
        for (size_t p = 0; p < sim_json_len(ports); p++)
            if (sim_json_is_object(json_object_array_get_idx(ports, p)))
                default_str(json_object_array_get_idx(ports, p), "protocol", "TCP");
    }
}

static void pod_spec_defaults(struct json_object *spec)
{
    container_defaults(sim_json_get(spec, "containers"));
    container_defaults(sim_json_get(spec, "initContainers"));
    default_str(spec, "restartPolicy", "Always");
    default_int(spec, "terminationGracePeriodSeconds", 30);
    default_str(spec, "dnsPolicy", "ClusterFirst");
    if (sim_json_get(spec, "securityContext") == NULL)
        sim_json_child(spec, "securityContext");
    default_str(spec, "schedulerName", "default-scheduler");
}

static void default_tolerations(struct json_object *spec)
{
    static const char text[] =
        "[{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
        "\"NoExecute\",\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/unreachable\","
        "\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}]";

    if (sim_json_get(spec, "tolerations") == NULL)
        sim_json_set(spec, "tolerations", sim_json_parse(kr_bytes_str(text)));
}

static void pod_defaults(struct json_object *v)
{
    struct json_object *spec = sim_json_child(v, "spec"), *status;

    pod_spec_defaults(spec);
    default_tolerations(spec);
    default_int(spec, "priority", 0);
    if (sim_json_get(spec, "enableServiceLinks") == NULL)
        sim_json_set(spec, "enableServiceLinks", json_object_new_boolean(true));
    default_str(spec, "preemptionPolicy", "PreemptLowerPriority");
    status = sim_json_child(v, "status");
    default_str(status, "phase", "Pending");
    default_str(status, "qosClass", "BestEffort");
}

static void namespace_defaults(struct json_object *v)
{
    struct json_object *spec = sim_json_child(v, "spec"), *list;

    sim_json_set_str(sim_json_child(sim_json_child(v, "metadata"), "labels"),
                     "kubernetes.io/metadata.name", sim_json_str(v, "metadata.name"));
    if (sim_json_get(spec, "finalizers") == NULL) {
        list = json_object_new_array();
        json_object_array_add(list, json_object_new_string("kubernetes"));
        sim_json_set(spec, "finalizers", list);
    }
    default_str(sim_json_child(v, "status"), "phase", "Active");
}

static void deployment_defaults(struct json_object *spec)
{
    struct json_object *strategy = sim_json_child(spec, "strategy"), *update;

    default_str(strategy, "type", "RollingUpdate");
    if (strcmp(sim_json_str(strategy, "type"), "RollingUpdate") == 0) {
        update = sim_json_child(strategy, "rollingUpdate");
        default_str(update, "maxUnavailable", "25%");
        default_str(update, "maxSurge", "25%");
    }
    default_int(spec, "revisionHistoryLimit", 10);
    default_int(spec, "progressDeadlineSeconds", 600);
}

static void workload_defaults(struct json_object *v)
{
    struct json_object *spec = sim_json_child(v, "spec");
    struct json_object *template = sim_json_get(spec, "template");

    default_int(spec, "replicas", 1);
    if (sim_json_is_object(template) && sim_json_is_object(sim_json_get(template, "spec"))) {
        struct json_object *meta = sim_json_child(template, "metadata");

        if (!json_object_object_get_ex(meta, "creationTimestamp", NULL))
            sim_json_set(meta, "creationTimestamp", NULL);
        pod_spec_defaults(sim_json_get(template, "spec"));
    }
    if (strcmp(sim_json_str(v, "kind"), "Deployment") == 0)
        deployment_defaults(spec);
    if (sim_json_get(v, "status") == NULL)
        sim_json_child(v, "status");
}

static void service_defaults(struct sim_call *call, struct json_object *v)
{
    struct json_object *spec = sim_json_child(v, "spec"), *ips, *ports;
    uint64_t r = sim_random(call->c);
    char ip[24];

    default_str(spec, "type", "ClusterIP");
    default_str(spec, "sessionAffinity", "None");
    if (sim_json_get(spec, "clusterIP") == NULL) {
        snprintf(ip, sizeof ip, "10.96.%u.%u", (unsigned)(r % 254 + 1),
                 (unsigned)(r >> 16) % 254 + 1);
        sim_json_set_str(spec, "clusterIP", ip);
        ips = json_object_new_array();
        json_object_array_add(ips, json_object_new_string(ip));
        sim_json_set(spec, "clusterIPs", ips);
    }
    if (sim_json_get(spec, "ipFamilies") == NULL) {
        ips = json_object_new_array();
        json_object_array_add(ips, json_object_new_string("IPv4"));
        sim_json_set(spec, "ipFamilies", ips);
    }
    default_str(spec, "ipFamilyPolicy", "SingleStack");
    default_str(spec, "internalTrafficPolicy", "Cluster");
    ports = sim_json_get(spec, "ports");
    for (size_t i = 0; i < sim_json_len(ports); i++) {
        struct json_object *port = json_object_array_get_idx(ports, i);

        if (!sim_json_is_object(port))
            continue;
        default_str(port, "protocol", "TCP");
        default_int(port, "targetPort", sim_json_int(port, "port", 0));
    }
    sim_json_child(sim_json_child(v, "status"), "loadBalancer");
}

/* data[k] = base64(stringData[k]); stringData is write-only. */
static void secret_defaults(struct json_object *v)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct json_object *plain = sim_json_get(v, "stringData");

    default_str(v, "type", "Opaque");
    if (!sim_json_is_object(plain))
        return;
    json_object_object_foreach(plain, key, value)
    {
        const uint8_t *in = (const uint8_t *)json_object_get_string(value);
        size_t n = in != NULL ? strlen((const char *)in) : 0;
        struct kr_buf out;

        kr_buf_init(&out, SIM_BODY_MAX * 2);
        for (size_t i = 0; i < n; i += 3) {
            uint32_t bits = (uint32_t)in[i] << 16 | (uint32_t)(i + 1 < n ? in[i + 1] : 0) << 8 |
                            (i + 2 < n ? in[i + 2] : 0);

            (void)kr_buf_printf(&out, "%c%c%c%c", digits[bits >> 18], digits[bits >> 12 & 63],
                                i + 1 < n ? digits[bits >> 6 & 63] : '=',
                                i + 2 < n ? digits[bits & 63] : '=');
        }
        sim_json_set(sim_json_child(v, "data"), key,
                     json_object_new_string_len((const char *)out.p, (int)out.n));
        kr_buf_deinit(&out);
    }
    json_object_object_del(v, "stringData");
}

void sim_object_defaults(struct sim_call *call, struct json_object *v)
{
    const char *kind = sim_call_kind(call)->kind;

    if (strcmp(kind, "Pod") == 0)
        pod_defaults(v);
    else if (strcmp(kind, "Namespace") == 0)
        namespace_defaults(v);
    else if ((sim_call_kind(call)->flags & SIM_SCALE) != 0)
        workload_defaults(v);
    else if (strcmp(kind, "Service") == 0)
        service_defaults(call, v);
    else if (strcmp(kind, "Secret") == 0)
        secret_defaults(v);
}
