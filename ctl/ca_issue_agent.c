/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pki_dir.h"

static const struct ctl_option options[] = {
    {"cluster", CTL_REQUIRED, "NAME", "the cluster's name: lower-case letters, digits, '-'"},
    {"instance", CTL_ONE, "INSTANCE", "tells two agents of a cluster apart (a)"},
    CTL_ISSUE_OPTIONS("lifetime in days, up to 90 (30)"),
};

static int run(const struct ctl_call *call, struct kr_note *why)
{
    const char *instance = ctl_get(call, "instance");
    struct kr_leaf leaf = {
        .role = KR_ROLE_AGENT,
        .name = ctl_get(call, "cluster"),
        .instance = instance != NULL ? instance : "a",
    };
    char stem[2 * KR_SPIFFE_ID_MAX + 8];

    snprintf(stem, sizeof stem, "agent-%s-%s", leaf.name, leaf.instance);
    return ctl_issue(call, &leaf, stem, why);
}

const struct ctl_command ctl_ca_issue_agent = {
    .words = "ca issue agent",
    .summary = "issue a cluster's agent its certificate and key",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
