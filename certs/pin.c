/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/pin.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "base/err.h"
#include "certs/x509_util.h"

static const char prefix[] = "sha256:";

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool kr_pin_parse(struct kr_bytes text, uint8_t pin[KR_PIN_SIZE])
{
    if (!kr_bytes_starts(text, kr_bytes_str(prefix)) || text.n != KR_PIN_TEXT - 1)
        return false;
    text = kr_bytes_skip(text, sizeof prefix - 1);
    for (size_t i = 0; i < KR_PIN_SIZE; i++) {
        int high = digit(text.p[2 * i]);
        int low = digit(text.p[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        pin[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is_root(X509 *x)
{
    return X509_NAME_cmp(X509_get_subject_name(x), X509_get_issuer_name(x)) == 0 &&
           X509_check_ca(x) == 1;
}

/* The root that the chain leads to, whatever the time; with a reference of the caller's. */
static int find_root(STACK_OF(X509) * chain, STACK_OF(X509) * roots, X509 **out,
                     struct kr_note *why)
{
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    STACK_OF(X509) * verified;
    int rc = KR_ENOMEM;

    *out = NULL;
    if (ctx != NULL && chain != NULL && roots != NULL && sk_X509_num(chain) > 0 &&
        X509_STORE_CTX_init(ctx, NULL, sk_X509_value(chain, 0), chain) == 1) {
        X509_STORE_CTX_set0_trusted_stack(ctx, roots);
        X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_NO_CHECK_TIME);
        rc = X509_verify_cert(ctx) == 1
                 ? 0
                 : kr_note_set(why, KR_EDENIED, "the chain leads to none of the roots (%s)",
                               X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    }
    if (rc == 0) {
        verified = X509_STORE_CTX_get0_chain(ctx);
        *out = sk_X509_value(verified, sk_X509_num(verified) - 1);
        X509_up_ref(*out);
    }
    X509_STORE_CTX_free(ctx);
    ERR_clear_error();
    return rc;
}

int kr_pin_of_chain(struct kr_bytes chain_pem, struct kr_bytes roots_pem, char out[KR_PIN_TEXT],
                    struct kr_note *why)
{
    STACK_OF(X509) *chain = kr_x509_all_from_pem(chain_pem);
    STACK_OF(X509) *roots = kr_x509_all_from_pem(roots_pem);
    uint8_t pin[KR_PIN_SIZE];
    X509 *root = NULL;
    int rc = find_root(chain, roots, &root, why);

    if (rc == 0 && !kr_x509_spki_sha256(root, pin))
        rc = kr_x509_fail(why, KR_ENOMEM, "cannot hash the root's key");
    if (rc == 0) {
        memcpy(out, prefix, sizeof prefix);
        for (size_t i = 0; i < KR_PIN_SIZE; i++)
            snprintf(out + sizeof prefix - 1 + 2 * i, 3, "%02x", pin[i]);
    }
    X509_free(root);
    sk_X509_pop_free(chain, X509_free);
    sk_X509_pop_free(roots, X509_free);
    return rc;
}

int kr_pin_check(struct kr_bytes roots_pem, const uint8_t pin[KR_PIN_SIZE], struct kr_note *why)
{
    STACK_OF(X509) *roots = kr_x509_all_from_pem(roots_pem);
    int rc = KR_EDENIED;

    for (int i = 0; rc != 0 && i < sk_X509_num(roots); i++) {
        X509 *x = sk_X509_value(roots, i);
        uint8_t its[KR_PIN_SIZE];

        if (is_root(x) && kr_x509_spki_sha256(x, its) && memcmp(its, pin, KR_PIN_SIZE) == 0)
            rc = 0;
    }
    sk_X509_pop_free(roots, X509_free);
    return rc == 0 ? 0 : kr_note_set(why, rc, "none of the roots is the one that is pinned");
}

static bool has(STACK_OF(X509) * chain, X509 *root)
{
    for (int i = 0; i < sk_X509_num(chain); i++) {
        if (X509_cmp(sk_X509_value(chain, i), root) == 0)
            return true;
    }
    return false;
}

static int append(struct kr_buf *out, X509 *x, struct kr_note *why)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *p = NULL;
    long n = 0;
    int rc = KR_ENOMEM;

    if (bio != NULL && PEM_write_bio_X509(bio, x) == 1)
        n = BIO_get_mem_data(bio, &p);
    if (n > 0)
        rc = kr_buf_append_str(out, "\n"); /* the text before may end without one */
    if (rc == 0)
        rc = kr_buf_append(out, kr_bytes_of(p, (size_t)n));
    BIO_free(bio);
    return rc == 0 ? 0 : kr_x509_fail(why, rc, "cannot write PEM");
}

int kr_pin_complete_chain(struct kr_buf *chain_pem, struct kr_bytes roots_pem, struct kr_note *why)
{
    STACK_OF(X509) *chain = kr_x509_all_from_pem(kr_buf_bytes(chain_pem));
    STACK_OF(X509) *roots = kr_x509_all_from_pem(roots_pem);
    X509 *root = NULL;
    int rc = find_root(chain, roots, &root, why);

    if (rc == 0 && !has(chain, root))
        rc = append(chain_pem, root, why);
    X509_free(root);
    sk_X509_pop_free(chain, X509_free);
    sk_X509_pop_free(roots, X509_free);
    return rc;
}
