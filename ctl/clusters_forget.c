/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "ctl/admin_call.h"
#include "ctl/command.h"

static const struct ctl_option options[] = {
    {"socket", CTL_ONE, "PATH", "the hub's adminSocket (" CTL_ADMIN_SOCKET ")"},
};

static int run(const struct ctl_call *call, struct kr_note *why)
{
    const char *socket = ctl_get(call, "socket");
    struct kr_buf body = {.max = 65536};
    char path[128];
    int status = 0;
    int rc;

    if (!kr_is_dns_label(kr_bytes_str(call->arg)))
        return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no cluster name", call->arg);
    snprintf(path, sizeof path, "/clusters/%s", call->arg);
    rc = ctl_admin_call(socket != NULL ? socket : CTL_ADMIN_SOCKET, "DELETE", path, &body, &status,
                        why);
    if (rc == 0 && status == 404)
        rc = kr_note_set(why, KR_ENOENT, "the hub knows no cluster %s", call->arg);
    else if (rc == 0 && status == 409)
        rc = kr_note_set(why, KR_EEXIST, "the agent of %s is connected; stop it first", call->arg);
    else if (rc == 0 && status != 200)
        rc = kr_note_set(why, KR_EIO, "the hub answered %d", status);
    if (rc == 0)
        fprintf(call->out, "%s\n", call->arg);
    kr_buf_deinit(&body);
    return rc;
}

const struct ctl_command ctl_clusters_forget = {
    .words = "clusters forget",
    .summary = "forget a cluster that is away, with all that was synced of it",
    .arg = "NAME",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
