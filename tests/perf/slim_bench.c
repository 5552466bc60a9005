/* SPDX-License-Identifier: Apache-2.0 */
/* slim_bench: how fast the scanners of lib/kube are, beside memcpy and json-c doing the same, on
 * the same pods in one process. The contestants take turns in every round, since a machine's speed
 * drifts; ratios are medians of those within a round.
 *
 * usage: perf_slim_bench [--rounds N] [--pods N]; prints KEY=VALUE lines, speeds in MB/s of input.
 */
#include "slim_pods.h"

#include "base/err.h"
#include "kube/list_scan.h"
#include "kube/slim.h"

#include <getopt.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { ROUNDS_MAX = 99, PODS_MAX = 20000, CHUNK = 16 * 1024, SEED = 4711 };

enum contestant { MEMCPY, SLIM, LOSSLESS, JSONC, STREAM, FACTS, CHECK, CONTESTANTS };

static const char *const names[CONTESTANTS] = {"memcpy",        "slim",  "slim_lossless", "jsonc",
                                               "list_and_slim", "facts", "check"};

static const char *const keep[] = {
    "spec.nodeName",
    "spec.containers[*].name",
    "spec.containers[*].image",
    "spec.containers[*].resources",
    "status.phase",
    "status.podIP",
    "status.startTime",
    "status.conditions[*].type",
    "status.conditions[*].status",
    "status.containerStatuses[*].name",
    "status.containerStatuses[*].ready",
    "status.containerStatuses[*].restartCount",
    "status.containerStatuses[*].state",
};

#define KEEP_COUNT (sizeof keep / sizeof keep[0])

struct bench {
    size_t pods;
    struct kr_buf whole; /* all pods, one behind the other */
    struct kr_bytes *pod;
    struct kr_buf list;
    struct kr_buf slims;
    struct kr_bytes *slim;
    struct kr_profile *profile;
    struct kr_profile *lossless;
    struct kr_buf out;
    double speed[CONTESTANTS][ROUNDS_MAX];
};

static void demand(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "slim_bench: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the same with json-c: parse, delete what no path names, print ---- */

static bool is_step(const char **path, const char *key)
{
    size_t n = strlen(key);

    if (strncmp(*path, key, n) != 0 || ((*path)[n] != '.' && (*path)[n] != '[' && (*path)[n] != 0))
        return false;
    *path += n;
    return true;
}

/* `paths` are what is left of those that lead here. */
static void prune(struct json_object *v, const char *const *paths, size_t count);

static void prune_member(struct json_object *object, const char *key, struct json_object *value,
                         const char *const *paths, size_t count)
{
    const char *inner[KEEP_COUNT];
    size_t n = 0;
    bool whole = false;

    for (size_t i = 0; i < count; i++) {
        const char *rest = paths[i];

        if (!is_step(&rest, key))
            continue;
        whole = whole || rest[0] == 0;
        inner[n++] = rest[0] == '.' ? rest + 1 : rest;
    }
    if (n == 0)
        json_object_object_del(object, key);
    else if (!whole)
        prune(value, inner, n);
}

static void prune(struct json_object *v, const char *const *paths, size_t count)
{
    const char *inner[KEEP_COUNT];

    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = 0; i < count; i++)
            inner[i] = paths[i] + strlen("[*].");
        for (size_t i = 0; i < json_object_array_length(v); i++)
            prune(json_object_array_get_idx(v, i), inner, count);
    } else {
        json_object_object_foreach(v, key, value) prune_member(v, key, value, paths, count);
    }
}

static struct json_object *slim_tree(struct kr_bytes pod, struct json_tokener *tokener)
{
    struct json_object *v;
    struct json_object *metadata = NULL;

    json_tokener_reset(tokener);
    v = json_tokener_parse_ex(tokener, (const char *)pod.p, (int)pod.n);
    demand(v != NULL && json_object_object_get_ex(v, "metadata", &metadata), "json-c cannot parse");
    json_object_object_del(metadata, "managedFields");
    json_object_object_del(metadata, "resourceVersion");
    json_object_get(metadata);
    prune(v, keep, KEEP_COUNT);
    json_object_object_add(v, "metadata", metadata);
    return v;
}

/* A tenth of the pods: it takes its time. */
static size_t jsonc_pods(const struct bench *b)
{
    return (b->pods + 9) / 10;
}

static void run_jsonc(struct bench *b)
{
    struct json_tokener *tokener = json_tokener_new();

    for (size_t i = 0; i < jsonc_pods(b); i++) {
        struct json_object *v = slim_tree(b->pod[i], tokener);

        b->out.n = 0;
        kr_buf_append_str(&b->out, json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN));
        json_object_put(v);
    }
    json_tokener_free(tokener);
}

