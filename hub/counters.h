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
    HUB_COUNTERS_N,
};

extern const struct kr_metric_family hub_counters[HUB_COUNTERS_N];

#endif
