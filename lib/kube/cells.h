/* SPDX-License-Identifier: Apache-2.0 */
/* cells: the cells of a Table's row, a JSON array as the API server made it, and its columns.
 * Some cells tell the time ("5d", "2 (3h ago)") and change by themselves: they do not count when
 * two rows are compared, and the hub renders Age anew when it serves a row. Memory: appends to the
 * caller's bufs. Errors: KR_EPROTO, those of kr_buf. Pure. */
#ifndef KR_KUBE_CELLS_H
#define KR_KUBE_CELLS_H

#include "kube/json_scan.h"

#define KR_COLUMNS_MAX 64

struct kr_column {
    struct kr_bytes name; /* as it stands in the JSON (no quotes) */
    struct kr_bytes text; /* the whole definition */
    bool age;             /* rendered from creationTimestamp */
    bool timely;          /* tells the time in some way (age included) */
};

struct kr_columns {
    struct kr_column all[KR_COLUMNS_MAX];
    size_t n;
};

/* From columnDefinitions; `json` is borrowed. */
int kr_columns_read(struct kr_bytes json, struct kr_columns *out);
/* What of the cells counts in a comparison: timely ones left out, " (3m ago)" cut off. */
int kr_cells_steady(const struct kr_columns *columns, struct kr_bytes cells, struct kr_buf *out);

#endif
