/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_event.h"

#include "base/err.h"
#include "kube/list_scan.h"

static const struct {
    const char *name;
    enum kr_event_type type;
} types[] = {
    {"ADDED", KR_EVENT_ADDED},       {"MODIFIED", KR_EVENT_MODIFIED}, {"DELETED", KR_EVENT_DELETED},
    {"BOOKMARK", KR_EVENT_BOOKMARK}, {"ERROR", KR_EVENT_ERROR},
};

static bool type_of(struct kr_bytes value, enum kr_event_type *out)
{
    struct kr_bytes text;

    if (!kr_scan_plain(value, &text))
        return false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (kr_bytes_is(text, types[i].name)) {
            *out = types[i].type;
            return true;
        }
    }
    return false;
}

static bool is_object(struct kr_bytes value)
{
    return value.n != 0 && value.p[0] == '{';
}

/* The plain string that a member is; empty if there is none. */
static struct kr_bytes plain_of(struct kr_bytes object, const char *name)
{
    struct kr_bytes value;
    struct kr_bytes text;

    if (object.n != 0 && kr_scan_find(object, name, &value) && kr_scan_plain(value, &text))
        return text;
    return kr_bytes_of(NULL, 0);
}

static struct kr_bytes object_of(struct kr_bytes object, const char *name)
{
    struct kr_bytes value;

    if (object.n != 0 && kr_scan_find(object, name, &value) && is_object(value))
        return value;
    return kr_bytes_of(NULL, 0);
}

static bool is_table(struct kr_bytes object)
{
    return kr_bytes_is(plain_of(object, "kind"), "Table") &&
           kr_bytes_starts(plain_of(object, "apiVersion"), KR_LIT("meta.k8s.io/"));
}

/* The number that a member is, if it is a whole one from 0 to max; else 0. */
static uint64_t number_of(struct kr_bytes object, const char *name, uint64_t max)
{
    struct kr_bytes value;
    uint64_t n;

    if (object.n != 0 && kr_scan_find(object, name, &value) && kr_bytes_to_u64(value, max, &n))
        return n;
    return 0;
}

static void read_status(struct kr_watch_event *out)
{
    struct kr_bytes value;

    out->code = (int)number_of(out->object, "code", 999);
    out->reason = plain_of(out->object, "reason");
    if (kr_scan_find(out->object, "message", &value) && kr_scan_is_string(value))
        out->message = kr_bytes_of(value.p + 1, value.n - 2);
    out->retry_after_s =
        (int64_t)number_of(object_of(out->object, "details"), "retryAfterSeconds", INT32_MAX);
}

/* One row, or none if it is a bookmark. */
static int read_rows(struct kr_bytes rows, struct kr_watch_event *out, struct kr_note *why)
{
    struct kr_scan it;
    struct kr_bytes row;
    struct kr_bytes another;

    if (!kr_scan_array(rows, &it) || !kr_scan_element(&it, &row)) {
        if (out->type == KR_EVENT_BOOKMARK)
            return 0;
        return kr_note_set(why, KR_EPROTO, "watch event: a Table without a row");
    }
    if (kr_scan_element(&it, &another))
        return kr_note_set(why, KR_EPROTO, "watch event: a Table of several rows");
    if (kr_row_read(row, &out->cells, &out->object) != 0)
        return kr_note_set(why, KR_EPROTO, "watch event: a row that is no object");
    if (out->object.n != 0 && !is_object(out->object))
        return kr_note_set(why, KR_EPROTO, "watch event: the object of a row is none");
    if (out->object.n == 0 && out->type != KR_EVENT_BOOKMARK)
        return kr_note_set(why, KR_EPROTO, "watch event: a row without its object");
    return 0;
}

static int read_table(struct kr_bytes table, struct kr_watch_event *out, struct kr_note *why)
{
    struct kr_bytes value;
    struct kr_bytes rows = kr_bytes_of(NULL, 0);

    out->object = kr_bytes_of(NULL, 0);
    if (kr_scan_find(table, "columnDefinitions", &value) && !kr_bytes_is(value, "null"))
        out->columns = value;
    kr_scan_find(table, "rows", &rows);
    return read_rows(rows, out, why);
}

