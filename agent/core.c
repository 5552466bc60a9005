/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core.h"

#include <stdio.h>
#include <string.h>

#include "agent/counters.h"
#include "agent/policy.h"
#include "base/err.h"
#include "certs/store_file.h"

/* The namespace that the agent runs in, if it is a pod's. */
static void find_namespace(const struct agent_options *o, char *out, size_t size)
{
    char path[512];
    struct kr_buf text = {0};
    struct kr_bytes name;

    out[0] = '\0';
    snprintf(path, sizeof path, "%s/namespace", o->service_account_dir);
    if (kr_file_read(&text, path, 4096, NULL) == 0) {
        name = kr_buf_bytes(&text); /* no NUL behind it, and mostly no newline either */
        name.n = kr_bytes_find(name, '\n');
        if (kr_is_dns_label(name))
            snprintf(out, size, "%.*s", (int)name.n, (const char *)name.p);
    }
    kr_buf_deinit(&text);
}

int agent_core_load_policy(struct agent_core *c, bool *changed, struct kr_note *why)
{
    struct agent_policy *policy;
    char own[64];
    int rc;

    find_namespace(c->options, own, sizeof own);
    rc = agent_policy_load(&policy, c->options->policy_file, own[0] != '\0' ? own : NULL, why);
    if (rc != 0)
        return rc;
    *changed = c->policy != NULL && !agent_policy_same(c->policy, policy);
    agent_policy_destroy(c->policy);
    c->policy = policy;
    return 0;
}

int agent_core_init(struct agent_core *c, const struct agent_options *options, struct kr_log *log,
                    struct kr_note *why)
{
    bool changed;

    *c = (struct agent_core){.options = options, .log = log};
    kr_rand_init(&c->rand);
    kr_rand_secret(c->boot_id, sizeof c->boot_id);
    c->loop = kr_loop_create(why);
    if (c->loop == NULL)
        return KR_ENOMEM;
    c->sched = kr_loop_sched(c->loop);
    c->io = kr_tls_io_create(c->loop);
    c->metrics = kr_metrics_create(agent_counters, AGENT_COUNTERS_N);
    if (c->io == NULL || c->metrics == NULL ||
        kr_h2_shared_init(&c->h2, options->window_budget) != 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    kr_metric_set(kr_metrics_get(c->metrics, AGENT_BUILD_INFO, KR_VERSION), 1);
    c->m_exchanges = kr_metrics_series(c->metrics, AGENT_EXCHANGES, NULL, 0);
    return agent_core_load_policy(c, &changed, why) != 0 ? KR_EINVAL : 0;
}

void agent_core_deinit(struct agent_core *c)
{
    agent_policy_destroy(c->policy);
    kr_tls_context_unref(c->hub_tls);
    kr_identity_deinit(&c->self);
    if (c->io != NULL)
        kr_tls_io_destroy(c->io);
    kr_h2_shared_deinit(&c->h2);
    kr_metrics_destroy(c->metrics);
    if (c->loop != NULL)
        kr_loop_destroy(c->loop);
    *c = (struct agent_core){0};
}
