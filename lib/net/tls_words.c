/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/err.h"
#include "net/tls_pipe.h"
#include "net/tls_private.h"

static const struct {
    int reason;
    const char *words;
} words[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "the peer sent no certificate"},
    {SSL_R_NO_APPLICATION_PROTOCOL, "no common application protocol (ALPN)"},
    {SSL_R_UNSUPPORTED_PROTOCOL, "no common TLS version"},
    {SSL_R_VERSION_TOO_LOW, "no common TLS version"},
    {SSL_R_WRONG_SSL_VERSION, "no common TLS version"},
    {SSL_R_WRONG_VERSION_NUMBER, "the peer does not speak TLS"},
    {SSL_R_HTTP_REQUEST, "the peer speaks HTTP without TLS"},
    {SSL_R_HTTPS_PROXY_REQUEST, "the peer speaks HTTP without TLS"},
    {SSL_R_NO_SHARED_CIPHER, "no common cipher suite"},
    {SSL_R_NO_SUITABLE_KEY_SHARE, "no common key exchange group"},
    {SSL_R_NO_SUITABLE_GROUPS, "no common key exchange group"},
    {SSL_R_EXCESSIVE_MESSAGE_SIZE, "the peer's certificate chain is larger than 16 KiB"},
    {SSL_R_UNEXPECTED_EOF_WHILE_READING, "the peer closed the connection"},
    {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, "a record was damaged on the way"},
    /* Alerts: what the peer thinks of us. */
    {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, KR_TLS_REFUSED},
    {SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, KR_TLS_REFUSED ": its purpose does not fit"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, KR_TLS_REFUSED ": revoked"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, KR_TLS_REFUSED ": expired (or its clock is wrong)"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, KR_TLS_REFUSED},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA, KR_TLS_REFUSED ": unknown authority"},
    {SSL_R_TLSV1_ALERT_ACCESS_DENIED, KR_TLS_REFUSED ": access denied"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the peer wants a certificate and we sent none"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the peer refused the TLS version"},
    {SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL,
     "the peer does not speak this application protocol (ALPN)"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "the peer found nothing in common (handshake failure)"},
    {SSL_R_TLSV1_UNRECOGNIZED_NAME, "the peer does not serve this name"},
};

const char *kr_tls_reason(unsigned long queued)
{
    const char *text = queued != 0 ? ERR_reason_error_string(queued) : NULL;

    return text != NULL ? text : "no detail";
}

int kr_tls_words(unsigned long queued, struct kr_note *why)
{
    int reason = ERR_GET_REASON(queued);

    if (ERR_GET_LIB(queued) == ERR_LIB_SSL) {
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            if (words[i].reason == reason)
                return kr_note_set(
                    why, reason == SSL_R_UNEXPECTED_EOF_WHILE_READING ? KR_ECONNLOST : KR_ETLS,
                    "%s", words[i].words);
        }
    }
    if (ERR_GET_REASON(queued) == ERR_R_MALLOC_FAILURE)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    return kr_note_set(why, KR_ETLS, "%s", kr_tls_reason(queued));
}

static void print_time(const ASN1_TIME *t, char *out, size_t room)
{
    struct tm tm;

    if (t == NULL || ASN1_TIME_to_tm(t, &tm) != 1 ||
        strftime(out, room, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(out, room, "?");
}

void kr_tls_verify_words(X509_STORE_CTX *store, struct kr_note *why)
{
    int err = X509_STORE_CTX_get_error(store);
    X509 *cert = X509_STORE_CTX_get_current_cert(store);
    char until[40] = "";
    char subject[80] = "";

    if (cert != NULL)
        X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof subject);
    if (cert != NULL && err == X509_V_ERR_CERT_HAS_EXPIRED)
        print_time(X509_get0_notAfter(cert), until, sizeof until);
    else if (cert != NULL && err == X509_V_ERR_CERT_NOT_YET_VALID)
        print_time(X509_get0_notBefore(cert), until, sizeof until);
    kr_note_set(why, KR_ETLS, "the peer's certificate is refused: %s%s%s (depth %d, \"%s\")",
                X509_verify_cert_error_string(err), until[0] != '\0' ? " " : "", until,
                X509_STORE_CTX_get_error_depth(store), subject);
}
