/* SPDX-License-Identifier: Apache-2.0 */
/* object_facts: what relay and cache must know of one object, found in its text in one pass, and
 * where something can be put into it.
 * An object that could mean two things to two readers is refused: metadata, or one of its members
 * that is read here, twice in one object; a key that is written with escapes where a plain one is
 * read; name, namespace, uid or resourceVersion that are no plain strings.
 * Memory: spans borrow the text. Errors: KR_EPROTO, KR_ETOOBIG (depth), with the reason. Pure. */
#ifndef KR_KUBE_OBJECT_FACTS_H
#define KR_KUBE_OBJECT_FACTS_H

#include "kube/json_scan.h"

/* A '{' of the text, behind which members can be put. */
struct kr_opening {
    size_t at;  /* offset behind the '{'; 0: there is no such object */
    bool empty; /* "{}": what is put there needs no comma behind it */
};

struct kr_object_facts {
    struct kr_bytes api_version;
    struct kr_bytes kind;
    struct kr_bytes name;
    struct kr_bytes ns;
    struct kr_bytes uid;
    struct kr_bytes version; /* resourceVersion */
    struct kr_bytes created; /* creationTimestamp */
    struct kr_bytes labels;  /* whole values, as they stand; empty if absent or null */
    struct kr_bytes annotations;
    struct kr_bytes owners; /* ownerReferences */
    struct kr_opening top;
    struct kr_opening in_metadata;
    struct kr_opening in_labels;
    struct kr_opening in_annotations;
};

/* Checks the whole text, too. */
int kr_object_facts(struct kr_bytes object, struct kr_object_facts *out, struct kr_note *why);

#endif
