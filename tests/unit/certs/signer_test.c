/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/signer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"
#include "certs/csr.h"
#include "certs/hmac.h"
#include "certs/identity.h"
#include "certs/store_file.h"

#define NOW_MS 1800000000123
#define URI "spiffe://example.test/cluster/edge-1/agent/a"

struct world {
    char dir[64];
    char cert[96];
    char key[96];
    char log[96];
    struct kr_sched sched;
    struct kr_signer *signer;
    struct kr_buf csr;
    uint8_t spki[32];
    int changes;
};

static void on_audit(void *owner, bool failing, int error)
{
    (void)failing, (void)error;
    ((struct world *)owner)->changes++;
}

static void write_ca(struct world *w)
{
    struct kr_pem_pair root;
    struct kr_pem_pair agent_ca;
    struct kr_ca *ca;

    assert_int_equal(kr_ca_create_root(&root, "example.test", 2, NOW_MS, NULL), 0);
    assert_int_equal(
        kr_ca_load(&ca, kr_buf_bytes(&root.cert), kr_buf_bytes(&root.key), NULL, NOW_MS, NULL), 0);
    assert_int_equal(kr_ca_create_agent_ca(ca, 365 * KR_CA_DAY_S, NOW_MS, &agent_ca, NULL), 0);
    assert_int_equal(kr_file_replace(w->cert, kr_buf_bytes(&agent_ca.cert), NULL), 0);
    assert_int_equal(kr_file_replace(w->key, kr_buf_bytes(&agent_ca.key), NULL), 0);
    kr_ca_destroy(ca);
    kr_pem_pair_deinit(&root);
    kr_pem_pair_deinit(&agent_ca);
}

static struct kr_signer_config config_of(struct world *w)
{
    return (struct kr_signer_config){
        .sched = &w->sched,
        .cert_file = w->cert,
        .key_file = w->key,
        .lifetime_max_s = 30 * KR_CA_DAY_S,
        .hour_limit = 600,
        .cluster_limit = 60,
        .audit = {w->log, 1 << 20, 2},
        .on_audit = on_audit,
        .owner = w,
    };
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct kr_signer_config cfg;
    struct kr_buf key = {0};

    *state = w;
    snprintf(w->dir, sizeof w->dir, "/tmp/kr-signer-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->cert, sizeof w->cert, "%s/ca.crt", w->dir);
    snprintf(w->key, sizeof w->key, "%s/ca.key", w->dir);
    snprintf(w->log, sizeof w->log, "%s/issued.log", w->dir);
    kr_sched_init(&w->sched, 1000, NOW_MS);
    write_ca(w);
    cfg = config_of(w);
    w->csr.max = KR_CSR_MAX;
    assert_int_equal(kr_signer_create(&w->signer, &cfg, NULL), 0);
    assert_int_equal(kr_key_make(&key, NULL), 0);
    assert_int_equal(kr_csr_make(&w->csr, kr_buf_bytes(&key), NULL), 0);
    assert_int_equal(kr_csr_check(kr_buf_bytes(&w->csr), w->spki, NULL), 0);
    kr_buf_cleanse(&key);
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    kr_signer_destroy(w->signer);
    kr_sched_deinit(&w->sched);
    kr_buf_deinit(&w->csr);
    unlink(w->cert);
    unlink(w->key);
    unlink(w->log);
    assert_int_equal(rmdir(w->dir), 0);
    free(w);
    return 0;
}

static int sign(struct world *w, const char *uri, int64_t lifetime_s, struct kr_buf *chain,
                struct kr_note *why)
{
    struct kr_sign_order order = {kr_bytes_str(uri), kr_buf_bytes(&w->csr), lifetime_s, "uid:7"};
    int64_t retry_ms = 0;
    int rc = kr_signer_sign(w->signer, &order, chain, &retry_ms, why);

