/* SPDX-License-Identifier: Apache-2.0 */
/* injected: the label and the annotations that the fleet view adds to what it shows. They come from
 * no edge and must go back to none. Pure. */
#ifndef KR_KUBE_INJECTED_H
#define KR_KUBE_INJECTED_H

#include "base/bytes.h"

#define KR_LABEL_CLUSTER "kuberelay.io/cluster"
#define KR_NOTE_KCP_CLUSTER "kcp.io/cluster"
#define KR_NOTE_CLUSTER_NAME "multicluster.x-k8s.io/cluster-name"
#define KR_NOTE_VERSION "kuberelay.io/resource-version" /* at the edge */
#define KR_NOTE_STALE "kuberelay.io/stale-since"
#define KR_NOTE_SLIMMED "kuberelay.io/slimmed"

/* The key as it stands in JSON, without its quotes, perhaps with escapes. */
bool kr_is_injected(struct kr_bytes key);

#endif
