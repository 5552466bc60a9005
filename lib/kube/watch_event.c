/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_event.h"

#include "base/err.h"
#include "kube/json_walk.h"

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

struct metadata { /* what is read of one; spans */
    struct kr_bytes version;
    struct kr_bytes annotations;
};

struct finding {            /* on the way through a line; spans */
    struct kr_bytes whole;  /* the object of the event, which may be a Table */
    struct kr_bytes object; /* the one in the Table's row */
    struct kr_bytes kind;   /* of the whole */
    struct kr_bytes api_version;
    struct kr_bytes columns;
    struct kr_bytes cells;
    struct kr_bytes rows; /* that came before it was clear whose they are */
    struct metadata of_whole;
    struct metadata of_object;
    const char *fault;
    bool typed;
};

static bool faulty(struct finding *f, const char *fault)
{
    f->fault = fault;
    return false;
}

static void walk_metadata(struct kr_walk *w, struct metadata *m)
{
    struct kr_bytes key;

    if (!kr_walk_enter(w, '{')) {
        kr_walk_value(w);
        return;
    }
    while (kr_walk_member(w, &key)) {
        struct kr_bytes value = kr_walk_value(w);

        if (kr_scan_key_is(key, "annotations"))
            m->annotations = value;
        else if (kr_scan_key_is(key, "resourceVersion"))
            m->version = kr_scan_check(value, 1, NULL) == 0 ? plain(value) : nothing;
    }
}

/* The object in a Table's row. */
static bool walk_object(struct kr_walk *w, struct finding *f)
{
    const uint8_t *start = w->at;
    struct kr_bytes key;

    if (!kr_walk_enter(w, '{'))
        return kr_bytes_is(kr_walk_value(w), "null") || faulty(f, "a row without its object");
    while (kr_walk_member(w, &key)) {
        if (kr_scan_key_is(key, "metadata"))
            walk_metadata(w, &f->of_object);
        else
            kr_walk_value(w);
    }
    f->object = kr_bytes_of(start, (size_t)(w->at - start));
    return true;
}

static bool walk_row(struct kr_walk *w, struct finding *f)
{
    struct kr_bytes key;
    bool ok = true;

    while (ok && kr_walk_member(w, &key)) {
        if (kr_scan_key_is(key, "object"))
            ok = walk_object(w, f);
        else if (kr_scan_key_is(key, "cells"))
            f->cells = kr_walk_value(w);
        else
            kr_walk_value(w);
    }
    return ok;
}

/* One row, or none. */
static bool walk_rows(struct kr_walk *w, struct finding *f)
{
    if (!kr_walk_enter(w, '[')) {
        kr_walk_value(w);
        return true;
    }
    if (!kr_walk_element(w))
        return true;
    if (!kr_walk_enter(w, '{'))
        return faulty(f, "a row that is no object");
    return walk_row(w, f) && (!kr_walk_element(w) || faulty(f, "a Table of several rows"));
}

static bool is_table(const struct finding *f)
{
    return kr_bytes_is(plain(f->kind), "Table") &&
           kr_bytes_starts(plain(f->api_version), KR_LIT("meta.k8s.io/"));
}

static bool walk_whole(struct kr_walk *w, struct finding *f)
{
    const uint8_t *start = w->at;
    struct kr_bytes key;
    bool ok = true;

    if (f->whole.n != 0)
        return faulty(f, "a member is there twice");
    if (!kr_walk_enter(w, '{'))
        return faulty(f, "its object is none");
    while (ok && kr_walk_member(w, &key)) {
        if (kr_scan_key_is(key, "metadata"))
            walk_metadata(w, &f->of_whole);
        else if (kr_scan_key_is(key, "kind"))
            f->kind = kr_walk_value(w);
        else if (kr_scan_key_is(key, "apiVersion"))
            f->api_version = kr_walk_value(w);
        else if (kr_scan_key_is(key, "columnDefinitions"))
            f->columns = kr_walk_value(w);
        else if (kr_scan_key_is(key, "rows") && f->object.n == 0 && is_table(f))
            ok = walk_rows(w, f);
        else if (kr_scan_key_is(key, "rows"))
            f->rows = kr_walk_value(w);
        else
            kr_walk_value(w);
    }
    f->whole = kr_bytes_of(start, (size_t)(w->at - start));
    return ok;
}

static bool walk_type(struct kr_walk *w, struct finding *f, enum kr_event_type *type)
{
    if (f->typed)
        return faulty(f, "a member is there twice");
    f->typed = true;
    return type_of(kr_walk_value(w), type) || faulty(f, "unknown type");
}

