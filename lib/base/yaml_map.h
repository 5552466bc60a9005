/* SPDX-License-Identifier: Apache-2.0 */
/* yaml_map: reads mappings of a YAML file by a table of their fields, so that an unknown, doubled
 * or misplaced key is a fault with its line. For files of several records (rules, profiles);
 * options of a program are one flat mapping and have config.h. Memory: everything read lives in the
 * reader's arena. Errors: KR_EINVAL with a note "FILE:LINE: what", KR_ENOMEM. Threads: one owner.
 */
#ifndef KR_BASE_YAML_MAP_H
#define KR_BASE_YAML_MAP_H

#include "base/arena.h"
#include "base/options.h"
#include "base/yaml.h"

#define KR_YAML_ITEMS_MAX 4096 /* of one list */
#define KR_YAML_FIELDS_MAX 32  /* of one mapping */

struct kr_yaml_reader { /* fill it before use */
    struct kr_arena *arena;
    struct kr_yaml *doc;
    const char *file; /* for faults */
    struct kr_note *why;
};

/* A sorted list of texts in which "*" means all. */
struct kr_names {
    struct kr_strings in;
    bool all;
};
bool kr_names_have(const struct kr_names *names, struct kr_bytes text); /* "*" counts */

/* A mapping of texts to texts, in the order of the file. */
struct kr_yaml_texts {
    struct kr_yaml_pair {
        const char *key;
        const char *value;
    } * all;
    size_t n;
};

enum kr_yaml_type {
    KR_YAML_TEXT,    /* const char * */
    KR_YAML_STRINGS, /* struct kr_strings, in the order of the file */
    KR_YAML_NAMES,   /* struct kr_names */
    KR_YAML_FLAG,    /* bool */
    KR_YAML_NUMBER,  /* uint32_t, at most 1,000,000 */
    KR_YAML_TEXTS,   /* struct kr_yaml_texts: a mapping of texts */
    KR_YAML_NODE,    /* const struct kr_yaml_node *: read by the caller */
};

struct kr_yaml_field {
    const char *key;
    enum kr_yaml_type type;
    size_t offset;
    bool (*valid)(struct kr_bytes value); /* of a text, or of each item; NULL: anything */
};

/* Reads the mapping `node` into `out` (fields that are not given stay as they are). `what` names it
 * in faults ("rules[2]"). */
int kr_yaml_map_read(struct kr_yaml_reader *r, const char *what, const struct kr_yaml_node *node,
                     const struct kr_yaml_field *fields, size_t n, void *out);
/* One text: not empty, UTF-8, no control characters, at most 4,096 bytes. */
int kr_yaml_text_read(struct kr_yaml_reader *r, const char *what, const struct kr_yaml_node *node,
                      bool (*valid)(struct kr_bytes), const char **out);
/* The number of items; a fault if it is no list, or longer than KR_YAML_ITEMS_MAX. */
int kr_yaml_list_length(struct kr_yaml_reader *r, const char *what, const struct kr_yaml_node *node,
                        size_t *n);
__attribute__((format(printf, 3, 4))) int
kr_yaml_fault(struct kr_yaml_reader *r, const struct kr_yaml_node *node, const char *fmt, ...);

#endif
