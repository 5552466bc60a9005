/* SPDX-License-Identifier: Apache-2.0 */
/* describe: a certificate in words, for `kuberelayctl ca show`: "key: value" lines.
 * Memory: appends to the caller's buf.
 * Errors: KR_EPROTO (no certificate), KR_ETOOBIG, KR_ENOMEM. */
#ifndef KR_CERTS_DESCRIBE_H
#define KR_CERTS_DESCRIBE_H

#include "base/buf.h"
#include "base/note.h"

/* The first certificate of `pem`. A leaf that no role would accept is described too, with the
 * reason. Bytes of names that are not printable ASCII are shown as \xNN. */
int kr_cert_describe(struct kr_buf *out, struct kr_bytes pem, int64_t now_wall_ms,
                     struct kr_note *why);

#endif
