/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/registry.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "kube/json_scan.h"

#define BODY_MAX (64u << 20)

static int change(const struct ctl_call *call, const char *verb, struct kr_note *why)
{
    struct kr_buf body = {.max = BODY_MAX};
    char path[512];
    int rc;

    if (!kr_is_dns_label(kr_bytes_str(call->arg)))
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no cluster name", call->arg);
    snprintf(path, sizeof path, "/registry/%s/%s", call->arg, verb);
    rc = ctl_registry_call(call, "POST", path, &body, why);
    if (rc == 0)
        fprintf(call->out, "%s %.*s", call->arg, (int)body.n, (const char *)body.p);
    kr_buf_deinit(&body);
    return rc;
}

static int change_instance(const struct ctl_call *call, const char *instance, const char *verb,
                           struct kr_note *why)
{
    char words[300];

    if (instance[0] == '\0' || strlen(instance) > 255 || strpbrk(instance, "/? %#") != NULL)
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no instance name", instance);
    snprintf(words, sizeof words, "instances/%s/%s", instance, verb);
    return change(call, words, why);
}

/* ---- list ---- */

static const struct ctl_option list_options[] = {
    CTL_SOCKET_OPTION,
    {"output", CTL_ONE, "FORMAT", "table (the default), or json: all that the hub tells", 'o'},
};

static void print_instance(const struct ctl_call *call, const char *cluster, const char *state,
                           struct kr_bytes i, uint64_t now)
{
    uint64_t until = ctl_registry_number(i, "notAfterMs");
    char name[72];
    char own[24];
    char key[72];

    ctl_registry_text(i, "name", name, sizeof name);
    ctl_registry_text(i, "state", own, sizeof own);
    ctl_registry_text(i, "key", key, sizeof key);
    fprintf(call->out, "%-24s %-12s %-12s %-8s %6" PRIu64 " %7" PRIu64 "h  %.64s\n", cluster, state,
            name, own, ctl_registry_number(i, "generation"),
            until > now ? (until - now) / 3600000 : 0, key);
}

static void print_cluster(const struct ctl_call *call, struct kr_bytes c, uint64_t now)
{
    struct kr_bytes all;
    struct kr_bytes i;
    struct kr_scan it;
    char name[72];
    char state[24];
    size_t n = 0;

    ctl_registry_text(c, "name", name, sizeof name);
    ctl_registry_text(c, "state", state, sizeof state);
    if (kr_scan_find(c, "instances", &all) && kr_scan_array(all, &it)) {
        for (; kr_scan_element(&it, &i); n++)
            print_instance(call, name, state, i, now);
    }
    if (n == 0)
        fprintf(call->out, "%-24s %-12s %-12s %-8s %6s %8s  %s\n", name, state, "-", "-", "-", "-",
                "-");
}

static int print_table(const struct ctl_call *call, struct kr_bytes body, struct kr_note *why)
{
    uint64_t now = ctl_registry_number(body, "nowMs");
    struct kr_bytes all;
    struct kr_bytes c;
    struct kr_scan it;

    if (!kr_scan_find(body, "clusters", &all) || !kr_scan_array(all, &it))
        return kr_note_set(why, KR_EPROTO, "not the answer of a hub");
    fprintf(call->out, "%-24s %-12s %-12s %-8s %6s %8s  %s\n", "CLUSTER", "STATE", "INSTANCE",
            "KEY", "GEN", "EXPIRES", "SHA256");
    while (kr_scan_element(&it, &c))
        print_cluster(call, c, now);
    return 0;
}

static int list(const struct ctl_call *call, struct kr_note *why)
{
    const char *format = ctl_get(call, "output");
    bool json = format != NULL && strcmp(format, "json") == 0;
    struct kr_buf body = {.max = BODY_MAX};
    int rc;

    if (format != NULL && !json && strcmp(format, "table") != 0)
        return kr_note_set(why, KR_EINVAL, "--output takes table or json, not \"%.40s\"", format);
    rc = ctl_registry_call(call, "GET", "/registry", &body, why);
    if (rc == 0 && json)
        fprintf(call->out, "%.*s\n", (int)body.n, (const char *)body.p);
    else if (rc == 0)
        rc = print_table(call, kr_buf_bytes(&body), why);
    kr_buf_deinit(&body);
    return rc;
}

