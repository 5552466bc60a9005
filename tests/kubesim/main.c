/* SPDX-License-Identifier: Apache-2.0 */
/* kubesim: simulated Kubernetes API servers for demo, scale runs and scripted faults. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/err.h"
#include "heavy.h"
#include "lifecycle.h"
#include "server.h"

#define CLUSTERS_MAX 5000
#define HISTORY 1000

struct options {
    struct kr_hostport listen;
    uint32_t clusters;
    const char *names;
    uint32_t pods;
    uint32_t nodes;
    uint32_t churn;
    enum sim_mix mix;
    uint32_t pod_bytes;
    uint32_t node_bytes;
    uint32_t history;
    uint64_t seed;
    const char *pki;
};

static const char usage[] =
    "usage: kubesim --pki DIR [options]\n"
    "Simulated Kubernetes API servers: a simulator, no Kubernetes.\n"
    "  --listen HOST:PORT  where the first cluster listens, the next ones behind it; port 0: any\n"
    "                      (127.0.0.1:0)\n"
    "  --clusters N        how many clusters (1)\n"
    "  --names A,B,C       their names (c1, c2, ...)\n"
    "  --pods N            generated pods in each (20)\n"
    "  --nodes N           generated nodes in each (3)\n"
    "  --churn R           changes a second in each (0)\n"
    "  --mix NAME          which ones: default, pods, readiness, restarts, replacements,\n"
    "                      annotations, heartbeats\n"
    "  --pod-bytes N       pods of about that size, 45 % of it managedFields (small ones)\n"
    "  --node-bytes N      nodes of about that size (11264 with --pod-bytes)\n"
    "  --history N         events that each remembers (1000)\n"
    "  --seed S            what objects look like (1)\n"
    "  --pki DIR           certificates and kubeconfig-NAME files are written there\n";

static int fail(const char *text)
{
    fprintf(stderr, "kubesim: %s\n", text);
    return 2;
}

static bool number(const char *text, uint64_t max, uint64_t *out)
{
    return kr_bytes_to_u64(kr_bytes_str(text), max, out);
}

static int parse_numbers(int opt, const char *text, struct options *o)
{
    uint64_t n;

    if (!number(text, opt == 's' ? UINT64_MAX : 10000000, &n))
        return fail("a number is expected");
    if (opt == 'c')
        o->clusters = (uint32_t)n;
    else if (opt == 'p')
        o->pods = (uint32_t)n;
    else if (opt == 'n')
        o->nodes = (uint32_t)n;
    else if (opt == 'r')
        o->churn = (uint32_t)n;
    else if (opt == 'h')
        o->history = (uint32_t)n;
    else if (opt == 'b')
        o->pod_bytes = (uint32_t)n;
    else if (opt == 'B')
        o->node_bytes = (uint32_t)n;
    else
        o->seed = n;
    return 0;
}

/* 0, or an exit code. */
static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        {"listen", required_argument, NULL, 'l'},
        {"clusters", required_argument, NULL, 'c'},
        {"names", required_argument, NULL, 'N'},
        {"pods", required_argument, NULL, 'p'},
        {"nodes", required_argument, NULL, 'n'},
        {"churn", required_argument, NULL, 'r'},
        {"mix", required_argument, NULL, 'm'},
        {"pod-bytes", required_argument, NULL, 'b'},
        {"node-bytes", required_argument, NULL, 'B'},
        {"history", required_argument, NULL, 'h'},
        {"seed", required_argument, NULL, 's'},
        {"pki", required_argument, NULL, 'P'},
        {"help", no_argument, NULL, '?'},
        {NULL, 0, NULL, 0},
    };
    struct kr_note why = {""};
    int opt, rc = 0;

    while (rc == 0 && (opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (opt == '?') {
            fputs(usage, stderr);
            return 2;
        }
        if (opt == 'l')
            rc = kr_hostport_parse(optarg, 0, &o->listen, &why) != 0 ? fail(why.text) : 0;
        else if (opt == 'N')
            o->names = optarg;
        else if (opt == 'P')
            o->pki = optarg;
        else if (opt == 'm')
            rc = sim_mix_parse(optarg, &o->mix) ? 0 : fail("--mix: there is no such mix");
        else
            rc = parse_numbers(opt, optarg, o);
    }
    if (rc == 0 && o->pki == NULL)
        rc = fail("--pki is required");
    if (rc == 0 && (o->clusters == 0 || o->clusters > CLUSTERS_MAX || o->history == 0))
        rc = fail("--clusters must be 1 to 5000, --history at least 1");
    return rc;
}

