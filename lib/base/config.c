/* SPDX-License-Identifier: Apache-2.0 */
/* The file is read whole (it is small), then libyaml's events drive four states:
 * OUTSIDE -> (mapping starts) KEY -> VALUE -> KEY ...; VALUE -> (sequence starts) ITEMS -> KEY. */
#include "base/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

enum place { OUTSIDE, KEY, VALUE, ITEMS, AFTER };

struct reader {
    const char *name;
    kr_config_sink *sink;
    void *owner;
    struct kr_note *why;
    enum place place;
    int documents;
    struct kr_arena arena; /* of the entry being read */
    struct kr_config_entry entry;
    struct kr_bytes items[KR_CONFIG_ITEMS_MAX];
};

static int refuse(struct reader *r, size_t line, const char *what)
{
    return kr_note_set(r->why, KR_EINVAL, "%s:%zu: %s", r->name, line + 1, what);
}

static int deliver(struct reader *r)
{
    struct kr_note note = {.text = ""};
    int rc;

    r->entry.items = r->items;
    rc = r->sink(r->owner, &r->entry, &note);
    kr_arena_deinit(&r->arena);
    r->place = KEY;
    if (rc != 0)
        return kr_note_set(r->why, rc, "%s:%d: %s", r->name, r->entry.line, note.text);
    return 0;
}

static int on_scalar(struct reader *r, const yaml_event_t *e)
{
    size_t line = e->start_mark.line;
    bool quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    struct kr_bytes text = kr_bytes_of(e->data.scalar.value, e->data.scalar.length);

    if (e->data.scalar.anchor != NULL || e->data.scalar.tag != NULL)
        return refuse(r, line, "anchors and tags are not allowed");
    if (r->place == OUTSIDE || r->place == AFTER)
        return refuse(r, line, "expected `key: value` lines");
    if (text.n == 0 && !quoted)
        return refuse(r, line, r->place == KEY ? "a key is empty" : "a value is missing");
    text = kr_arena_copy(&r->arena, text);
    if (text.p == NULL)
        return kr_note_set(r->why, KR_ENOMEM, "%s: out of memory", r->name);
    if (r->place == KEY) {
        r->entry = (struct kr_config_entry){.key = text, .line = (int)line + 1};
        r->place = VALUE;
        return 0;
    }
    if (r->entry.n == KR_CONFIG_ITEMS_MAX)
        return refuse(r, line, "too many items in a list");
    r->items[r->entry.n++] = text;
    return r->place == VALUE ? deliver(r) : 0;
}

static int on_sequence(struct reader *r, const yaml_event_t *e)
{
    if (e->data.sequence_start.anchor != NULL || e->data.sequence_start.tag != NULL)
        return refuse(r, e->start_mark.line, "anchors and tags are not allowed");
    if (r->place != VALUE)
        return refuse(r, e->start_mark.line,
                      r->place == ITEMS ? "a list inside a list is not allowed"
                                        : "expected `key: value` lines");
    r->entry.is_list = true;
    r->place = ITEMS;
    return 0;
}

static int on_mapping(struct reader *r, const yaml_event_t *e)
{
    if (e->data.mapping_start.anchor != NULL || e->data.mapping_start.tag != NULL)
        return refuse(r, e->start_mark.line, "anchors and tags are not allowed");
    if (r->place != OUTSIDE)
        return refuse(r, e->start_mark.line, "nested mappings are not allowed");
    r->place = KEY;
    return 0;
}

static int on_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->documents++ != 0)
            return refuse(r, e->start_mark.line, "only one document is allowed");
        return 0;
    case YAML_ALIAS_EVENT:
        return refuse(r, e->start_mark.line, "aliases are not allowed");
    case YAML_SCALAR_EVENT:
        /* A file of comments only, or `---` alone, is an empty mapping. */
        if (r->place == OUTSIDE && e->data.scalar.length == 0)
            return 0;
        return on_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
        return on_sequence(r, e);
    case YAML_SEQUENCE_END_EVENT:
        return deliver(r);
    case YAML_MAPPING_START_EVENT:
        return on_mapping(r, e);
    case YAML_MAPPING_END_EVENT:
        r->place = AFTER;
        return 0;
    default:
        return 0;
    }
}

static int parse_events(struct reader *r, yaml_parser_t *parser)
{
    bool more = true;
    int rc = 0;

    while (more && rc == 0) {
        yaml_event_t event;

        if (!yaml_parser_parse(parser, &event))
            return refuse(r, parser->problem_mark.line,
                          parser->problem != NULL ? parser->problem : "malformed YAML");
        rc = on_event(r, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return rc;
}

int kr_config_parse(const char *name, struct kr_bytes text, kr_config_sink *sink, void *owner,
                    struct kr_note *why)
{
    struct reader *r = NULL;
    yaml_parser_t parser;
    int rc;

    if (text.n > KR_CONFIG_FILE_MAX)
        return kr_note_set(why, KR_ETOOBIG, "%s: larger than %d bytes", name, KR_CONFIG_FILE_MAX);
    if (!kr_bytes_is_utf8(text))
        return kr_note_set(why, KR_EINVAL, "%s: not valid UTF-8", name);
    r = calloc(1, sizeof *r);
    if (r == NULL || !yaml_parser_initialize(&parser)) {
        free(r);
        return kr_note_set(why, KR_ENOMEM, "%s: out of memory", name);
    }
    r->name = name;
    r->sink = sink;
    r->owner = owner;
    r->why = why;
    kr_arena_init(&r->arena, 1024, (size_t)4 * KR_CONFIG_FILE_MAX);
    yaml_parser_set_input_string(&parser, text.p != NULL ? text.p : (const uint8_t *)"", text.n);
    rc = parse_events(r, &parser);
    yaml_parser_delete(&parser);
    kr_arena_deinit(&r->arena);
    free(r);
    return rc;
}

/* One byte more than is allowed tells a file that is too large. */
static int read_all(const char *file, struct kr_buf *out, struct kr_note *why)
{
    FILE *in = fopen(file, "re");
    int rc = 0;
    size_t got;

    if (in == NULL)
        return kr_note_set(why, KR_EIO, "%s: %s", file, strerror(errno));
    do {
        rc = kr_buf_reserve(out, 4096);
        if (rc != 0)
            break;
        got = fread(out->p + out->n, 1, 4096, in);
        out->n += got;
    } while (got != 0);
    if (rc == KR_ETOOBIG)
        kr_note_set(why, rc, "%s: larger than %d bytes", file, KR_CONFIG_FILE_MAX);
    else if (rc != 0)
        kr_note_set(why, rc, "%s: %s", file, kr_err_text(rc));
    else if (ferror(in))
        rc = kr_note_set(why, KR_EIO, "%s: %s", file, strerror(errno));
    fclose(in);
    return rc;
}

int kr_config_read(const char *file, kr_config_sink *sink, void *owner, struct kr_note *why)
{
    struct kr_buf text;
    int rc;

    kr_buf_init(&text, KR_CONFIG_FILE_MAX + 4096);
    rc = read_all(file, &text, why);
    if (rc == 0)
        rc = kr_config_parse(file, kr_buf_bytes(&text), sink, owner, why);
    kr_buf_deinit(&text);
    return rc;
}
