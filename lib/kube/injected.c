/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/injected.h"

#include "kube/json_scan.h"

bool kr_is_injected(struct kr_bytes key)
{
    static const char *const keys[] = {
        KR_LABEL_CLUSTER, KR_NOTE_KCP_CLUSTER, KR_NOTE_CLUSTER_NAME,
        KR_NOTE_VERSION,  KR_NOTE_STALE,       KR_NOTE_SLIMMED,
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (kr_scan_key_is(key, keys[i]))
            return true;
    }
    return false;
}
