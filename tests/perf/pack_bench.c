/* SPDX-License-Identifier: Apache-2.0 */
/* pack_bench: how small and how fast lib/wire/compress makes objects, one by one, and how much
 * memory that takes. The objects are none that the dictionary was made from:
 *   sim       pods of kubesim, slimmed with the profile of tests/perf/pods.yaml, cells in front
 *   small     those of them that have one container
 *   lossless  the same pods without managedFields only
 *   nodes     nodes of kubesim, without managedFields only
 *   strange   pods of slim_pods.c, slimmed; each time and hash in them is random
 * Beside: the same with no dictionary at level 3, and memcpy.
 *
 * usage: perf_pack_bench [--rounds N] [--objects N]; prints KEY=VALUE lines, bytes per object and
 * MB/s of plain text (medians of the rounds). */
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <zstd.h>

#include "../kubesim/gen.h"
#include "../kubesim/heavy.h"
#include "../kubesim/kinds.h"
#include "kube/slim.h"
#include "slim_pods.h"
#include "wire/compress.h"

enum { ROUNDS_MAX = 99, OBJECTS_MAX = 100000, SEED = 4711 };

static const char *const keep[] = {
    "spec.nodeName",
    "spec.containers[*].name",
    "spec.containers[*].image",
    "spec.containers[*].resources",
    "status.phase",
    "status.hostIP",
    "status.podIP",
    "status.startTime",
    "status.conditions[*].type",
    "status.conditions[*].status",
    "status.conditions[*].lastTransitionTime",
    "status.conditions[*].reason",
    "status.containerStatuses[*].name",
    "status.containerStatuses[*].ready",
    "status.containerStatuses[*].restartCount",
    "status.containerStatuses[*].containerID",
};
static const char *const drop[] = {
    "metadata.annotations[\"kubesim/touched\"]",
    "metadata.annotations[\"checksum/config\"]",
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct corpus {
    const char *name;
    size_t n;
    struct kr_buf text; /* all plain texts, one behind the other */
    size_t *ends;
};

struct bench {
    int rounds;
    size_t objects;
    struct kr_profile *slim;
    struct kr_profile *lossless;
    struct kr_dictionaries *dictionaries;
    struct kr_packer *packer;
    struct kr_unpacker *unpacker;
};

static void demand(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "pack_bench: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others may be at work as well */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- objects ------------------------------------------------------------------------------- */

static struct kr_profile *profile(const char *const *k, size_t kn, const char *const *d, size_t dn)
{
    struct kr_bytes keeps[32];
    struct kr_bytes drops[32];
    struct kr_note why;

    for (size_t i = 0; i < kn; i++)
        keeps[i] = kr_bytes_str(k[i]);
    for (size_t i = 0; i < dn; i++)
        drops[i] = kr_bytes_str(d[i]);
    return kr_profile_create(&(struct kr_profile_paths){keeps, kn, drops, dn, false}, &why);
}

static struct kr_bytes text_of(const struct corpus *c, size_t i)
{
    size_t from = i != 0 ? c->ends[i - 1] : 0;

    return kr_bytes_of(c->text.p + from, c->ends[i] - from);
}

static void begin(struct corpus *c, const char *name, size_t objects)
{
    *c = (struct corpus){.name = name};
    kr_buf_init(&c->text, (size_t)1 << 31);
    c->ends = calloc(objects, sizeof *c->ends);
    demand(c->ends != NULL, "no memory");
}

/* One object behind its cells and a newline, which the caller has put there. */
static void add(struct corpus *c, const struct kr_profile *p, struct kr_bytes object)
{
    struct kr_slim seen;
    struct kr_note why;

    demand(kr_slim(p, object, &c->text, &seen, &why) == 0, "an object cannot be slimmed");
    c->ends[c->n++] = c->text.n;
}

static void add_sim(struct corpus *c, const struct bench *b, const char *name, int kind,
                    const struct kr_profile *p)
{
    const bool small = strcmp(name, "small") == 0;
    const int64_t wall_ms = 1750000000000;
    struct sim_heavy *heavy = sim_heavy_create(14336, 11264);
    struct sim_world w = {"edge", SEED, (uint32_t)b->objects, (uint32_t)b->objects, wall_ms, heavy};
    struct kr_buf full;

    demand(heavy != NULL, "no memory");
    begin(c, name, b->objects);
    kr_buf_init(&full, 1 << 20);
    for (uint32_t i = 0; i < b->objects; i++) {
        const struct sim_gen_id id = {.index = i};

        full.n = 0;
        demand(sim_gen_cells(&w, kind, id, wall_ms + 3600000, &c->text), "no cells");
        kr_buf_append_str(&c->text, "\n");
        demand(sim_gen_render(&w, kind, id, 123456 + i, &full) == 0, "no object");
        add(c, p, kr_buf_bytes(&full));
        if (small && text_of(c, c->n - 1).n > 1750)
            c->text.n = --c->n != 0 ? c->ends[c->n - 1] : 0;
    }
    kr_buf_deinit(&full);
    sim_heavy_destroy(heavy);
}

static void add_strange(struct corpus *c, const struct bench *b)
{
    struct kr_rand r;
    struct kr_buf full;

    begin(c, "strange", b->objects);
    kr_buf_init(&full, 1 << 20);
    kr_rand_seed(&r, SEED);
    for (unsigned i = 0; i < b->objects; i++) {
        full.n = 0;
        slim_pod(&full, &r, i, true);
        kr_buf_append_str(&c->text, "\n");
        add(c, b->slim, kr_buf_bytes(&full));
    }
    kr_buf_deinit(&full);
}

/* --- measuring ----------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

static void pack_all(const struct bench *b, const struct corpus *c, struct kr_buf *packed,
                     size_t *ends, uint32_t *dictionaries)
{
    packed->n = 0;
    for (size_t i = 0; i < c->n; i++) {
        demand(kr_pack(b->packer, text_of(c, i), packed, &dictionaries[i]) == 0, "cannot pack");
        ends[i] = packed->n;
    }
}

static void unpack_all(const struct bench *b, const struct corpus *c, const struct kr_buf *packed,
                       const size_t *ends, const uint32_t *dictionaries, uint8_t *out)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t from = i != 0 ? ends[i - 1] : 0;
        struct kr_bytes in = kr_bytes_of(packed->p + from, ends[i] - from);

        demand(kr_unpack(b->unpacker, in, dictionaries[i], out, text_of(c, i).n) == 0,
               "cannot unpack");
    }
}

static void check(const struct bench *b, const struct corpus *c, const struct kr_buf *packed,
                  const size_t *ends, const uint32_t *dictionaries, uint8_t *out)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t from = i != 0 ? ends[i - 1] : 0;
        struct kr_bytes text = text_of(c, i);
        struct kr_bytes in = kr_bytes_of(packed->p + from, ends[i] - from);

        demand(kr_unpack(b->unpacker, in, dictionaries[i], out, text.n) == 0 &&
                   memcmp(out, text.p, text.n) == 0,
               "not the same");
    }
}

static size_t without_dictionary(const struct corpus *c)
{
    ZSTD_CCtx *ctx = ZSTD_createCCtx();
    uint8_t *out = malloc(1 << 20);
    size_t total = 0;

    demand(ctx != NULL && out != NULL, "no memory");
    for (size_t i = 0; i < c->n; i++) {
        struct kr_bytes text = text_of(c, i);

        total += ZSTD_compressCCtx(ctx, out, 1 << 20, text.p, text.n, 3);
    }
    ZSTD_freeCCtx(ctx);
    free(out);
    return total;
}

static void say_sizes(const struct corpus *c, const size_t *ends)
{
    size_t most = 0;
    double n = (double)c->n;

    for (size_t i = 1; i < c->n; i++)
        most = ends[i] - ends[i - 1] > most ? ends[i] - ends[i - 1] : most;
    printf("%s_plain_bytes=%.0f\n", c->name, (double)c->text.n / n);
    printf("%s_packed_bytes=%.0f\n", c->name, (double)ends[c->n - 1] / n);
    printf("%s_packed_bytes_most=%zu\n", c->name, most);
    printf("%s_without_dictionary_bytes=%.0f\n", c->name, (double)without_dictionary(c) / n);
}

static void run(const struct bench *b, struct corpus *c)
{
    size_t *ends = calloc(c->n, sizeof *ends);
    uint32_t *dictionaries = calloc(c->n, sizeof *dictionaries);
    uint8_t *out = malloc(KR_PLAIN_MAX);
    double speeds[3][ROUNDS_MAX];
    double mb = (double)c->text.n / 1e6;
    struct kr_buf packed;

    demand(ends != NULL && dictionaries != NULL && out != NULL, "no memory");
    kr_buf_init(&packed, (size_t)1 << 31);
    for (int r = 0; r < b->rounds; r++) {
        double t[4];

        t[0] = now_s();
        pack_all(b, c, &packed, ends, dictionaries);
        t[1] = now_s();
        unpack_all(b, c, &packed, ends, dictionaries, out);
        t[2] = now_s();
        for (size_t i = 0; i < c->n; i++)
            memcpy(out, text_of(c, i).p, text_of(c, i).n);
        t[3] = now_s();
        for (int k = 0; k < 3; k++)
            speeds[k][r] = mb / (t[k + 1] - t[k]);
    }
    check(b, c, &packed, ends, dictionaries, out);
    say_sizes(c, ends);
    printf("%s_pack_mb_s=%.0f\n%s_unpack_mb_s=%.0f\n%s_memcpy_mb_s=%.0f\n", c->name,
           median(speeds[0], b->rounds), c->name, median(speeds[1], b->rounds), c->name,
           median(speeds[2], b->rounds));
    kr_buf_deinit(&packed);
    kr_buf_deinit(&c->text);
    free(c->ends), free(ends), free(dictionaries), free(out);
}

/* What the allocator says was taken meanwhile. */
static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

static void make_packing(struct bench *b)
{
    static uint8_t large[KR_PLAIN_MAX];
    struct kr_dictionaries *both;
    struct kr_buf out;
    uint32_t d;
    size_t at;

    kr_buf_init(&out, KR_PLAIN_MAX + 1024);
    kr_buf_reserve(&out, KR_PLAIN_MAX);
    at = heap();
    b->dictionaries = kr_dictionaries_create(true, false);
    printf("memory_tables_pack_bytes=%zu\n", heap() - at);
    at = heap();
    b->packer = kr_packer_create(b->dictionaries);
    demand(b->packer != NULL, "no packer");
    kr_pack(b->packer, kr_bytes_of(large, 2000), &out, &d);
    printf("memory_packer_bytes=%zu\n", heap() - at);
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)("abcdefghij klmn"[(i * i >> 7) % 15]);
    out.n = 0;
    kr_pack(b->packer, kr_bytes_of(large, 64 * 1024), &out, &d);
    printf("memory_packer_after_64k_bytes=%zu\n", heap() - at);
    out.n = 0;
    kr_pack(b->packer, kr_bytes_of(large, sizeof large), &out, &d);
    printf("memory_packer_after_4m_bytes=%zu\n", heap() - at);
    at = heap();
    both = kr_dictionaries_create(false, true);
    printf("memory_tables_unpack_bytes=%zu\n", heap() - at);
    at = heap();
    b->unpacker = kr_unpacker_create(both);
    demand(b->unpacker != NULL, "no unpacker");
    printf("memory_unpacker_bytes=%zu\n", heap() - at);
    kr_buf_deinit(&out);
}

static void options(struct bench *b, int argc, char **argv)
{
    static const struct option known[] = {{"rounds", required_argument, NULL, 'r'},
                                          {"objects", required_argument, NULL, 'n'},
                                          {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
        demand(c == 'r' || c == 'n', "usage: perf_pack_bench [--rounds N] [--objects N]");
        if (c == 'r')
            b->rounds = (int)strtol(optarg, NULL, 10);
        else
            b->objects = strtoul(optarg, NULL, 10);
    }
    demand(b->rounds > 0 && b->rounds <= ROUNDS_MAX, "--rounds 1 to 99");
    demand(b->objects > 0 && b->objects <= OBJECTS_MAX, "--objects 1 to 100000");
}

int main(int argc, char **argv)
{
    struct bench b = {.rounds = 9, .objects = 5000};
    struct corpus c;

    options(&b, argc, argv);
    b.slim = profile(keep, COUNT(keep), drop, COUNT(drop));
    b.lossless = profile(NULL, 0, NULL, 0);
    demand(b.slim != NULL && b.lossless != NULL, "no profile");
    make_packing(&b);
    add_sim(&c, &b, "sim", SIM_KIND_POD, b.slim);
    run(&b, &c);
    add_sim(&c, &b, "small", SIM_KIND_POD, b.slim);
    run(&b, &c);
    add_sim(&c, &b, "lossless", SIM_KIND_POD, b.lossless);
    run(&b, &c);
    add_sim(&c, &b, "nodes", SIM_KIND_NODE, b.lossless);
    run(&b, &c);
    add_strange(&c, &b);
    run(&b, &c);
    return 0;
}
