/* SPDX-License-Identifier: Apache-2.0 */
#include "slim_pods.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const apps[] = {"api-gateway",   "checkout",    "ledger", "search-indexer",
                                   "session-store", "thumbnailer", "ingest", "web"};
static const char *const teams[] = {"payments", "platform", "media", "growth"};

#define PICK(list) (list)[kr_rand_below(r, sizeof(list) / sizeof(list)[0])]

__attribute__((format(printf, 2, 3))) static void put(struct kr_buf *out, const char *format, ...);

static void put(struct kr_buf *out, const char *format, ...)
{
    char text[4096];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (kr_buf_append_str(out, text) != 0)
        abort();
}

static void put_hex(struct kr_buf *out, struct kr_rand *r, unsigned digits)
{
    for (unsigned i = 0; i < digits; i += 8)
        put(out, "%08x", (unsigned)kr_rand_u64(r));
}

static void put_uid(struct kr_buf *out, struct kr_rand *r)
{
    put(out, "%08x-%04x-4%03x-a%03x-%012llx", (unsigned)kr_rand_u64(r),
        (unsigned)kr_rand_below(r, 65536), (unsigned)kr_rand_below(r, 4096),
        (unsigned)kr_rand_below(r, 4096), (unsigned long long)kr_rand_below(r, 1ULL << 48));
}

static void put_time(struct kr_buf *out, struct kr_rand *r)
{
    put(out, "\"2026-0%u-%02uT%02u:%02u:%02uZ\"", 1 + (unsigned)kr_rand_below(r, 9),
        1 + (unsigned)kr_rand_below(r, 28), (unsigned)kr_rand_below(r, 24),
        (unsigned)kr_rand_below(r, 60), (unsigned)kr_rand_below(r, 60));
}

static const char *const container_fields[] = {"args",
                                               "command",
                                               "image",
                                               "imagePullPolicy",
                                               "name",
                                               "terminationMessagePath",
                                               "terminationMessagePolicy",
                                               "securityContext",
                                               "workingDir",
                                               "tty"};

static void put_container_fields(struct kr_buf *out, unsigned c)
{
    put(out, "%s\"k:{\\\"name\\\":\\\"c%u\\\"}\":{\".\":{}", c != 0 ? "," : "", c);
    for (size_t i = 0; i < sizeof container_fields / sizeof container_fields[0]; i++)
        put(out, ",\"f:%s\":{}", container_fields[i]);
    put(out, ",\"f:env\":{\".\":{}");
    for (unsigned e = 0; e < 8; e++)
        put(out, ",\"k:{\\\"name\\\":\\\"SETTING_%u\\\"}\":{\".\":{},\"f:name\":{},\"f:value\":{}}",
            e);
    put(out,
        "},\"f:ports\":{\".\":{},\"k:{\\\"containerPort\\\":8080,\\\"protocol\\\":\\\"TCP\\\"}\":"
        "{\".\":{},\"f:containerPort\":{},\"f:name\":{},\"f:protocol\":{}}}");
    put(out, ",\"f:resources\":{\".\":{},\"f:limits\":{\".\":{},\"f:cpu\":{},\"f:memory\":{}},"
             "\"f:requests\":{\".\":{},\"f:cpu\":{},\"f:memory\":{}}}");
    put(out, ",\"f:livenessProbe\":{\".\":{},\"f:failureThreshold\":{},\"f:httpGet\":{\".\":{},"
             "\"f:path\":{},\"f:port\":{},\"f:scheme\":{}},\"f:periodSeconds\":{},"
             "\"f:successThreshold\":{},\"f:timeoutSeconds\":{}}");
    put(out, ",\"f:volumeMounts\":{\".\":{}");
    for (unsigned v = 0; v < 3; v++)
        put(out,
            ",\"k:{\\\"mountPath\\\":\\\"/etc/config/%u\\\"}\":{\".\":{},\"f:mountPath\":{},"
            "\"f:name\":{},\"f:readOnly\":{}}",
            v);
    put(out, "}}");
}