/* What is measured must be right: both make the same of every pod. */
static void compare(struct bench *b)
{
    struct json_tokener *tokener = json_tokener_new();

    for (size_t i = 0; i < b->pods; i++) {
        struct json_object *want = slim_tree(b->pod[i], tokener);
        struct json_object *got;

        json_tokener_reset(tokener);
        got = json_tokener_parse_ex(tokener, (const char *)b->slim[i].p, (int)b->slim[i].n);
        demand(got != NULL && json_object_equal(want, got), "json-c makes something else of a pod");
        json_object_put(want);
        json_object_put(got);
    }
    json_tokener_free(tokener);
}

/* ---- the contestants ---- */

static void run_memcpy(struct bench *b)
{
    for (size_t i = 0; i < b->pods; i++) {
        memcpy(b->out.p, b->pod[i].p, b->pod[i].n);
        __asm__ volatile("" : : "r"(b->out.p) : "memory");
    }
}

static void run_slim(struct bench *b, const struct kr_profile *profile)
{
    struct kr_slim seen;

    for (size_t i = 0; i < b->pods; i++) {
        b->out.n = 0;
        demand(kr_slim(profile, b->pod[i], &b->out, &seen, NULL) == 0, "kr_slim failed");
    }
}

static int on_item(void *user, struct kr_bytes item)
{
    struct bench *b = user;
    struct kr_slim seen;

    b->out.n = 0;
    return kr_slim(b->profile, item, &b->out, &seen, NULL);
}

static void on_skipped(void *user, uint64_t n)
{
    (void)user;
    (void)n;
    demand(false, "an item was skipped");
}

static void run_stream(struct bench *b)
{
    static const struct kr_list_scan_ops ops = {on_item, on_skipped};
    struct kr_bytes rest = kr_buf_bytes(&b->list);
    struct kr_list_scan s;

    demand(kr_list_scan_init(&s, &ops, b, 1 << 20) == 0, "no memory");
    while (rest.n != 0) {
        size_t n = rest.n < CHUNK ? rest.n : CHUNK;

        demand(kr_list_scan_feed(&s, kr_bytes_of(rest.p, n)) == 0, "kr_list_scan failed");
        rest = kr_bytes_skip(rest, n);
    }
    demand(kr_list_scan_end(&s, NULL) == 0 && s.items == b->pods, "the list ended early");
    kr_list_scan_deinit(&s);
}

static void run_facts(struct bench *b)
{
    struct kr_object_facts facts;

    for (size_t i = 0; i < b->pods; i++)
        demand(kr_object_facts(b->slim[i], &facts, NULL) == 0 && facts.name.n != 0, "no facts");
}

static void run_check(struct bench *b)
{
    for (size_t i = 0; i < b->pods; i++)
        demand(kr_scan_check(b->pod[i], 64, NULL) == 0, "kr_scan_check failed");
}

static void run(struct bench *b, enum contestant who)
{
    switch (who) {
    case MEMCPY:
        return run_memcpy(b);
    case SLIM:
        return run_slim(b, b->profile);
    case LOSSLESS:
        return run_slim(b, b->lossless);
    case JSONC:
        return run_jsonc(b);
    case STREAM:
        return run_stream(b);
    case FACTS:
        return run_facts(b);
    default:
        return run_check(b);
    }
}

/* ---- the corpus ---- */

static void reserve(struct kr_buf *buf, size_t n)
{
    kr_buf_init(buf, n);
    demand(kr_buf_reserve(buf, n) == 0, "no memory");
}

static void make_pods(struct bench *b)
{
    struct kr_rand rand;

    kr_rand_seed(&rand, SEED);
    reserve(&b->whole, b->pods * 32 * 1024);
    reserve(&b->list, b->pods * 32 * 1024 + 1024);
    reserve(&b->slims, b->pods * 8 * 1024);
    reserve(&b->out, 256 * 1024);
    b->pod = calloc(b->pods, sizeof *b->pod);
    b->slim = calloc(b->pods, sizeof *b->slim);
    demand(b->pod != NULL && b->slim != NULL, "no memory");
    kr_buf_append_str(&b->list, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":"
                                "{\"resourceVersion\":\"10999999\"},\"items\":[");
    for (size_t i = 0; i < b->pods; i++) {
        size_t from = b->whole.n;

        slim_pod(&b->whole, &rand, (unsigned)i, true);
        b->pod[i] = kr_bytes_of(b->whole.p + from, b->whole.n - from);
        kr_buf_append_str(&b->list, i != 0 ? "," : "");
        demand(kr_buf_append(&b->list, b->pod[i]) == 0, "the pods are larger than thought");
    }
    kr_buf_append_str(&b->list, "]}\n");
}

