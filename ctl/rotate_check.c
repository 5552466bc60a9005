/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/rotate_check.h"

#include <inttypes.h>

#include "base/err.h"
#include "certs/pin.h"
#include "ctl/registry.h"
#include "kube/json_scan.h"

#define BODY_MAX (64u << 20)
#define NAMED_MAX 20 /* agents that are listed */

struct look {
    const struct ctl_call *call;
    bool keys;
    uint64_t found;
};

/* Agents can trust only what they are told. */
static int check_bundle(const struct ctl_call *call, struct kr_bytes next_pem, struct kr_note *why)
{
    struct kr_buf bundle = {.max = 65536};
    char text[KR_PIN_TEXT];
    uint8_t pin[KR_PIN_SIZE];
    int rc = kr_pin_of_chain(next_pem, next_pem, text, why);

    if (rc == 0 && !kr_pin_parse(kr_bytes_str(text), pin))
        rc = KR_EINVAL;
    if (rc == 0)
        rc = ctl_registry_call(call, "GET", "/bundle", &bundle, why);
    if (rc == 0 && kr_pin_check(kr_buf_bytes(&bundle), pin, NULL) != 0)
        rc = kr_note_set(why, KR_EDENIED,
                         "the hub does not tell agents of the next root: is bundleFile bundle.crt, "
                         "and was it reloaded?");
    kr_buf_deinit(&bundle);
    return rc;
}

static void name_agent(struct look *l, const char *cluster, struct kr_bytes agent)
{
    bool behind = ctl_registry_true(agent, "behind");
    bool old = l->keys && ctl_registry_true(agent, "needsOldRoot");
    char instance[256];

    if ((!behind && !old) || l->found++ >= NAMED_MAX)
        return;
    ctl_registry_text(agent, "name", instance, sizeof instance);
    fprintf(l->call->err, "%s %s: %s%s%s\n", cluster, instance,
            behind ? "has not shown that it has the roots of now" : "", behind && old ? "; " : "",
            old ? "its certificate is not of the signer in use" : "");
}

static int name_agents(struct look *l, struct kr_bytes body, struct kr_note *why)
{
    struct kr_bytes clusters;
    struct kr_bytes agents;
    struct kr_bytes c;
    struct kr_bytes a;
    struct kr_scan it;
    struct kr_scan inner;
    char name[72];

    if (!kr_scan_find(body, "clusters", &clusters) || !kr_scan_array(clusters, &it))
        return kr_note_set(why, KR_EPROTO, "not the answer of a hub");
    while (kr_scan_element(&it, &c)) {
        ctl_registry_text(c, "name", name, sizeof name);
        if (!kr_scan_find(c, "instances", &agents) || !kr_scan_array(agents, &inner))
            continue;
        while (kr_scan_element(&inner, &a))
            name_agent(l, name, a);
    }
    if (l->found > NAMED_MAX)
        fprintf(l->call->err, "and %" PRIu64 " more (cluster list -o json)\n",
                l->found - NAMED_MAX);
    return 0;
}

/* A tunnel counts even if another one of the same name has shown the roots. */
static int judge(const struct look *l, struct kr_bytes body, struct kr_note *why)
{
    uint64_t tunnels = ctl_registry_number(body, "tunnelsBehind");
    uint64_t agents = ctl_registry_number(body, "agentsBehind");
    uint64_t old = l->keys ? ctl_registry_number(body, "keysOfOldRoots") : 0;

    if (tunnels + agents + old == 0)
        return 0;
    if (!l->keys)
        return kr_note_set(why, KR_EDENIED,
                           "%" PRIu64 " agents have not shown that they have the roots of now "
                           "(%" PRIu64 " tunnels of now)",
                           agents, tunnels);
    return kr_note_set(why, KR_EDENIED,
                       "%" PRIu64 " agents have not shown that they have the roots of now "
                       "(%" PRIu64 " tunnels of now), %" PRIu64
                       " have certificates that were not issued by the signer in use",
                       agents, tunnels, old);
}

int ctl_rotate_check(const struct ctl_call *call, struct kr_bytes next_pem, bool keys,
                     struct kr_note *why)
{
    struct look l = {.call = call, .keys = keys};
    struct kr_buf body = {.max = BODY_MAX};
    int rc = check_bundle(call, next_pem, why);

    if (rc == 0)
        rc = ctl_registry_call(call, "GET", "/registry", &body, why);
    if (rc == 0)
        rc = name_agents(&l, kr_buf_bytes(&body), why);
    if (rc == 0)
        rc = judge(&l, kr_buf_bytes(&body), why);
    kr_buf_deinit(&body);
    return rc;
}
