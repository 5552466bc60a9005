/* SPDX-License-Identifier: Apache-2.0 */
/* slim_path: a path of a profile, taken apart. An inner part of slim. Pure. */
#ifndef KR_KUBE_SLIM_PATH_H
#define KR_KUBE_SLIM_PATH_H

#include "kube/slim.h"

#define KR_PATH_STEPS_MAX 16
#define KR_PATH_BYTES_MAX 512

struct kr_path_step {
    bool any;             /* [*] */
    struct kr_bytes name; /* decoded */
};

struct kr_path {
    struct kr_path_step steps[KR_PATH_STEPS_MAX];
    size_t count;
};

/* Appends the names to `names`, which has room for as many bytes as `text` has: they lie there.
 * KR_EINVAL with the reason. */
int kr_path_read(struct kr_bytes text, bool keep, struct kr_buf *names, struct kr_path *out,
                 struct kr_note *why);

#endif
