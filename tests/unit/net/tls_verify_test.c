/* SPDX-License-Identifier: Apache-2.0 */
/* Which certificates a server of ours takes: revocation lists, intermediates, strictness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "tls_world.h"

/* A list of `ca` that has `revoked` on it (NULL: empty). */
static void make_crl(const struct world_cert *ca, const struct world_cert *revoked,
                     struct kr_buf *out)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *t = ASN1_TIME_new();
    BIO *bio = BIO_new(BIO_s_mem());

    X509_CRL_set_version(crl, X509_CRL_VERSION_2);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->x509));
    X509_gmtime_adj(t, -60);
    X509_CRL_set1_lastUpdate(crl, t);
    X509_gmtime_adj(t, WORLD_DAY);
    X509_CRL_set1_nextUpdate(crl, t);
    if (revoked != NULL) {
        X509_REVOKED *r = X509_REVOKED_new();

        X509_REVOKED_set_serialNumber(r, X509_get_serialNumber(revoked->x509));
        X509_gmtime_adj(t, -30);
        X509_REVOKED_set_revocationDate(r, t);
        X509_CRL_add0_revoked(crl, r);
    }
    X509_CRL_sort(crl);
    assert_true(X509_CRL_sign(crl, ca->key, EVP_sha256()) > 0);
    PEM_write_bio_X509_CRL(bio, crl);
    world_pem(out, bio);
    ASN1_TIME_free(t);
    X509_CRL_free(crl);
}

static struct kr_tls_config server_config(struct world *w)
{
    struct kr_tls_config cfg = {.server = true, .peer_cert = KR_TLS_CERT_REQUIRED};

    world_config(&cfg, &w->hub, &w->ca);
    return cfg;
}

static void shake(struct world *w, const struct kr_tls_config *server,
                  const struct world_cert *client_cert)
{
    struct kr_tls_config cfg = {0};
    struct kr_tls_context *contexts[2];

    world_config(&cfg, client_cert, &w->ca);
    world_end_init(&w->client);
    world_end_init(&w->server);
    contexts[0] = world_context(&cfg);
    contexts[1] = world_context(server);
    world_start(w, contexts[0], contexts[1], "localhost");
    kr_tls_context_unref(contexts[0]);
    kr_tls_context_unref(contexts[1]);
    assert_true(world_run(w, world_shaken));
}

static void end(struct world *w)
{
    if (w->client.pipe != NULL)
        kr_pipe_close(w->client.pipe, KR_PIPE_ABORT);
    if (w->server.pipe != NULL)
        kr_pipe_close(w->server.pipe, KR_PIPE_ABORT);
    assert_true(world_run(w, world_closed));
}

static void taken(struct world *w)
{
    assert_int_equal(w->server.handshake, 0);
    end(w);
}

static void refused(struct world *w, const char *words)
{
    assert_int_equal(w->server.handshake, KR_ETLS);
    if (strstr(w->server.why.text, words) == NULL)
        fail_msg("server says: %s", w->server.why.text);
    end(w);
}

static void test_revocation_list_then_revoked_is_refused_and_others_are_taken(void **state)
{
    struct kr_tls_config server;
    struct world_cert other;
    struct kr_buf crl;
    struct world w;

    (void)state;
    world_init(&w);
    server = server_config(&w);
    world_leaf(&other, &w.ca, "other", "URI:spiffe://test/cluster/c2/agent/a", "clientAuth");
    make_crl(&w.ca, &w.agent, &crl);
    server.crl.bytes = kr_buf_bytes(&crl);
    shake(&w, &server, &w.agent);
    refused(&w, "revoked");
    shake(&w, &server, &other);
    taken(&w);
    kr_buf_deinit(&crl);
    world_cert_free(&other);
    world_deinit(&w);
}

static void test_revocation_list_of_another_issuer_then_all_are_refused(void **state)
{
    struct kr_tls_config server;
    struct kr_buf crl;
    struct world w;

    (void)state;
    world_init(&w);
    server = server_config(&w);
    make_crl(&w.foreign_ca, NULL, &crl);
    server.crl.bytes = kr_buf_bytes(&crl);
    shake(&w, &server, &w.agent);
    refused(&w, "CRL");
    kr_buf_deinit(&crl);
    world_deinit(&w);
}

static void test_intermediate_sent_by_the_client_then_taken_and_without_it_refused(void **state)
{
    struct kr_tls_config server;
    struct world_cert middle;
    struct world_cert leaf;
    struct world w;

    (void)state;
    world_init(&w);
    server = server_config(&w);
    world_issue(&middle, &(struct world_ask){.cn = "middle",
                                             .issuer = &w.ca,
                                             .authority = true,
                                             .from_s = -60,
                                             .until_s = WORLD_DAY});
    world_leaf(&leaf, &middle, "agent", "URI:spiffe://test/cluster/c1/agent/a", "clientAuth");
    shake(&w, &server, &leaf);
    refused(&w, "unable to get local issuer");
    kr_buf_append(&leaf.cert_pem, kr_buf_bytes(&middle.cert_pem));
    shake(&w, &server, &leaf);
    taken(&w);
    world_cert_free(&leaf);
    world_cert_free(&middle);
    world_deinit(&w);
}

static void test_leaf_that_signs_another_then_refused(void **state)
{
    struct kr_tls_config server;
    struct world_cert leaf;
    struct world w;

    (void)state;
    world_init(&w);
    server = server_config(&w);
    world_leaf(&leaf, &w.agent, "agent", "URI:spiffe://test/cluster/c9/agent/a", "clientAuth");
    kr_buf_append(&leaf.cert_pem, kr_buf_bytes(&w.agent.cert_pem));
    shake(&w, &server, &leaf);
    refused(&w, "CA certificate");
    world_cert_free(&leaf);
    world_deinit(&w);
}

static void test_sloppy_certificate_then_taken_only_when_lax(void **state)
{
    struct kr_tls_config server;
    struct world_cert sloppy;
    struct world w;

    (void)state;
    world_init(&w);
    server = server_config(&w);
    world_issue(&sloppy, &(struct world_ask){.cn = "agent",
                                             .issuer = &w.ca,
                                             .san = "URI:spiffe://test/cluster/c1/agent/a",
                                             .eku = "clientAuth",
                                             .sloppy = true,
                                             .from_s = -60,
                                             .until_s = WORLD_DAY});
    shake(&w, &server, &sloppy);
    refused(&w, "Missing Authority Key Identifier");
    server.lax_x509 = true;
    shake(&w, &server, &sloppy);
    taken(&w);
    world_cert_free(&sloppy);
    world_deinit(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_revocation_list_then_revoked_is_refused_and_others_are_taken),
        cmocka_unit_test(test_revocation_list_of_another_issuer_then_all_are_refused),
        cmocka_unit_test(test_intermediate_sent_by_the_client_then_taken_and_without_it_refused),
        cmocka_unit_test(test_leaf_that_signs_another_then_refused),
        cmocka_unit_test(test_sloppy_certificate_then_taken_only_when_lax),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
