/* SPDX-License-Identifier: Apache-2.0 */
/* token: a bearer token, fixed or from a file that the kubelet replaces (client-go
 * transport/token_source.go): read by path each time, an unreadable or empty file keeps the old
 * one. Memory: wiped when it goes. */
#ifndef AGENT_TOKEN_H
#define AGENT_TOKEN_H

#include "base/buf.h"
#include "base/note.h"

#define AGENT_FILE_MAX (1u << 20) /* a certificate, token or kubeconfig */

struct agent_token {      /* the fields belong to token.c */
    const char *file;     /* borrowed; NULL: fixed or none */
    struct kr_buf header; /* "Bearer TOKEN", or empty */
    int64_t read_ms;
    uint32_t generation; /* changes with the token */
};

/* `fixed` and `file` may both be NULL: no token. KR_EIO, KR_EINVAL if the file has none. */
int agent_token_init(struct agent_token *t, const char *fixed, const char *file, int64_t now_ms,
                     struct kr_note *why);
void agent_token_deinit(struct agent_token *t);
/* The header's value; reads the file again if that was a minute ago. */
struct kr_bytes agent_token_header(struct agent_token *t, int64_t now_ms);
/* The token of that generation was refused: reads the file now, but at most ten times a second.
 * Whether there is another one to try. */
bool agent_token_refused(struct agent_token *t, uint32_t generation, int64_t now_ms);

#endif
