/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_options.h"

int kr_version_compare(struct kr_bytes a, struct kr_bytes b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return a.n != 0 ? memcmp(a.p, b.p, a.n) : 0;
}
