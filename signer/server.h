/* SPDX-License-Identifier: Apache-2.0 */
/* server: the service Signer over plain HTTP/2: unary gRPC calls of Sign, nothing else. Who may
 * connect is decided by the owner; what may be certified by certs/signer.h.
 * Limits:  128 connections of 15 s, 4 calls of each at once, requests of 16 KiB.
 * Threads: the loop's. */
#ifndef SIGNER_SERVER_H
#define SIGNER_SERVER_H

#include "base/log.h"
#include "base/pipe.h"
#include "base/sched.h"
#include "certs/signer.h"
#include "http/h2_session.h"

struct signer_conn;

struct signer_server { /* embed it; fill the first fields, then init */
    struct kr_sched *sched;
    struct kr_h2_shared *h2;
    struct kr_log *log;
    struct kr_signer *signer;

    struct kr_list conns; /* signer_conn.link */
    size_t count;
    uint64_t issued;
    struct kr_log_limit refusals;
};

void signer_server_init(struct signer_server *s);
/* Takes the pipe. `uid` is the peer's. False: there is no place; the pipe is untouched. */
bool signer_server_serve(struct signer_server *s, struct kr_pipe *pipe, uint32_t uid);

#endif
