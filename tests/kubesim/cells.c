/* SPDX-License-Identifier: Apache-2.0 */
#include "cells.h"

#include <stdio.h>
#include <time.h>

static void add_str(struct json_object *cells, const char *s)
{
    json_object_array_add(cells, json_object_new_string(s));
}

static void add_or(struct json_object *cells, const char *s, const char *otherwise)
{
    add_str(cells, s[0] != '\0' ? s : otherwise);
}

static void add_int(struct json_object *cells, int64_t n)
{
    json_object_array_add(cells, json_object_new_int64(n));
}

static void add_ratio(struct json_object *cells, int64_t a, int64_t b)
{
    char text[48];

    snprintf(text, sizeof text, "%lld/%lld", (long long)a, (long long)b);
    add_str(cells, text);
}

int64_t sim_time_parse(const char *text)
{
    struct tm tm = {0};

    if (strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
        return -1;
    return (int64_t)timegm(&tm) * 1000;
}

/* The steps of duration.HumanDuration: two units while they matter, then one. */
void sim_duration(int64_t s, char out[32])
{
    int64_t m = s / 60, h = s / 3600, d = s / 86400;
    long long a, b = 0;
    const char *fmt;

    if (s < 0)
        s = 0;
    if (s < 120) {
        snprintf(out, 32, "%llds", (long long)s);
        return;
    }
    if (m < 10)
        a = m, b = s % 60, fmt = "ms";
    else if (m < 180)
        a = m, fmt = "m";
    else if (h < 8)
        a = h, b = m % 60, fmt = "hm";
    else if (h < 48)
        a = h, fmt = "h";
    else if (d < 8)
        a = d, b = h % 24, fmt = "dh";
    else if (d < 730)
        a = d, fmt = "d";
    else
        a = d / 365, b = d % 365, fmt = "yd";
    if (b != 0)
        snprintf(out, 32, "%lld%c%lld%c", a, fmt[0], b, fmt[1]);
    else
        snprintf(out, 32, "%lld%c", a, fmt[0]);
}

static void age_of(const char *when, int64_t now_wall_ms, char out[32])
{
    int64_t then = sim_time_parse(when);

    if (then < 0)
        snprintf(out, 32, "<unknown>");
    else
        sim_duration((now_wall_ms - then) / 1000, out);
}

static void add_age(struct json_object *object, int64_t now_wall_ms, struct json_object *cells)
{
    char text[32];

    age_of(sim_json_str(object, "metadata.creationTimestamp"), now_wall_ms, text);
    add_str(cells, text);
}

/* "a=b,c=d" of an object of strings; "<none>" if it is empty. */
static void add_pairs(struct json_object *cells, struct json_object *map)
{
    struct kr_buf text;

    kr_buf_init(&text, 4096);
    if (sim_json_is_object(map)) {
        json_object_object_foreach(map, key, value)
        {
            (void)kr_buf_printf(&text, "%s%s=%s", text.n != 0 ? "," : "", key,
                                json_object_get_string(value));
        }
    }
    (void)kr_buf_append(&text, kr_bytes_of("", 1));
    add_or(cells, text.p != NULL ? (const char *)text.p : "", "<none>");
    kr_buf_deinit(&text);
}

static void add_joined(struct json_object *cells, struct json_object *array, const char *path)
{
    struct kr_buf text;

    kr_buf_init(&text, 4096);
    for (size_t i = 0; i < sim_json_len(array); i++)
        (void)kr_buf_printf(&text, "%s%s", i != 0 ? "," : "",
                            sim_json_str(json_object_array_get_idx(array, i), path));
    (void)kr_buf_append(&text, kr_bytes_of("", 1));
    add_or(cells, text.p != NULL ? (const char *)text.p : "", "<none>");
    kr_buf_deinit(&text);
}

static void add_workload_wide(struct json_object *object, struct json_object *cells)
{
    struct json_object *containers = sim_json_at(object, "spec.template.spec.containers");

    add_joined(cells, containers, "name");
    add_joined(cells, containers, "image");
}

static void add_selector(struct json_object *object, struct json_object *cells)
{
    struct json_object *labels = sim_json_at(object, "spec.selector.matchLabels");

    add_pairs(cells, labels != NULL ? labels : sim_json_at(object, "spec.selector"));
}

void sim_cells_age(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_age(object, now, cells);
}

void sim_cells_created(struct json_object *object, int64_t now, struct json_object *cells)
{
    (void)now;
    add_str(cells, sim_json_str(object, "metadata.creationTimestamp"));
}

void sim_cells_binding(struct json_object *object, int64_t now, struct json_object *cells)
{
    char role[320];

    snprintf(role, sizeof role, "%s/%s", sim_json_str(object, "roleRef.kind"),
             sim_json_str(object, "roleRef.name"));
    add_str(cells, role);
    add_age(object, now, cells);
}

struct pod_summary {
    const char *word; /* the container's reason wins over the phase */
    int64_t ready;
    int64_t restarts;
    int64_t last_restart_ms; /* -1: unknown */
};

static void add_container(struct pod_summary *p, struct json_object *one)
{
    const char *waiting = sim_json_str(one, "state.waiting.reason");
    const char *ended = sim_json_str(one, "state.terminated.reason");
    int64_t last = sim_time_parse(sim_json_str(one, "lastState.terminated.finishedAt"));

    p->restarts += sim_json_int(one, "restartCount", 0);
    p->ready += sim_json_bool(one, "ready");
    if (last > p->last_restart_ms)
        p->last_restart_ms = last;
    if (waiting[0] != '\0')
        p->word = waiting;
    else if (ended[0] != '\0')
        p->word = ended;
}

static struct pod_summary summarize_pod(struct json_object *object)
{
    struct json_object *all = sim_json_at(object, "status.containerStatuses");
    const char *reason = sim_json_str(object, "status.reason");
    struct pod_summary p = {sim_json_str(object, "status.phase"), 0, 0, -1};

    if (reason[0] != '\0')
        p.word = reason;
    for (size_t i = sim_json_len(all); i-- > 0;)
        add_container(&p, json_object_array_get_idx(all, i));
    if (sim_json_at(object, "metadata.deletionTimestamp") != NULL)
        p.word = "Terminating";
    return p;
}

void sim_cells_pod(struct json_object *object, int64_t now, struct json_object *cells)
{
    struct pod_summary p = summarize_pod(object);
    char text[64], ago[32];

    add_ratio(cells, p.ready, (int64_t)sim_json_len(sim_json_at(object, "spec.containers")));
    add_str(cells, p.word);
    snprintf(text, sizeof text, "%lld", (long long)p.restarts);
    if (p.restarts != 0 && p.last_restart_ms >= 0) {
        sim_duration((now - p.last_restart_ms) / 1000, ago);
        snprintf(text, sizeof text, "%lld (%s ago)", (long long)p.restarts, ago);
    }
    add_str(cells, text);
    add_age(object, now, cells);
    add_or(cells, sim_json_str(object, "status.podIP"), "<none>");
    add_or(cells, sim_json_str(object, "spec.nodeName"), "<none>");
    add_or(cells, sim_json_str(object, "status.nominatedNodeName"), "<none>");
    add_str(cells, "<none>");
}

static const char *address_of(struct json_object *object, const char *type)
{
    struct json_object *all = sim_json_at(object, "status.addresses");

    for (size_t i = 0; i < sim_json_len(all); i++) {
        struct json_object *one = json_object_array_get_idx(all, i);

        if (strcmp(sim_json_str(one, "type"), type) == 0)
            return sim_json_str(one, "address");
    }
    return "";
}

static void add_node_status(struct json_object *object, struct json_object *cells)
{
    struct json_object *all = sim_json_at(object, "status.conditions");
    const char *word = "Unknown";
    char text[64];

    for (size_t i = 0; i < sim_json_len(all); i++) {
        struct json_object *one = json_object_array_get_idx(all, i);

        if (strcmp(sim_json_str(one, "type"), "Ready") == 0)
            word = strcmp(sim_json_str(one, "status"), "True") == 0 ? "Ready" : "NotReady";
    }
    snprintf(text, sizeof text, "%s%s", word,
             sim_json_bool(object, "spec.unschedulable") ? ",SchedulingDisabled" : "");
    add_str(cells, text);
}

static void add_node_roles(struct json_object *object, struct json_object *cells)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    struct json_object *labels = sim_json_at(object, "metadata.labels");
    char roles[128] = "";

    if (sim_json_is_object(labels)) {
        json_object_object_foreach(labels, key, value)
        {
            (void)value;
            if (strncmp(key, prefix, sizeof prefix - 1) == 0 && strlen(key) < 80)
                snprintf(roles, sizeof roles, "%s", key + sizeof prefix - 1);
        }
    }
    add_or(cells, roles, "<none>");
}

