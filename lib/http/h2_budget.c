/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h2_budget.h"

static const struct {
    const char *name;
    int64_t burst;
    int64_t refill; /* thousandths of a token per second */
} kinds[] = {
#define X(name, burst, refill) {#name, burst, refill},
    KR_H2_GLITCHES(X)
#undef X
};

void kr_h2_budget_init(struct kr_h2_budget *b, int64_t now_ms)
{
    b->then_ms = now_ms;
    for (int i = 0; i < KR_H2_GLITCH_ENTRIES; i++)
        b->milli[i] = kinds[i].burst * 1000;
}

static void add(struct kr_h2_budget *b, int kind, int64_t milli)
{
    int64_t full = kinds[kind].burst * 1000;

    b->milli[kind] = b->milli[kind] + milli < full ? b->milli[kind] + milli : full;
}

bool kr_h2_budget_take(struct kr_h2_budget *b, enum kr_h2_glitch kind, int64_t now_ms)
{
    int64_t passed = now_ms - b->then_ms;

    if (passed >= 100) { /* refilling in steps keeps the division exact enough */
        b->then_ms = now_ms;
        passed = passed < 3600 * 1000 ? passed : 3600 * 1000;
        for (int i = 0; i < KR_H2_GLITCH_ENTRIES; i++)
            add(b, i, kinds[i].refill * passed / 1000);
    }
    if (b->milli[kind] < 1000)
        return false;
    b->milli[kind] -= 1000;
    return true;
}

void kr_h2_budget_grant(struct kr_h2_budget *b, enum kr_h2_glitch kind, int64_t tokens)
{
    add(b, kind, tokens * 1000);
}

const char *kr_h2_glitch_name(enum kr_h2_glitch kind)
{
    return kinds[kind].name + sizeof "KR_H2_" - 1;
}
