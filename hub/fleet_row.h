/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_row: a row of the fleet view's Table: the cluster, then the cells that its API server made,
 * with Age as it is now; then the object, as includeObject asks.
 * Memory, errors: as fleet_render.h. Pure. */
#ifndef HUB_FLEET_ROW_H
#define HUB_FLEET_ROW_H

#include "hub/fleet_columns.h"
#include "hub/fleet_render.h"
#include "kube/list_options.h"

struct hub_row {
    const struct hub_columns *columns;
    const struct hub_kind *kind;
    const char *meta_version; /* of meta.k8s.io: "v1" or "v1beta1" */
    enum kr_include_object include;
    int64_t now_wall_s;
};

/* `cells` is the array as it came (empty: none), `name` the object's. */
int hub_row_write(struct kr_buf *out, const struct hub_row *row, struct kr_bytes cells,
                  struct kr_bytes slim, struct kr_bytes name, const struct hub_face *face);

#endif
