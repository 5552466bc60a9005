/* SPDX-License-Identifier: Apache-2.0 */
/* A client that knows its root by the hash of its key only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "tls_world.h"

struct pinned {
    struct world w;
    uint8_t pin[KR_TLS_PIN];
    struct kr_buf chain;
};

static void setup(struct pinned *p)
{
    unsigned char *der = NULL;
    int n;

    world_init(&p->w);
    n = i2d_PUBKEY(p->w.ca.key, &der);
    assert_int_equal(EVP_Digest(der, (size_t)n, p->pin, NULL, EVP_sha256(), NULL), 1);
    OPENSSL_free(der);
    p->chain = (struct kr_buf){.max = 65536};
}

static void teardown(struct pinned *p)
{
    kr_buf_deinit(&p->chain);
    world_deinit(&p->w);
}

static void show(struct pinned *p, const struct world_cert *c)
{
    assert_int_equal(kr_buf_append(&p->chain, kr_buf_bytes(&c->cert_pem)), 0);
}

/* The server shows p->chain with the key of `leaf`. */
static void shake(struct pinned *p, const struct world_cert *leaf, const char *host)
{
    struct kr_tls_config client = {.pin = p->pin};
    struct kr_tls_config server = {.server = true, .peer_cert = KR_TLS_CERT_NONE};
    struct kr_tls_context *contexts[2];

    server.cert.bytes = kr_buf_bytes(&p->chain);
    server.key.bytes = kr_buf_bytes(&leaf->key_pem);
    world_end_init(&p->w.client);
    world_end_init(&p->w.server);
    contexts[0] = world_context(&client);
    contexts[1] = world_context(&server);
    world_start(&p->w, contexts[0], contexts[1], host);
    kr_tls_context_unref(contexts[0]);
    kr_tls_context_unref(contexts[1]);
    assert_true(world_run(&p->w, world_shaken));
}

static void end(struct pinned *p)
{
    if (p->w.client.pipe != NULL)
        kr_pipe_close(p->w.client.pipe, KR_PIPE_ABORT);
    if (p->w.server.pipe != NULL)
        kr_pipe_close(p->w.server.pipe, KR_PIPE_ABORT);
    assert_true(world_run(&p->w, world_closed));
    p->chain.n = 0;
}

static void refused(struct pinned *p, const char *words)
{
    assert_int_equal(p->w.client.handshake, KR_ETLS);
    assert_int_equal(p->w.client.judged, 0);
    if (strstr(p->w.client.why.text, words) == NULL)
        fail_msg("client says: %s", p->w.client.why.text);
    end(p);
}

static void test_chain_with_the_pinned_root_then_taken(void **state)
{
    struct pinned p;

    (void)state;
    setup(&p);
    show(&p, &p.w.hub);
    show(&p, &p.w.ca);
    shake(&p, &p.w.hub, "localhost");
    assert_int_equal(p.w.client.handshake, 0);
    assert_true(p.w.client.peer_verified);
    assert_int_equal(p.w.client.judged, 1);
    end(&p);
    teardown(&p);
}

static void test_chain_with_an_intermediate_and_the_pinned_root_then_taken(void **state)
{
    struct world_cert middle;
    struct world_cert leaf;
    struct pinned p;

    (void)state;
    setup(&p);
    world_issue(&middle, &(struct world_ask){.cn = "middle",
                                             .issuer = &p.w.ca,
                                             .authority = true,
                                             .from_s = -60,
                                             .until_s = WORLD_DAY});
    world_leaf(&leaf, &middle, "leaf", "DNS:localhost,URI:spiffe://test/hub/a", "serverAuth");
    show(&p, &leaf);
    show(&p, &middle);
    show(&p, &p.w.ca);
    shake(&p, &leaf, "localhost");
    assert_int_equal(p.w.client.handshake, 0);
    end(&p);
    world_cert_free(&middle);
    world_cert_free(&leaf);
    teardown(&p);
}

static void test_chain_without_its_root_then_refused_with_the_reason(void **state)
{
    struct pinned p;

    (void)state;
    setup(&p);
    show(&p, &p.w.hub);
    shake(&p, &p.w.hub, "localhost");
    refused(&p, "comes without its root");
    teardown(&p);
}

static void test_chain_of_another_root_then_refused(void **state)
{
    struct world_cert leaf;
    struct pinned p;

    (void)state;
    setup(&p);
    world_leaf(&leaf, &p.w.foreign_ca, "hub", "DNS:localhost", "serverAuth");
    show(&p, &leaf);
    show(&p, &p.w.foreign_ca);
    shake(&p, &leaf, "localhost");
    refused(&p, "not the one that is pinned");
    world_cert_free(&leaf);
    teardown(&p);
}

/* A root is public: to show it proves nothing. */
static void test_foreign_leaf_with_the_pinned_root_behind_it_then_refused(void **state)
{
    struct world_cert leaf;
    struct pinned p;

    (void)state;
    setup(&p);
    world_leaf(&leaf, &p.w.foreign_ca, "hub", "DNS:localhost", "serverAuth");
    show(&p, &leaf);
    show(&p, &p.w.ca);
    shake(&p, &leaf, "localhost");
    refused(&p, "refused");
    show(&p, &leaf);
    show(&p, &p.w.foreign_ca);
    show(&p, &p.w.ca);
    shake(&p, &leaf, "localhost");
    refused(&p, "refused");
    world_cert_free(&leaf);
    teardown(&p);
}

static void test_all_else_is_checked_as_with_a_file(void **state)
{
    struct world_cert old;
    struct pinned p;

    (void)state;
    setup(&p);
    show(&p, &p.w.hub);
    show(&p, &p.w.ca);
    shake(&p, &p.w.hub, "elsewhere");
    refused(&p, "mismatch");
    world_issue(&old, &(struct world_ask){.cn = "hub",
                                          .issuer = &p.w.ca,
                                          .san = "DNS:localhost",
                                          .eku = "serverAuth",
                                          .from_s = -120,
                                          .until_s = -60});
    show(&p, &old);
    show(&p, &p.w.ca);
    shake(&p, &old, "localhost");
    refused(&p, "expired");
    show(&p, &p.w.agent); /* for clients only */
    show(&p, &p.w.ca);
    shake(&p, &p.w.agent, NULL);
    refused(&p, "purpose");
    world_cert_free(&old);
    teardown(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_with_the_pinned_root_then_taken),
        cmocka_unit_test(test_chain_with_an_intermediate_and_the_pinned_root_then_taken),
        cmocka_unit_test(test_chain_without_its_root_then_refused_with_the_reason),
        cmocka_unit_test(test_chain_of_another_root_then_refused),
        cmocka_unit_test(test_foreign_leaf_with_the_pinned_root_behind_it_then_refused),
        cmocka_unit_test(test_all_else_is_checked_as_with_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
