/* SPDX-License-Identifier: Apache-2.0 */
/* Each family has a list of series, in the order of their making: the writer appends with a release
 * store, so a renderer on another thread sees whole series only. The map that finds a series by its
 * labels is the writer's alone. */
#include "base/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/map.h"

#define MAX_SERIES 1000
#define LABEL_MAX 128
/* The text of all labels of a series, as it appears between the braces; every byte may need two. */
#define LABELS_MAX (KR_METRIC_LABELS_MAX * (2 * LABEL_MAX + 72))

struct series {
    struct kr_metric metric; /* first: callers hold its address */
    struct series *next;
    struct kr_bytes labels; /* `a="x",b="y"`, owned, behind the struct */
};

struct family {
    struct series *head;
    struct series *tail;
    struct series *other; /* takes what does not fit; shown once it is used */
    struct kr_map by_labels;
};

struct kr_metrics {
    const struct kr_metric_family *table;
    size_t n;
    struct family families[];
};

struct labels { /* text being built */
    char text[LABELS_MAX];
    size_t n;
};

static size_t n_labels(const struct kr_metric_family *f)
{
    size_t n = 0;

    while (n < KR_METRIC_LABELS_MAX && f->labels[n] != NULL)
        n++;
    return n;
}

static void put(struct labels *l, const char *s, size_t n)
{
    KR_ASSERT(n <= sizeof l->text - l->n);
    memcpy(l->text + l->n, s, n);
    l->n += n;
}

/* `name="value"`; '\', '"' and newline are escaped as the format says. */
static void put_label(struct labels *l, const char *name, const char *value)
{
    struct kr_bytes v = kr_bytes_str(value);

    if (v.n > LABEL_MAX)
        v.n = LABEL_MAX;
    if (!kr_bytes_is_utf8(v))
        v = KR_LIT("invalid");
    if (l->n != 0)
        put(l, ",", 1);
    put(l, name, strlen(name));
    put(l, "=\"", 2);
    for (size_t i = 0; i < v.n; i++) {
        char c = (char)v.p[i];

        if (c == '\n')
            put(l, "\\n", 2);
        else if (c == '"' || c == '\\')
            put(l, (char[]){'\\', c}, 2);
        else
            put(l, &c, 1);
    }
    put(l, "\"", 1);
}

static struct series *series_create(const struct kr_metric_family *f, const struct labels *l)
{
    size_t counts = f->type == KR_HISTOGRAM ? (f->n_buckets + 1) * sizeof(int64_t) : 0;
    struct series *s = calloc(1, sizeof *s + counts + l->n);
    char *behind;

    if (s == NULL)
        return NULL;
    behind = (char *)(s + 1);
    s->metric.family = f;
    if (counts != 0)
        s->metric.counts = (int64_t *)(void *)behind;
    memcpy(behind + counts, l->text, l->n);
    s->labels = kr_bytes_of(behind + counts, l->n);
    return s;
}

static void append(struct family *fam, struct series *s)
{
    if (fam->tail != NULL)
        __atomic_store_n(&fam->tail->next, s, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&fam->head, s, __ATOMIC_RELEASE);
    fam->tail = s;
}

/* The overflow series is made at the start, so that it is there when memory is not. */
static int family_init(struct family *fam, const struct kr_metric_family *f)
{
    struct labels l = {.n = 0};
    size_t n = n_labels(f);

    KR_ASSERT(f->n_buckets <= KR_METRIC_BUCKETS_MAX);
    kr_map_init(&fam->by_labels, f->max_series != 0 ? f->max_series : MAX_SERIES);
    for (size_t i = 0; i < n; i++)
        put_label(&l, f->labels[i], "other");
    fam->other = series_create(f, &l);
    if (fam->other == NULL)
        return KR_ENOMEM;
    if (n == 0)
        append(fam, fam->other); /* a family without labels has this one series */
    return 0;
}

