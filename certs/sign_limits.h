/* SPDX-License-Identifier: Apache-2.0 */
/* sign_limits: how many certificates there may be, in all and for each cluster (certs/signer.h).
 * Two leaky buckets (the generic cell rate algorithm, ITU-T I.371). Memory: an entry for each
 * cluster that got one lately, 20,000 at most. Errors: KR_EFULL, KR_ENOMEM. Pure; one owner. */
#ifndef KR_CERTS_SIGN_LIMITS_H
#define KR_CERTS_SIGN_LIMITS_H

#include "base/map.h"
#include "base/note.h"

#define KR_SIGN_CLUSTER_BURST 5
#define KR_SIGN_HOUR_DEFAULT "600"
#define KR_SIGN_HOUR_MIN 12
#define KR_SIGN_HOUR_MAX 100000
#define KR_SIGN_CLUSTER_DEFAULT "60" /* a minute */
#define KR_SIGN_CLUSTER_MAX 6000

struct kr_sign_limits { /* embed it; the fields belong to sign_limits.c */
    int64_t hour_limit;
    int64_t cluster_limit;
    int64_t full_until_us;  /* of the bucket of all */
    struct kr_map clusters; /* by name */
};

void kr_sign_limits_init(struct kr_sign_limits *l, int64_t hour_limit, int64_t cluster_limit);
void kr_sign_limits_deinit(struct kr_sign_limits *l);
/* 0 if there may be one more now, else *retry_ms is when. */
int kr_sign_limits_check(struct kr_sign_limits *l, const char *cluster, int64_t now_ms,
                         int64_t *retry_ms, struct kr_note *why);
/* There is one more. */
int kr_sign_limits_take(struct kr_sign_limits *l, const char *cluster, int64_t now_ms);

#endif
