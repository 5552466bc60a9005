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

static const struct kr_bytes nothing = {NULL, 0};

static bool is_object(struct kr_bytes value)
{
    return value.n != 0 && value.p[0] == '{';
}

/* What a plain string says; nothing of any other value. */
static struct kr_bytes plain(struct kr_bytes value)
{
    struct kr_bytes text;

    return kr_scan_plain(value, &text) ? text : nothing;
}

/* A whole number from 0 to max; 0 for all others. */
static uint64_t number(struct kr_bytes value, uint64_t max)
{
    uint64_t n;

    return kr_bytes_to_u64(value, max, &n) ? n : 0;
}

struct want {
    const char *name;
    struct kr_bytes *value; /* nothing if there is none */
};

/* Members of an object, in one pass; the last one of a name counts. */
static void find_all(struct kr_bytes object, const struct want *wants, size_t count)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;

    for (size_t i = 0; i < count; i++)
        *wants[i].value = nothing;
    if (object.n == 0 || !kr_scan_object(object, &it))
        return;
    while (kr_scan_member(&it, &key, &value)) {
        for (size_t i = 0; i < count; i++) {
            if (kr_scan_key_is(key, wants[i].name))
                *wants[i].value = value;
        }
    }
}

#define FIND_ALL(object, ...)                                                                      \
    find_all((object), (const struct want[]){__VA_ARGS__},                                         \
             sizeof((const struct want[]){__VA_ARGS__}) / sizeof(struct want))

static void read_status(struct kr_watch_event *out)
{
    struct kr_bytes code;
    struct kr_bytes reason;
    struct kr_bytes message;
    struct kr_bytes details;
    struct kr_bytes seconds;

    FIND_ALL(out->object, {"code", &code}, {"reason", &reason}, {"message", &message},
             {"details", &details});
    FIND_ALL(details, {"retryAfterSeconds", &seconds});
    out->code = (int)number(code, 999);
    out->reason = plain(reason);
    if (kr_scan_is_string(message))
        out->message = kr_bytes_of(message.p + 1, message.n - 2);
    out->retry_after_s = (int64_t)number(seconds, INT32_MAX);
}

/* One row, or none if it is a bookmark. */
static int read_rows(struct kr_bytes rows, struct kr_watch_event *out, struct kr_note *why)
{
    struct kr_scan it;
    struct kr_bytes row;
    struct kr_bytes another;

    if (rows.n == 0 || !kr_scan_array(rows, &it) || !kr_scan_element(&it, &row)) {
        if (out->type == KR_EVENT_BOOKMARK)
            return 0;
        return kr_note_set(why, KR_EPROTO, "watch event: a Table without a row");
    }
    if (kr_scan_element(&it, &another))
        return kr_note_set(why, KR_EPROTO, "watch event: a Table of several rows");
    if (kr_row_read(row, &out->cells, &out->object) != 0)
        return kr_note_set(why, KR_EPROTO, "watch event: a row that is no object");
    if (out->object.n != 0 ? !is_object(out->object) : out->type != KR_EVENT_BOOKMARK)
        return kr_note_set(why, KR_EPROTO, "watch event: a row without its object");
    return 0;
}

/* The version, and whether this is the bookmark that ends the initial events. */
static void read_metadata(struct kr_bytes metadata, struct kr_watch_event *out)
{
    struct kr_bytes version;
    struct kr_bytes annotations;
    struct kr_bytes ends;

    FIND_ALL(metadata, {"resourceVersion", &version}, {"annotations", &annotations});
    if (plain(version).n != 0)
        out->version = plain(version);
    if (out->type != KR_EVENT_BOOKMARK)
        return;
    FIND_ALL(annotations, {"k8s.io/initial-events-end", &ends});
    out->initial_end = kr_bytes_is(plain(ends), "true");
}

/* The object of the event, which may be a Table around it. */
static int read_object(struct kr_watch_event *out, struct kr_note *why)
{
    struct kr_bytes kind;
    struct kr_bytes api_version;
    struct kr_bytes metadata;
    struct kr_bytes columns;
    struct kr_bytes rows;
    int rc;

    FIND_ALL(out->object, {"kind", &kind}, {"apiVersion", &api_version}, {"metadata", &metadata},
             {"columnDefinitions", &columns}, {"rows", &rows});
    read_metadata(metadata, out);
    if (!kr_bytes_is(plain(kind), "Table") ||
        !kr_bytes_starts(plain(api_version), KR_LIT("meta.k8s.io/")))
        return 0;
    if (!kr_bytes_is(columns, "null"))
        out->columns = columns;
    out->object = nothing;
    rc = read_rows(rows, out, why);
    if (rc != 0 || out->object.n == 0)
        return rc;
    FIND_ALL(out->object, {"metadata", &metadata});
    read_metadata(metadata, out);
    return 0;
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
    int rc;

    *out = (struct kr_watch_event){0};
    rc = kr_scan_check(line, KR_SCAN_DEPTH_MAX, why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "watch event");
    rc = read_members(line, out, why);
    if (rc != 0)
        return rc;
    if (out->type != KR_EVENT_ERROR)
        return read_object(out, why);
    read_status(out);
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
