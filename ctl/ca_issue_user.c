/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "certs/identity.h"
#include "ctl/pki_dir.h"

static const struct ctl_option options[] = {
    {"name", CTL_REQUIRED, "NAME", "the user's name"},
    {"group", CTL_MANY, "GROUP", "a group of the user"},
    CTL_ISSUE_OPTIONS("lifetime in days, up to 365 (12 hours)"),
};

/* A user's name may be nearly any text; a file's should be one that every shell can take. */
static bool is_file_name(struct kr_bytes b)
{
    if (b.n > KR_NAME_MAX)
        return false;
    for (size_t i = 0; i < b.n; i++) {
        uint8_t c = b.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && c != '.' && c != '_' && c != '-' && c != '@' && c != '+')
            return false;
    }
    return true;
}

static int run(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_leaf leaf = {.role = KR_ROLE_USER, .name = ctl_get(call, "name")};
    char stem[KR_NAME_MAX + 8];

    leaf.groups = ctl_get_all(call, "group", &leaf.group_count);
    if (!is_file_name(kr_bytes_str(leaf.name)) && !ctl_has(call, "out"))
        return kr_note_set(why, KR_EINVAL,
                           "the name \"%.80s\" does not make a file name; give --out", leaf.name);
    snprintf(stem, sizeof stem, "user-%s", leaf.name);
    return ctl_issue(call, &leaf, stem, why);
}

const struct ctl_command ctl_ca_issue_user = {
    .words = "ca issue user",
    .summary = "issue a user's certificate and key",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
