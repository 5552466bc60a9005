/* SPDX-License-Identifier: Apache-2.0 */
/* pin: a root known by the SHA-256 of its SubjectPublicKeyInfo (RFC 7469 section 2.4), written
 * "sha256:" and 64 hexadecimal digits: short enough to be copied beside a token, and no less than
 * the root itself.
 * Errors: KR_EDENIED (no such root), KR_ENOMEM, those of kr_buf. Threads: any. */
#ifndef KR_CERTS_PIN_H
#define KR_CERTS_PIN_H

#include "base/buf.h"
#include "base/note.h"

#define KR_PIN_SIZE 32
#define KR_PIN_TEXT (7 + 2 * KR_PIN_SIZE + 1)

bool kr_pin_parse(struct kr_bytes text, uint8_t pin[KR_PIN_SIZE]);
/* Of the root that the chain (PEM, leaf first) leads to. */
int kr_pin_of_chain(struct kr_bytes chain_pem, struct kr_bytes roots_pem, char out[KR_PIN_TEXT],
                    struct kr_note *why);
/* 0 if one of the certificates is a root with that key. */
int kr_pin_check(struct kr_bytes roots_pem, const uint8_t pin[KR_PIN_SIZE], struct kr_note *why);
/* Appends the root that the chain leads to, unless it is there: who only knows the pin needs it. */
int kr_pin_complete_chain(struct kr_buf *chain_pem, struct kr_bytes roots_pem, struct kr_note *why);

#endif
