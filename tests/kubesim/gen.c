/* SPDX-License-Identifier: Apache-2.0 */
#include "gen.h"

#include <stdio.h>
#include <time.h>

#include "heavy.h"
#include "kinds.h"

static const char *const namespaces[] = {
    "default",   "kube-system", "shop",        "billing",
    "telemetry", "edge-apps",   "kube-public", "kube-node-lease",
};
#define POPULATED 6u /* the first ones hold deployments */

static const char *const words[] = {"web",    "api",   "cart",  "auth",   "ledger",  "search",
                                    "mailer", "cache", "queue", "report", "gateway", "sensor"};
#define WORDS (sizeof words / sizeof *words)

uint64_t sim_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu;

    /* The finalizer of splitmix64 (public domain, S. Vigna). */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void sim_uuid(uint64_t hash, char out[40])
{
    uint64_t more = sim_hash(hash, 7, 11);

    snprintf(out, 40, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(hash >> 32),
             (unsigned)(hash >> 16) & 0xffffu, (unsigned)hash & 0xfffu,
             0x8000u | ((unsigned)(more >> 48) & 0x3fffu),
             (unsigned long long)(more & 0xffffffffffffu));
}

void sim_time(int64_t wall_ms, char out[32])
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;

    gmtime_r(&s, &tm);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void letters(uint64_t hash, size_t n, char *out)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";

    for (size_t i = 0; i < n; i++, hash /= 27)
        out[i] = alphabet[hash % 27];
    out[n] = '\0';
}

const char *sim_gen_namespace(size_t i)
{
    return i < sizeof namespaces / sizeof *namespaces ? namespaces[i] : NULL;
}

static uint32_t deployments(const struct sim_world *w)
{
    return (w->pods + SIM_PODS_PER_DEPLOYMENT - 1) / SIM_PODS_PER_DEPLOYMENT;
}

uint32_t sim_gen_count(const struct sim_world *w, int kind)
{
    switch (kind) {
    case SIM_KIND_NODE:
        return w->nodes;
    case SIM_KIND_POD:
        return w->pods;
    case SIM_KIND_DEPLOYMENT:
    case SIM_KIND_REPLICASET:
        return deployments(w);
    default:
        return 0;
    }
}

void sim_workload_of(const struct sim_world *w, uint32_t d, struct sim_workload *out)
{
    uint32_t first = d * SIM_PODS_PER_DEPLOYMENT;

    out->index = d;
    out->replicas =
        w->pods - first < SIM_PODS_PER_DEPLOYMENT ? w->pods - first : SIM_PODS_PER_DEPLOYMENT;
    out->ns = namespaces[d % POPULATED];
    out->word = words[d % WORDS];
    if (d < WORDS)
        snprintf(out->name, sizeof out->name, "%s", words[d]);
    else
        snprintf(out->name, sizeof out->name, "%s-%02u", words[d % WORDS], d / (uint32_t)WORDS);
    letters(sim_hash(w->seed, d, 1), 9, out->template_hash);
    snprintf(out->rs, sizeof out->rs, "%s-%s", out->name, out->template_hash);
}

static void pod_name(const struct sim_world *w, const struct sim_workload *d, struct sim_gen_id id,
                     char out[128])
{
    uint64_t hash = sim_hash(w->seed, id.index, 1000 + id.life);
    char tail[8], last[2];

    letters(hash, 4, tail);
    /* The last letter depends on the place in the set, so two pods never share a name. */
    letters(id.index % SIM_PODS_PER_DEPLOYMENT * 5 + (hash >> 40) % 5, 1, last);
    snprintf(out, 128, "%s-%s%s", d->rs, tail, last);
}

void sim_node_name(uint32_t i, char out[32])
{
    snprintf(out, 32, "node-%03u", i);
}

