/* SPDX-License-Identifier: Apache-2.0 */
/* config: reads a configuration file: one flat YAML mapping of scalars and lists of scalars, by
 * libyaml's events, so that every fault has its line (docs/adr/0002-libyaml.md). Nested mappings,
 * anchors, aliases, tags, further documents and files above 1 MiB are refused.
 * Memory: the entry is lent for the call. Recursion: none. */
#ifndef KR_BASE_CONFIG_H
#define KR_BASE_CONFIG_H

#include "base/bytes.h"
#include "base/note.h"

#define KR_CONFIG_FILE_MAX (1024 * 1024)
#define KR_CONFIG_ITEMS_MAX 256

struct kr_config_entry {
    struct kr_bytes key;
    int line; /* of the key, from 1 */
    bool is_list;
    const struct kr_bytes *items; /* a scalar is one item */
    size_t n;
};

/* Takes one entry; a non-zero code with a note stops the reading. */
typedef int kr_config_sink(void *owner, const struct kr_config_entry *entry, struct kr_note *why);

/* 0, or a code with a note of the form "FILE:LINE: message" (without line: "FILE: message"). */
int kr_config_read(const char *file, kr_config_sink *sink, void *owner, struct kr_note *why);
/* The same for text in memory; `name` stands for the file in notes. */
int kr_config_parse(const char *name, struct kr_bytes text, kr_config_sink *sink, void *owner,
                    struct kr_note *why);

#endif
