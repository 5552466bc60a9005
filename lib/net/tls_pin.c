/* SPDX-License-Identifier: Apache-2.0 */
/* A root that is known by the hash of its key only: the peer must show it, and then it is the one
 * anchor of an ordinary verification. */
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "net/tls_private.h"

static bool has_key(X509 *x, const uint8_t pin[KR_TLS_PIN])
{
    X509_PUBKEY *key = X509_get_X509_PUBKEY(x);
    unsigned char hash[SHA256_DIGEST_LENGTH];
    unsigned char *der = NULL;
    int n = i2d_X509_PUBKEY(key, &der);
    bool same = n > 0 && EVP_Digest(der, (size_t)n, hash, NULL, EVP_sha256(), NULL) == 1 &&
                memcmp(hash, pin, KR_TLS_PIN) == 0;

    OPENSSL_free(der);
    return same;
}

static bool is_root(X509 *x)
{
    return X509_NAME_cmp(X509_get_subject_name(x), X509_get_issuer_name(x)) == 0 &&
           X509_check_ca(x) == 1;
}

int kr_tls_verify_pinned(SSL *ssl, X509_STORE_CTX *store, const uint8_t pin[KR_TLS_PIN])
{
    STACK_OF(X509) *shown = X509_STORE_CTX_get0_untrusted(store);
    STACK_OF(X509) * anchors;
    X509 *root = NULL;
    bool other = false;
    int ok;

    for (int i = 0; i < sk_X509_num(shown); i++) {
        X509 *x = sk_X509_value(shown, i);

        if (is_root(x) && has_key(x, pin))
            root = x;
        else if (is_root(x))
            other = true;
    }
    if (root == NULL) {
        kr_tls_note(ssl, other ? "the root of the peer's chain is not the one that is pinned"
                               : "the peer's chain comes without its root, of which only the pin "
                                 "is known here");
        X509_STORE_CTX_set_error(store, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
        return 0;
    }
    anchors = sk_X509_new_null();
    if (anchors == NULL || sk_X509_push(anchors, root) <= 0) {
        sk_X509_free(anchors);
        X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
        return 0;
    }
    X509_STORE_CTX_set0_trusted_stack(store, anchors);
    ok = X509_verify_cert(store);
    sk_X509_free(anchors); /* what was verified has references of its own */
    return ok;
}
