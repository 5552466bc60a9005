/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_options.h"

#define MINUTE 60
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * (int64_t)DAY)

/* "5d3h", or "5d" when there is no rest. */
static int two_units(struct kr_buf *out, int64_t whole, char unit, int64_t part, char part_unit)
{
    if (part == 0)
        return kr_buf_printf(out, "%lld%c", (long long)whole, unit);
    return kr_buf_printf(out, "%lld%c%lld%c", (long long)whole, unit, (long long)part, part_unit);
}

int kr_human_duration(int64_t s, struct kr_buf *out)
{
    if (s < -1)
        return kr_buf_append(out, KR_LIT("<invalid>"));
    if (s < 0) /* clocks may differ a little */
        s = 0;
    if (s < 2 * MINUTE)
        return two_units(out, s, 's', 0, 0);
    if (s < 10 * MINUTE)
        return two_units(out, s / MINUTE, 'm', s % MINUTE, 's');
    if (s < 3 * HOUR)
        return two_units(out, s / MINUTE, 'm', 0, 0);
    if (s < 8 * HOUR)
        return two_units(out, s / HOUR, 'h', s / MINUTE % 60, 'm');
    if (s < 2 * DAY)
        return two_units(out, s / HOUR, 'h', 0, 0);
    if (s < 8 * DAY)
        return two_units(out, s / DAY, 'd', s / HOUR % 24, 'h');
    if (s < 2 * YEAR)
        return two_units(out, s / DAY, 'd', 0, 0);
    if (s < 8 * YEAR)
        return two_units(out, s / YEAR, 'y', s / DAY % 365, 'd');
    return two_units(out, s / YEAR, 'y', 0, 0);
}

/* Days from 1970-01-01 in the Gregorian calendar (proleptic). */
static int64_t days_since_epoch(int64_t year, int64_t month, int64_t day)
{
    static const int16_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t years = month > 2 ? year : year - 1; /* leap days that have passed */

    int64_t leaps = years / 4 - years / 100 + years / 400 + (year > 0 || month > 2); /* year 0 */

    return year * 365 + leaps + before[month - 1] + day - 1 - 719528;
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_in_month(int64_t year, int64_t month)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

static bool take_number(struct kr_bytes *in, size_t digits, uint8_t end, int64_t *out)
{
    uint64_t v;

    if (in->n <= digits || in->p[digits] != end ||
        !kr_bytes_to_u64(kr_bytes_of(in->p, digits), 9999, &v))
        return false;
    *out = (int64_t)v;
    *in = kr_bytes_skip(*in, digits + 1);
    return true;
}

/* ":05Z", ":05.123456Z" without its first character. */
static bool take_seconds(struct kr_bytes in, int64_t *out)
{
    size_t i = 3;

    if (in.n < 3)
        return false;
    if (in.p[2] == '.') {
        while (i < in.n && in.p[i] >= '0' && in.p[i] <= '9')
            i++;
        if (i == 3 || i + 1 != in.n || in.p[i] != 'Z')
            return false;
        return take_number(&in, 2, '.', out);
    }
    return in.n == 3 && take_number(&in, 2, 'Z', out);
}

bool kr_time_parse(struct kr_bytes text, int64_t *seconds)
{
    int64_t year;
    int64_t month;
    int64_t day;
    int64_t hour;
    int64_t minute;
    int64_t second;

    if (!take_number(&text, 4, '-', &year) || !take_number(&text, 2, '-', &month) ||
        !take_number(&text, 2, 'T', &day) || !take_number(&text, 2, ':', &hour) ||
        !take_number(&text, 2, ':', &minute) || !take_seconds(text, &second))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
        minute > 59 || second > 59)
        return false;
    *seconds = days_since_epoch(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second;
    return true;
}
