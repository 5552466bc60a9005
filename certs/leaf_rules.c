/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/leaf_rules.h"

#include <openssl/objects.h>
#include <openssl/x509v3.h>

#include "base/err.h"

#define RSA_BITS_MIN 2048

static int refuse(struct kr_note *why, const char *sentence)
{
    return kr_note_set(why, KR_EDENIED, "%s", sentence);
}

static int check_extended_usage(X509 *x, enum kr_role role, struct kr_note *why)
{
    uint32_t need = role == KR_ROLE_HUB ? XKU_SSL_SERVER : XKU_SSL_CLIENT;

    /* Without the extension OpenSSL answers "every usage": the flag must be asked first. */
    if ((X509_get_extension_flags(x) & EXFLAG_XKUSAGE) == 0)
        return refuse(why, "the certificate has no extendedKeyUsage");
    if ((X509_get_extended_key_usage(x) & need) == 0)
        return kr_note_set(why, KR_EDENIED, "the certificate's extendedKeyUsage lacks %s",
                           role == KR_ROLE_HUB ? "serverAuth" : "clientAuth");
    return 0;
}

int kr_leaf_check_usage(X509 *x, enum kr_role role, struct kr_note *why)
{
    uint32_t flags;
    uint32_t usage;

    if (X509_get_version(x) != X509_VERSION_3)
        return refuse(why, "the certificate is not X.509 version 3");
    if (X509_check_purpose(x, -1, 0) != 1) /* -1: only parse the extensions */
        return refuse(why, "the certificate has a malformed extension");
    flags = X509_get_extension_flags(x);
    if ((flags & EXFLAG_INVALID) != 0)
        return refuse(why, "the certificate has a malformed extension");
    if ((flags & EXFLAG_CRITICAL) != 0)
        return refuse(why, "the certificate has a critical extension that is not understood");
    /* Both: X509_check_ca says no when keyUsage forbids what basicConstraints claims. */
    if ((flags & EXFLAG_CA) != 0 || X509_check_ca(x) != 0)
        return refuse(why, "the certificate is one of a CA");
    if ((flags & EXFLAG_KUSAGE) == 0)
        return refuse(why, "the certificate has no keyUsage");
    usage = X509_get_key_usage(x);
    if ((usage & KU_DIGITAL_SIGNATURE) == 0)
        return refuse(why, "the certificate's keyUsage lacks digitalSignature");
    if ((usage & (KU_KEY_CERT_SIGN | KU_CRL_SIGN)) != 0)
        return refuse(why, "the certificate's keyUsage lets it sign certificates or CRLs");
    return check_extended_usage(x, role, why);
}

static int check_key(X509 *x, struct kr_note *why)
{
    EVP_PKEY *key = X509_get0_pubkey(x);
    char group[32] = "";

    if (key == NULL)
        return refuse(why, "the certificate's key cannot be read");
    switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
        if (EVP_PKEY_get_bits(key) < RSA_BITS_MIN)
            return kr_note_set(why, KR_EDENIED,
                               "the certificate's RSA key has %d bits; %d are needed",
                               EVP_PKEY_get_bits(key), RSA_BITS_MIN);
        return 0;
    case EVP_PKEY_EC:
        EVP_PKEY_get_group_name(key, group, sizeof group, NULL);
        switch (OBJ_sn2nid(group)) {
        case NID_X9_62_prime256v1:
        case NID_secp384r1:
        case NID_secp521r1:
            return 0;
        default:
            return refuse(why,
                          "the certificate's key is on a curve other than P-256, P-384, P-521");
        }
    case EVP_PKEY_ED25519:
        return 0;
    default:
        return refuse(why, "the certificate's key is neither RSA nor ECDSA nor Ed25519");
    }
}

static int check_signature(X509 *x, struct kr_note *why)
{
    int md = NID_undef;
    int pk = NID_undef;

    if (X509_get_signature_info(x, &md, &pk, NULL, NULL) != 1)
        return refuse(why, "the certificate's signature algorithm is not known");
    switch (md) {
    case NID_sha256:
    case NID_sha384:
    case NID_sha512:
        return 0;
    case NID_undef:
        if (pk == NID_ED25519)
            return 0;
        break;
    default:
        break;
    }
    return kr_note_set(why, KR_EDENIED,
                       "the certificate is signed with %s; SHA-256 or better is needed",
                       md != NID_undef ? OBJ_nid2sn(md) : "an algorithm that is not accepted");
}

int kr_leaf_check_strength(X509 *x, struct kr_note *why)
{
    int rc = check_key(x, why);

    return rc != 0 ? rc : check_signature(x, why);
}