void sim_gen_key(const struct sim_world *w, int kind, struct sim_gen_id id, char out[SIM_KEY_MAX])
{
    struct sim_workload d;
    char name[128];

    if (kind == SIM_KIND_NODE) {
        sim_node_name(id.index, out);
        return;
    }
    sim_workload_of(w, kind == SIM_KIND_POD ? id.index / SIM_PODS_PER_DEPLOYMENT : id.index, &d);
    if (kind == SIM_KIND_POD)
        pod_name(w, &d, id, name);
    else
        snprintf(name, sizeof name, "%s", kind == SIM_KIND_REPLICASET ? d.rs : d.name);
    snprintf(out, SIM_KEY_MAX, "%s/%s", d.ns, name);
}

int64_t sim_born_ms(const struct sim_world *w, int kind, struct sim_gen_id id)
{
    uint64_t hash = sim_hash(w->seed, id.index, 50u + (unsigned)kind);

    if (id.life != 0) /* replaced while the simulator runs */
        return w->born_wall_ms + (int64_t)id.life * 1000;
    return w->born_wall_ms - (int64_t)(hash % (20u * 86400u)) * 1000 - 60000;
}

void sim_uid_of(const struct sim_world *w, int kind, struct sim_gen_id id, char out[40])
{
    sim_uuid(sim_hash(w->seed, id.index, (uint64_t)(kind + 1) << 20 | id.life), out);
}

void sim_pod_of(const struct sim_world *w, struct sim_gen_id id, struct sim_pod *out)
{
    uint32_t net = id.index + 2, nodes = w->nodes != 0 ? w->nodes : 1, node = id.index % nodes;

    sim_workload_of(w, id.index / SIM_PODS_PER_DEPLOYMENT, &out->owner);
    pod_name(w, &out->owner, id, out->name);
    out->node[0] = '\0';
    if (w->nodes != 0)
        sim_node_name(node, out->node);
    snprintf(out->ip, sizeof out->ip, "10.%u.%u.%u", 64 + net / 65536 % 128, net / 256 % 256,
             net % 256);
    snprintf(out->host_ip, sizeof out->host_ip, "10.0.%u.%u", node / 250 % 256, node % 250 + 1);
    out->containers = w->heavy != NULL ? 1 + out->owner.index % SIM_CONTAINERS_MAX : 1;
    out->ready = id.change % 2 == 0;
    out->restarts = id.restarts + (w->heavy != NULL ? 0 : (unsigned)(id.change + 1) / 2);
    out->born_ms = sim_born_ms(w, SIM_KIND_POD, id);
    out->changed_ms = id.at_us != 0 ? id.at_us / 1000 : out->born_ms + 2000;
}

/* `"metadata":{` and what all kinds share; the caller goes on with a comma or closes it. */
static void render_meta(const struct sim_world *w, int kind, struct sim_gen_id id, const char *ns,
                        const char *name, uint64_t rv, struct kr_buf *out)
{
    char uid[40], when[32];

    sim_uid_of(w, kind, id, uid);
    sim_time(sim_born_ms(w, kind, id), when);
    kr_buf_printf(out, "\"metadata\":{\"name\":\"%s\",", name);
    if (ns != NULL)
        kr_buf_printf(out, "\"namespace\":\"%s\",", ns);
    kr_buf_printf(out, "\"uid\":\"%s\",\"resourceVersion\":\"%llu\",\"creationTimestamp\":\"%s\"",
                  uid, (unsigned long long)rv, when);
}

static void render_owner(const struct sim_world *w, int kind, uint32_t index, const char *kind_name,
                         const char *name, struct kr_buf *out)
{
    char uid[40];

    sim_uuid(sim_hash(w->seed, index, (uint64_t)(kind + 1) << 20), uid);
    kr_buf_printf(out,
                  ",\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"name\":\"%s"
                  "\",\"uid\":\"%s\",\"controller\":true,\"blockOwnerDeletion\":true}]",
                  kind_name, name, uid);
}

static void render_managed(const char *manager, const char *api, const char *when,
                           const char *fields, struct kr_buf *out)
{
    kr_buf_printf(out,
                  ",\"managedFields\":[{\"manager\":\"%s\",\"operation\":\"Update\",\"apiVersion\":"
                  "\"%s\",\"time\":\"%s\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":%s}]}",
                  manager, api, when, fields);
}

