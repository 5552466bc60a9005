/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/options.h"

#include "agent/policy.h"
#include "base/err.h"
#include "base/log.h"
#include "certs/pin.h"

#define AT(member) offsetof(struct agent_options, member)

static const struct kr_option table[] = {
    {.name = "hubs",
     .type = KR_OPT_STRINGS,
     .offset = AT(hubs),
     .required = true,
     .min = 1,
     .max = 64,
     .unit = "HOST:PORT",
     .text = "the agent port of every hub replica"},
    {.name = "hubName",
     .type = KR_OPT_STRING,
     .offset = AT(hub_name),
     .unit = "NAME",
     .text = "the name that hub certificates must carry; the host of each hub if not given"},
    {.name = "caFile",
     .type = KR_OPT_STRING,
     .offset = AT(ca_file),
     .unit = "FILE",
     .text = "the shared root that hubs are verified against (PEM); or give rootPin"},
    {.name = "rootPin",
     .type = KR_OPT_STRING,
     .offset = AT(root_pin),
     .unit = "sha256:HEX",
     .text = "instead of caFile, with stateDir: the hash of the root's key (kuberelayctl token "
             "create)"},
    {.name = "certFile",
     .type = KR_OPT_STRING,
     .offset = AT(cert_file),
     .unit = "FILE",
     .text = "the agent's certificate chain (PEM); it names the cluster; or give stateDir"},
    {.name = "keyFile",
     .type = KR_OPT_STRING,
     .offset = AT(key_file),
     .unit = "FILE",
     .text = "its private key (PEM, readable by its owner only)"},
    {.name = "stateDir",
     .type = KR_OPT_STRING,
     .offset = AT(state_dir),
     .unit = "DIR",
     .text = "where an agent without certFile keeps its key, its certificate and the roots"},
    {.name = "joinToken",
     .type = KR_OPT_STRING,
     .offset = AT(join_token),
     .secret = true,
     .unit = "TOKEN",
     .text = "with what it gets its first certificate (kuberelayctl token create)"},
    {.name = "joinTokenFile",
     .type = KR_OPT_STRING,
     .offset = AT(join_token_file),
     .unit = "FILE",
     .text = "where the token is instead; read anew at each try"},
    {.name = "instance",
     .type = KR_OPT_STRING,
     .offset = AT(instance),
     .value = "a",
     .unit = "NAME",
     .text = "tells two agents of one cluster apart when they join"},
    {.name = "kubeconfig",
     .type = KR_OPT_STRING,
     .offset = AT(kubeconfig),
     .unit = "FILE",
     .text = "how to reach the API server; if not given, the service account of the pod"},
    {.name = "context",
     .type = KR_OPT_STRING,
     .offset = AT(context),
     .unit = "NAME",
     .text = "which context of the kubeconfig; its current-context if not given"},
    {.name = "serviceAccountDir",
     .type = KR_OPT_STRING,
     .offset = AT(service_account_dir),
     .unit = "DIR",
     .text = "where token and ca.crt of the service account are"},
    {.name = "proxy",
     .type = KR_OPT_STRING,
     .offset = AT(proxy),
     .secret = true,
     .unit = "URL",
     .text = "HTTP proxy on the way to the hubs; HTTPS_PROXY if not given"},
    {.name = "noProxy",
     .type = KR_OPT_STRING,
     .offset = AT(no_proxy),
     .unit = "LIST",
     .text = "hosts that are reached without the proxy; NO_PROXY if not given"},
    {.name = "adminListen",
     .type = KR_OPT_STRING,
     .offset = AT(admin_listen),
     .value = "127.0.0.1:9444",
     .unit = "HOST:PORT",
     .text = "plain HTTP for /metrics, /livez and /readyz"},
    {.name = "userPrefix",
     .type = KR_OPT_STRING,
     .offset = AT(user_prefix),
     .value = "kuberelay:",
     .text = "put before user and group names when the agent impersonates them"},
    {.name = "policyFile",
     .type = KR_OPT_STRING,
     .offset = AT(policy_file),
     .unit = "FILE",
     .text = "what this edge lets hubs do (YAML); without it they may read, but no Secrets"},
    {.name = "systemUsers",
     .type = KR_OPT_STRINGS,
     .offset = AT(system_users),
     .max = 256,
     .unit = "NAME",
     .text = "system: users that may be acted as, unprefixed, e.g. system:serviceaccount:d:sa; "
             "NAME* is all that begin with it"},
    {.name = "lanes",
     .type = KR_OPT_INT,
     .offset = AT(lanes),
     .value = "2",
     .min = 1,
     .max = 64,
     .text = "connections to each hub: the first is for calls and watches, others for bulk"},
    {.name = "logLevel",
     .type = KR_OPT_ENUM,
     .offset = AT(log_level),
     .value = "info",
     .choices = kr_log_level_names,
     .text = "how much is logged"},
    {.name = "laxKeyMode",
     .type = KR_OPT_BOOL,
     .offset = AT(lax_key_mode),
     .value = "false",
     .text = "accept a keyFile that others may read (Kubernetes secret volumes)"},
    {.name = "silenceTimeout",
     .type = KR_OPT_DURATION,
     .offset = AT(silence_ms),
     .value = "25s",
     .min = 300,
     .max = 300000,
     .text = "a hub that says nothing for this long is dead"},
    {.name = "reconnectBase",
     .type = KR_OPT_DURATION,
     .offset = AT(reconnect_base_ms),
     .value = "1s",
     .min = 10,
     .max = 60000,
     .text = "the first wait before dialling again is random up to this, then up to twice it, ..."},
    {.name = "reconnectMax",
     .type = KR_OPT_DURATION,
     .offset = AT(reconnect_max_ms),
     .value = "60s",
     .min = 10,
     .max = 3600000,
     .text = "and never longer than this"},
    {.name = "apiTimeout",
     .type = KR_OPT_DURATION,
     .offset = AT(api_timeout_ms),
     .value = "10s",
     .min = 100,
     .max = 60000,
     .text = "until a connection to the API server must be there"},
    {.name = "drainTimeout",
     .type = KR_OPT_DURATION,
     .offset = AT(drain_timeout_ms),
     .value = "30s",
     .min = 0,
     .max = 3600000,
     .text = "after SIGTERM: until what still runs is cut"},
    {.name = "windowBudget",
     .type = KR_OPT_SIZE,
     .offset = AT(window_budget),
     .value = "4MiB",
     .min = 0,
     .max = INT64_C(1) << 36,
     .text = "bytes that flow-control windows may grow by, all streams together"},
    {.name = "maxRequests",
     .type = KR_OPT_INT,
     .offset = AT(max_requests),
     .value = "8192",
     .min = 16,
     .max = 1000000,
     .text = "requests (with watches) under way at once"},
    {.name = "syncAllow",
     .type = KR_OPT_STRINGS,
     .offset = AT(sync_allow),
     .value = "*",
     .max = 1024,
     .unit = "RESOURCE",
     .text = "what hubs may have for the fleet view: pods, deployments.apps, *.GROUP, *"},
    {.name = "syncDeny",
     .type = KR_OPT_STRINGS,
     .offset = AT(sync_deny),
     .value = "secrets",
     .max = 1024,
     .unit = "RESOURCE",
     .text = "and what of that they may not, whatever a hub's profiles say"},
    {.name = "syncNamespaces",
     .type = KR_OPT_STRINGS,
     .offset = AT(sync_namespaces),
     .max = 1024,
     .unit = "NAME",
     .text = "namespaces that the fleet view may show; all if not given"},
    {.name = "discoveryInterval",
     .type = KR_OPT_DURATION,
     .offset = AT(discovery_interval_ms),
     .value = "30s",
     .min = 1000,
     .max = 3600000,
     .text = "how often the API server is asked which types it serves (by ETag)"},
    KR_AUDIT_OPTIONS(AT(audit)),
};

