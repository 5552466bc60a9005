/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "certs/ca.h"
#include "certs/store_file.h"
#include "ctl/command.h"
#include "ctl/pki_dir.h"

#include <limits.h>

#define DEFAULT_DOMAIN "kuberelay.internal" /* .internal is set aside for private use */

static const struct ctl_option options[] = {
    {"dir", CTL_REQUIRED, "DIR", "where to write ca.crt and ca.key; made if it is missing"},
    {"trust-domain", CTL_ONE, "DOMAIN", "what all identities begin with (" DEFAULT_DOMAIN ")"},
    {"years", CTL_ONE, "N", "lifetime of the root, 1 to 30 (10)"},
    {"agent-ca", CTL_SWITCH, NULL,
     "make agent-ca.crt and agent-ca.key instead, by the root that is there: for a hub that "
     "certifies agents, for a year"},
};

static int make_agent_ca(const struct ctl_call *call, struct kr_note *why)
{
    const char *dir = ctl_get(call, "dir");
    struct kr_pem_pair pair = {0};
    struct kr_ca *root = NULL;
    char prefix[PATH_MAX];
    int rc = ctl_load_ca(call, "ca", &root, why);

    if (rc == 0 && snprintf(prefix, sizeof prefix, "%s/agent-ca", dir) >= (int)sizeof prefix)
        rc = kr_note_set(why, KR_EINVAL, "the path %.80s... is too long", dir);
    if (rc == 0)
        rc = kr_ca_create_agent_ca(root, 365 * KR_CA_DAY_S, call->now_wall_ms, &pair, why);
    if (rc == 0)
        rc = ctl_write_pair(call, prefix, &pair, why);
    kr_pem_pair_deinit(&pair);
    kr_ca_destroy(root);
    return rc;
}

static int run(const struct ctl_call *call, struct kr_note *why)
{
    const char *domain = ctl_get(call, "trust-domain");
    const char *dir = ctl_get(call, "dir");
    struct kr_pem_pair pair = {0};
    char prefix[PATH_MAX];
    uint64_t years = 0;
    int rc;

    if (ctl_has(call, "agent-ca"))
        return make_agent_ca(call, why);
    rc = ctl_get_number(call, "years", 1, 30, 10, &years, why);
    if (rc == 0 && snprintf(prefix, sizeof prefix, "%s/ca", dir) >= (int)sizeof prefix)
        rc = kr_note_set(why, KR_EINVAL, "the path %.80s... is too long", dir);
    if (rc == 0)
        rc = kr_ca_create_root(&pair, domain != NULL ? domain : DEFAULT_DOMAIN, (int)years,
                               call->now_wall_ms, why);
    if (rc == 0)
        rc = kr_dir_ensure(dir, why);
    if (rc == 0)
        rc = ctl_write_pair(call, prefix, &pair, why);
    if (rc == 0)
        fprintf(call->err, "note: this one root signs for every role; keep %s.key offline\n",
                prefix);
    kr_pem_pair_deinit(&pair);
    return rc;
}

const struct ctl_command ctl_ca_init = {
    .words = "ca init",
    .summary = "make the root that hubs, agents and users are certified by",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