static void render_pod_spec(const struct sim_workload *d, struct kr_buf *out)
{
    kr_buf_printf(out,
                  "\"containers\":[{\"name\":\"%s\",\"image\":\"registry.example/%s:1.%u.0\","
                  "\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}],"
                  "\"env\":[{\"name\":\"LOG_LEVEL\",\"value\":\"info\"}],\"resources\":{\"limits\":"
                  "{\"cpu\":\"500m\",\"memory\":\"256Mi\"},\"requests\":{\"cpu\":\"50m\","
                  "\"memory\":\"64Mi\"}},\"terminationMessagePath\":\"/dev/termination-log\","
                  "\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}],"
                  "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
                  "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"default\","
                  "\"serviceAccount\":\"default\",",
                  d->word, d->word, d->index % 7);
}

static void render_pod_status(const struct sim_pod *p, const char *when, struct kr_buf *out)
{
    const char *bool_text = p->ready ? "True" : "False";
    char changed[32];

    sim_time(p->changed_ms, changed);
    kr_buf_printf(out, "\"status\":{\"phase\":\"Running\",\"conditions\":[");
    static const char *const types[] = {"Initialized", "Ready", "ContainersReady", "PodScheduled"};
    for (size_t i = 0; i < 4; i++)
        kr_buf_printf(out,
                      "%s{\"type\":\"%s\",\"status\":\"%s\",\"lastProbeTime\":null,"
                      "\"lastTransitionTime\":\"%s\"}",
                      i != 0 ? "," : "", types[i], i == 1 || i == 2 ? bool_text : "True",
                      i == 1 || i == 2 ? changed : when);
    kr_buf_printf(out,
                  "],\"hostIP\":\"%s\",\"podIP\":\"%s\",\"podIPs\":[{\"ip\":\"%s\"}],\"startTime\":"
                  "\"%s\",\"containerStatuses\":[{\"name\":\"%s\",",
                  p->host_ip, p->ip, p->ip, when, p->owner.word);
    if (p->ready)
        kr_buf_printf(out, "\"state\":{\"running\":{\"startedAt\":\"%s\"}},", changed);
    else
        kr_buf_append_str(out,
                          "\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":"
                          "\"back-off 10s restarting failed container\"}},");
    kr_buf_printf(out,
                  "\"lastState\":{},\"ready\":%s,\"restartCount\":%u,\"image\":"
                  "\"registry.example/%s:1.%u.0\",\"imageID\":\"\",\"started\":%s}],"
                  "\"qosClass\":\"Burstable\"}",
                  p->ready ? "true" : "false", p->restarts, p->owner.word, p->owner.index % 7,
                  p->ready ? "true" : "false");
}

/* Annotations that changes leave behind, each with a comma before it. */
static void render_traces(struct sim_gen_id id, struct kr_buf *out)
{
    if (id.touches != 0)
        kr_buf_printf(out, ",\"" SIM_TOUCHED "\":\"%u\"", id.touches);
    if (id.at_us != 0)
        kr_buf_printf(out, ",\"" SIM_CHANGED "\":\"%lld\"", (long long)id.at_us);
}

static void render_pod(const struct sim_world *w, struct sim_gen_id id, uint64_t rv,
                       struct kr_buf *out)
{
    struct sim_pod p;
    const struct sim_workload *d = &p.owner;
    char when[32];

