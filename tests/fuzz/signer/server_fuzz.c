/* SPDX-License-Identifier: Apache-2.0 */
/* Input: what a hub that was taken over sends on the signer's socket; a first byte that is odd puts
 * the beginning of HTTP/2 in front of it, and the rest becomes the messages of calls of Sign.
 * Whatever comes: each certificate that was made is an agent's of our trust domain, with a line in
 * the log. */
#include "signer/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "certs/identity.h"
#include "certs/store_file.h"
#include "fakes/mem_pipe.h"
#include "wire/grpc_call.h"
#include "wire/sign_messages.h"

#define WALL_MS INT64_C(1800000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct files { /* made once */
    char dir[64];
    char cert[96];
    char key[96];
    bool made;
};

struct asker {
    struct kr_conn *conn;
    struct kr_grpc_stream stream;
    struct kr_bytes message;
    bool closed;
};

static void make_files(struct files *f)
{
    struct kr_pem_pair pair;

    snprintf(f->dir, sizeof f->dir, "/tmp/kr-fuzz-XXXXXX");
    KR_ASSERT(mkdtemp(f->dir) != NULL);
    snprintf(f->cert, sizeof f->cert, "%s/ca.crt", f->dir);
    snprintf(f->key, sizeof f->key, "%s/ca.key", f->dir);
    KR_ASSERT(kr_ca_create_root(&pair, "example.test", 1, WALL_MS, NULL) == 0);
    KR_ASSERT(kr_file_replace(f->cert, kr_buf_bytes(&pair.cert), NULL) == 0);
    KR_ASSERT(kr_file_replace(f->key, kr_buf_bytes(&pair.key), NULL) == 0);
    kr_pem_pair_deinit(&pair);
    f->made = true;
}

static void on_audit(void *owner, bool failing, int error)
{
    (void)owner, (void)failing, (void)error;
}

static struct kr_signer *make_signer(const struct files *f, struct kr_sched *sched)
{
    struct kr_signer_config cfg = {
        .sched = sched,
        .cert_file = f->cert,
        .key_file = f->key,
        .hour_limit = 600,
        .cluster_limit = 60,
        .audit = {"/dev/null", 0, 1},
        .on_audit = on_audit,
    };
    struct kr_signer *signer;

    KR_ASSERT(kr_signer_create(&signer, &cfg, NULL) == 0);
    return signer;
}

/* ---- a client, for messages that reach the signer ---- */

static int on_message(void *user, struct kr_bytes message)
{
    struct kr_identity_rules rules = {KR_ROLE_AGENT, "example.test"};
    struct kr_sign_answer answer;
    struct kr_identity id;

    (void)user;
    KR_ASSERT(kr_sign_answer_decode(&answer, message, NULL) == 0);
    KR_ASSERT(kr_identity_judge_pem(&id, answer.chain, &rules, NULL) == 0);
    kr_identity_deinit(&id);
    return 0;
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct asker *a = user;

    (void)status, (void)message;
    if (a->conn != NULL)
        kr_conn_close(a->conn);
}

static const struct kr_grpc_user call_user = {.on_message = on_message, .on_end = on_end};

static void on_ready(void *owner)
{
    struct kr_grpc_limits limits = {.message = KR_SIGN_ANSWER_MAX, .queue = 1 << 20};
    struct asker *a = owner;

    if (kr_grpc_open(&a->stream, a->conn, KR_LIT("signer"), KR_LIT(KR_GRPC_SIGN), limits,
                     &call_user, a) == 0) {
        kr_grpc_send(&a->stream, a->message);
        kr_grpc_finish(&a->stream, 0, KR_LIT(""));
    }
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct asker *a = owner;

    (void)rc, (void)why;
    a->conn = NULL;
    a->closed = true;
}

static const struct kr_conn_user asker_user = {NULL, NULL, on_ready, on_close};

static void ask(struct kr_sched *sched, struct kr_h2_shared *h2, struct kr_pipe *pipe,
                struct kr_bytes message)
{
    struct asker a = {.message = message};
    struct kr_h2_config cfg = {.sched = sched, .user_ops = &asker_user, .owner = &a, .shared = h2};
    int64_t now = 1000;

    a.conn = kr_h2_create(&cfg, pipe);
    KR_ASSERT(a.conn != NULL);
    for (int i = 0; i < 100 && !a.closed; i++)
        kr_sched_run(sched, now++, WALL_MS);
    kr_sched_run(sched, now + 60000, WALL_MS); /* the time of the connection is up */
    for (int i = 0; i < 20; i++)
        kr_sched_run(sched, now + 60001 + i, WALL_MS);
    KR_ASSERT(a.closed);
    kr_grpc_deinit(&a.stream);
}

static void send_raw(struct kr_sched *sched, struct kr_pipe *pipe, struct kr_bytes in)
{
    struct kr_mem_peer peer;
    int64_t now = 1000;

    kr_mem_peer_init(&peer, pipe);
    kr_mem_peer_send(&peer, in);
    for (int i = 0; i < 30; i++)
        kr_sched_run(sched, now++, WALL_MS);
    if (peer.pipe != NULL)
        kr_mem_peer_close(&peer, KR_PIPE_ABORT);
    for (int i = 0; i < 30; i++)
        kr_sched_run(sched, now + 60000 + i, WALL_MS);
    kr_mem_peer_deinit(&peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct files files;
    struct kr_h2_shared h2;
    struct kr_sched sched;
    struct signer_server server = {.sched = &sched, .h2 = &h2};
    struct kr_mem_pair *pair;
    struct kr_bytes in;

    if (size == 0)
        return 0;
    if (!files.made)
        make_files(&files);
    in = kr_bytes_of(data + 1, size - 1);
    kr_sched_init(&sched, 1000, WALL_MS);
    KR_ASSERT(kr_h2_shared_init(&h2, 0) == 0);
    server.signer = make_signer(&files, &sched);
    signer_server_init(&server);
    pair = kr_mem_pair_create(&sched);
    KR_ASSERT(pair != NULL && signer_server_serve(&server, kr_mem_pair_end(pair, 0), 7));
    if ((data[0] & 1) != 0)
        ask(&sched, &h2, kr_mem_pair_end(pair, 1), in);
    else
        send_raw(&sched, kr_mem_pair_end(pair, 1), in);
    KR_ASSERT(server.count == 0);
    kr_signer_destroy(server.signer);
    kr_h2_shared_deinit(&h2);
    kr_sched_deinit(&sched);
    return 0;
}