    assert_true((rc == KR_EFULL) == (retry_ms > 0));
    assert_true((rc == 0) == (chain->n != 0));
    return rc;
}

/* Whether it is refused with that. */
static void refuses(struct world *w, const char *uri, int64_t lifetime_s, int code)
{
    struct kr_buf chain;

    assert_int_equal(sign(w, uri, lifetime_s, &chain, NULL), code);
}

static size_t lines_of(struct world *w, struct kr_buf *log)
{
    size_t n = 0;

    assert_int_equal(kr_file_read(log, w->log, 1 << 20, NULL), 0);
    for (size_t i = 0; i < log->n; i++)
        n += log->p[i] == '\n';
    return n;
}

static void test_certificate_is_of_the_name_and_the_key_that_were_asked_for(void **state)
{
    struct kr_identity_rules rules = {KR_ROLE_AGENT, "example.test"};
    struct world *w = *state;
    struct kr_identity id;
    struct kr_buf chain;

    assert_int_equal(sign(w, URI, 3600, &chain, NULL), 0);
    assert_int_equal(kr_identity_judge_pem(&id, kr_buf_bytes(&chain), &rules, NULL), 0);
    assert_string_equal(id.name, "edge-1");
    assert_string_equal(id.instance, "a");
    assert_memory_equal(id.spki_sha256, w->spki, 32);
    assert_int_equal(id.not_after_wall_ms / 1000, NOW_MS / 1000 + 3600);
    kr_identity_deinit(&id);
    kr_buf_deinit(&chain);
}

static void test_names_that_are_no_agents_of_the_domain_are_denied(void **state)
{
    struct world *w = *state;
    struct kr_buf log = {0};

    refuses(w, "spiffe://example.test/hub/a", 3600, KR_EDENIED);
    refuses(w, "spiffe://example.test/user/admin", 3600, KR_EDENIED);
    refuses(w, "spiffe://example.test", 3600, KR_EDENIED);
    refuses(w, "spiffe://other.test/cluster/edge-1/agent/a", 3600, KR_EDENIED);
    refuses(w, "spiffe://example.test:80/cluster/edge-1/agent/a", 3600, KR_EDENIED);
    refuses(w, "spiffe://example.test/cluster/EDGE/agent/a", 3600, KR_EDENIED);
    refuses(w, "spiffe://example.test/cluster/edge-1/agent/..", 3600, KR_EDENIED);
    refuses(w, "spiffe://example.test/cluster/edge-1/agent/a/", 3600, KR_EDENIED);
    refuses(w, "", 3600, KR_EDENIED);
    assert_int_equal(lines_of(w, &log), 0);
    kr_buf_deinit(&log);
}

static void test_lifetimes_out_of_bounds_are_refused(void **state)
{
    struct world *w = *state;
    struct kr_buf chain;

    refuses(w, URI, 0, KR_EINVAL);
    refuses(w, URI, -1, KR_EINVAL);
    refuses(w, URI, 4, KR_EINVAL);
    refuses(w, URI, 30 * KR_CA_DAY_S + 1, KR_EINVAL);
    assert_int_equal(sign(w, URI, 30 * KR_CA_DAY_S, &chain, NULL), 0);
    kr_buf_deinit(&chain);
}

static void test_requests_that_are_none_are_refused(void **state)
{
    struct kr_sign_order order = {KR_LIT(URI), KR_LIT("no request"), 3600, "uid:7"};
    struct world *w = *state;
    struct kr_buf chain;
    int64_t retry_ms;

    assert_int_equal(kr_signer_sign(w->signer, &order, &chain, &retry_ms, NULL), KR_EPROTO);
    order.csr = KR_LIT("");
    assert_int_equal(kr_signer_sign(w->signer, &order, &chain, &retry_ms, NULL), KR_EPROTO);
}

static void test_limit_of_a_cluster_is_told_with_the_time_and_lifts(void **state)
{
    struct world *w = *state;
    struct kr_note why = {""};
    struct kr_buf chain;

    for (int i = 0; i < KR_SIGN_CLUSTER_BURST; i++) {
        assert_int_equal(sign(w, URI, 3600, &chain, NULL), 0);
        kr_buf_deinit(&chain);
    }
    assert_int_equal(sign(w, URI, 3600, &chain, &why), KR_EFULL);
    assert_non_null(strstr(why.text, "of a cluster"));
    refuses(w, "spiffe://example.test/cluster/edge-1/agent/other", 3600, KR_EFULL);
    w->sched.now_ms += 1000;
    assert_int_equal(sign(w, URI, 3600, &chain, NULL), 0);
    kr_buf_deinit(&chain);
}

static void test_each_certificate_is_one_chained_event(void **state)
{
    struct world *w = *state;
    struct kr_buf chain;
    struct kr_buf log = {0};
    struct kr_json *event;
    const struct kr_json *notes;
    struct kr_bytes first;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(sign(w, URI, 3600, &chain, NULL), 0);
        kr_buf_deinit(&chain);
        assert_int_equal(lines_of(w, &log), i + 1); /* it is there when the answer is */
    }
    first = kr_buf_bytes(&log);
    first.n = kr_bytes_find(first, '\n');
    assert_int_equal(kr_json_parse(first, &event, NULL), 0);
    assert_string_equal(kr_json_text(event, "kind"), "Event");
    assert_string_equal(kr_json_text(event, "apiVersion"), "audit.k8s.io/v1");
    assert_string_equal(kr_json_text(event, "stageTimestamp"), "2027-01-15T08:00:00.123000Z");
    assert_string_equal(kr_json_text(kr_json_get(event, "user"), "username"), "uid:7");
    notes = kr_json_get(event, "annotations");
    assert_string_equal(kr_json_text(notes, "kuberelay.io/uri"), URI);
    assert_string_equal(kr_json_text(notes, "kuberelay.io/cluster"), "edge-1");
    assert_int_equal(strlen(kr_json_text(notes, "kuberelay.io/serial")), 32);
    assert_int_equal(strlen(kr_json_text(notes, "kuberelay.io/key")), 64);
    assert_string_equal(kr_json_text(notes, "kuberelay.io/not-after"),
                        "2027-01-15T09:00:00.000000Z");
    assert_int_equal(strlen(kr_json_text(notes, "kuberelay.io/prev")), 64);
    kr_json_destroy(event);
    kr_buf_deinit(&log);
}