static void make_slims(struct bench *b)
{
    struct kr_slim seen;

    for (size_t i = 0; i < b->pods; i++) {
        size_t from = b->slims.n;

        demand(kr_slim(b->profile, b->pod[i], &b->slims, &seen, NULL) == 0, "kr_slim failed");
        b->slim[i] = kr_bytes_of(b->slims.p + from, b->slims.n - from);
    }
}

static void make_profiles(struct bench *b)
{
    struct kr_bytes paths[KEEP_COUNT];
    struct kr_profile_paths wanted = {.keep = paths, .keep_count = KEEP_COUNT};
    struct kr_profile_paths all = {0};

    for (size_t i = 0; i < KEEP_COUNT; i++)
        paths[i] = kr_bytes_str(keep[i]);
    b->profile = kr_profile_create(&wanted, NULL);
    b->lossless = kr_profile_create(&all, NULL);
    demand(b->profile != NULL && b->lossless != NULL, "a path is malformed");
}

/* ---- figures ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *values, unsigned n)
{
    double sorted[ROUNDS_MAX];

    memcpy(sorted, values, n * sizeof *values);
    qsort(sorted, n, sizeof *sorted, by_value);
    return sorted[n / 2];
}

static double median_ratio(const double *a, const double *b, unsigned n)
{
    double ratios[ROUNDS_MAX];

    for (unsigned i = 0; i < n; i++)
        ratios[i] = a[i] / b[i];
    return median(ratios, n);
}

static size_t bytes_of(const struct bench *b, enum contestant who)
{
    if (who == FACTS)
        return b->slims.n;
    if (who == JSONC)
        return (size_t)(b->pod[jsonc_pods(b) - 1].p - b->whole.p) + b->pod[jsonc_pods(b) - 1].n;
    return who == STREAM ? b->list.n : b->whole.n;
}

static void measure(struct bench *b, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; round++) {
        for (enum contestant who = 0; who < CONTESTANTS; who++) {
            const unsigned times = who == JSONC ? 1 : 3;
            double start;

            run(b, who); /* warms caches up */
            start = now_s();
            for (unsigned i = 0; i < times; i++)
                run(b, who);
            b->speed[who][round] = (double)bytes_of(b, who) * times / (now_s() - start) / 1e6;
        }
    }
}

static void report(const struct bench *b, unsigned rounds)
{
    struct rusage usage;

    printf("pods=%zu\nrounds=%u\npod_bytes=%zu\nslim_bytes=%zu\n", b->pods, rounds,
           b->whole.n / b->pods, b->slims.n / b->pods);
    for (enum contestant who = 0; who < CONTESTANTS; who++)
        printf("%s_mb_s=%.0f\n", names[who], median(b->speed[who], rounds));
    printf("slim_over_jsonc=%.1f\n", median_ratio(b->speed[SLIM], b->speed[JSONC], rounds));
    printf("slim_over_memcpy=%.3f\n", median_ratio(b->speed[SLIM], b->speed[MEMCPY], rounds));
    printf("list_and_slim_over_memcpy=%.3f\n",
           median_ratio(b->speed[STREAM], b->speed[MEMCPY], rounds));
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        printf("max_rss_kib=%ld\n", usage.ru_maxrss);
}

static unsigned number(const char *text, unsigned max)
{
    uint64_t n = 0;

    demand(kr_bytes_to_u64(kr_bytes_str(text), max, &n) && n != 0, "not a number, or out of range");
    return (unsigned)n;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, 'r'}, {"pods", required_argument, NULL, 'p'}, {0}};
    struct bench b = {.pods = 4000}; /* more than caches hold, as in a fleet */
    unsigned rounds = 7;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        demand(option != '?', "usage: perf_slim_bench [--rounds N] [--pods N]");
        if (option == 'r')
            rounds = number(optarg, ROUNDS_MAX);
        else
            b.pods = number(optarg, PODS_MAX);
    }
    make_pods(&b);
    make_profiles(&b);
    make_slims(&b);
    compare(&b);
    measure(&b, rounds);
    report(&b, rounds);
    kr_profile_destroy(b.profile);
    kr_profile_destroy(b.lossless);
    kr_buf_deinit(&b.whole);
    kr_buf_deinit(&b.list);
    kr_buf_deinit(&b.slims);
    kr_buf_deinit(&b.out);
    free(b.pod);
    free(b.slim);
    return 0;
}