void sim_cells_node(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_node_status(object, cells);
    add_node_roles(object, cells);
    add_age(object, now, cells);
    add_str(cells, sim_json_str(object, "status.nodeInfo.kubeletVersion"));
    add_or(cells, address_of(object, "InternalIP"), "<none>");
    add_or(cells, address_of(object, "ExternalIP"), "<none>");
    add_or(cells, sim_json_str(object, "status.nodeInfo.osImage"), "<unknown>");
    add_or(cells, sim_json_str(object, "status.nodeInfo.kernelVersion"), "<unknown>");
    add_or(cells, sim_json_str(object, "status.nodeInfo.containerRuntimeVersion"), "<unknown>");
}

void sim_cells_namespace(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_str(cells, sim_json_str(object, "status.phase"));
    add_age(object, now, cells);
}

void sim_cells_deployment(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_ratio(cells, sim_json_int(object, "status.readyReplicas", 0),
              sim_json_int(object, "spec.replicas", 1));
    add_int(cells, sim_json_int(object, "status.updatedReplicas", 0));
    add_int(cells, sim_json_int(object, "status.availableReplicas", 0));
    add_age(object, now, cells);
    add_workload_wide(object, cells);
    add_selector(object, cells);
}

void sim_cells_replicaset(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_int(cells, sim_json_int(object, "spec.replicas", 1));
    add_int(cells, sim_json_int(object, "status.replicas", 0));
    add_int(cells, sim_json_int(object, "status.readyReplicas", 0));
    add_age(object, now, cells);
    add_workload_wide(object, cells);
    add_selector(object, cells);
}