struct kr_metrics *kr_metrics_create(const struct kr_metric_family *table, size_t n)
{
    struct kr_metrics *reg = calloc(1, sizeof *reg + n * sizeof reg->families[0]);

    if (reg == NULL)
        return NULL;
    reg->table = table;
    for (reg->n = 0; reg->n < n; reg->n++) {
        if (family_init(&reg->families[reg->n], &table[reg->n]) != 0) {
            kr_metrics_destroy(reg);
            return NULL;
        }
    }
    return reg;
}

void kr_metrics_destroy(struct kr_metrics *reg)
{
    if (reg == NULL)
        return;
    for (size_t i = 0; i < reg->n; i++) {
        struct family *fam = &reg->families[i];
        bool listed = false;

        for (struct series *s = fam->head, *next; s != NULL; s = next) {
            next = s->next;
            listed = listed || s == fam->other;
            free(s);
        }
        if (!listed)
            free(fam->other);
        kr_map_deinit(&fam->by_labels);
    }
    free(reg);
}

static struct kr_metric *overflow(struct family *fam)
{
    if (fam->other != fam->tail && fam->other->next == NULL)
        append(fam, fam->other);
    return &fam->other->metric;
}

struct kr_metric *kr_metrics_series(struct kr_metrics *reg, size_t family,
                                    const char *const *values, size_t n)
{
    struct labels l = {.n = 0};
    const struct kr_metric_family *f = &reg->table[family];
    struct family *fam = &reg->families[family];
    struct series *s;

    KR_ASSERT(family < reg->n && n == n_labels(f));
    if (n == 0)
        return &fam->other->metric;
    for (size_t i = 0; i < n; i++)
        put_label(&l, f->labels[i], values[i] != NULL ? values[i] : "");
    s = kr_map_get(&fam->by_labels, kr_bytes_of(l.text, l.n));
    if (s != NULL)
        return &s->metric;
    if (l.n == fam->other->labels.n && memcmp(l.text, fam->other->labels.p, l.n) == 0)
        return overflow(fam);
    s = series_create(f, &l);
    if (s == NULL || kr_map_put(&fam->by_labels, s->labels, s) != 0) {
        free(s);
        return overflow(fam);
    }
    append(fam, s);
    return &s->metric;
}

void kr_metric_observe(struct kr_metric *m, int64_t v)
{
    size_t i = 0;
    int64_t *count;

    while (i < m->family->n_buckets && v > m->family->buckets[i])
        i++;
    count = &m->counts[i];
    __atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    kr_metric_add(m, v);
}

/* The sums of one series over all registries. */
struct sum {
    struct kr_bytes labels;
    int64_t value;
    int64_t counts[KR_METRIC_BUCKETS_MAX + 1];
    struct sum *next;
};

struct sums { /* of one family, in the order in which they were met */
    struct sum *head;
    struct sum **tail;
    struct kr_map by_labels;
};

static struct sum *sum_of(struct sums *all, struct kr_bytes labels)
{
    struct sum *sum = kr_map_get(&all->by_labels, labels);

    if (sum != NULL)
        return sum;
    sum = calloc(1, sizeof *sum);
    if (sum == NULL)
        return NULL;
    sum->labels = labels;
    if (kr_map_put(&all->by_labels, labels, sum) != 0) {
        free(sum);
        return NULL;
    }
    *all->tail = sum;
    all->tail = &sum->next;
    return sum;
}

static int add_up(struct sums *all, const struct kr_metric_family *f, const struct family *fam)
{
    const struct series *s = __atomic_load_n(&fam->head, __ATOMIC_ACQUIRE);

    for (; s != NULL; s = __atomic_load_n(&s->next, __ATOMIC_ACQUIRE)) {
        struct sum *sum = sum_of(all, s->labels);

        if (sum == NULL)
            return KR_ENOMEM;
        sum->value += kr_metric_value(&s->metric);
        for (size_t i = 0; f->type == KR_HISTOGRAM && i <= f->n_buckets; i++)
            sum->counts[i] += __atomic_load_n(&s->metric.counts[i], __ATOMIC_RELAXED);
    }
    return 0;
}

