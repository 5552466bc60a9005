/* SPDX-License-Identifier: Apache-2.0 */
/* What is neither resource nor discovery: version, health, metrics, and the tests' own paths
 * under /kubesim/ (see faults.h). */
#include <stdio.h>

#include "api.h"
#include "base/assert.h"
#include "base/err.h"
#include "churn.h"
#include "faults.h"

static void answer_text(struct sim_call *call, const char *text)
{
    sim_plain_text(call->out, text);
}

static void answer_version(struct sim_call *call)
{
    kr_buf_append_str(
        &call->out->body,
        "{\n  \"major\": \"1\",\n  \"minor\": \"33\",\n  \"emulationMajor\": \"1\",\n  "
        "\"emulationMinor\": \"33\",\n  \"minCompatibilityMajor\": \"1\",\n  "
        "\"minCompatibilityMinor\": \"32\",\n  \"gitVersion\": "
        "\"" SIM_VERSION "\",\n  \"gitCommit\": \"simulator\",\n  "
        "\"gitTreeState\": \"clean\",\n  \"buildDate\": \"2025-04-23T13:00:00Z\",\n  "
        "\"goVersion\": \"none (C)\",\n  \"compiler\": \"gcc\",\n  \"platform\": "
        "\"linux/amd64\"\n}");
}

static void answer_health(struct sim_call *call, const char *name)
{
    char text[128];

    if (sim_param(&call->q, "verbose") == NULL) {
        answer_text(call, "ok");
        return;
    }
    snprintf(text, sizeof text, "[+]ping ok\n[+]simulator ok\n%.30s check passed\n", name);
    answer_text(call, text);
}

static void answer_metrics(struct sim_call *call)
{
    call->out->content_type = "text/plain; version=0.0.4; charset=utf-8";
    kr_buf_printf(&call->out->body,
                  "# HELP kubesim_requests_total Requests that this simulated cluster answered.\n"
                  "# TYPE kubesim_requests_total counter\nkubesim_requests_total %llu\n"
                  "# HELP kubesim_watches Watches that are open.\n"
                  "# TYPE kubesim_watches gauge\nkubesim_watches %llu\n"
                  "# HELP kubesim_resource_version The cluster's newest version.\n"
                  "# TYPE kubesim_resource_version gauge\nkubesim_resource_version %llu\n",
                  (unsigned long long)call->c->requests, (unsigned long long)call->c->watches,
                  (unsigned long long)call->c->rv);
}

static void add_fault(struct sim_call *call)
{
    struct json_object *v = sim_json_parse(call->req->body);
    const char *why = "the body is not JSON";

    if (v == NULL || sim_fault_add(call->c, v, &why) != 0)
        sim_fail_bad_request(call->out, "%s", why);
    else
        sim_faults_list(call->c, &call->out->body);
    json_object_put(v);
}

static void handle_faults(struct sim_call *call)
{
    if (kr_bytes_is(call->req->method, "POST")) {
        add_fault(call);
        return;
    }
    if (kr_bytes_is(call->req->method, "DELETE"))
        sim_faults_clear(call->c);
    sim_faults_list(call->c, &call->out->body);
}

/* n=N changes at once, here or (all) in every cluster; rate=R: from now on, in every cluster. */
static void handle_churn(struct sim_call *call)
{
    int64_t n = sim_param_int(&call->q, "n", 1), rate = sim_param_int(&call->q, "rate", -1);
    struct sim_fleet *fleet = call->c->fleet;
    enum sim_mix mix;

    if (!sim_mix_parse(sim_param_or(&call->q, "mix", "default"), &mix)) {
        sim_fail_bad_request(call->out, "there is no such mix");
        return;
    }
    if (rate >= 0 && fleet != NULL) {
        sim_fleet_pace(fleet, (uint32_t)(rate < 1000000 ? rate : 1000000), mix);
    } else if (sim_param_true(&call->q, "all") && fleet != NULL) {
        KR_LIST_FOREACH(node, &fleet->clusters)
        {
            for (int64_t i = 0; i < n && i < 1000000; i++)
                sim_churn(KR_CONTAINER_OF(node, struct sim_cluster, in_fleet), mix);
        }
    } else {
        for (int64_t i = 0; i < n && i < 1000000; i++)
            sim_churn(call->c, mix);
    }
    answer_text(call, "ok");
}

static void handle_own(struct sim_call *call, struct kr_bytes what)
{
    if (kr_bytes_is(what, "faults")) {
        handle_faults(call);
    } else if (kr_bytes_is(what, "requests")) {
        sim_seen_list(call->c, &call->out->body);
        if (kr_bytes_is(call->req->method, "DELETE"))
            sim_seen_clear(call->c);
    } else if (kr_bytes_is(what, "compact")) {
        sim_store_compact(call->c);
        answer_text(call, "ok");
    } else if (kr_bytes_is(what, "churn")) {
        handle_churn(call);
    } else {
        sim_fail_no_path(call->out);
    }
}

bool sim_api_misc(struct sim_call *call, struct kr_bytes path)
{
    static const char *const health[] = {"livez", "readyz", "healthz"};

    if (kr_bytes_starts(path, KR_LIT("/kubesim/"))) {
        handle_own(call, kr_bytes_skip(path, 9));
        return true;
    }
    if (kr_bytes_is(path, "/version") || kr_bytes_is(path, "/version/")) {
        answer_version(call);
        return true;
    }
    if (kr_bytes_is(path, "/metrics")) {
        answer_metrics(call);
        return true;
    }
    for (size_t i = 0; i < 3; i++) {
        struct kr_bytes name = kr_bytes_str(health[i]);
        struct kr_bytes rest = kr_bytes_skip(path, path.n != 0);

        if (kr_bytes_eq(rest, name) ||
            (kr_bytes_starts(rest, name) && kr_bytes_is(kr_bytes_skip(rest, name.n), "/ping"))) {
            answer_health(call, health[i]);
            return true;
        }
    }
    return false;
}
