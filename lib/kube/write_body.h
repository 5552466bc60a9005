/* SPDX-License-Identifier: Apache-2.0 */
/* write_body: what the body of a write took over from the fleet view: the fleet's resourceVersion,
 * and the label and annotations that only the fleet view has; and the body without them. All else
 * stays byte for byte. The same is cut out of the object that `kubectl apply` keeps as text in an
 * annotation (of JSON only: in protobuf the annotation passes as it is).
 * A body in which two readers could find different things (metadata, or what is looked for in it,
 * twice in one object) is refused.
 * Memory: spans of the text, in fixed numbers. Errors: KR_EPROTO (ambiguous), KR_ETOOBIG (more of
 * it than anybody writes), with the reason. Pure. */
#ifndef KR_KUBE_WRITE_BODY_H
#define KR_KUBE_WRITE_BODY_H

#include "kube/json_scan.h"

#define KR_BODY_VERSIONS_MAX 8
#define KR_BODY_CUTS_MAX 32

enum kr_body_kind {
    KR_BODY_OBJECT,         /* or a merge, strategic merge or apply patch: parts of one */
    KR_BODY_DELETE_OPTIONS, /* preconditions.resourceVersion */
    KR_BODY_JSON_PATCH,     /* operations on /metadata/resourceVersion, or on what it is in */
};

struct kr_span {
    size_t at;
    size_t n;
};

struct kr_write_body {       /* read it */
    bool has_version;        /* it carries a resourceVersion that is not "" */
    struct kr_bytes foreign; /* one that is not `version`, as it stands; empty: there is none */
    bool injected;           /* what the fleet view adds is in it */
    bool slimmed;            /* it says that parts of the object were left out */
    struct kr_span versions[KR_BODY_VERSIONS_MAX]; /* what stands between the quotes; ascending */
    size_t version_count;
    struct kr_span cuts[KR_BODY_CUTS_MAX]; /* members, with a comma where one goes; ascending */
    size_t cut_count;
};

/* `text` is checked JSON (kr_scan_check). Occurrences of `version` are noted in `versions`. */
int kr_write_body_read(enum kr_body_kind kind, struct kr_bytes text, struct kr_bytes version,
                       struct kr_write_body *out, struct kr_note *why);
/* Appends the body without the cuts and with the versions emptied. offsets[i] is where, in what is
 * appended, the i-th version can be put in. */
int kr_write_body_edit(const struct kr_write_body *b, struct kr_bytes text, struct kr_buf *out,
                       uint32_t offsets[KR_BODY_VERSIONS_MAX]);
/* Appends an edited body with `version` at each of n offsets. KR_EPROTO: one of them is not where
 * an empty string stands, or the version is no plain text. */
int kr_write_body_fill(struct kr_bytes text, const uint32_t *offsets, size_t n,
                       struct kr_bytes version, struct kr_buf *out);
/* Whether it is what a version can be, wherever it is put. */
bool kr_write_body_version_is_plain(struct kr_bytes version);

#endif
