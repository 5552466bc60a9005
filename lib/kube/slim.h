/* SPDX-License-Identifier: Apache-2.0 */
/* slim: copies of one object what a profile keeps, byte for byte, in one pass over its text.
 *
 * Always left out (they are put back, or are of no use): top-level apiVersion and kind,
 * metadata.resourceVersion, metadata.managedFields. Always kept: the rest of metadata but
 * annotations that a profile drops. Then, of everything else:
 *   no paths             all of it (lossless)
 *   keep                 only what a path names, with the objects and arrays around it
 *   drop                 all but what a path names; metadata.annotations["x"] is possible here
 *   keep and drop        first keep, then drop of that
 *   metadata only        nothing
 * An object or array on the way to a kept path stays, even when it is empty, and so does a null in
 * its place; elements of an array stay in place and number, unless a path drops them ([*] at its
 * end). Duplicate keys are treated alike; white space that stays between tokens stays as it is.
 *
 * Paths: members by name, separated by dots; [*] for every element of an array or every member of
 * an object; ["quoted"] (JSON string) for names with dots: spec.containers[*].image,
 * metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]. They begin with a name.
 * At most 64 paths of 16 steps, 512 bytes each.
 *
 * Memory: a profile owns its paths; `out` is the caller's, appended to. Errors: KR_EINVAL for a
 * path (with the reason), KR_EPROTO for an object, KR_ETOOBIG (depth, out), KR_ENOMEM. Pure. */
#ifndef KR_KUBE_SLIM_H
#define KR_KUBE_SLIM_H

#include "kube/object_facts.h"

struct kr_profile;

struct kr_profile_paths {
    const struct kr_bytes *keep;
    size_t keep_count;
    const struct kr_bytes *drop;
    size_t drop_count;
    bool metadata_only;
};

/* NULL: see *why. */
struct kr_profile *kr_profile_create(const struct kr_profile_paths *paths, struct kr_note *why);
void kr_profile_destroy(struct kr_profile *p);

struct kr_slim { /* what was seen on the way; plain spans of the input */
    struct kr_bytes name;
    struct kr_bytes ns;
    struct kr_bytes uid;
    struct kr_bytes version; /* resourceVersion */
    bool lossy;              /* something besides managedFields was left out for good */
};

/* What is left out is only framed, not checked; what is appended to `out` was checked and is one
 * JSON object. A name, namespace, uid or resourceVersion that is no plain string is KR_EPROTO. On
 * failure `out` is as before. */
int kr_slim(const struct kr_profile *p, struct kr_bytes object, struct kr_buf *out,
            struct kr_slim *seen, struct kr_note *why);

#endif
