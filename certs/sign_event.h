/* SPDX-License-Identifier: Apache-2.0 */
/* sign_event: the line of an audit log that tells of one certificate (audit.k8s.io/v1). */
#ifndef KR_CERTS_SIGN_EVENT_H
#define KR_CERTS_SIGN_EVENT_H

#include "base/buf.h"
#include "certs/identity.h"

/* As kr_chained_log_put wants it: the annotations are still open. Errors: those of kr_buf. */
int kr_sign_event_write(struct kr_buf *line, const struct kr_identity *made, struct kr_bytes uri,
                        const char *caller, int64_t now_wall_ms);

#endif
