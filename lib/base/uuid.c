/* SPDX-License-Identifier: Apache-2.0 */
#include "base/uuid.h"

static const char digits[] = "0123456789abcdef";

static bool is_dash(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void kr_uuid_v4(uint64_t a, uint64_t b, uint8_t out[KR_UUID_SIZE])
{
    memcpy(out, &a, 8);
    memcpy(out + 8, &b, 8);
    out[6] = (uint8_t)(0x40 | (out[6] & 0x0F));
    out[8] = (uint8_t)(0x80 | (out[8] & 0x3F));
}

void kr_uuid_write(const uint8_t id[KR_UUID_SIZE], char out[KR_UUID_TEXT])
{
    size_t at = 0;

    for (size_t i = 0; i < KR_UUID_TEXT - 1; i++) {
        if (is_dash(i)) {
            out[i] = '-';
            continue;
        }
        out[i] = digits[at % 2 == 0 ? id[at / 2] >> 4 : id[at / 2] & 15];
        at++;
    }
    out[KR_UUID_TEXT - 1] = '\0';
}

bool kr_uuid_read(struct kr_bytes text, uint8_t out[KR_UUID_SIZE])
{
    size_t at = 0;

    if (text.n != KR_UUID_TEXT - 1)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        int d = digit_of(text.p[i]);

        if (is_dash(i) ? text.p[i] != '-' : d < 0)
            return false;
        if (is_dash(i))
            continue;
        out[at / 2] = (uint8_t)(at % 2 == 0 ? d << 4 : out[at / 2] | d);
        at++;
    }
    return true;
}
