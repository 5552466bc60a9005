/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/registry.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "kube/json_scan.h"

#define BODY_MAX (4u << 20)

static const struct ctl_option create_options[] = {
    {"cluster", CTL_REQUIRED, "NAME", "the cluster that the agent will be of"},
    {"minutes", CTL_ONE, "N", "how long it may be used, up to 1440 (60)"},
    {"auto-accept", CTL_SWITCH, NULL, "accept the cluster at once, without `cluster accept`"},
    {"hub", CTL_ONE, "HOST:PORT", "the hub as agents dial it, for the commands that are shown"},
    {"output", CTL_ONE, "FORMAT", "text: the token on stdout, the rest on stderr; json", 'o'},
    CTL_SOCKET_OPTION,
};

/* Beside the token: what else the edge needs to know, ready to be copied. */
static void print_commands(const struct ctl_call *call, const char *token, const char *pin,
                           uint64_t minutes)
{
    const char *hub = ctl_get(call, "hub");

    hub = hub != NULL ? hub : "HUB:8443";
    fprintf(call->err, "note: it is shown once, and good for one agent and %" PRIu64 " minutes\n",
            minutes);
    if (pin[0] != 's') {
        fprintf(call->err,
                "note: the hub's certificate leads to no root of its caFile, so there is "
                "no pin: give the agent a caFile\n");
        return;
    }
    fprintf(call->err, "root pin: %s\n\nin the cluster, one of:\n\n", pin);
    fprintf(call->err,
            "    helm install %s charts/kuberelay-agent -n kuberelay --create-namespace \\\n"
            "        --set cluster=%s --set 'hubs={%s}' --set ca.pin=%s \\\n"
            "        --set identity.joinToken=%s --set image.repository=REGISTRY/kuberelay\n\n",
            ctl_get(call, "cluster"), ctl_get(call, "cluster"), hub, pin, token);
    fprintf(call->err,
            "    kuberelay-agent --hubs %s --root-pin %s \\\n"
            "        --state-dir /var/lib/kuberelay-agent --join-token %s\n\n"
            "(outside of it with --kubeconfig FILE)\n",
            hub, pin, token);
    if (!ctl_has(call, "auto-accept"))
        fprintf(call->err, "when it has joined: kuberelayctl cluster accept %s\n",
                ctl_get(call, "cluster"));
}

static int create(const struct ctl_call *call, struct kr_note *why)
{
    const char *cluster = ctl_get(call, "cluster");
    const char *format = ctl_get(call, "output");
    bool json = format != NULL && strcmp(format, "json") == 0;
    struct kr_buf body = {.max = BODY_MAX};
    char token[128];
    char pin[128];
    char path[256];
    uint64_t minutes = 0;
    int rc = ctl_get_number(call, "minutes", 1, 1440, 60, &minutes, why);

    if (rc == 0 && format != NULL && !json && strcmp(format, "text") != 0)
        rc = kr_note_set(why, KR_EINVAL, "--output: text or json");
    if (rc == 0 && !kr_is_dns_label(kr_bytes_str(cluster)))
        rc = kr_note_set(why, KR_EINVAL, "\"%.80s\" is no cluster name", cluster);
    if (rc != 0)
        return rc;
    snprintf(path, sizeof path, "/tokens/%s/%" PRIu64 "/%s", cluster, minutes * 60,
             ctl_has(call, "auto-accept") ? "auto" : "ask");
    rc = ctl_registry_call(call, "POST", path, &body, why);
    if (rc == 0 && json) {
        fprintf(call->out, "%.*s\n", (int)body.n, (const char *)body.p);
    } else if (rc == 0) {
        ctl_registry_text(kr_buf_bytes(&body), "token", token, sizeof token);
        ctl_registry_text(kr_buf_bytes(&body), "rootPin", pin, sizeof pin);
        fprintf(call->out, "%s\n", token);
        print_commands(call, token, pin, minutes);
    }
    kr_buf_deinit(&body);
    return rc;
}

static const struct ctl_option socket_only[] = {CTL_SOCKET_OPTION};

static void print_token(const struct ctl_call *call, struct kr_bytes t, uint64_t now)
{
    uint64_t expires = ctl_registry_number(t, "expiresMs");
    char id[64];
    char cluster[72];

    ctl_registry_text(t, "id", id, sizeof id);
    ctl_registry_text(t, "cluster", cluster, sizeof cluster);
    fprintf(call->out, "%-10s %-24s %5" PRIu64 "m  %-6s %-6s %" PRIu64 "\n", id, cluster,
            expires > now ? (expires - now) / 60000 : 0,
            ctl_registry_true(t, "autoAccept") ? "auto" : "ask",
            ctl_registry_true(t, "used") ? "used" : "unused", ctl_registry_number(t, "failures"));
}

static int list(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_buf body = {.max = BODY_MAX};
    struct kr_bytes all;
    struct kr_bytes t;
    struct kr_scan it;
    int rc = ctl_registry_call(call, "GET", "/tokens", &body, why);

    if (rc == 0 && (!kr_scan_find(kr_buf_bytes(&body), "tokens", &all) || !kr_scan_array(all, &it)))
        rc = kr_note_set(why, KR_EPROTO, "not the answer of a hub");
    if (rc == 0)
        fprintf(call->out, "%-10s %-24s %6s  %-6s %-6s %s\n", "ID", "CLUSTER", "LEFT", "ACCEPT",
                "STATE", "FAILURES");
    while (rc == 0 && kr_scan_element(&it, &t))
        print_token(call, t, ctl_registry_number(kr_buf_bytes(&body), "nowMs"));
    kr_buf_deinit(&body);
    return rc;
}

static int revoke(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_buf body = {.max = BODY_MAX};
    char path[64];
    int rc;

    if (snprintf(path, sizeof path, "/tokens/%s", call->arg) >= (int)sizeof path)
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no token's id", call->arg);
    rc = ctl_registry_call(call, "DELETE", path, &body, why);
    if (rc == 0)
        fprintf(call->out, "%s\n", call->arg);
    kr_buf_deinit(&body);
    return rc;
}

const struct ctl_command ctl_token_create = {
    .words = "token create",
    .summary = "make a token that an agent joins with, once",
    .options = create_options,
    .n_options = sizeof create_options / sizeof create_options[0],
    .run = create,
};

const struct ctl_command ctl_token_list = {
    .words = "token list",
    .summary = "show the tokens that are still good (not their secrets)",
    .options = socket_only,
    .n_options = 1,
    .run = list,
};

const struct ctl_command ctl_token_revoke = {
    .words = "token revoke",
    .summary = "make a token worthless",
    .arg = "ID",
    .options = socket_only,
    .n_options = 1,
    .run = revoke,
};