void sim_cells_daemonset(struct json_object *object, int64_t now, struct json_object *cells)
{
    static const char *const counts[] = {
        "status.desiredNumberScheduled", "status.currentNumberScheduled", "status.numberReady",
        "status.updatedNumberScheduled", "status.numberAvailable",
    };

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        add_int(cells, sim_json_int(object, counts[i], 0));
    add_pairs(cells, sim_json_at(object, "spec.template.spec.nodeSelector"));
    add_age(object, now, cells);
    add_workload_wide(object, cells);
    add_selector(object, cells);
}

void sim_cells_statefulset(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_ratio(cells, sim_json_int(object, "status.readyReplicas", 0),
              sim_json_int(object, "spec.replicas", 1));
    add_age(object, now, cells);
    add_workload_wide(object, cells);
}

void sim_cells_job(struct json_object *object, int64_t now, struct json_object *cells)
{
    int64_t wanted = sim_json_int(object, "spec.completions", 1);
    int64_t done = sim_json_int(object, "status.succeeded", 0);

    add_str(cells, done >= wanted ? "Complete" : "Running");
    add_ratio(cells, done, wanted);
    add_str(cells, "");
    add_age(object, now, cells);
    add_workload_wide(object, cells);
    add_selector(object, cells);
}

static void add_ports(struct json_object *object, struct json_object *cells)
{
    struct json_object *all = sim_json_at(object, "spec.ports");
    char text[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < sim_json_len(all) && n < sizeof text - 48; i++) {
        struct json_object *one = json_object_array_get_idx(all, i);
        const char *protocol = sim_json_str(one, "protocol");

        n += (size_t)snprintf(text + n, sizeof text - n, "%s%lld/%.8s", i != 0 ? "," : "",
                              (long long)sim_json_int(one, "port", 0),
                              protocol[0] != '\0' ? protocol : "TCP");
    }
    add_or(cells, text, "<none>");
}

void sim_cells_service(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_or(cells, sim_json_str(object, "spec.type"), "ClusterIP");
    add_or(cells, sim_json_str(object, "spec.clusterIP"), "<none>");
    add_str(cells, "<none>");
    add_ports(object, cells);
    add_age(object, now, cells);
    add_pairs(cells, sim_json_at(object, "spec.selector"));
}

static int64_t keys_of(struct json_object *v)
{
    return sim_json_is_object(v) ? json_object_object_length(v) : 0;
}

void sim_cells_configmap(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_int(cells,
            keys_of(sim_json_get(object, "data")) + keys_of(sim_json_get(object, "binaryData")));
    add_age(object, now, cells);
}

void sim_cells_secret(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_str(cells, sim_json_str(object, "type"));
    add_int(cells, keys_of(sim_json_get(object, "data")));
    add_age(object, now, cells);
}

void sim_cells_serviceaccount(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_int(cells, (int64_t)sim_json_len(sim_json_get(object, "secrets")));
    add_age(object, now, cells);
}

void sim_cells_endpoints(struct json_object *object, int64_t now, struct json_object *cells)
{
    struct json_object *subset = sim_json_len(sim_json_get(object, "subsets")) != 0
                                     ? json_object_array_get_idx(sim_json_get(object, "subsets"), 0)
                                     : NULL;

    add_joined(cells, sim_json_get(subset, "addresses"), "ip");
    add_age(object, now, cells);
}

void sim_cells_lease(struct json_object *object, int64_t now, struct json_object *cells)
{
    add_str(cells, sim_json_str(object, "spec.holderIdentity"));
    add_age(object, now, cells);
}

void sim_cells_event(struct json_object *object, int64_t now, struct json_object *cells)
{
    const char *seen = sim_json_str(object, "lastTimestamp");
    char text[320];

    age_of(seen[0] != '\0' ? seen : sim_json_str(object, "metadata.creationTimestamp"), now, text);
    add_str(cells, text);
    add_str(cells, sim_json_str(object, "type"));
    add_str(cells, sim_json_str(object, "reason"));
    snprintf(text, sizeof text, "%s/%s", sim_json_str(object, "involvedObject.kind"),
             sim_json_str(object, "involvedObject.name"));
    for (char *p = text; *p != '\0' && *p != '/'; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    add_str(cells, text);
    add_str(cells, sim_json_str(object, "message"));
}
