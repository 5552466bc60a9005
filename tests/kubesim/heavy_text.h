/* SPDX-License-Identifier: Apache-2.0 */
/* heavy_text: the texts that heavy.c fills: JSON with marks where objects differ. */
#ifndef SIM_HEAVY_TEXT_H
#define SIM_HEAVY_TEXT_H

#include "base/buf.h"

#define MARK '$' /* and a letter behind it */

enum slot {
    S_NAME = 'n',
    S_NS = 's',
    S_UID = 'u',
    S_RV = 'v',
    S_BORN = 'b',
    S_CHANGED = 'c', /* of nodes: the heartbeat */
    S_SINCE = 'e',
    S_APP = 'a', /* of nodes: the cluster */
    S_WORD = 'w',
    S_RS = 'r',
    S_HASH = 'h',
    S_TIER = 't',
    S_OWNER = 'o',
    S_NODE = 'd',
    S_IP = 'i',
    S_HOST_IP = 'H',
    S_READY_WORD = 'R',
    S_READY = 'B',
    S_REASON = 'E',
    S_STATE = 'S',
    S_LAST = 'L',
    S_RESTARTS = 'x',
    S_VERSION = 'V',
    S_IMAGE = 'I',
    S_CONFIG = 'C',
    S_SUFFIX = 'f',
    S_TRACES = 'T',
    S_CONTAINER_1 = '1', /* and '2', '3' */
};

/* `fillers` environment variables beyond the first ones, spread over the containers. */
void sim_heavy_pod_text(unsigned containers, unsigned fillers, struct kr_buf *out);
/* `fillers` images beyond the first ones. */
void sim_heavy_node_text(unsigned fillers, struct kr_buf *out);

#endif
