/* SPDX-License-Identifier: Apache-2.0 */
/* bundle: the roots that agents are told to trust (bundleFile, or caFile), with a generation that
 * goes up whenever the content has changed: agents take only what is newer than what they have. It
 * is the time of the change in seconds since 1970, or one more than the one before: so it goes up
 * also when the registry was lost, or is an old copy. */
#ifndef HUB_BUNDLE_H
#define HUB_BUNDLE_H

#include "hub/registry.h"

struct hub_bundle { /* embed it; the fields belong to bundle.c */
    struct kr_buf pem;
    uint64_t generation; /* 0: nothing is told */
};

/* Reads the file anew; on failure all stays. Without a registry there are no generations. */
int hub_bundle_load(struct hub_bundle *b, struct hub_registry *r, const struct hub_options *o,
                    int64_t now_wall_ms, struct kr_note *why);
void hub_bundle_deinit(struct hub_bundle *b);

#endif
