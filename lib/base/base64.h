/* SPDX-License-Identifier: Apache-2.0 */
/* base64: RFC 4648. Memory: into the caller's buf. */
#ifndef KR_BASE_BASE64_H
#define KR_BASE_BASE64_H

#include "base/buf.h"

/* Appends the text; `padded` with '='. KR_ENOMEM, KR_ETOOBIG. */
int kr_base64_encode(struct kr_buf *out, struct kr_bytes in, bool padded);
/* Appends the bytes; padding may be there or not, line breaks may not. KR_EINVAL for anything else
 * than base64, KR_ENOMEM, KR_ETOOBIG. */
int kr_base64_decode(struct kr_buf *out, struct kr_bytes in);

/* The same for section 5, the alphabet for URLs, without padding and without bits left over, as
 * JOSE writes it (RFC 7515 section 2): every text has one spelling. */
int kr_base64url_decode(struct kr_buf *out, struct kr_bytes in);

#endif
