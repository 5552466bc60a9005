/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_conn.h"
#include "http/h2_session.h"
#include "lifecycle.h"
#include "net/socket.h"
#include "net/tls_pipe.h"
#include "turn.h"

struct sim_server {
    struct kr_loop *loop;
    struct kr_tls_io *io;
    struct kr_tls_context *tls;
    struct kr_h2_shared h2;
    const char *token;
    struct sim_fleet *fleet;
    struct kr_list ports; /* port.link */
};

struct port {            /* a cluster and where it listens */
    struct kr_list link; /* sim_server.ports */
    struct sim_server *server;
    struct sim_cluster *cluster;
    struct kr_listener *listener;
};

struct session { /* a connection, from its first byte to its end */
    struct sim_peer peer;
    struct sim_server *server;
};

/* ---- connections */

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct session *s = owner;

    sim_turn_start(&s->peer, ex);
}

static void on_conn_close(void *owner, int rc, const struct kr_note *why)
{
    (void)rc;
    (void)why;
    free(owner);
}

static const struct kr_conn_user conn_ops = {.on_request = on_request, .on_close = on_conn_close};

/* CN is the user, each O a group, as the API server reads certificates. */
static void read_peer(struct session *s, const struct kr_tls_info *info)
{
    X509_NAME *name;
    size_t n = 0;
    int at = -1;

    if (info->peer_x509 == NULL || !info->peer_verified)
        return;
    name = X509_get_subject_name(info->peer_x509);
    if (X509_NAME_get_text_by_NID(name, NID_commonName, s->peer.user, sizeof s->peer.user) < 0)
        s->peer.user[0] = '\0';
    while ((at = X509_NAME_get_index_by_NID(name, NID_organizationName, at)) >= 0) {
        const ASN1_STRING *o = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));

        n += (size_t)snprintf(s->peer.groups + n, sizeof s->peer.groups - n, "%s%.100s",
                              n != 0 ? "," : "", (const char *)ASN1_STRING_get0_data(o));
        if (n > sizeof s->peer.groups - 128)
            break;
    }
}

static struct kr_conn *open_conn(struct session *s, struct kr_pipe *pipe, bool h2)
{
    struct kr_sched *sched = kr_loop_sched(s->server->loop);

    if (h2)
        return kr_h2_create(&(struct kr_h2_config){.server = true,
                                                   .sched = sched,
                                                   .user_ops = &conn_ops,
                                                   .owner = s,
                                                   .shared = &s->server->h2,
                                                   .max_streams = 1000,
                                                   .preface_timeout_ms = 32000},
                            pipe);
    return kr_h1_server_create(
        &(struct kr_h1_config){
            .sched = sched, .user_ops = &conn_ops, .owner = s, .head_timeout_ms = 32000},
        pipe);
}

static int on_handshake(void *owner, int rc, struct kr_pipe *pipe, const struct kr_tls_info *info,
                        const struct kr_note *why)
{
    struct session *s = owner;

    (void)why;
    if (rc != 0) {
        free(s);
        return 0;
    }
    read_peer(s, info);
    if (open_conn(s, pipe, strcmp(info->alpn, "h2") == 0) != NULL)
        return 0;
    free(s);
    return KR_ENOMEM;
}

static const struct kr_tls_user tls_ops = {.on_handshake = on_handshake};

static void on_accept(void *owner, int fd, const char *peer)
{
    struct port *p = owner;
    struct session *s = calloc(1, sizeof *s);

    (void)peer;
    if (s != NULL) {
        s->server = p->server;
        s->peer.c = p->cluster;
        s->peer.token = p->server->token;
    }
    if (kr_tls_accept(p->server->io,
                      &(struct kr_tls_start){
                          .ctx = p->server->tls, .fd = fd, .user_ops = &tls_ops, .owner = s},
                      NULL) == NULL)
        free(s);
}

/* ---- life */

static int make_tls(struct sim_server *s, const struct sim_pki *pki, struct kr_note *why)
{
    static const struct kr_tls_alpn alpn[] = {{"h2", KR_TLS_CERT_OPTIONAL},
                                              {"http/1.1", KR_TLS_CERT_OPTIONAL}};
    struct kr_tls_config cfg = {
        .server = true,
        .tls12 = true,
        .cert.bytes = kr_buf_bytes(&pki->cert_pem),
        .key.bytes = kr_buf_bytes(&pki->key_pem),
        .ca.bytes = kr_buf_bytes(&pki->ca_pem),
        .alpn = alpn,
        .alpn_count = 2,
        .peer_cert = KR_TLS_CERT_OPTIONAL,
    };
    int rc = 0;

    s->tls = kr_tls_context_create(&cfg, &rc, why);
    return s->tls != NULL ? 0 : rc;
}

struct sim_server *sim_server_create(const struct sim_server_config *cfg, struct kr_note *why)
{
    struct sim_server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->loop = cfg->loop;
    s->fleet = cfg->fleet;
    s->token = cfg->pki->token;
    kr_list_init(&s->ports);
    s->io = kr_tls_io_create(s->loop);
    if (kr_h2_shared_init(&s->h2, 64 << 20) != 0 || s->io == NULL ||
        make_tls(s, cfg->pki, why) != 0) {
        sim_server_destroy(s);
        return NULL;
    }
    return s;
}

static void end_cluster(struct sim_cluster *c)
{
    sim_lifecycle_end(c);
    sim_cluster_destroy(c);
}

int sim_server_add(struct sim_server *s, struct sim_cluster *c, const struct kr_hostport *at,
                   char address[KR_ADDR_TEXT + 16], struct kr_note *why)
{
    struct port *p = calloc(1, sizeof *p);

    if (p == NULL) {
        end_cluster(c);
        return KR_ENOMEM;
    }
    p->server = s;
    p->cluster = c;
    p->listener = kr_listener_create(
        s->loop, &(struct kr_listener_config){.at = at, .on_accept = on_accept, .owner = p}, why);
    if (p->listener == NULL) {
        end_cluster(c);
        free(p);
        return KR_EIO;
    }
    snprintf(address, KR_ADDR_TEXT + 16, "%s", kr_listener_text(p->listener));
    kr_list_append(&s->ports, &p->link);
    sim_fleet_add(s->fleet, c);
    return 0;
}

void sim_server_destroy(struct sim_server *s)
{
    struct kr_list *node;

    if (s == NULL)
        return;
    KR_LIST_FOREACH(each, &s->ports)
    {
        kr_listener_destroy(KR_CONTAINER_OF(each, struct port, link)->listener);
    }
    if (s->io != NULL)
        kr_tls_io_destroy(s->io); /* ends every connection, and with it every turn */
    kr_tls_context_unref(s->tls);
    kr_h2_shared_deinit(&s->h2);
    while ((node = kr_list_pop(&s->ports)) != NULL) {
        struct port *p = KR_CONTAINER_OF(node, struct port, link);

        end_cluster(p->cluster);
        free(p);
    }
    free(s);
}
