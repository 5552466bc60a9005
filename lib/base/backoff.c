/* SPDX-License-Identifier: Apache-2.0 */
#include "base/backoff.h"

void kr_backoff_init(struct kr_backoff *b, int64_t base_ms, int64_t cap_ms, int64_t healthy_ms)
{
    *b = (struct kr_backoff){.base_ms = base_ms, .cap_ms = cap_ms, .healthy_ms = healthy_ms};
}

void kr_backoff_up(struct kr_backoff *b, int64_t now_ms)
{
    if (!b->up)
        b->up_since_ms = now_ms;
    b->up = true;
}

int64_t kr_backoff_next(struct kr_backoff *b, struct kr_rand *rand, int64_t now_ms)
{
    int64_t top = b->base_ms;

    if (b->up && now_ms - b->up_since_ms >= b->healthy_ms)
        b->failures = 0;
    b->up = false;
    for (unsigned i = 0; i < b->failures && top < b->cap_ms; i++)
        top *= 2;
    if (top >= b->cap_ms)
        top = b->cap_ms;
    else
        b->failures++;
    return kr_rand_ms(rand, 0, top);
}
