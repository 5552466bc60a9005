/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "certs/describe.h"
#include "certs/store_file.h"
#include "ctl/command.h"

#define PEM_FILE_MAX 65536
#define TEXT_MAX 1048576

static int run(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_buf pem = {0};
    struct kr_buf text;
    int rc;

    kr_buf_init(&text, TEXT_MAX);
    rc = kr_file_read(&pem, call->arg, PEM_FILE_MAX, why);
    if (rc == 0) {
        rc = kr_cert_describe(&text, kr_buf_bytes(&pem), call->now_wall_ms, why);
        if (rc != 0)
            kr_note_wrap(why, rc, "%.100s", call->arg);
    }
    if (rc == 0)
        fwrite(text.p, 1, text.n, call->out);
    kr_buf_deinit(&text);
    kr_buf_cleanse(&pem); /* somebody may have pointed at a file with a key in it */
    return rc;
}

const struct ctl_command ctl_ca_show = {
    .words = "ca show",
    .summary = "tell whom a certificate names, until when, and whether it would be accepted",
    .arg = "FILE",
    .run = run,
};
