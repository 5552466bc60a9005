/* SPDX-License-Identifier: Apache-2.0 */
/* cache_bench [CLUSTERS [PODS]]: memory and speed of the hub's cache, filled with pods as they come
 * from agents (sizes as measured on packed slim pods), as key=value lines. The content is random:
 * only its size matters here. Times are of the CPU, and memory_miss_ns says how fast that is today:
 * one read of memory that is in no cache. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/rand.h"
#include "hub/cache.h"
#include "wire/digest.h"

#define SPACES 20
#define SETS 400           /* label sets that many pods share */
#define STATEFUL_PERCENT 5 /* pods with a set of their own */

#define BATCH 1000

struct pod { /* all texts of one, as the agent would send them */
    unsigned cluster;
    char ns[32];
    char name[80];
    char uid[40];
    char version[24];
    char app[32];
    char own[80];
    struct kr_label labels[5];
    struct hub_incoming in;
};

struct bench {
    struct kr_sched sched;
    struct hub_revision revision;
    struct hub_cache *cache;
    struct hub_type *type;
    struct kr_rand rand;
    unsigned clusters;
    unsigned pods;
    struct hub_shelf **shelves;
    struct pod batch[BATCH];
    uint8_t noise[4096];
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static size_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    char line[128] = "";
    unsigned long pages;
    char *second;