static void test_without_its_audit_log_nothing_is_certified(void **state)
{
    struct kr_signer_config cfg = config_of(*state);
    struct world *w = *state;
    struct kr_note why = {""};
    struct kr_buf chain;

    kr_signer_destroy(w->signer);
    cfg.audit.path = "/dev/full";
    assert_int_equal(kr_signer_create(&w->signer, &cfg, NULL), 0);
    assert_int_equal(sign(w, URI, 3600, &chain, &why), KR_EUNAVAILABLE);
    assert_non_null(strstr(why.text, "audit"));
    assert_int_equal(w->changes, 1);
}

static void test_reload_takes_new_files_and_keeps_old_ones_when_they_are_bad(void **state)
{
    struct world *w = *state;
    struct kr_buf a;
    struct kr_buf b;

    assert_int_equal(kr_file_replace(w->cert, KR_LIT("nothing\n"), NULL), 0);
    assert_int_not_equal(kr_signer_load(w->signer, NULL), 0);
    assert_int_equal(sign(w, URI, 3600, &a, NULL), 0);
    write_ca(w);
    assert_int_equal(kr_signer_load(w->signer, NULL), 0);
    assert_int_equal(sign(w, URI, 3600, &b, NULL), 0);
    kr_buf_deinit(&a);
    kr_buf_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(test_certificate_is_of_the_name_and_the_key_that_were_asked_for),
        T(test_names_that_are_no_agents_of_the_domain_are_denied),
        T(test_lifetimes_out_of_bounds_are_refused),
        T(test_requests_that_are_none_are_refused),
        T(test_limit_of_a_cluster_is_told_with_the_time_and_lifts),
        T(test_each_certificate_is_one_chained_event),
        T(test_without_its_audit_log_nothing_is_certified),
        T(test_reload_takes_new_files_and_keeps_old_ones_when_they_are_bad),
#undef T
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
