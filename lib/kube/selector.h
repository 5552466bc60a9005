/* SPDX-License-Identifier: Apache-2.0 */
/* selector: label selectors in full (apimachinery labels/selector.go: =, ==, !=, in, notin, key,
 * !key, >, <) and field selectors (fields/selector.go: =, ==, !=, joined by commas, '\' escapes).
 * Limits: 64 requirements, 1,024 values in all; no regular expressions anywhere.
 * Memory: a selector lives in the caller's arena and borrows nothing.
 * Errors: KR_EINVAL with the words that kube-apiserver uses, KR_ETOOBIG, KR_ENOMEM. Pure. */
#ifndef KR_KUBE_SELECTOR_H
#define KR_KUBE_SELECTOR_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/note.h"

struct kr_label {
    struct kr_bytes key;
    struct kr_bytes value;
};

enum kr_operator { KR_OP_IN, KR_OP_NOT_IN, KR_OP_EXISTS, KR_OP_NOT_EXISTS, KR_OP_GT, KR_OP_LT };

struct kr_requirement {
    struct kr_bytes key;
    enum kr_operator op;
    const struct kr_bytes *values; /* = and == are IN with one value */
    size_t value_count;
    int64_t bound; /* of GT and LT */
};

struct kr_label_selector { /* read it; n 0 selects everything */
    const struct kr_requirement *all;
    size_t n;
};

int kr_label_selector_parse(struct kr_bytes text, struct kr_arena *arena,
                            struct kr_label_selector *out, struct kr_note *why);
/* `value` is NULL if the object has no such label. */
bool kr_requirement_matches(const struct kr_requirement *r, const struct kr_bytes *value);
/* `labels` are sorted by key (kr_labels_sort). */
bool kr_label_selector_matches(const struct kr_label_selector *s, const struct kr_label *labels,
                               size_t n);
void kr_labels_sort(struct kr_label *labels, size_t n);
/* The labels of an object (metadata.labels as it stands, checked JSON), decoded into the arena and
 * sorted; the last of a duplicate key counts. KR_EPROTO for a value that is no string, KR_ETOOBIG
 * beyond max. */
int kr_labels_read(struct kr_bytes json, struct kr_arena *arena, struct kr_label *out, size_t max,
                   size_t *n, struct kr_note *why);

struct kr_field_term {
    struct kr_bytes field;
    struct kr_bytes value;
    bool equal; /* else: not equal */
};

struct kr_field_selector { /* read it; n 0 selects everything */
    const struct kr_field_term *all;
    size_t n;
};

int kr_field_selector_parse(struct kr_bytes text, struct kr_arena *arena,
                            struct kr_field_selector *out, struct kr_note *why);
/* Whether each field may be asked of this resource: metadata.name and metadata.namespace of all,
 * the rest by kind as in kube-apiserver (pods: spec.nodeName, status.phase, ...). KR_EINVAL with
 * "field label not supported: X". */
int kr_field_selector_allowed(const struct kr_field_selector *s, struct kr_bytes group,
                              struct kr_bytes resource, struct kr_note *why);
/* Whether it looks at more than name and namespace, so that the object must be read. */
bool kr_field_selector_needs_object(const struct kr_field_selector *s);
/* `object` is checked JSON (it may be empty if it is not needed). A field that is absent is "" (or
 * its default: "false" of booleans). */
bool kr_field_selector_matches(const struct kr_field_selector *s, struct kr_bytes ns,
                               struct kr_bytes name, struct kr_bytes object);
/* The paths that the field selectors of a resource look at beyond metadata, for profiles that must
 * keep them ("spec.nodeName"); NULL-terminated, static. */
const char *const *kr_field_paths(struct kr_bytes group, struct kr_bytes resource);

#endif
