/* SPDX-License-Identifier: Apache-2.0 */
/* counters: the hub's metrics, one row each. Labels have few values: verbs and codes are from fixed
 * sets, clusters are enrolled ones. */
#ifndef HUB_COUNTERS_H
#define HUB_COUNTERS_H

#include "base/metrics.h"

enum hub_counter {
    HUB_BUILD_INFO,
    HUB_CONNECTIONS,
    HUB_HANDSHAKE_FAILURES,
    HUB_TUNNELS,
    HUB_TUNNEL_UP,
    HUB_TUNNEL_DOWN,
    HUB_CLUSTERS,
    HUB_EXCHANGES,
    HUB_REQUESTS,
    HUB_REQUEST_SECONDS,
    HUB_BYTES_UP,
    HUB_BYTES_DOWN,
    HUB_REFUSED,
    HUB_WINDOW_LEFT,
    HUB_AUDIT_LINES,
    HUB_AUDIT_LOST,
    HUB_AUDIT_FAILING,
    HUB_FLEET_LISTS,
    HUB_FLEET_WATCHERS,
    HUB_FLEET_EVENTS,
    HUB_FLEET_LIST_BYTES,
    HUB_SYNCS,
    HUB_SYNC_ENDS,
    HUB_SYNC_BYTES,
    HUB_SYNC_RAW,
    HUB_SYNC_PLAIN,
    HUB_SYNC_UPSERTS,
    HUB_SYNC_DELETES,
    HUB_SYNC_BAD,
    HUB_CACHE_OBJECTS,
    HUB_CACHE_BYTES,
    HUB_ENROLLMENTS,
    HUB_SIGNATURES,
    HUB_ALARMS,
    HUB_COUNTERS_N,
};

extern const struct kr_metric_family hub_counters[HUB_COUNTERS_N];

#endif
