/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/injected.h"

#include "kube/json_scan.h"

static const char *const keys[] = {
    KR_LABEL_CLUSTER, KR_NOTE_KCP_CLUSTER, KR_NOTE_CLUSTER_NAME,
    KR_NOTE_VERSION,  KR_NOTE_STALE,       KR_NOTE_SLIMMED,
};

bool kr_is_injected(struct kr_bytes key)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (kr_scan_key_is(key, keys[i]))
            return true;
    }
    return false;
}

bool kr_is_injected_name(struct kr_bytes key)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (kr_bytes_is(key, keys[i]))
            return true;
    }
    return false;
}

bool kr_has_injected(struct kr_bytes map)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;

    if (map.n == 0 || !kr_scan_object(map, &it))
        return false;
    while (kr_scan_member(&it, &key, &value)) {
        if (kr_is_injected(key))
            return true;
    }
    return false;
}

/* The map without what is not to be in it. */
static int put_map(struct kr_buf *out, struct kr_bytes map)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;
    const char *comma = "";
    int rc = kr_buf_append_str(out, "{");

    kr_scan_object(map, &it);
    while (rc == 0 && kr_scan_member(&it, &key, &value)) {
        if (kr_is_injected(key))
            continue;
        rc = kr_buf_append_str(out, comma);
        if (rc == 0)
            rc = kr_buf_append_str(out, "\"");
        if (rc == 0)
            rc = kr_buf_append(out, key);
        if (rc == 0)
            rc = kr_buf_append_str(out, "\":");
        if (rc == 0)
            rc = kr_buf_append(out, value);
        comma = ",";
    }
    return rc != 0 ? rc : kr_buf_append_str(out, "}");
}

int kr_cut_injected(struct kr_bytes text, struct kr_bytes labels, struct kr_bytes annotations,
                    struct kr_buf *out)
{
    bool labels_first = annotations.n == 0 || (labels.n != 0 && labels.p < annotations.p);
    const struct kr_bytes maps[] = {
        labels_first ? labels : annotations,
        labels_first ? annotations : labels,
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < 2; i++) {
        size_t before;

        if (maps[i].n == 0)
            continue;
        before = (size_t)(maps[i].p - text.p);
        rc = kr_buf_append(out, kr_bytes_of(text.p, before));
        if (rc == 0)
            rc = put_map(out, maps[i]);
        text = kr_bytes_skip(text, before + maps[i].n);
    }
    return rc != 0 ? rc : kr_buf_append(out, text);
}
