/* SPDX-License-Identifier: Apache-2.0 */
#include "base/yaml.h"

#include <stdlib.h>
#include <yaml.h>

#include "base/err.h"

#define TEXT_MAX (16u << 20)

struct kr_yaml {
    yaml_document_t doc;
};

static const yaml_node_t *raw(const struct kr_yaml_node *node)
{
    return (const yaml_node_t *)(const void *)node;
}

static const struct kr_yaml_node *wrap(const yaml_node_t *node)
{
    return (const struct kr_yaml_node *)(const void *)node;
}

int kr_yaml_parse(struct kr_bytes text, struct kr_yaml **out, struct kr_note *why)
{
    struct kr_yaml *y = calloc(1, sizeof *y);
    yaml_parser_t parser;
    int rc = 0;

    *out = NULL;
    if (text.n > TEXT_MAX)
        rc = kr_note_set(why, KR_ETOOBIG, "longer than %u bytes", TEXT_MAX);
    else if (y == NULL || !yaml_parser_initialize(&parser))
        rc = kr_note_set(why, KR_ENOMEM, "out of memory");
    if (rc != 0) {
        free(y);
        return rc;
    }
    yaml_parser_set_input_string(&parser, text.p != NULL ? text.p : (const uint8_t *)"", text.n);
    if (!yaml_parser_load(&parser, &y->doc)) {
        rc = kr_note_set(why, KR_EPROTO, "line %zu: %s", parser.problem_mark.line + 1,
                         parser.problem != NULL ? parser.problem : "not YAML");
        free(y);
    } else {
        *out = y;
    }
    yaml_parser_delete(&parser);
    return rc;
}

void kr_yaml_destroy(struct kr_yaml *doc)
{
    if (doc == NULL)
        return;
    yaml_document_delete(&doc->doc);
    free(doc);
}

const struct kr_yaml_node *kr_yaml_root(struct kr_yaml *doc)
{
    return wrap(yaml_document_get_root_node(&doc->doc));
}

const char *kr_yaml_text(const struct kr_yaml_node *node)
{
    const yaml_node_t *n = raw(node);

    if (n == NULL || n->type != YAML_SCALAR_NODE || n->data.scalar.length == 0)
        return NULL;
    return (const char *)n->data.scalar.value;
}

const struct kr_yaml_node *kr_yaml_get(struct kr_yaml *doc, const struct kr_yaml_node *map,
                                       const char *key)
{
    const yaml_node_t *n = raw(map);

    if (n == NULL || n->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        const char *name = kr_yaml_text(wrap(yaml_document_get_node(&doc->doc, p->key)));

        if (name != NULL && strcmp(name, key) == 0)
            return wrap(yaml_document_get_node(&doc->doc, p->value));
    }
    return NULL;
}

const struct kr_yaml_node *kr_yaml_at(struct kr_yaml *doc, const struct kr_yaml_node *list,
                                      size_t i)
{
    const yaml_node_t *n = raw(list);

    if (n == NULL || n->type != YAML_SEQUENCE_NODE ||
        i >= (size_t)(n->data.sequence.items.top - n->data.sequence.items.start))
        return NULL;
    return wrap(yaml_document_get_node(&doc->doc, n->data.sequence.items.start[i]));
}

enum kr_yaml_kind kr_yaml_kind(const struct kr_yaml_node *node)
{
    const yaml_node_t *n = raw(node);

    if (n == NULL)
        return KR_YAML_NONE;
    switch (n->type) {
    case YAML_SCALAR_NODE:
        return KR_YAML_SCALAR;
    case YAML_SEQUENCE_NODE:
        return KR_YAML_LIST;
    case YAML_MAPPING_NODE:
        return KR_YAML_MAP;
    default:
        return KR_YAML_NONE;
    }
}

bool kr_yaml_entry(struct kr_yaml *doc, const struct kr_yaml_node *map, size_t i,
                   const struct kr_yaml_node **key, const struct kr_yaml_node **value)
{
    const yaml_node_t *n = raw(map);
    const yaml_node_pair_t *p;

    if (n == NULL || n->type != YAML_MAPPING_NODE ||
        i >= (size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start))
        return false;
    p = &n->data.mapping.pairs.start[i];
    *key = wrap(yaml_document_get_node(&doc->doc, p->key));
    *value = wrap(yaml_document_get_node(&doc->doc, p->value));
    return true;
}

size_t kr_yaml_line(const struct kr_yaml_node *node)
{
    return node != NULL ? raw(node)->start_mark.line + 1 : 0;
}