/* An edge whose policy has a fault must be told before it runs, not when it restarts one day. */
static int check_policy(const char *file, struct kr_note *why)
{
    struct agent_policy *policy = NULL;
    int rc = file != NULL ? agent_policy_load(&policy, file, NULL, why) : 0;

    agent_policy_destroy(policy);
    return rc;
}

static int check_roots(const struct agent_options *o, struct kr_note *why)
{
    uint8_t pin[KR_PIN_SIZE];

    if (o->ca_file != NULL && o->root_pin != NULL)
        return kr_note_set(why, KR_EINVAL, "caFile or rootPin, not both");
    if (o->root_pin == NULL)
        return o->ca_file != NULL ? 0 : kr_note_set(why, KR_EINVAL, "caFile is required");
    if (!kr_pin_parse(kr_bytes_str(o->root_pin), pin))
        return kr_note_set(why, KR_EINVAL, "rootPin: sha256: and 64 hexadecimal digits");
    return o->state_dir != NULL && o->cert_file == NULL
               ? 0
               : kr_note_set(why, KR_EINVAL, "rootPin needs stateDir, and no certFile");
}

static int check(const void *config, struct kr_note *why)
{
    const struct agent_options *o = config;
    int rc = check_roots(o, why);

    if (rc != 0)
        return rc;
    if ((o->cert_file != NULL) != (o->key_file != NULL))
        return kr_note_set(why, KR_EINVAL, "certFile and keyFile: both or none");
    if (o->cert_file == NULL && o->state_dir == NULL)
        return kr_note_set(why, KR_EINVAL, "certFile and keyFile, or stateDir, are required");
    if (o->join_token != NULL && o->join_token_file != NULL)
        return kr_note_set(why, KR_EINVAL, "joinToken or joinTokenFile, not both");
    return check_policy(o->policy_file, why);
}

const struct kr_program agent_program = {
    .name = "kuberelay-agent",
    .summary = "Execute the requests that a hub relays on the local Kubernetes API server.",
    .options = table,
    .n_options = sizeof table / sizeof table[0],
    .check = check,
};