    sim_pod_of(w, id, &p);
    sim_time(p.born_ms, when);
    kr_buf_append_str(out, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",");
    render_meta(w, SIM_KIND_POD, id, d->ns, p.name, rv, out);
    kr_buf_printf(out,
                  ",\"generateName\":\"%s-\",\"generation\":1,\"labels\":{\"app\":\"%s\",\"pod-"
                  "template-hash\":"
                  "\"%s\",\"tier\":\"%s\"},\"annotations\":{\"simulated-by\":\"kubesim\"",
                  d->rs, d->name, d->template_hash, d->index % 2 != 0 ? "backend" : "frontend");
    render_traces(id, out);
    kr_buf_append_str(out, "}");
    render_owner(w, SIM_KIND_REPLICASET, d->index, "ReplicaSet", d->rs, out);
    render_managed("kube-controller-manager", "v1", when,
                   "{\"f:metadata\":{\"f:generateName\":{},\"f:labels\":{\".\":{},\"f:app\":{},"
                   "\"f:pod-template-hash\":{},\"f:tier\":{}}},\"f:spec\":{\"f:dnsPolicy\":{},"
                   "\"f:restartPolicy\":{},\"f:terminationGracePeriodSeconds\":{}}}",
                   out);
    kr_buf_append_str(out, ",\"spec\":{");
    render_pod_spec(d, out);
    if (p.node[0] != '\0')
        kr_buf_printf(out, "\"nodeName\":\"%s\",", p.node);
    kr_buf_append_str(out, "\"securityContext\":{},\"schedulerName\":\"default-scheduler\","
                           "\"priority\":0,\"enableServiceLinks\":true,\"preemptionPolicy\":"
                           "\"PreemptLowerPriority\"},");
    render_pod_status(&p, when, out);
    kr_buf_append_str(out, "}");
}

struct sim_condition sim_condition_of(const struct sim_world *w, size_t i, struct sim_gen_id id)
{
    static const struct sim_condition rows[SIM_CONDITIONS] = {
        {"MemoryPressure", "False", "KubeletHasSufficientMemory", "memory is sufficient", 0},
        {"DiskPressure", "False", "KubeletHasNoDiskPressure", "disk is sufficient", 0},
        {"PIDPressure", "False", "KubeletHasSufficientPID", "process ids are sufficient", 0},
        {"Ready", "True", "KubeletReady", "the simulated kubelet is ready", 0},
    };
    static const struct sim_condition pressure = {
        "MemoryPressure", "True", "KubeletHasInsufficientMemory", "memory is insufficient", 0};
    struct sim_condition c = i == 0 && id.restarts % 2 != 0 ? pressure : rows[i];

    c.since_ms = sim_born_ms(w, SIM_KIND_NODE, id);
    if (i == 0 && id.restarts != 0)
        c.since_ms = w->born_wall_ms + (int64_t)id.restarts * 1000;
    return c;
}

static void render_node_conditions(const struct sim_world *w, struct sim_gen_id id,
                                   struct kr_buf *out)
{
    char beat[32], since[32];

    sim_time(id.at_us != 0 ? id.at_us / 1000 : w->born_wall_ms, beat);
    for (size_t i = 0; i < SIM_CONDITIONS; i++) {
        struct sim_condition c = sim_condition_of(w, i, id);

        sim_time(c.since_ms, since);
        kr_buf_printf(out,
                      "%s{\"type\":\"%s\",\"status\":\"%s\",\"lastHeartbeatTime\":\"%s\","
                      "\"lastTransitionTime\":\"%s\",\"reason\":\"%s\",\"message\":\"%s\"}",
                      i != 0 ? "," : "", c.type, c.status, beat, since, c.reason, c.message);
    }
}

static void render_node(const struct sim_world *w, struct sim_gen_id id, uint64_t rv,
                        struct kr_buf *out)
{
    static const char *const resources[] = {"capacity", "allocatable"};
    char name[32], when[32], uid[40];

