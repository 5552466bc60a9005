/* SPDX-License-Identifier: Apache-2.0 */
/* admin_call: one HTTP request to a hub's Unix socket (option adminSocket).
 * Limits: an answer of 64 MiB, 10 s of silence. Errors: KR_EIO, KR_ETIMEDOUT, KR_ETOOBIG,
 * KR_EPROTO, with a note. Threads: any; blocks. */
#ifndef KR_CTL_ADMIN_CALL_H
#define KR_CTL_ADMIN_CALL_H

#include "base/buf.h"
#include "base/note.h"

#define CTL_ADMIN_SOCKET "/run/kuberelay/admin.sock"

/* Puts the answer's body into *body and its status code into *status. */
int ctl_admin_call(const char *socket, const char *method, const char *path, struct kr_buf *body,
                   int *status, struct kr_note *why);

#endif
