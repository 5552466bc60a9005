/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: counters, gauges and histograms, shown in the Prometheus text format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 * A program has one static table of families, so a metric without a help text cannot exist; what is
 * counted is found once (kr_metrics_get) and then changed through a pointer with a plain add.
 * Limits:  series per family (`max_series`, default 1,000): beyond it, or without memory, all the
 *          rest share one series whose label values are "other"; so getting one never fails.
 * Memory:  a series lives as long as its registry.
 * Threads: a registry has one writing thread; kr_metrics_render may run on another one, and adds
 *          up the registries of several (one per worker).
 * Units:   whole numbers; `scale` turns them into the base unit on the page (ms with scale 1000 are
 *          shown as seconds). */
#ifndef KR_BASE_METRICS_H
#define KR_BASE_METRICS_H

#include "base/buf.h"

#define KR_METRIC_LABELS_MAX 4
#define KR_METRIC_BUCKETS_MAX 24

enum kr_metric_type { KR_COUNTER, KR_GAUGE, KR_HISTOGRAM };

struct kr_metric_family {
    const char *name;
    enum kr_metric_type type;
    const char *help;
    const char *labels[KR_METRIC_LABELS_MAX]; /* up to the first NULL */
    const int64_t *buckets;                   /* histogram: upper bounds, ascending */
    size_t n_buckets;
    int64_t scale;     /* 0 is 1 */
    size_t max_series; /* 0 is 1,000 */
};

struct kr_metric { /* change it only by the functions below */
    int64_t value; /* histogram: the sum */
    const struct kr_metric_family *family;
    int64_t *counts; /* histogram: one per bucket, then the rest */
};

struct kr_metrics;

/* `table` is borrowed for good; the position in it is the family's number. NULL without memory. */
struct kr_metrics *kr_metrics_create(const struct kr_metric_family *table, size_t n);
void kr_metrics_destroy(struct kr_metrics *reg);
/* The series with these label values (NULL is ""), as many as the family has labels. Never NULL. */
struct kr_metric *kr_metrics_series(struct kr_metrics *reg, size_t family,
                                    const char *const *values, size_t n);
/* kr_metrics_get(reg, HUB_REQUESTS, "edge-1", "200") */
#define kr_metrics_get(reg, family, ...)                                                           \
    kr_metrics_series((reg), (family), (const char *const[]){__VA_ARGS__},                         \
                      sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* One thread writes, so this is an ordinary add; another one may read meanwhile. */
static inline void kr_metric_add(struct kr_metric *m, int64_t n)
{
    __atomic_store_n(&m->value, __atomic_load_n(&m->value, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline void kr_metric_set(struct kr_metric *m, int64_t v)
{
    __atomic_store_n(&m->value, v, __ATOMIC_RELAXED);
}

static inline int64_t kr_metric_value(const struct kr_metric *m)
{
    return __atomic_load_n(&m->value, __ATOMIC_RELAXED);
}

/* Histogram: counts one observation. */
void kr_metric_observe(struct kr_metric *m, int64_t v);

/* Appends the page of the sums over n registries that were made from one table.
 * KR_ENOMEM, KR_ETOOBIG. */
int kr_metrics_render(struct kr_metrics *const *regs, size_t n, struct kr_buf *out);

#endif
