/* SPDX-License-Identifier: Apache-2.0 */
/* patch_out: writes a JSON Patch (RFC 6902), values as they stand, while a path (RFC 6901) grows
 * and shrinks with the walk.
 * Limits: KR_PATCH_OPERATIONS_MAX operations (API servers take 10,000), KR_PATCH_PATH_MAX bytes of
 * path. Memory: appends to the caller's buf; owns the path. Errors: KR_ETOOBIG, KR_ENOMEM; the
 * first one sticks in rc. Pure. */
#ifndef KR_KUBE_PATCH_OUT_H
#define KR_KUBE_PATCH_OUT_H

#include "base/buf.h"

#define KR_PATCH_OPERATIONS_MAX 9000
#define KR_PATCH_PATH_MAX (64u * 1024)

struct kr_patch_out { /* read path, operations and rc */
    struct kr_buf *buf;
    struct kr_buf path; /* as it stands in JSON; ends at any length that it had before */
    size_t operations;
    int rc;
};

void kr_patch_start(struct kr_patch_out *p, struct kr_buf *buf);
void kr_patch_end(struct kr_patch_out *p); /* frees the path; also after a failure */
/* One step down: a member (its name decoded), an element. */
void kr_patch_member(struct kr_patch_out *p, struct kr_bytes name);
void kr_patch_element(struct kr_patch_out *p, size_t index);
/* Back to a path that was `n` bytes long. */
static inline void kr_patch_back(struct kr_patch_out *p, size_t n)
{
    p->path.n = n;
}
/* At the path. */
void kr_patch_remove(struct kr_patch_out *p);
void kr_patch_add(struct kr_patch_out *p, struct kr_bytes value);
void kr_patch_replace(struct kr_patch_out *p, struct kr_bytes value);
/* From one element of the array at the path to the place of another. */
void kr_patch_move(struct kr_patch_out *p, size_t from, size_t to);

#endif