static int render_number(struct kr_buf *out, int64_t v, int64_t scale)
{
    if (scale <= 1)
        return kr_buf_printf(out, "%" PRId64, v);
    return kr_buf_printf(out, "%.9g", (double)v / (double)scale);
}

/* `name{labels} value`; `extra` is one more label or "". */
static int render_sample(struct kr_buf *out, const char *name, const char *suffix,
                         struct kr_bytes labels, const char *extra, int64_t v, int64_t scale)
{
    bool braces = labels.n != 0 || extra[0] != '\0';
    int rc = kr_buf_printf(out, "%s%s%s%.*s%s%s%s ", name, suffix, braces ? "{" : "", (int)labels.n,
                           labels.n != 0 ? (const char *)labels.p : "",
                           labels.n != 0 && extra[0] != '\0' ? "," : "", extra, braces ? "}" : "");

    if (rc == 0)
        rc = render_number(out, v, scale);
    return rc == 0 ? kr_buf_append_str(out, "\n") : rc;
}

static int render_histogram(struct kr_buf *out, const struct kr_metric_family *f,
                            const struct sum *sum)
{
    int64_t scale = f->scale > 1 ? f->scale : 1;
    int64_t total = 0;
    int rc = 0;

    for (size_t i = 0; i <= f->n_buckets && rc == 0; i++) {
        char le[48] = "le=\"+Inf\"";

        if (i < f->n_buckets)
            snprintf(le, sizeof le, "le=\"%.9g\"", (double)f->buckets[i] / (double)scale);
        total += sum->counts[i];
        rc = render_sample(out, f->name, "_bucket", sum->labels, le, total, 1);
    }
    if (rc == 0)
        rc = render_sample(out, f->name, "_sum", sum->labels, "", sum->value, scale);
    if (rc == 0)
        rc = render_sample(out, f->name, "_count", sum->labels, "", total, 1);
    return rc;
}

static int render_family(struct kr_buf *out, const struct kr_metric_family *f,
                         const struct sum *sum)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    int rc = kr_buf_printf(out, "# HELP %s ", f->name);

    for (const char *c = f->help; *c != '\0' && rc == 0; c++) {
        if (*c == '\\' || *c == '\n')
            rc = kr_buf_append_str(out, *c == '\n' ? "\\n" : "\\\\");
        else
            rc = kr_buf_append(out, kr_bytes_of(c, 1));
    }
    if (rc == 0)
        rc = kr_buf_printf(out, "\n# TYPE %s %s\n", f->name, types[f->type]);
    for (; sum != NULL && rc == 0; sum = sum->next) {
        if (f->type == KR_HISTOGRAM)
            rc = render_histogram(out, f, sum);
        else
            rc = render_sample(out, f->name, "", sum->labels, "", sum->value, f->scale);
    }
    return rc;
}

int kr_metrics_render(struct kr_metrics *const *regs, size_t n, struct kr_buf *out)
{
    int rc = 0;

    for (size_t i = 0; n != 0 && i < regs[0]->n && rc == 0; i++) {
        struct sums all = {.head = NULL};

        all.tail = &all.head;
        kr_map_init(&all.by_labels, SIZE_MAX / 4);
        for (size_t k = 0; k < n && rc == 0; k++)
            rc = add_up(&all, &regs[k]->table[i], &regs[k]->families[i]);
        if (rc == 0)
            rc = render_family(out, &regs[0]->table[i], all.head);
        for (struct sum *s = all.head, *next; s != NULL; s = next) {
            next = s->next;
            free(s);
        }
        kr_map_deinit(&all.by_labels);
    }
    return rc;
}