static void put_managed_fields(struct kr_buf *out, struct kr_rand *r, unsigned containers)
{
    static const char *const conditions[] = {"ContainersReady", "Initialized", "Ready",
                                             "PodReadyToStartContainers"};

    put(out,
        ",\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\","
        "\"apiVersion\":\"v1\",\"time\":");
    put_time(out, r);
    put(out,
        ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{\".\":{},"
        "\"f:prometheus.io/scrape\":{},\"f:checksum/config\":{}},\"f:generateName\":{},"
        "\"f:labels\":{\".\":{},\"f:app\":{},\"f:team\":{},\"f:pod-template-hash\":{}},"
        "\"f:ownerReferences\":{\".\":{},\"k:{\\\"uid\\\":\\\"");
    put_uid(out, r);
    put(out, "\\\"}\":{}}},\"f:spec\":{\"f:containers\":{");
    for (unsigned c = 0; c < containers; c++)
        put_container_fields(out, c);
    put(out,
        "},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{},\"f:restartPolicy\":{},"
        "\"f:schedulerName\":{},\"f:securityContext\":{},\"f:terminationGracePeriodSeconds\":{},"
        "\"f:volumes\":{\".\":{}");
    for (unsigned v = 0; v < 3; v++)
        put(out,
            ",\"k:{\\\"name\\\":\\\"volume-%u\\\"}\":{\".\":{},\"f:configMap\":{\".\":{},"
            "\"f:defaultMode\":{},\"f:name\":{}},\"f:name\":{}}",
            v);
    put(out,
        "}}}},{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":");
    put_time(out, r);
    put(out, ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{");
    for (unsigned i = 0; i < 4; i++)
        put(out,
            "%s\"k:{\\\"type\\\":\\\"%s\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
            "\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}}",
            i != 0 ? "," : "", conditions[i]);
    put(out, "},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:hostIPs\":{},\"f:phase\":{},"
             "\"f:podIP\":{},\"f:podIPs\":{\".\":{},\"k:{\\\"ip\\\":\\\"10.1.2.3\\\"}\":{\".\":{},"
             "\"f:ip\":{}}},\"f:startTime\":{}}},\"subresource\":\"status\"}]");
}

static void put_metadata(struct kr_buf *out, struct kr_rand *r, const char *app, unsigned number,
                         unsigned containers)
{
    const char *team = PICK(teams);

    put(out,
        "\"metadata\":{\"name\":\"%s-7d4b9c6f5d-%05x\",\"generateName\":\"%s-7d4b9c6f5d-\","
        "\"namespace\":\"%s-prod\",\"uid\":\"",
        app, number, app, team);
    put_uid(out, r);
    put(out, "\",\"resourceVersion\":\"%u\",\"creationTimestamp\":", 10000000 + number);
    put_time(out, r);
    put(out,
        ",\"labels\":{\"app\":\"%s\",\"app.kubernetes.io/version\":\"1.%u.%u\",\"team\":\"%s\","
        "\"pod-template-hash\":\"7d4b9c6f5d\"},\"annotations\":{\"checksum/config\":\"",
        app, (unsigned)kr_rand_below(r, 40), (unsigned)kr_rand_below(r, 20), team);
    put_hex(out, r, 64);
    put(out,
        "\",\"prometheus.io/scrape\":\"true\"},\"ownerReferences\":[{\"apiVersion\":\"apps/v1\","
        "\"kind\":\"ReplicaSet\",\"name\":\"%s-7d4b9c6f5d\",\"uid\":\"",
        app);
    put_uid(out, r);
    put(out, "\",\"controller\":true,\"blockOwnerDeletion\":true}]");
    put_managed_fields(out, r, containers);
    put(out, "}");
}

static void put_probe(struct kr_buf *out, const char *name)
{
    put(out,
        ",\"%s\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,\"scheme\":\"HTTP\"},"
        "\"initialDelaySeconds\":5,\"timeoutSeconds\":1,\"periodSeconds\":10,"
        "\"successThreshold\":1,\"failureThreshold\":3}",
        name);
}

static void put_container(struct kr_buf *out, struct kr_rand *r, const char *app, unsigned c)
{
    put(out,
        "%s{\"name\":\"c%u\",\"image\":\"registry.example.com/%s:1.%u.%u\",\"command\":"
        "[\"/bin/sh\",\"-c\",\"exec /usr/local/bin/%s --config \\\"/etc/config/0/main.yaml\\\" "
        "--verbose=2\"],\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":"
        "\"TCP\"}],\"env\":[",
        c != 0 ? "," : "", c, app, (unsigned)kr_rand_below(r, 40), (unsigned)kr_rand_below(r, 20),
        app);
    for (unsigned e = 0; e < 8; e++) {
        put(out, "%s{\"name\":\"SETTING_%u\",\"value\":\"", e != 0 ? "," : "", e);
        put_hex(out, r, 8 + 8 * (unsigned)kr_rand_below(r, 4));
        put(out, "\"}");
    }
    put(out,
        "],\"resources\":{\"limits\":{\"cpu\":\"%u\",\"memory\":\"%uMi\"},\"requests\":{\"cpu\":"
        "\"%um\",\"memory\":\"%uMi\"}},\"volumeMounts\":[",
        1 + (unsigned)kr_rand_below(r, 4), 128 * (1 + (unsigned)kr_rand_below(r, 8)),
        50 * (1 + (unsigned)kr_rand_below(r, 8)), 64 * (1 + (unsigned)kr_rand_below(r, 8)));
    for (unsigned v = 0; v < 3; v++)
        put(out, "{\"name\":\"volume-%u\",\"readOnly\":true,\"mountPath\":\"/etc/config/%u\"},", v,
            v);
    put(out, "{\"name\":\"kube-api-access-x7k2p\",\"readOnly\":true,\"mountPath\":"
             "\"/var/run/secrets/kubernetes.io/serviceaccount\"}]");
    put_probe(out, "livenessProbe");
    put_probe(out, "readinessProbe");
    put(out, ",\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":"
             "\"File\",\"imagePullPolicy\":\"IfNotPresent\",\"securityContext\":{\"capabilities\":"
             "{\"drop\":[\"ALL\"]},\"runAsNonRoot\":true,\"readOnlyRootFilesystem\":true,"
             "\"allowPrivilegeEscalation\":false}}");
}

static void put_spec(struct kr_buf *out, struct kr_rand *r, const char *app, unsigned containers)
{
    put(out, ",\"spec\":{\"volumes\":[");
    for (unsigned v = 0; v < 3; v++)
        put(out,
            "{\"name\":\"volume-%u\",\"configMap\":{\"name\":\"%s-config-%u\",\"defaultMode\":420}}"
            ",",
            v, app, v);
    put(out,
        "{\"name\":\"kube-api-access-x7k2p\",\"projected\":{\"sources\":[{\"serviceAccountToken\":"
        "{\"expirationSeconds\":3607,\"path\":\"token\"}},{\"configMap\":{\"name\":"
        "\"kube-root-ca.crt\",\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},"
        "{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\",\"fieldRef\":{\"apiVersion\":\"v1\","
        "\"fieldPath\":\"metadata.namespace\"}}]}}],\"defaultMode\":420}}],\"containers\":[");
    for (unsigned c = 0; c < containers; c++)
        put_container(out, r, app, c);
    put(out,
        "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
        "\"ClusterFirst\",\"serviceAccountName\":\"%s\",\"serviceAccount\":\"%s\",\"nodeName\":"
        "\"node-%u.example.com\",\"securityContext\":{\"fsGroup\":2000},\"schedulerName\":"
        "\"default-scheduler\",\"tolerations\":[{\"key\":\"node.kubernetes.io/not-ready\","
        "\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},{\"key\":"
        "\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,"
        "\"preemptionPolicy\":\"PreemptLowerPriority\"}",
        app, app, (unsigned)kr_rand_below(r, 300));
}

static void put_status(struct kr_buf *out, struct kr_rand *r, const char *app, unsigned containers)
{
    static const char *const conditions[] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                             "ContainersReady", "PodScheduled"};
    const unsigned host = (unsigned)kr_rand_below(r, 250);

    put(out, ",\"status\":{\"phase\":\"Running\",\"conditions\":[");
    for (unsigned i = 0; i < 5; i++) {
        put(out,
            "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,"
            "\"lastTransitionTime\":",
            i != 0 ? "," : "", conditions[i]);
        put_time(out, r);
        put(out, "}");
    }
    put(out,
        "],\"hostIP\":\"192.168.1.%u\",\"hostIPs\":[{\"ip\":\"192.168.1.%u\"}],\"podIP\":"
        "\"10.1.%u.7\",\"podIPs\":[{\"ip\":\"10.1.%u.7\"}],\"startTime\":",
        host, host, host, host);
    put_time(out, r);
    put(out, ",\"containerStatuses\":[");
    for (unsigned c = 0; c < containers; c++) {
        put(out, "%s{\"name\":\"c%u\",\"state\":{\"running\":{\"startedAt\":", c != 0 ? "," : "",
            c);
        put_time(out, r);
        put(out,
            "}},\"lastState\":{},\"ready\":true,\"restartCount\":%u,\"image\":"
            "\"registry.example.com/%s:1.2.3\",\"imageID\":\"registry.example.com/%s@sha256:",
            (unsigned)kr_rand_below(r, 9), app, app);
        put_hex(out, r, 64);
        put(out, "\",\"containerID\":\"containerd://");
        put_hex(out, r, 64);
        put(out, "\",\"started\":true}");
    }
    put(out, "],\"qosClass\":\"Burstable\"}");
}

void slim_pod(struct kr_buf *out, struct kr_rand *rand, unsigned number, bool item)
{
    struct kr_rand *r = rand;
    const char *app = PICK(apps);
    const unsigned containers = 1 + (unsigned)kr_rand_below(r, 3) + (number % 2);

    put(out, "{");
    if (!item)
        put(out, "\"kind\":\"Pod\",\"apiVersion\":\"v1\",");
    put_metadata(out, r, app, number, containers);
    put_spec(out, r, app, containers);
    put_status(out, r, app, containers);
    put(out, "}");
}
