/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/reading.h"

#include "base/err.h"

/* A server may answer a Table without whole objects (it is free to ignore includeObject): looked
 * at once for each body. */
static int look(struct agent_reading *r, struct kr_bytes object)
{
    struct kr_bytes kind = {NULL, 0};

    if (r->looked || r->wanted == AGENT_OBJECTS_NONE)
        return 0;
    r->looked = true;
    if (object.n == 0)
        return kr_note_set(&r->why, KR_EUNSUPPORTED, "a row without its object");
    if (r->wanted == AGENT_OBJECTS_WHOLE && kr_scan_find(object, "kind", &kind) &&
        kr_bytes_is(kind, "\"PartialObjectMetadata\""))
        return kr_note_set(&r->why, KR_EUNSUPPORTED, "a row without its whole object");
    return 0;
}

static int tell_columns(struct agent_reading *r, struct kr_bytes columns)
{
    if (columns.n == 0 || kr_bytes_is(columns, "null"))
        return 0;
    r->told = true;
    return r->ops->on_columns(r->user, columns);
}

/* ---- a list ---- */

static int on_item(void *user, struct kr_bytes item)
{
    struct agent_reading *r = user;
    struct agent_seen seen = {.object = item};
    int rc = 0;

    if (kr_bytes_is(kr_buf_bytes(&r->scan.kind), "Table")) {
        rc = kr_row_read(item, &seen.cells, &seen.object);
        if (rc == KR_EPROTO) { /* one that cannot be read must not hide all others */
            r->ops->on_skipped(r->user);
            return 0;
        }
        if (rc == 0 && !r->told)
            rc = tell_columns(r, kr_buf_bytes(&r->scan.columns));
        if (!r->told) /* cells of columns that nobody knows are no use */
            seen.cells = (struct kr_bytes){NULL, 0};
    }
    if (rc == 0)
        rc = look(r, seen.object);
    return rc == 0 ? r->ops->on_element(r->user, &seen) : rc;
}

static void on_scan_skipped(void *user, uint64_t n)
{
    struct agent_reading *r = user;

    (void)n;
    r->ops->on_skipped(r->user);
}

static const struct kr_list_scan_ops scan_ops = {on_item, on_scan_skipped};

int agent_reading_end(struct agent_reading *r)
{
    struct kr_bytes kind;
    int rc = kr_list_scan_end(&r->scan, &r->why);

    if (rc != 0)
        return rc;
    kind = kr_buf_bytes(&r->scan.kind);
    if (kind.n == 0 || kr_bytes_is(kind, "Status"))
        return kr_note_set(&r->why, KR_EPROTO, "the answer is no list");
    if (r->scan.version.n == 0)
        return kr_note_set(&r->why, KR_EPROTO, "the list has no version");
    return r->told ? 0 : tell_columns(r, kr_buf_bytes(&r->scan.columns));
}

/* ---- a watch ---- */

static int on_line(void *user, struct kr_bytes line)
{
    struct agent_reading *r = user;
    struct kr_watch_event e;
    struct agent_seen seen;
    int rc = kr_watch_event_read(line, &e, &r->why);

    if (rc == KR_ETOOBIG) { /* too deep */
        r->ops->on_skipped(r->user);
        return 0;
    }
    if (rc == 0)
        rc = tell_columns(r, e.columns);
    if (rc == 0 && (e.type == KR_EVENT_ADDED || e.type == KR_EVENT_MODIFIED))
        rc = look(r, e.object);
    if (rc != 0)
        return rc;
    seen = (struct agent_seen){.object = e.object, .cells = e.cells};
    return r->ops->on_event(r->user, &e, &seen);
}

static void on_line_skipped(void *user, uint64_t n)
{
    on_scan_skipped(user, n);
}

static const struct kr_event_reader_ops line_ops = {on_line, on_line_skipped};

/* ---- both ---- */

static void begin(struct agent_reading *r, const struct agent_reading_ops *ops, void *user,
                  enum agent_objects wanted)
{
    *r = (struct agent_reading){.ops = ops, .user = user, .wanted = wanted};
}

int agent_reading_list(struct agent_reading *r, const struct agent_reading_ops *ops, void *user,
                       enum agent_objects wanted)
{
    int rc;

    begin(r, ops, user, wanted);
    rc = kr_list_scan_init(&r->scan, &scan_ops, r, AGENT_OBJECT_MAX);
    r->scanning = rc == 0;
    return rc;
}

void agent_reading_watch(struct agent_reading *r, const struct agent_reading_ops *ops, void *user,
                         enum agent_objects wanted)
{
    begin(r, ops, user, wanted);
    kr_event_reader_init(&r->lines, &line_ops, r, AGENT_OBJECT_MAX);
    r->watching = true;
}

int agent_reading_feed(struct agent_reading *r, struct kr_bytes in)
{
    return r->scanning ? kr_list_scan_feed(&r->scan, in) : kr_event_reader_feed(&r->lines, in);
}

void agent_reading_stop(struct agent_reading *r)
{
    if (r->scanning)
        kr_list_scan_deinit(&r->scan);
    if (r->watching)
        kr_event_reader_deinit(&r->lines);
    r->scanning = r->watching = false;
}
