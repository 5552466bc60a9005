/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/query.h"

#include "base/err.h"
#include "kube/path.h"

bool kr_query_count_ok(struct kr_bytes query)
{
    size_t pairs = 1;

    for (size_t i = 0; i < query.n; i++)
        pairs += query.p[i] == '&';
    return pairs <= KR_QUERY_PAIRS_MAX;
}

int kr_query_next(struct kr_bytes *rest, struct kr_arena *arena, struct kr_bytes *name,
                  struct kr_bytes *value)
{
    int rc;

    while (rest->n != 0) {
        size_t end = kr_bytes_find(*rest, '&');
        struct kr_bytes pair = kr_bytes_of(rest->p, end);
        size_t eq = kr_bytes_find(pair, '=');

        *rest = kr_bytes_skip(*rest, end < rest->n ? end + 1 : end);
        if (pair.n == 0 || kr_bytes_find(pair, ';') < pair.n)
            continue;
        *name = kr_bytes_of(pair.p, eq);
        *value = kr_bytes_skip(pair, eq < pair.n ? eq + 1 : eq);
        rc = kr_percent_decode(*name, true, arena, name);
        if (rc == 0)
            rc = kr_percent_decode(*value, true, arena, value);
        if (rc != KR_EINVAL)
            return rc == 0 ? 1 : rc;
    }
    return 0;
}

bool kr_query_bool(struct kr_bytes value)
{
    return !kr_bytes_is(value, "0") && !kr_bytes_eq_fold(value, KR_LIT("false")) &&
           !(value.n == 6 && kr_bytes_eq_fold(kr_bytes_of(value.p, 3), KR_LIT("fal")) &&
             value.p[3] == 0xC5 && value.p[4] == 0xBF && (value.p[5] | 0x20) == 'e');
}

bool kr_query_int(struct kr_bytes value, int64_t *out)
{
    bool minus = value.n != 0 && value.p[0] == '-';
    uint64_t most = (uint64_t)INT64_MAX + (minus ? 1 : 0);
    uint64_t v = 0;

    if (value.n != 0 && (value.p[0] == '-' || value.p[0] == '+'))
        value = kr_bytes_skip(value, 1);
    while (value.n > 1 && value.p[0] == '0')
        value = kr_bytes_skip(value, 1);
    if (!kr_bytes_to_u64(value, most, &v))
        return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ns", 1},           {"us", 1000},      {"\xC2\xB5s", 1000}, /* micro sign */
    {"\xCE\xBCs", 1000},                                         /* Greek mu */
    {"ms", 1000000},     {"s", 1000000000}, {"m", 60000000000},  {"h", 3600000000000},
};

static uint64_t unit_ns(struct kr_bytes name)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (kr_bytes_is(name, units[i].name))
            return units[i].ns;
    }
    return 0;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The digits at the front; false when they pass 2^63. */
static bool take_whole(struct kr_bytes *in, uint64_t *v)
{
    for (*v = 0; in->n != 0 && is_digit(in->p[0]); *in = kr_bytes_skip(*in, 1)) {
        uint64_t top = (uint64_t)1 << 63;

        if (*v > top / 10)
            return false;
        *v = *v * 10 + (uint64_t)(in->p[0] - '0');
        if (*v > top)
            return false;
    }
    return true;
}

/* The digits behind a dot as v / scale; digits that no longer fit are dropped, as Go does. */
static void take_fraction(struct kr_bytes *in, uint64_t *v, double *scale)
{
    bool full = false;

    *v = 0;
    *scale = 1;
    for (; in->n != 0 && is_digit(in->p[0]); *in = kr_bytes_skip(*in, 1)) {
        uint64_t next;

        if (full || *v > (uint64_t)INT64_MAX / 10) {
            full = true;
            continue;
        }
        next = *v * 10 + (uint64_t)(in->p[0] - '0');
        full = next > (uint64_t)1 << 63;
        if (full)
            continue;
        *v = next;
        *scale *= 10;
    }
}

/* One "1.5h" from the front, in nanoseconds. */
static bool take_term(struct kr_bytes *in, uint64_t *ns)
{
    uint64_t fraction = 0;
    double scale = 1;
    size_t before = in->n;
    size_t k = 0;
    bool digits;
    uint64_t unit;

    if (!take_whole(in, ns))
        return false;
    digits = in->n != before;
    if (in->n != 0 && in->p[0] == '.') {
        *in = kr_bytes_skip(*in, 1);
        before = in->n;
        take_fraction(in, &fraction, &scale);
        digits = digits || in->n != before;
    }
    while (k < in->n && in->p[k] != '.' && !is_digit(in->p[k]))
        k++;
    unit = unit_ns(kr_bytes_of(in->p, k));
    if (!digits || unit == 0 || *ns > ((uint64_t)1 << 63) / unit)
        return false;
    *in = kr_bytes_skip(*in, k);
    *ns *= unit;
    if (fraction > 0)
        *ns += (uint64_t)((double)fraction * ((double)unit / scale));
    return *ns <= (uint64_t)1 << 63;
}

bool kr_query_duration(struct kr_bytes value, int64_t *out_ns)
{
    bool minus = value.n != 0 && value.p[0] == '-';
    uint64_t sum = 0;

    if (value.n != 0 && (value.p[0] == '-' || value.p[0] == '+'))
        value = kr_bytes_skip(value, 1);
    *out_ns = 0;
    if (kr_bytes_is(value, "0"))
        return true;
    if (value.n == 0)
        return false;
    while (value.n != 0) {
        uint64_t ns;

        if (!take_term(&value, &ns))
            return false;
        sum += ns;
        if (sum > (uint64_t)1 << 63)
            return false;
    }
    if (minus) {
        *out_ns = (int64_t)(0 - sum);
        return true;
    }
    *out_ns = (int64_t)sum;
    return sum <= (uint64_t)INT64_MAX;
}
