/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pki_dir.h"

static const struct ctl_option options[] = {
    {"name", CTL_REQUIRED, "REPLICA", "the replica's name"},
    {"dns", CTL_MANY, "NAME", "a name that agents and clients dial; *.NAME for cluster names"},
    {"ip", CTL_MANY, "ADDRESS", "an address that they dial"},
    CTL_ISSUE_OPTIONS("lifetime in days, up to 825 (90)"),
};

static int run(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_leaf leaf = {.role = KR_ROLE_HUB, .name = ctl_get(call, "name")};
    char stem[KR_SPIFFE_ID_MAX + 8];

    leaf.dns = ctl_get_all(call, "dns", &leaf.dns_count);
    leaf.ip = ctl_get_all(call, "ip", &leaf.ip_count);
    snprintf(stem, sizeof stem, "hub-%s", leaf.name);
    return ctl_issue(call, &leaf, stem, why);
}

const struct ctl_command ctl_ca_issue_hub = {
    .words = "ca issue hub",
    .summary = "issue a hub replica's certificate and key; without --dns and --ip for its own name",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
