/* SPDX-License-Identifier: Apache-2.0 */
/* view: an object as the client wants it: as it is, as PartialObjectMetadata, or as a Table row.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables */
#ifndef SIM_VIEW_H
#define SIM_VIEW_H

#include "api.h"

struct sim_viewer {
    const struct sim_cluster *c;
    int kind;
    enum sim_view view;
    enum { SIM_INCLUDE_METADATA, SIM_INCLUDE_NONE, SIM_INCLUDE_OBJECT } include; /* Tables */
};

/* From Accept and includeObject; false: nothing acceptable (406 is answered). */
bool sim_negotiate(struct sim_call *call);
void sim_viewer_init(struct sim_viewer *v, const struct sim_call *call);
/* A whole object: GET and the answers of writes. */
int sim_view_one(const struct sim_viewer *v, struct json_object *object, struct kr_buf *out);
/* The object inside a watch event; `columns`: the first of its stream. */
int sim_view_event(const struct sim_viewer *v, struct json_object *object, bool columns,
                   struct kr_buf *out);
/* The same from the store's own text, where that can be (rows of generated objects). False: nothing
 * was appended, it cannot. */
bool sim_view_plain_event(const struct sim_viewer *v, const struct sim_rev *rev, bool columns,
                          struct kr_buf *out, int *rc);
/* The pieces of a list: open, items (the caller puts commas between them), close. */
int sim_view_list_open(const struct sim_viewer *v, const char *metadata, struct kr_buf *out);
int sim_view_list_item(const struct sim_viewer *v, const struct sim_rev *rev, struct kr_buf *out);
int sim_view_list_close(const struct sim_viewer *v, struct kr_buf *out);

/* table.c: [{name,type,format,description,priority}...] and the cells of one object. */
int sim_table_columns(int kind, struct kr_buf *out);
struct json_object *sim_table_cells(int kind, struct json_object *object, int64_t now_wall_ms);

#endif