const struct ctl_command ctl_cluster_list = {
    .words = "cluster list",
    .summary = "show who is registered, and with which keys",
    .options = list_options,
    .n_options = sizeof list_options / sizeof list_options[0],
    .run = list,
};

/* ---- accept, deny, remove ---- */

static const struct ctl_option accept_options[] = {
    CTL_SOCKET_OPTION,
    {"external", CTL_SWITCH, NULL,
     "its certificates are issued elsewhere (cert-manager, ca issue agent): take newer keys"},
};

static int accept(const struct ctl_call *call, struct kr_note *why)
{
    return change(call, ctl_has(call, "external") ? "external" : "accept", why);
}

static const struct ctl_option deny_options[] = {
    CTL_SOCKET_OPTION,
    {"instance", CTL_ONE, "INSTANCE", "only this agent of it"},
    {"key", CTL_ONE, "SHA256", "only this key (as `cluster list` shows it)"},
};

/* A key is denied or not whatever the cluster: it is the same thief's everywhere. */
static int change_key(const struct ctl_call *call, const char *key, const char *verb,
                      struct kr_note *why)
{
    struct kr_buf body = {.max = BODY_MAX};
    char path[128];
    int rc;

    if (strlen(key) != 64 || strspn(key, "0123456789abcdef") != 64)
        return kr_note_set(why, KR_EINVAL, "a key is told by 64 hexadecimal digits");
    snprintf(path, sizeof path, "/keys/%s/%s", key, verb);
    rc = ctl_registry_call(call, "POST", path, &body, why);
    if (rc == 0)
        fprintf(call->out, "%s %.*s", key, (int)body.n, (const char *)body.p);
    kr_buf_deinit(&body);
    return rc;
}

static int deny(const struct ctl_call *call, struct kr_note *why)
{
    const char *instance = ctl_get(call, "instance");
    const char *key = ctl_get(call, "key");

    if (instance != NULL && key != NULL)
        return kr_note_set(why, KR_EINVAL, "give --instance or --key, not both");
    if (key != NULL)
        return change_key(call, key, "deny", why);
    return instance != NULL ? change_instance(call, instance, "deny", why)
                            : change(call, "deny", why);
}

static const struct ctl_option socket_only[] = {CTL_SOCKET_OPTION};

static int remove_it(const struct ctl_call *call, struct kr_note *why)
{
    return change(call, "remove", why);
}

static const struct ctl_option unlock_options[] = {
    CTL_SOCKET_OPTION,
    {"instance", CTL_ONE, "INSTANCE", "the agent of it"},
    {"key", CTL_ONE, "SHA256", "a key that was denied by mistake"},
};

static int unlock(const struct ctl_call *call, struct kr_note *why)
{
    const char *instance = ctl_get(call, "instance");
    const char *key = ctl_get(call, "key");

    if ((instance != NULL) == (key != NULL))
        return kr_note_set(why, KR_EINVAL, "give --instance or --key");
    return key != NULL ? change_key(call, key, "unlock", why)
                       : change_instance(call, instance, "unlock", why);
}

const struct ctl_command ctl_cluster_accept = {
    .words = "cluster accept",
    .summary = "let a cluster in that has joined (or any, before it comes)",
    .arg = "NAME",
    .options = accept_options,
    .n_options = sizeof accept_options / sizeof accept_options[0],
    .run = accept,
};

const struct ctl_command ctl_cluster_deny = {
    .words = "cluster deny",
    .summary = "shut a cluster out, with its live tunnels",
    .arg = "NAME",
    .options = deny_options,
    .n_options = sizeof deny_options / sizeof deny_options[0],
    .run = deny,
};

const struct ctl_command ctl_cluster_remove = {
    .words = "cluster remove",
    .summary = "shut it out for good; its name is not free for 90 days",
    .arg = "NAME",
    .options = socket_only,
    .n_options = 1,
    .run = remove_it,
};

const struct ctl_command ctl_cluster_unlock = {
    .words = "cluster unlock",
    .summary = "take an agent back that was locked or denied, or a key",
    .arg = "NAME",
    .options = unlock_options,
    .n_options = sizeof unlock_options / sizeof unlock_options[0],
    .run = unlock,
};
