/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_row.h"

#include "base/err.h"
#include "base/json.h"

/* The cells of one row, taken apart. */
struct cells {
    struct kr_bytes all[KR_COLUMNS_MAX];
    size_t n;
};

static int put(struct kr_buf *out, const void *p, size_t n)
{
    return kr_buf_append(out, kr_bytes_of(p, n));
}

static void take_apart(struct kr_bytes text, struct cells *out)
{
    struct kr_scan it;
    struct kr_bytes value;

    out->n = 0;
    if (!kr_scan_array(text, &it))
        return;
    while (out->n < KR_COLUMNS_MAX && kr_scan_element(&it, &value))
        out->all[out->n++] = value;
}

static int put_age(struct kr_buf *out, const struct hub_row *row, struct kr_bytes created)
{
    int64_t since;
    int rc;

    if (!kr_time_parse(created, &since))
        return put(out, "\"<unknown>\"", 11);
    rc = put(out, "\"", 1);
    if (rc == 0)
        rc = kr_human_duration(row->now_wall_s - since, out);
    return rc != 0 ? rc : put(out, "\"", 1);
}

static int put_text(struct kr_buf *out, struct kr_bytes text)
{
    int rc = put(out, "\"", 1);

    if (rc == 0)
        rc = kr_json_escape(out, text);
    return rc != 0 ? rc : put(out, "\"", 1);
}

static int put_cell(struct kr_buf *out, const struct hub_row *row, size_t column,
                    const struct hub_column_map *map, const struct cells *cells,
                    struct kr_bytes name, struct kr_bytes created)
{
    size_t from = map != NULL ? map->from[column] : HUB_COLUMNS_NONE;

    if (row->columns->shown.all[column].age)
        return put_age(out, row, created);
    if (from < cells->n)
        return kr_buf_append(out, cells->all[from]);
    if (column == row->columns->name_at)
        return put_text(out, name);
    return put(out, "null", 4);
}

static int put_cells(struct kr_buf *out, const struct hub_row *row, struct kr_bytes text,
                     struct kr_bytes name, struct kr_bytes created, const char *cluster)
{
    const struct hub_column_map *map = hub_columns_map(row->columns, cluster);
    struct cells cells;
    int rc = put(out, "{\"cells\":[\"", 11);

    take_apart(text, &cells);
    if (rc == 0)
        rc = kr_buf_append_str(out, cluster);
    if (rc == 0)
        rc = put(out, "\"", 1);
    for (size_t i = 0; rc == 0 && i < row->columns->shown.n; i++) {
        rc = put(out, ",", 1);
        if (rc == 0)
            rc = put_cell(out, row, i, map, &cells, name, created);
    }
    return rc != 0 ? rc : put(out, "],\"object\":", 11);
}

static int put_object(struct kr_buf *out, const struct hub_row *row, struct kr_bytes slim,
                      const struct hub_spots *spots, const struct hub_face *face)
{
    switch (row->include) {
    case KR_INCLUDE_NONE:
        return put(out, "null", 4);
    case KR_INCLUDE_OBJECT:
        return hub_render_at(out, row->kind, slim, spots, face);
    case KR_INCLUDE_METADATA:
        break;
    }
    return hub_render_partial(out, row->meta_version, slim, spots, face);
}

int hub_row_write(struct kr_buf *out, const struct hub_row *row, struct kr_bytes cells,
                  struct kr_bytes slim, struct kr_bytes name, const struct hub_face *face)
{
    struct hub_spots spots;
    size_t before = out->n;
    int rc = hub_spots_find(slim, true, &spots);

    if (rc == 0)
        rc = put_cells(out, row, cells, name, spots.created, face->cluster);
    if (rc == 0)
        rc = put_object(out, row, slim, &spots, face);
    if (rc == 0)
        rc = put(out, "}", 1);
    if (rc != 0)
        out->n = before;
    return rc;
}