/* The i-th of the comma separated names, or "c" and its number. */
static void name_of(const struct options *o, uint32_t i, char out[64])
{
    const char *p = o->names != NULL ? o->names : "";

    for (uint32_t skip = i; skip != 0 && *p != '\0'; skip--) {
        p += strcspn(p, ",");
        p += *p == ',';
    }
    if (*p != '\0')
        snprintf(out, 64, "%.*s", (int)strcspn(p, ","), p);
    else
        snprintf(out, 64, "c%u", i + 1);
}

struct program {
    const struct options *o;
    struct kr_loop *loop;
    struct sim_pki pki;
    struct sim_server *server;
    struct sim_heavy *heavy;
    struct sim_fleet fleet;
};

static int add_cluster(struct program *p, uint32_t i, struct kr_note *why)
{
    struct kr_sched *sched = kr_loop_sched(p->loop);
    const struct options *o = p->o;
    char name[64], address[KR_ADDR_TEXT + 16], path[4200];
    struct kr_hostport at = o->listen;
    struct sim_cluster *c;
    int rc;

    name_of(o, i, name);
    c = sim_cluster_create(&(struct sim_cluster_config){
        .world = {name, o->seed + i, o->pods, o->nodes, sched->now_wall_ms, p->heavy},
        .sched = sched,
        .history = o->history});
    if (c == NULL || sim_lifecycle_seed(c) != 0)
        return kr_note_set(why, KR_ENOMEM, "no memory for cluster %s", name);
    c->real_time = true;
    if (at.port != 0)
        at.port = (uint16_t)(at.port + i);
    rc = sim_server_add(p->server, c, &at, address, why);
    if (rc == 0)
        rc = sim_pki_kubeconfig(&p->pki, name, address, path, why);
    if (rc == 0)
        printf("event=listening cluster=%s address=%s kubeconfig=%s\n", name, address, path);
    return rc;
}

static void on_signal(void *owner, int signum)
{
    (void)signum;
    kr_loop_stop(owner);
}

static void serve(struct program *p)
{
    printf("event=ready clusters=%u\n", p->o->clusters);
    (void)kr_loop_on_signal(p->loop, SIGTERM, on_signal, p->loop);
    (void)kr_loop_on_signal(p->loop, SIGINT, on_signal, p->loop);
    sim_fleet_pace(&p->fleet, p->o->churn, p->o->mix);
    kr_loop_run(p->loop);
}

static int make_heavy(struct program *p)
{
    if (p->o->pod_bytes == 0 && p->o->node_bytes == 0)
        return 0;
    p->heavy = sim_heavy_create(p->o->pod_bytes, p->o->node_bytes != 0 ? p->o->node_bytes : 11264);
    return p->heavy != NULL ? 0 : KR_ENOMEM;
}

static int run(const struct options *o, struct kr_loop *loop, struct kr_note *why)
{
    struct program p = {.o = o, .loop = loop};
    int rc;

    sim_fleet_init(&p.fleet, kr_loop_sched(loop));
    rc = sim_pki_create(&p.pki, o->pki, why);
    if (rc == 0)
        rc = make_heavy(&p);
    if (rc == 0) {
        p.server = sim_server_create(&(struct sim_server_config){loop, &p.pki, &p.fleet}, why);
        rc = p.server != NULL ? 0 : KR_ENOMEM;
    }
    for (uint32_t i = 0; rc == 0 && i < o->clusters; i++)
        rc = add_cluster(&p, i, why);
    if (rc == 0)
        serve(&p);
    sim_server_destroy(p.server);
    sim_heavy_destroy(p.heavy);
    sim_fleet_deinit(&p.fleet);
    sim_pki_destroy(&p.pki);
    return rc;
}

int main(int argc, char **argv)
{
    struct options o = {.listen = {"127.0.0.1", 0},
                        .clusters = 1,
                        .pods = 20,
                        .nodes = 3,
                        .history = HISTORY,
                        .seed = 1};
    struct rlimit files;
    struct kr_note why = {""};
    struct kr_loop *loop;
    int rc = parse(argc, argv, &o);

    if (rc != 0)
        return rc;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* a listener a cluster, and many connections */
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    printf("event=start program=kubesim version=%s note=\"a simulator, no Kubernetes\"\n",
           KR_VERSION);
    loop = kr_loop_create(&why);
    rc = loop != NULL ? run(&o, loop, &why) : KR_ENOMEM;
    if (rc != 0)
        fprintf(stderr, "kubesim: %s\n", why.text[0] != '\0' ? why.text : kr_err_text(rc));
    kr_loop_destroy(loop);
    return rc != 0;
}