/* The type and the object of the event; each once. */
static int read_members(struct kr_bytes line, struct kr_watch_event *out, struct kr_note *why)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;
    bool typed = false;

    if (!kr_scan_object(line, &it))
        return kr_note_set(why, KR_EPROTO, "watch event: no object");
    while (kr_scan_member(&it, &key, &value)) {
        bool is_type = kr_scan_key_is(key, "type");

        if (!is_type && !kr_scan_key_is(key, "object"))
            continue;
        if (is_type ? typed : out->object.n != 0)
            return kr_note_set(why, KR_EPROTO, "watch event: a member is there twice");
        if (is_type && !type_of(value, &out->type))
            return kr_note_set(why, KR_EPROTO, "watch event: unknown type");
        if (!is_type && !is_object(value))
            return kr_note_set(why, KR_EPROTO, "watch event: its object is none");
        if (is_type)
            typed = true;
        else
            out->object = value;
    }
    if (!typed || out->object.n == 0)
        return kr_note_set(why, KR_EPROTO, "watch event: no type or no object");
    return 0;
}

int kr_watch_event_read(struct kr_bytes line, struct kr_watch_event *out, struct kr_note *why)
{
    struct kr_bytes around;
    struct kr_bytes metadata;
    int rc;

    *out = (struct kr_watch_event){0};
    rc = kr_scan_check(line, KR_SCAN_DEPTH_MAX, why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "watch event");
    rc = read_members(line, out, why);
    if (rc != 0)
        return rc;
    if (out->type == KR_EVENT_ERROR) {
        read_status(out);
        return 0;
    }
    around = out->object;
    if (is_table(around)) {
        rc = read_table(around, out, why);
        if (rc != 0)
            return rc;
    }
    metadata = object_of(out->object, "metadata");
    out->version = plain_of(metadata, "resourceVersion");
    if (out->version.n == 0)
        out->version = plain_of(object_of(around, "metadata"), "resourceVersion");
    out->initial_end =
        out->type == KR_EVENT_BOOKMARK &&
        kr_bytes_is(plain_of(object_of(metadata, "annotations"), "k8s.io/initial-events-end"),
                    "true");
    return 0;
}

void kr_event_reader_init(struct kr_event_reader *r, const struct kr_event_reader_ops *ops,
                          void *user, size_t line_max)
{
    *r = (struct kr_event_reader){.ops = ops, .user = user, .line_max = line_max};
    kr_buf_init(&r->line, line_max);
}

void kr_event_reader_deinit(struct kr_event_reader *r)
{
    kr_buf_deinit(&r->line);
}

/* A line is whole: `piece` is its last part. */
static int end_line(struct kr_event_reader *r, struct kr_bytes piece)
{
    struct kr_bytes line = piece;
    int rc = 0;

    if (r->skipping != 0 || r->line.n + piece.n > r->line_max) {
        uint64_t n = r->skipping + r->line.n + piece.n;

        kr_buf_deinit(&r->line);
        r->skipping = 0;
        r->ops->on_skipped(r->user, n);
        return 0;
    }
    if (r->line.n != 0) {
        rc = kr_buf_append(&r->line, piece);
        line = kr_buf_bytes(&r->line);
    }
    if (line.n != 0 && line.p[line.n - 1] == '\r')
        line.n--;
    if (rc == 0 && line.n != 0)
        rc = r->ops->on_line(r->user, line);
    r->line.n = 0;
    return rc;
}

/* The start of a line, or more of it, whose end is still to come. */
static int keep(struct kr_event_reader *r, struct kr_bytes piece)
{
    if (r->skipping == 0 && piece.n <= r->line_max - r->line.n)
        return kr_buf_append(&r->line, piece);
    r->skipping += r->line.n + piece.n;
    kr_buf_deinit(&r->line);
    return 0;
}

int kr_event_reader_feed(struct kr_event_reader *r, struct kr_bytes in)
{
    while (r->failed == 0 && in.n != 0) {
        size_t at = kr_bytes_find(in, '\n');
        struct kr_bytes piece = kr_bytes_of(in.p, at);

        r->failed = at < in.n ? end_line(r, piece) : keep(r, piece);
        in = kr_bytes_skip(in, at < in.n ? at + 1 : at);
    }
    return r->failed;
}
