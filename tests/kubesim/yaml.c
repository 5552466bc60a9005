/* SPDX-License-Identifier: Apache-2.0 */
/* YAML bodies: one document through libyaml's events into a json-c tree. Aliases and tags are not
 * taken; depth is bounded as JSON's is. */
#include <stdlib.h>
#include <yaml.h>

#include "object.h"

struct builder {
    struct json_object *stack[SIM_JSON_DEPTH];
    char *keys[SIM_JSON_DEPTH]; /* the key that waits for its value, of mappings */
    size_t depth;
    struct json_object *root;
    bool failed;
};

static struct json_object *scalar(const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    char *end;
    double d;
    long long i;

    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return json_object_new_string(text);
    if (strcmp(text, "") == 0 || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)
        return NULL;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_object_new_boolean(text[0] == 't');
    i = strtoll(text, &end, 10);
    if (*end == '\0')
        return json_object_new_int64(i);
    d = strtod(text, &end);
    if (*end == '\0' && strchr("0123456789.-+", text[0]) != NULL)
        return json_object_new_double_s(d, text);
    return json_object_new_string(text);
}

/* Puts a value where it belongs. Takes it. */
static void place(struct builder *b, struct json_object *v)
{
    struct json_object *box = b->depth != 0 ? b->stack[b->depth - 1] : NULL;

    if (box == NULL) {
        b->root = v;
    } else if (json_object_is_type(box, json_type_array)) {
        json_object_array_add(box, v);
    } else {
        json_object_object_add(box, b->keys[b->depth - 1], v);
        free(b->keys[b->depth - 1]);
        b->keys[b->depth - 1] = NULL;
    }
}

static void open_box(struct builder *b, struct json_object *v)
{
    if (b->depth == SIM_JSON_DEPTH) {
        b->failed = true;
        json_object_put(v);
        return;
    }
    place(b, v);
    b->stack[b->depth] = v;
    b->keys[b->depth++] = NULL;
}

static void on_event(struct builder *b, const yaml_event_t *e)
{
    bool needs_key = b->depth != 0 && b->keys[b->depth - 1] == NULL &&
                     json_object_is_type(b->stack[b->depth - 1], json_type_object);

    switch (e->type) {
    case YAML_SCALAR_EVENT:
        if (needs_key)
            b->keys[b->depth - 1] = strdup((const char *)e->data.scalar.value);
        else
            place(b, scalar(e));
        break;
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        b->failed = b->failed || needs_key;
        if (!b->failed)
            open_box(b, e->type == YAML_MAPPING_START_EVENT ? json_object_new_object()
                                                            : json_object_new_array());
        break;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        break;
    case YAML_ALIAS_EVENT:
        b->failed = true;
        break;
    default:
        break;
    }
}

struct json_object *sim_yaml_parse(struct kr_bytes text)
{
    struct builder b = {.depth = 0};
    yaml_parser_t parser;
    yaml_event_t e;
    bool done = false;

    if (yaml_parser_initialize(&parser) == 0)
        return NULL;
    yaml_parser_set_input_string(&parser, text.p, text.n);
    while (!done && !b.failed) {
        if (yaml_parser_parse(&parser, &e) == 0) {
            b.failed = true;
            break;
        }
        on_event(&b, &e);
        done = e.type == YAML_STREAM_END_EVENT || e.type == YAML_DOCUMENT_END_EVENT;
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < SIM_JSON_DEPTH; i++)
        free(b.keys[i]);
    if (b.failed) {
        json_object_put(b.root);
        b.root = NULL;
    }
    return b.root;
}
