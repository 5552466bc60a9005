/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket is one number: the moment at which it will have leaked empty. */
#include "certs/sign_limits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

#define CLUSTERS_MAX 20000 /* more than the burst of KR_SIGN_HOUR_MAX and what a minute adds */
#define HOUR_US INT64_C(3600000000)
#define MINUTE_US INT64_C(60000000)

struct share { /* of one cluster */
    char name[64];
    int64_t full_until_us;
};

/* What fits at once and what leaks in an hour are the limit together: so it is never exceeded. */
static int64_t burst_of(const struct kr_sign_limits *l)
{
    return l->hour_limit / 6;
}

static int64_t hour_step_us(const struct kr_sign_limits *l)
{
    int64_t leaks = l->hour_limit - burst_of(l);

    return (HOUR_US + leaks - 1) / leaks;
}

static int64_t cluster_step_us(const struct kr_sign_limits *l)
{
    return (MINUTE_US + l->cluster_limit - 1) / l->cluster_limit;
}

/* How long until one more fits. */
static int64_t wait_us(int64_t full_until_us, int64_t now_us, int64_t step_us, int64_t burst)
{
    int64_t over = full_until_us - now_us - (burst - 1) * step_us;

    return over > 0 ? over : 0;
}

static int64_t add(int64_t full_until_us, int64_t now_us, int64_t step_us)
{
    return (full_until_us > now_us ? full_until_us : now_us) + step_us;
}

void kr_sign_limits_init(struct kr_sign_limits *l, int64_t hour_limit, int64_t cluster_limit)
{
    *l = (struct kr_sign_limits){.hour_limit = hour_limit, .cluster_limit = cluster_limit};
    kr_map_init(&l->clusters, CLUSTERS_MAX);
}

/* Forgets clusters whose bucket is empty. */
static void forget(struct kr_sign_limits *l, int64_t now_us)
{
    size_t pos = 0;
    struct share *s;

    while ((s = kr_map_next(&l->clusters, &pos, NULL)) != NULL) {
        if (s->full_until_us <= now_us) {
            kr_map_erase(&l->clusters, kr_bytes_str(s->name));
            free(s);
        }
    }
}

void kr_sign_limits_deinit(struct kr_sign_limits *l)
{
    forget(l, INT64_MAX);
    kr_map_deinit(&l->clusters);
}

int kr_sign_limits_check(struct kr_sign_limits *l, const char *cluster, int64_t now_ms,
                         int64_t *retry_ms, struct kr_note *why)
{
    const struct share *s = kr_map_get(&l->clusters, kr_bytes_str(cluster));
    int64_t now_us = now_ms * 1000;
    int64_t all = wait_us(l->full_until_us, now_us, hour_step_us(l), burst_of(l));
    int64_t one =
        s == NULL ? 0
                  : wait_us(s->full_until_us, now_us, cluster_step_us(l), KR_SIGN_CLUSTER_BURST);

    *retry_ms = ((all > one ? all : one) + 999) / 1000;
    if (all > 0)
        return kr_note_set(why, KR_EFULL, "more than %lld certificates in an hour",
                           (long long)l->hour_limit);
    if (one > 0)
        return kr_note_set(why, KR_EFULL, "more than %lld certificates of a cluster in a minute",
                           (long long)l->cluster_limit);
    return 0;
}

int kr_sign_limits_take(struct kr_sign_limits *l, const char *cluster, int64_t now_ms)
{
    struct share *s = kr_map_get(&l->clusters, kr_bytes_str(cluster));
    int64_t now_us = now_ms * 1000;

    if (s == NULL) {
        int rc;

        if (l->clusters.count == CLUSTERS_MAX)
            forget(l, now_us);
        s = calloc(1, sizeof *s);
        if (s == NULL)
            return KR_ENOMEM;
        snprintf(s->name, sizeof s->name, "%s", cluster);
        rc = kr_map_put(&l->clusters, kr_bytes_str(s->name), s);
        if (rc != 0) {
            free(s);
            return rc;
        }
    }
    s->full_until_us = add(s->full_until_us, now_us, cluster_step_us(l));
    l->full_until_us = add(l->full_until_us, now_us, hour_step_us(l));
    return 0;
}
