/* SPDX-License-Identifier: Apache-2.0 */
/* counters: the agent's metrics, one row each. */
#ifndef AGENT_COUNTERS_H
#define AGENT_COUNTERS_H

#include "base/metrics.h"

enum agent_counter {
    AGENT_BUILD_INFO,
    AGENT_LINKS,
    AGENT_LINK_FAILURES,
    AGENT_EXCHANGES,
    AGENT_REQUESTS,
    AGENT_ANSWERS,
    AGENT_API_CONNECTIONS,
    AGENT_API_UP,
    AGENT_WINDOW_LEFT,
    AGENT_AUDIT_LINES,
    AGENT_AUDIT_LOST,
    AGENT_AUDIT_FAILING,
    AGENT_SYNCS,
    AGENT_SYNC_OBJECTS,
    AGENT_SYNC_READ_BYTES,
    AGENT_SYNC_SLIM_BYTES,
    AGENT_SYNC_SENT_BYTES,
    AGENT_SYNC_SENT,
    AGENT_SYNC_UNCHANGED,
    AGENT_SYNC_SKIPPED,
    AGENT_LISTS,
    AGENT_WATCHES,
    AGENT_RELISTS,
    AGENT_DISCOVERIES,
    AGENT_RENEWALS,
    AGENT_COUNTERS_N,
};

extern const struct kr_metric_family agent_counters[AGENT_COUNTERS_N];

#endif