/* The type and the object of the event; each once. */
static bool walk_line(struct kr_walk *w, struct finding *f, enum kr_event_type *type)
{
    struct kr_bytes key;
    bool ok = true;

    if (!kr_walk_enter(w, '{'))
        return faulty(f, "no object");
    while (ok && kr_walk_member(w, &key)) {
        if (kr_scan_key_is(key, "type"))
            ok = walk_type(w, f, type);
        else if (kr_scan_key_is(key, "object"))
            ok = walk_whole(w, f);
        else
            kr_walk_value(w);
    }
    return ok;
}

/* A code for what the walk came upon. */
static int conclude(struct kr_walk *w, const struct finding *f, bool ok, struct kr_note *why)
{
    int rc;

    if (!ok && w->failed == 0)
        return kr_note_set(why, KR_EPROTO, "watch event: %s", f->fault);
    rc = kr_walk_end(w);
    if (rc == 0)
        return 0;
    return kr_note_set(why, rc, "watch event: %s", rc == KR_ETOOBIG ? "too deep" : "malformed");
}

/* Rows that were passed over turned out to be those of a Table. */
static int read_rows(struct finding *f, struct kr_note *why)
{
    struct kr_walk w;
    bool ok;

    if (f->rows.n == 0)
        return 0;
    if (f->object.n != 0)
        return kr_note_set(why, KR_EPROTO, "watch event: a member is there twice");
    kr_walk_start(&w, f->rows);
    ok = walk_rows(&w, f);
    return conclude(&w, f, ok, why);
}

/* What is not handed on to be checked is checked. */
static int check_parts(const struct kr_watch_event *e, struct kr_note *why)
{
    int rc = e->cells.n != 0 ? kr_scan_check(e->cells, KR_SCAN_DEPTH_MAX, why) : 0;

    if (rc == 0 && e->columns.n != 0)
        rc = kr_scan_check(e->columns, KR_SCAN_DEPTH_MAX, why);
    return rc != 0 ? kr_note_wrap(why, rc, "watch event") : 0;
}

static int read_table(struct finding *f, struct kr_watch_event *out, struct kr_note *why)
{
    int rc = read_rows(f, why);

    if (rc != 0)
        return rc;
    out->object = f->object;
    if (out->object.n == 0 && out->type != KR_EVENT_BOOKMARK)
        return kr_note_set(why, KR_EPROTO, "watch event: a Table without a row and its object");
    if (!kr_bytes_is(f->cells, "null"))
        out->cells = f->cells;
    if (!kr_bytes_is(f->columns, "null"))
        out->columns = f->columns;
    if (f->of_object.version.n != 0)
        f->of_whole.version = f->of_object.version;
    if (f->of_object.annotations.n != 0)
        f->of_whole.annotations = f->of_object.annotations;
    return check_parts(out, why);
}

/* Of a line that was checked. */
static void read_bookmark(struct kr_bytes annotations, struct kr_watch_event *out)
{
    struct kr_bytes ends;

    FIND_ALL(annotations, {"k8s.io/initial-events-end", &ends});
    out->initial_end = kr_bytes_is(plain(ends), "true");
}

/* An object that comes or changes is checked by who makes use of it. Whether one is gone, or what
 * else the stream says, stands in no other place. */
static int read_event(struct kr_bytes line, struct finding *f, struct kr_watch_event *out,
                      struct kr_note *why)
{
    int rc = 0;

    if (!f->typed || f->whole.n == 0)
        return kr_note_set(why, KR_EPROTO, "watch event: no type or no object");
    if (out->type != KR_EVENT_ADDED && out->type != KR_EVENT_MODIFIED)
        rc = kr_scan_check(line, KR_SCAN_DEPTH_MAX, why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "watch event");
    out->object = f->whole;
    if (out->type == KR_EVENT_ERROR) {
        read_status(out);
        return 0;
    }
    if (is_table(f))
        rc = read_table(f, out, why);
    out->version = f->of_whole.version;
    if (rc == 0 && out->type == KR_EVENT_BOOKMARK)
        read_bookmark(f->of_whole.annotations, out);
    return rc;
}

int kr_watch_event_read(struct kr_bytes line, struct kr_watch_event *out, struct kr_note *why)
{
    struct finding f = {.typed = false};
    struct kr_walk w;
    bool ok;
    int rc;

    *out = (struct kr_watch_event){0};
    kr_walk_start(&w, line);
    ok = walk_line(&w, &f, &out->type);
    rc = conclude(&w, &f, ok, why);
    return rc == 0 ? read_event(line, &f, out, why) : rc;
}