    KR_ASSERT(f != NULL && fgets(line, sizeof line, f) != NULL);
    fclose(f);
    second = strchr(line, ' ');
    pages = second != NULL ? strtoul(second, NULL, 10) : 0;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void figure(const char *name, double value)
{
    printf("%s=%.1f\n", name, value);
    fflush(stdout);
}

/* The same pod of the same cluster has the same key each time; `round` changes its content. */
static void make_pod(struct bench *b, unsigned cluster, unsigned n, unsigned round, struct pod *p)
{
    unsigned id = n * 2654435761u ^ (cluster * 40503u);
    unsigned app = n % SETS;
    bool stateful = id % 100 < STATEFUL_PERCENT;

    memset(p, 0, sizeof *p);
    p->cluster = cluster;
    snprintf(p->ns, sizeof p->ns, "team-%02u-prod", n % SPACES);
    snprintf(p->name, sizeof p->name, "service-%03u-backend-7d9f%04x-%05x", app, id >> 16,
             n * 131 % 0xFFFFF);
    snprintf(p->uid, sizeof p->uid, "%08x-%04x-4%03x-8%03x-%08x%04x", id, n & 0xFFFF, app, app,
             cluster, n & 0xFFFF);
    snprintf(p->version, sizeof p->version, "%u", 10000000 + n * 7 + round);
    snprintf(p->app, sizeof p->app, "service-%03u", app);
    snprintf(p->own, sizeof p->own, "%s-%u-%u", p->app, cluster, n);
    p->labels[0] = (struct kr_label){KR_LIT("app.kubernetes.io/name"), kr_bytes_str(p->app)};
    p->labels[1] = (struct kr_label){KR_LIT("pod-template-hash"), KR_LIT("7d9f66c5b8")};
    p->labels[2] = (struct kr_label){KR_LIT("team"), kr_bytes_str(p->ns)};
    p->labels[3] = (struct kr_label){KR_LIT("tier"), KR_LIT("backend")};
    p->labels[4] =
        (struct kr_label){KR_LIT("zz.statefulset.kubernetes.io/pod-name"), kr_bytes_str(p->own)};
    p->in = (struct hub_incoming){
        .ns = kr_bytes_str(p->ns),
        .name = kr_bytes_str(p->name),
        .uid = kr_bytes_str(p->uid),
        .version = kr_bytes_str(p->version),
        .hash = ((uint64_t)id << 32 | n) + round,
        .dictionary = 1,
        .size = 1650,
        .packed = kr_bytes_of(b->noise + id % 2048, 200 + kr_rand_below(&b->rand, 141)),
        .labels = p->labels,
        .label_count = stateful ? 5 : 4,
    };
}

static void turn(struct bench *b, int64_t later_ms)
{
    (void)kr_sched_run(&b->sched, b->sched.now_ms + later_ms, b->sched.now_wall_ms + later_ms);
}

/* Each gives the time that it took for the first n of the batch. */
static double put_batch(struct bench *b, unsigned n, int expected)
{
    double start = now_ns();

    for (unsigned i = 0; i < n; i++) {
        struct pod *p = &b->batch[i];
        int rc = hub_shelf_put(b->shelves[p->cluster], &p->in);

        KR_ASSERT(expected < 0 ? rc >= 0 : rc == expected);
    }
    return now_ns() - start;
}

static double delete_batch(struct bench *b, unsigned n)
{
    double start = now_ns();

    for (unsigned i = 0; i < n; i++) {
        struct pod *p = &b->batch[i];

        (void)hub_shelf_delete_hash(b->shelves[p->cluster], kr_key_hash(p->in.ns, p->in.name));
    }
    return now_ns() - start;
}

static double get_batch(struct bench *b, unsigned n)
{
    double start = now_ns();

    for (unsigned i = 0; i < n; i++) {
        struct pod *p = &b->batch[i];

        KR_ASSERT(hub_shelf_get(b->shelves[p->cluster], p->in.ns, p->in.name) != NULL);
    }
    return now_ns() - start;
}

static void random_batch(struct bench *b, unsigned round)
{
    for (unsigned i = 0; i < BATCH; i++)
        make_pod(b, (unsigned)kr_rand_below(&b->rand, b->clusters),
                 (unsigned)kr_rand_below(&b->rand, b->pods), round, &b->batch[i]);
}

/* Interleaved over the clusters, as agents that sync at the same time do it. */
static void fill(struct bench *b)
{
    unsigned step = b->pods < 100 ? b->pods : 100;
    double time = 0;

    for (unsigned from = 0; from < b->pods; from += step) {
        for (unsigned c = 0; c < b->clusters; c++) {
            unsigned n = 0;

            for (; n < step && from + n < b->pods; n++)
                make_pod(b, c, from + n, 0, &b->batch[n]);
            time += put_batch(b, n, 0);
        }
        turn(b, 10);
    }
    figure("put_new_ns", time / (double)b->type->objects);
}

/* One of ten is replaced by content of another size, one of ten deleted and made anew. */
static void churn(struct bench *b, bool tell)
{
    unsigned batches = (unsigned)(b->type->objects / 10 / BATCH) + 1;
    double changed = 0;
    double deleted = 0;
    double added = 0;

    for (unsigned i = 0; i < batches; i++) {
        random_batch(b, i + 1);
        changed += put_batch(b, BATCH, -1);
        turn(b, 1);
        random_batch(b, 0);
        deleted += delete_batch(b, BATCH);
        added += put_batch(b, BATCH, -1);
        turn(b, 1);
    }
    if (!tell)
        return;
    figure("put_changed_ns", changed / batches / BATCH);
    figure("delete_by_hash_ns", deleted / batches / BATCH);
    figure("put_again_ns", added / batches / BATCH);
}

static void quiet_things(struct bench *b)
{
    unsigned batches = 100;
    double same = 0;
    double gets = 0;

    for (unsigned i = 0; i < batches; i++) {
        random_batch(b, 0);
        gets += get_batch(b, BATCH);
        for (unsigned k = 0; k < BATCH; k++)
            b->batch[k].in.hash = hub_shelf_get(b->shelves[b->batch[k].cluster], b->batch[k].in.ns,
                                                b->batch[k].in.name)
                                      ->hash;
        same += put_batch(b, BATCH, 1);
    }
    figure("get_ns", gets / batches / BATCH);
    figure("put_same_ns", same / batches / BATCH); /* what it touches is in the caches */
}

/* Walks and looks at each object's packed bytes, as whoever unpacks them must. */
static void walk(struct bench *b, const char *name, struct hub_walk_query q)
{
    double best = 1e18;
    size_t found = 0;

    q.type = b->type;
    for (int round = 0; round < 3; round++) {
        double start = now_ns();
        struct hub_walk *w = hub_walk_create(&q);
        struct hub_object *o;
        const char *cluster;
        unsigned sum = 0;

        KR_ASSERT(w != NULL);
        for (found = 0; (o = hub_walk_next(w, &cluster)) != NULL; found++)
            sum += hub_object_packed(o).p[0];
        hub_walk_destroy(w);
        if (now_ns() - start < best)
            best = now_ns() - start;
        KR_ASSERT(sum != 1);
    }
    printf("%s_found=%zu\n", name, found);
    figure(name, best / (double)b->type->objects);
}

static void walks(struct bench *b)
{
    struct kr_bytes one_pod = KR_LIT("service-000-7-0");
    struct kr_bytes one_cluster = KR_LIT("edge-0007");
    struct kr_bytes one_app = KR_LIT("service-123");
    struct kr_requirement own = {.key = KR_LIT("zz.statefulset.kubernetes.io/pod-name"),
                                 .op = KR_OP_IN,
                                 .values = &one_pod,
                                 .value_count = 1};
    struct kr_requirement app = {.key = KR_LIT("app.kubernetes.io/name"),
                                 .op = KR_OP_IN,
                                 .values = &one_app,
                                 .value_count = 1};
    struct kr_requirement cluster = {.key = KR_LIT("kuberelay.io/cluster"),
                                     .op = KR_OP_IN,
                                     .values = &one_cluster,
                                     .value_count = 1};
    struct kr_label_selector by_own = {.all = &own, .n = 1};
    struct kr_label_selector by_app = {.all = &app, .n = 1};
    struct kr_label_selector by_cluster = {.all = &cluster, .n = 1};
    struct hub_pin *pin;

    walk(b, "walk_all_ns_per_object", (struct hub_walk_query){.labels = NULL});
    walk(b, "walk_labels_none_ns_per_object", (struct hub_walk_query){.labels = &by_own});
    walk(b, "walk_labels_few_ns_per_object", (struct hub_walk_query){.labels = &by_app});
    walk(b, "walk_cluster_ns_per_object", (struct hub_walk_query){.labels = &by_cluster});
    walk(b, "walk_namespace_ns_per_object", (struct hub_walk_query){.ns = KR_LIT("team-07-prod")});
    pin = hub_pin_take(b->type);
    walk(b, "walk_pinned_ns_per_object", (struct hub_walk_query){.pin = pin});
    churn(b, false);
    walk(b, "walk_pinned_churned_ns_per_object", (struct hub_walk_query){.pin = pin});
    KR_ASSERT(!hub_pin_broken(pin));
    hub_pin_release(pin, false);
}

/* Many deletes in one turn, as after a snapshot that lacks half of a shelf. */
static void burst(struct bench *b)
{
    unsigned n = b->pods / 2;
    double time = 0;

    for (unsigned i = 0; i < n; i++) {
        double start;
        struct pod p;
        uint64_t key;

        make_pod(b, 0, i, 0, &p);
        key = kr_key_hash(p.in.ns, p.in.name);
        start = now_ns();
        KR_ASSERT(hub_shelf_delete_hash(b->shelves[0], key));
        time += now_ns() - start;
    }
    figure("delete_by_hash_burst_ns", time / n);
    turn(b, 1);
}

static void read_log(struct bench *b)
{
    uint64_t from = b->type->revision;
    struct hub_place place;
    struct hub_event *e;
    size_t n = 0;
    double start;

    for (int i = 0; i < 50; i++) {
        random_batch(b, 1000 + (unsigned)i);
        (void)put_batch(b, BATCH, -1);
    }
    KR_ASSERT(hub_place_at(b->type, from, &place) == 0);
    start = now_ns();
    while (hub_place_next(&place, &e) == 1)
        n++;
    turn(b, 1);
    figure("log_read_ns", (now_ns() - start) / (double)n);
}

/* A walk over a random circle through more memory than any cache has. */
static void memory_speed(struct bench *b)
{
    size_t n = 8u << 20;
    uint32_t *next = malloc(n * sizeof *next);
    uint32_t at = 0;
    double start;

    KR_ASSERT(next != NULL);
    for (size_t i = 0; i < n; i++)
        next[i] = (uint32_t)i;
    for (size_t i = n - 1; i != 0; i--) { /* one cycle: Sattolo */
        size_t k = kr_rand_below(&b->rand, i);
        uint32_t x = next[i];

        next[i] = next[k];
        next[k] = x;
    }
    start = now_ns();
    for (int i = 0; i < 2000000; i++)
        at = next[at];
    figure("memory_miss_ns", (now_ns() - start) / 2000000 + (at == n));
    free(next);
}

static void open_bench(struct bench *b)
{
    struct hub_cache_limits limits = {.types = 10,
                                      .cluster_bytes = UINT64_C(1) << 40,
                                      .log_events = 100000,
                                      .log_ms = 0,
                                      .log_bytes = UINT64_C(1) << 30,
                                      .pins = 10,
                                      .pin_ms = 1000};

    kr_rand_seed(&b->rand, 1);
    for (size_t i = 0; i < sizeof b->noise; i++)
        b->noise[i] = (uint8_t)kr_rand_u64(&b->rand);
    memory_speed(b);
    kr_sched_init(&b->sched, 0, INT64_C(1700000000000));
    KR_ASSERT(hub_revision_init(&b->revision, NULL, 0, INT64_C(1700000000000000), NULL) == 0);
    b->cache = hub_cache_create(&b->sched, &b->revision, &limits);
    KR_ASSERT(b->cache != NULL);
    b->type = hub_cache_add_type(b->cache, KR_LIT(""), KR_LIT("v1"), KR_LIT("pods"));
    b->shelves = calloc(b->clusters, sizeof *b->shelves);
    KR_ASSERT(b->type != NULL && b->shelves != NULL);
    for (unsigned c = 0; c < b->clusters; c++) {
        char name[32];

        snprintf(name, sizeof name, "edge-%04u", c);
        b->shelves[c] = hub_type_add_shelf(b->type, kr_bytes_str(name));
        KR_ASSERT(b->shelves[c] != NULL);
    }
}

static void tell_memory(struct bench *b, const char *when, size_t before)
{
    double n = (double)b->type->objects;

    printf("bytes_per_object_%s=%.1f\n", when, (double)hub_cache_bytes(b->cache) / n);
    printf("rss_per_object_%s=%.1f\n", when, (double)(resident() - before) / n);
}

int main(int argc, char **argv)
{
    static struct bench b;
    size_t before;

    b.clusters = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 250;
    b.pods = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4000;
    open_bench(&b);
    before = resident();
    fill(&b);
    printf("objects=%zu\n", b.type->objects);
    tell_memory(&b, "full", before);
    churn(&b, true);
    tell_memory(&b, "churned", before);
    quiet_things(&b);
    walks(&b);
    read_log(&b);
    burst(&b);
    hub_cache_destroy(b.cache);
    hub_revision_deinit(&b.revision);
    kr_sched_deinit(&b.sched);
    free(b.shelves);
    return 0;
}
