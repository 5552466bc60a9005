/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/api_version.h"

struct parts {
    bool known; /* it looks like v1, v1beta1 or v1alpha1 */
    int stage;  /* 3: stable, 2: beta, 1: alpha */
    uint64_t major;
    uint64_t minor;
};

/* Takes digits off the front; false if there are none, or too many. */
static bool take_number(struct kr_bytes *b, uint64_t *out)
{
    size_t n = 0;

    while (n < b->n && b->p[n] >= '0' && b->p[n] <= '9')
        n++;
    if (!kr_bytes_to_u64(kr_bytes_of(b->p, n), UINT32_MAX, out))
        return false;
    *b = kr_bytes_skip(*b, n);
    return true;
}

static struct parts parts_of(struct kr_bytes v)
{
    static const struct parts unknown = {false, 0, 0, 0};
    struct parts p = {.known = true, .stage = 3};

    if (v.n == 0 || v.p[0] != 'v')
        return unknown;
    v = kr_bytes_skip(v, 1);
    if (!take_number(&v, &p.major))
        return unknown;
    if (v.n == 0)
        return p;
    if (kr_bytes_starts(v, KR_LIT("beta"))) {
        p.stage = 2;
        v = kr_bytes_skip(v, 4);
    } else if (kr_bytes_starts(v, KR_LIT("alpha"))) {
        p.stage = 1;
        v = kr_bytes_skip(v, 5);
    } else {
        return unknown;
    }
    return take_number(&v, &p.minor) && v.n == 0 ? p : unknown;
}

int kr_api_version_compare(struct kr_bytes a, struct kr_bytes b)
{
    struct parts x = parts_of(a);
    struct parts y = parts_of(b);

    if (x.known != y.known)
        return x.known ? -1 : 1;
    if (!x.known)
        return kr_bytes_compare(a, b);
    if (x.stage != y.stage)
        return y.stage - x.stage;
    if (x.major != y.major)
        return x.major > y.major ? -1 : 1;
    return (x.minor < y.minor) - (x.minor > y.minor);
}
