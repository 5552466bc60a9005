/* SPDX-License-Identifier: Apache-2.0 */
/* h2_budget: token buckets against cheap HTTP/2 frames that cost the receiver (rapid reset
 * CVE-2023-44487, "made you reset" CVE-2025-8671, PING, SETTINGS, empty DATA and window floods).
 * Pure: time is a parameter. Units: tokens are frames; refill is per second. */
#ifndef KR_HTTP_H2_BUDGET_H
#define KR_HTTP_H2_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* name, burst, refill per 1000 seconds */
#define KR_H2_GLITCHES(X)                                                                          \
    X(KR_H2_RESET_RECEIVED, 500, 33000)                                                            \
    X(KR_H2_RESET_CAUSED, 100, 10000) /* a stream error of the peer made us send RST_STREAM */     \
    X(KR_H2_PING, 20, 1000)                                                                        \
    X(KR_H2_SETTINGS, 10, 100)                                                                     \
    X(KR_H2_OTHER, 200, 20000) /* PRIORITY; nghttp2 skips unknown types */                         \
    X(KR_H2_EMPTY_DATA, 100, 10000)                                                                \
    X(KR_H2_WINDOW_UPDATE, 1000, 100000) /* beyond ten for each DATA frame that we sent */         \
    X(KR_H2_BAD_HEAD, 10, 1000)          /* invalid or over-sized heads */

enum kr_h2_glitch {
#define X(name, burst, refill) name,
    KR_H2_GLITCHES(X)
#undef X
        KR_H2_GLITCH_ENTRIES
};

struct kr_h2_budget {                    /* embed it; the fields belong to h2_budget.c */
    int64_t milli[KR_H2_GLITCH_ENTRIES]; /* thousandths of a token */
    int64_t then_ms;
};

void kr_h2_budget_init(struct kr_h2_budget *b, int64_t now_ms);
/* Takes one token; false: the bucket is empty, the connection has to go. */
bool kr_h2_budget_take(struct kr_h2_budget *b, enum kr_h2_glitch kind, int64_t now_ms);
/* Gives tokens back, up to the burst. */
void kr_h2_budget_grant(struct kr_h2_budget *b, enum kr_h2_glitch kind, int64_t tokens);
const char *kr_h2_glitch_name(enum kr_h2_glitch kind);

#endif
