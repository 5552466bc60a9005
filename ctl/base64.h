/* SPDX-License-Identifier: Apache-2.0 */
/* base64: RFC 4648 section 4, with padding, without line breaks. Errors: those of kr_buf. */
#ifndef KR_CTL_BASE64_H
#define KR_CTL_BASE64_H

#include "base/buf.h"

int ctl_base64_append(struct kr_buf *out, struct kr_bytes in);

#endif