    sim_node_name(id.index, name);
    sim_time(sim_born_ms(w, SIM_KIND_NODE, id), when);
    sim_uuid(sim_hash(w->seed, id.index, 3), uid);
    kr_buf_append_str(out, "{\"kind\":\"Node\",\"apiVersion\":\"v1\",");
    render_meta(w, SIM_KIND_NODE, id, NULL, name, rv, out);
    kr_buf_printf(out,
                  ",\"labels\":{\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/hostname\":\"%s\","
                  "\"kubernetes.io/os\":\"linux\",\"topology.kubernetes.io/zone\":\"rack-%u\"%s},"
                  "\"annotations\":{\"simulated-by\":\"kubesim\"}},\"spec\":{\"podCIDR\":"
                  "\"10.%u.%u.0/24\",\"providerID\":\"kubesim://%s/%s\"},\"status\":{",
                  name, id.index % 4,
                  id.index == 0 ? ",\"node-role.kubernetes.io/control-plane\":\"\"" : "",
                  64 + id.index / 256, id.index % 256, w->cluster, name);
    for (size_t i = 0; i < 2; i++)
        kr_buf_printf(out,
                      "\"%s\":{\"cpu\":\"%s\",\"ephemeral-storage\":\"98831908Ki\",\"memory\":"
                      "\"16384000Ki\",\"pods\":\"110\"},",
                      resources[i], i == 0 ? "8" : "7900m");
    kr_buf_append_str(out, "\"conditions\":[");
    render_node_conditions(w, id, out);
    kr_buf_printf(out,
                  "],\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.%u.%u\"},{\"type\":"
                  "\"Hostname\",\"address\":\"%s\"}],\"daemonEndpoints\":{\"kubeletEndpoint\":"
                  "{\"Port\":10250}},\"nodeInfo\":{\"machineID\":\"%s\",\"systemUUID\":\"%s\","
                  "\"bootID\":\"%s\",\"kernelVersion\":\"6.1.0-simulated\",\"osImage\":"
                  "\"kubesim (simulated node)\",\"containerRuntimeVersion\":\"kubesim://1.0\","
                  "\"kubeletVersion\":\"v1.33.0\",\"kubeProxyVersion\":\"v1.33.0\","
                  "\"operatingSystem\":\"linux\",\"architecture\":\"amd64\"}}}",
                  id.index / 250, id.index % 250 + 1, name, uid, uid, uid);
}

static void render_workload(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                            struct kr_buf *out)
{
    bool rs = kind == SIM_KIND_REPLICASET;
    struct sim_workload d;
    char when[32];

    sim_workload_of(w, id.index, &d);
    sim_time(sim_born_ms(w, kind, id), when);
    kr_buf_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"apps/v1\",",
                  rs ? "ReplicaSet" : "Deployment");
    render_meta(w, kind, id, d.ns, rs ? d.rs : d.name, rv, out);
    kr_buf_printf(out,
                  ",\"generation\":1,\"labels\":{\"app\":\"%s\"},\"annotations\":{"
                  "\"deployment.kubernetes.io/revision\":\"1\",\"simulated-by\":\"kubesim\"}",
                  d.name);
    if (rs)
        render_owner(w, SIM_KIND_DEPLOYMENT, d.index, "Deployment", d.name, out);
    render_managed(rs ? "kube-controller-manager" : "kubectl", "apps/v1", when,
                   "{\"f:spec\":{\"f:replicas\":{},\"f:selector\":{},\"f:template\":{}}}", out);
    kr_buf_printf(out,
                  ",\"spec\":{\"replicas\":%u,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},"
                  "\"template\":{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{",
                  d.replicas, d.name, d.name);
    render_pod_spec(&d, out);
    kr_buf_append_str(out, "\"securityContext\":{},\"schedulerName\":\"default-scheduler\"}}");
    if (!rs)
        kr_buf_append_str(out, ",\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{"
                               "\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}},"
                               "\"revisionHistoryLimit\":10,\"progressDeadlineSeconds\":600");
    kr_buf_printf(out,
                  "},\"status\":{\"observedGeneration\":1,\"replicas\":%u,\"readyReplicas\":%u,"
                  "\"availableReplicas\":%u,\"%s\":%u}}",
                  d.replicas, d.replicas, d.replicas,
                  rs ? "fullyLabeledReplicas" : "updatedReplicas", d.replicas);
}

int sim_gen_render(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                   struct kr_buf *out)
{
    int rc = kr_buf_reserve(out, 4096);

    if (rc != 0)
        return rc;
    if (w->heavy != NULL && (kind == SIM_KIND_POD || kind == SIM_KIND_NODE))
        return sim_heavy_render(w, kind, id, rv, out);
    if (kind == SIM_KIND_POD)
        render_pod(w, id, rv, out);
    else if (kind == SIM_KIND_NODE)
        render_node(w, id, rv, out);
    else
        render_workload(w, kind, id, rv, out);
    return 0;
}
