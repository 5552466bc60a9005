/* SPDX-License-Identifier: Apache-2.0 */
/* cells: what stands in the columns of table.c, one function a resource, behind the name. */
#ifndef SIM_CELLS_H
#define SIM_CELLS_H

#include "json.h"

typedef void sim_cells_fn(struct json_object *object, int64_t now_wall_ms,
                          struct json_object *cells);

sim_cells_fn sim_cells_pod, sim_cells_node, sim_cells_namespace, sim_cells_deployment;
sim_cells_fn sim_cells_replicaset, sim_cells_daemonset, sim_cells_statefulset, sim_cells_job;
sim_cells_fn sim_cells_service, sim_cells_configmap, sim_cells_secret, sim_cells_serviceaccount;
sim_cells_fn sim_cells_endpoints, sim_cells_lease, sim_cells_event, sim_cells_created;
sim_cells_fn sim_cells_binding, sim_cells_age;

/* "5s", "3m20s", "4h", "12d": as kubectl prints ages. */
void sim_duration(int64_t seconds, char out[32]);
/* Milliseconds since 1970 of an RFC 3339 time in UTC; -1 if it is none. */
int64_t sim_time_parse(const char *text);

#endif
