/* SPDX-License-Identifier: Apache-2.0 */
/* yaml: a small YAML document (or JSON, which is YAML) that others define, such as a kubeconfig.
 * Our own configuration is read by config.h instead.
 * Memory: nodes are borrowed from the document. Limits: 16 MiB of text. Getters take NULL and
 * answer NULL when a value is missing or of another kind. Threads: one owner. */
#ifndef KR_BASE_YAML_H
#define KR_BASE_YAML_H

#include "base/bytes.h"
#include "base/note.h"

struct kr_yaml;
struct kr_yaml_node;

/* KR_EPROTO with line and cause, KR_ETOOBIG, KR_ENOMEM. */
int kr_yaml_parse(struct kr_bytes text, struct kr_yaml **out, struct kr_note *why);
void kr_yaml_destroy(struct kr_yaml *doc);
const struct kr_yaml_node *kr_yaml_root(struct kr_yaml *doc);
const struct kr_yaml_node *kr_yaml_get(struct kr_yaml *doc, const struct kr_yaml_node *map,
                                       const char *key);
const struct kr_yaml_node *kr_yaml_at(struct kr_yaml *doc, const struct kr_yaml_node *list,
                                      size_t i);
/* A scalar's text, NUL-terminated; NULL for anything else and for "". */
const char *kr_yaml_text(const struct kr_yaml_node *node);

enum kr_yaml_kind { KR_YAML_NONE, KR_YAML_SCALAR, KR_YAML_LIST, KR_YAML_MAP };

/* NONE for NULL. */
enum kr_yaml_kind kr_yaml_kind(const struct kr_yaml_node *node);
/* The i-th entry of a mapping, in the order of the text; false behind the last one. A key may stand
 * there twice, and need not be a scalar. */
bool kr_yaml_entry(struct kr_yaml *doc, const struct kr_yaml_node *map, size_t i,
                   const struct kr_yaml_node **key, const struct kr_yaml_node **value);
/* Where it begins, from 1; 0 for NULL. */
size_t kr_yaml_line(const struct kr_yaml_node *node);

#endif
