/* SPDX-License-Identifier: Apache-2.0 */
/* injected: the label and the annotations that the fleet view adds to what it shows. They come from
 * no edge and must go back to none. Pure. */
#ifndef KR_KUBE_INJECTED_H
#define KR_KUBE_INJECTED_H

#include "base/buf.h"

#define KR_LABEL_CLUSTER "kuberelay.io/cluster"
#define KR_NOTE_KCP_CLUSTER "kcp.io/cluster"
#define KR_NOTE_CLUSTER_NAME "multicluster.x-k8s.io/cluster-name"
#define KR_NOTE_VERSION "kuberelay.io/resource-version" /* at the edge */
#define KR_NOTE_STALE "kuberelay.io/stale-since"
#define KR_NOTE_SLIMMED "kuberelay.io/slimmed"

/* The key as it stands in JSON, without its quotes, perhaps with escapes. */
bool kr_is_injected(struct kr_bytes key);
/* The same for the key itself. */
bool kr_is_injected_name(struct kr_bytes key);
/* Whether there is such a key in a map (checked JSON; empty: no map). */
bool kr_has_injected(struct kr_bytes map);
/* Appends the text of an object of an edge with both maps, which lie in it, written anew without
 * such keys. Hub and agent do the same, so that they compare the same. */
int kr_cut_injected(struct kr_bytes text, struct kr_bytes labels, struct kr_bytes annotations,
                    struct kr_buf *out);

#endif
