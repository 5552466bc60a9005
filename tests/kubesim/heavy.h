/* SPDX-License-Identifier: Apache-2.0 */
/* heavy: pods and nodes as large as real ones, and with as much of them managedFields. Each is a
 * text made once with places for what differs between objects; rendering copies the text and puts
 * that in, so that gigabytes of lists come as fast as TLS takes them.
 * Memory: one sim_heavy serves every cluster. Threads: rendering is pure. */
#ifndef SIM_HEAVY_H
#define SIM_HEAVY_H

#include "gen.h"

/* About so many bytes of JSON each (at least 6,000 and 5,000); NULL: no memory. */
struct sim_heavy *sim_heavy_create(uint32_t pod_bytes, uint32_t node_bytes);
void sim_heavy_destroy(struct sim_heavy *h);
/* Of w->heavy; kind is SIM_KIND_POD or SIM_KIND_NODE. */
int sim_heavy_render(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                     struct kr_buf *out);

#endif
