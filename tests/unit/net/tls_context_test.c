/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_context.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "tls_world.h"

struct files {
    struct world w;
    char dir[64];
    char cert[96];
    char key[96];
    char ca[96];
};

static void write_file(const char *path, struct kr_bytes data, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(write(fd, data.p, data.n), data.n);
    close(fd);
}

static void files_init(struct files *f)
{
    world_init(&f->w);
    strcpy(f->dir, "/tmp/tls_context_test.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->cert, sizeof f->cert, "%s/tls.crt", f->dir);
    snprintf(f->key, sizeof f->key, "%s/tls.key", f->dir);
    snprintf(f->ca, sizeof f->ca, "%s/ca.crt", f->dir);
    write_file(f->cert, kr_buf_bytes(&f->w.hub.cert_pem), 0644);
    write_file(f->key, kr_buf_bytes(&f->w.hub.key_pem), 0600);
    write_file(f->ca, kr_buf_bytes(&f->w.ca.cert_pem), 0644);
}

static void files_deinit(struct files *f)
{
    unlink(f->cert);
    unlink(f->key);
    unlink(f->ca);
    rmdir(f->dir);
    world_deinit(&f->w);
}

static struct kr_tls_config config_of(const struct files *f)
{
    return (struct kr_tls_config){
        .server = true,
        .cert.file = f->cert,
        .key.file = f->key,
        .ca.file = f->ca,
        .peer_cert = KR_TLS_CERT_REQUIRED,
    };
}

static void refused(const struct kr_tls_config *cfg, int rc, const char *words)
{
    struct kr_note why = {""};
    int got = 0;

    assert_null(kr_tls_context_create(cfg, &got, &why));
    if (got != rc || strstr(why.text, words) == NULL)
        fail_msg("%d, %s", got, why.text);
}

static void test_good_files_then_created_and_counted(void **state)
{
    struct kr_tls_context *ctx;
    struct kr_tls_config cfg;
    struct files f;
    int rc = 1;

    (void)state;
    files_init(&f);
    cfg = config_of(&f);
    ctx = kr_tls_context_create(&cfg, &rc, NULL);
    assert_non_null(ctx);
    assert_int_equal(rc, 0);
    assert_true(kr_tls_context_not_after(ctx) > time(NULL));
    kr_tls_context_unref(kr_tls_context_ref(ctx));
    kr_tls_context_unref(ctx);
    kr_tls_context_unref(NULL);
    files_deinit(&f);
}

static void test_key_file_open_to_others_then_refused_unless_lax(void **state)
{
    struct kr_tls_context *ctx;
    struct kr_tls_config cfg;
    struct files f;

    (void)state;
    files_init(&f);
    cfg = config_of(&f);
    assert_int_equal(chmod(f.key, 0640), 0);
    refused(&cfg, KR_EDENIED, "mode 640");
    cfg.lax_key_mode = true;
    ctx = kr_tls_context_create(&cfg, NULL, NULL);
    assert_non_null(ctx);
    kr_tls_context_unref(ctx);
    files_deinit(&f);
}

static void test_bad_files_then_refused_by_name(void **state)
{
    struct kr_tls_config cfg;
    struct files f;
    char none[128];

    (void)state;
    files_init(&f);
    snprintf(none, sizeof none, "%s/none", f.dir);
    cfg = config_of(&f);
    cfg.cert.file = none;
    refused(&cfg, KR_ENOENT, "/none");
    cfg = config_of(&f);
    cfg.ca.file = f.dir;
    refused(&cfg, KR_EINVAL, "not a file");
    cfg = config_of(&f);
    cfg.cert.file = f.key;
    refused(&cfg, KR_EINVAL, "not a PEM certificate");
    cfg = config_of(&f);
    cfg.ca.file = f.key;
    refused(&cfg, KR_EINVAL, "not a PEM bundle");
    write_file(f.key, kr_buf_bytes(&f.w.agent.key_pem), 0600);
    cfg = config_of(&f);
    refused(&cfg, KR_EINVAL, "does not belong");
    write_file(f.key,
               KR_LIT("-----BEGIN "
                      "PRIVATE KEY-----\nAAAA\n-----END "
                      "PRIVATE KEY-----\n"),
               0600);
    refused(&cfg, KR_EINVAL, "not a PEM private key");
    files_deinit(&f);
}

static void test_bundle_with_a_broken_certificate_then_refused(void **state)
{
    struct kr_tls_config cfg;
    struct kr_buf both;
    struct files f;

    (void)state;
    files_init(&f);
    kr_buf_init(&both, 65536);
    kr_buf_append(&both, kr_buf_bytes(&f.w.ca.cert_pem));
    kr_buf_append_str(&both, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
    cfg = config_of(&f);
    cfg.ca = (struct kr_tls_pem){.bytes = kr_buf_bytes(&both)};
    refused(&cfg, KR_EINVAL, "given data");
    kr_buf_deinit(&both);
    files_deinit(&f);
}

static void test_missing_parts_then_refused(void **state)
{
    struct kr_tls_config cfg = {.insecure_skip_verify = true};
    struct files f;

    (void)state;
    files_init(&f);
    refused(&cfg, KR_EUNSUPPORTED, "insecure-skip-tls-verify");
    cfg = (struct kr_tls_config){.server = false};
    refused(&cfg, KR_EINVAL, "authorities"); /* never the system's store */
    cfg = config_of(&f);
    cfg.key.file = NULL;
    refused(&cfg, KR_EINVAL, "both of them");
    cfg = (struct kr_tls_config){.server = true};
    refused(&cfg, KR_EINVAL, "both of them");
    cfg = config_of(&f);
    cfg.ca.file = NULL;
    refused(&cfg, KR_EINVAL, "authorities");
    files_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_files_then_created_and_counted),
        cmocka_unit_test(test_key_file_open_to_others_then_refused_unless_lax),
        cmocka_unit_test(test_bad_files_then_refused_by_name),
        cmocka_unit_test(test_bundle_with_a_broken_certificate_then_refused),
        cmocka_unit_test(test_missing_parts_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
