/* SPDX-License-Identifier: Apache-2.0 */
/* crl: certificate revocation lists (RFC 5280 section 5): making them offline, and looking serial
 * numbers up in them. Whether they are signed by who they should be is TLS's to check.
 * Errors: KR_EPROTO, KR_EINVAL, KR_ENOMEM, with a note. */
#ifndef KR_CERTS_CRL_H
#define KR_CERTS_CRL_H

#include "certs/ca.h"

#define KR_CRL_MAX 100000 /* entries */

struct kr_revoked {
    const char *serial; /* lower-case hex */
    int64_t when_wall_ms;
};

/* A list of this CA as PEM, due again after `days`. */
int kr_crl_make(struct kr_ca *ca, const struct kr_revoked *entries, size_t n, int64_t days,
                int64_t now_wall_ms, struct kr_buf *pem, struct kr_note *why);
/* The serial number of a certificate, and whether this CA has signed it (KR_EDENIED: no). */
int kr_crl_serial_of(struct kr_ca *ca, struct kr_bytes cert_pem, char serial[41],
                     struct kr_note *why);

struct kr_crl; /* all lists of a file */

int kr_crl_load(struct kr_crl **out, struct kr_bytes pem, struct kr_note *why);
void kr_crl_destroy(struct kr_crl *c); /* NULL is fine */
/* Whether one of the lists has this number (they are 128 random bits: whose it is does not matter).
 */
bool kr_crl_lists(const struct kr_crl *c, const char *serial);
/* When the first of them is no longer good. */
int64_t kr_crl_due_wall_ms(const struct kr_crl *c);

#endif
