/* SPDX-License-Identifier: Apache-2.0 */
/* file: small files, read whole. */
#ifndef KR_BASE_FILE_H
#define KR_BASE_FILE_H

#include "base/buf.h"
#include "base/note.h"

#define KR_FILE_MAX (1u << 20)

/* Replaces what is in `out`. Files above KR_FILE_MAX, unreadable ones: KR_ETOOBIG, KR_EIO, with a
 * note that names the file. */
int kr_file_read(const char *path, struct kr_buf *out, struct kr_note *why);

#endif
