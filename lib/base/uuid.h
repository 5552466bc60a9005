/* SPDX-License-Identifier: Apache-2.0 */
/* uuid: 16 bytes as the text of a UUID (RFC 9562 section 4), and back. Lower case only: upper case
 * would not come back as it was. Pure. */
#ifndef KR_BASE_UUID_H
#define KR_BASE_UUID_H

#include "base/bytes.h"

#define KR_UUID_SIZE 16
#define KR_UUID_TEXT 37 /* with its NUL */

/* Version 4 of 128 random bits. */
void kr_uuid_v4(uint64_t a, uint64_t b, uint8_t out[KR_UUID_SIZE]);
void kr_uuid_write(const uint8_t id[KR_UUID_SIZE], char out[KR_UUID_TEXT]);
/* False if the text is none. */
bool kr_uuid_read(struct kr_bytes text, uint8_t out[KR_UUID_SIZE]);

#endif
