/* SPDX-License-Identifier: Apache-2.0 */
/* backoff: how long to wait before the next attempt: full jitter,
 * uniform(0, min(cap, base * 2^n)), so that a fleet that lost its hub does not come back in step
 * (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 * n starts again only after the thing was up for `healthy_ms`: being accepted is not yet health.
 * Units: milliseconds of one monotonic clock, given by the caller. */
#ifndef KR_BASE_BACKOFF_H
#define KR_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rand.h"

struct kr_backoff { /* the fields belong to backoff.c */
    int64_t base_ms;
    int64_t cap_ms;
    int64_t healthy_ms;
    int64_t up_since_ms;
    unsigned failures;
    bool up;
};

#define KR_BACKOFF_HEALTHY_MS 60000

void kr_backoff_init(struct kr_backoff *b, int64_t base_ms, int64_t cap_ms, int64_t healthy_ms);
/* It works since now. */
void kr_backoff_up(struct kr_backoff *b, int64_t now_ms);
/* It failed, or what was up went down: how long to wait from now. */
int64_t kr_backoff_next(struct kr_backoff *b, struct kr_rand *rand, int64_t now_ms);

#endif
