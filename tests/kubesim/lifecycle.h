/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle: what controllers and the kubelet would do, as far as a client waits for it: a pod
 * that is being deleted goes after a moment, so does a namespace with all it holds, and an object
 * that waits for the garbage collector; an object goes when its last finalizer went. Also the first
 * objects of a cluster. */
#ifndef SIM_LIFECYCLE_H
#define SIM_LIFECYCLE_H

#include "store.h"

#define SIM_FINISH_MS 200 /* how long the simulated kubelet or collector takes */

/* Namespaces, service accounts and so on, so that a new cluster is not bare. */
int sim_lifecycle_seed(struct sim_cluster *c);
/* After each write: removes the object if it was only waiting for its finalizers. */
void sim_lifecycle_written(struct sim_cluster *c, int kind, const char *key, struct json_object *v);
/* The object goes in SIM_FINISH_MS (with its content, if it is a namespace). */
void sim_lifecycle_finish_later(struct sim_cluster *c, int kind, const char *key);
/* Gives back what other parts keep in the cluster; then sim_cluster_destroy. */
void sim_lifecycle_end(struct sim_cluster *c);

#endif
