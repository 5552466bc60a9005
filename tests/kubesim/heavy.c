/* SPDX-License-Identifier: Apache-2.0 */
#include "heavy.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "heavy_text.h"
#include "kinds.h"

#define TEXT_MAX (1u << 20)
#define FILLER_MAX 4000

struct sim_heavy {
    struct kr_buf pods[SIM_CONTAINERS_MAX]; /* by number of containers, less one */
    struct kr_buf node;
};

struct slots { /* what stands in the places; by letter */
    const char *at[128];
};

static void hex64(uint64_t seed, char out[72])
{
    static const char digits[] = "0123456789abcdef";

    for (uint64_t word = 0; word < 4; word++) {
        uint64_t h = sim_hash(seed, word, 77);

        for (size_t i = 0; i < 16; i++, h >>= 4)
            out[word * 16 + i] = digits[h & 15];
    }
    out[64] = '\0';
}

/* Copies the text; behind each mark stands the letter of what comes there. */
static int fill(const struct kr_buf *text, const struct slots *slots, struct kr_buf *out)
{
    const uint8_t *p = text->p, *end = text->p + text->n, *mark;
    int rc = kr_buf_reserve(out, text->n + 2048);

    for (; rc == 0 && (mark = memchr(p, MARK, (size_t)(end - p))) != NULL; p = mark + 2) {
        (void)kr_buf_append(out, kr_bytes_of(p, (size_t)(mark - p)));
        rc = kr_buf_append_str(out, slots->at[mark[1] & 127]);
    }
    return rc != 0 ? rc : kr_buf_append(out, kr_bytes_of(p, (size_t)(end - p)));
}

/* ---- one object */

struct meta_text {
    char uid[40], rv[24], born[32], changed[32];
};

static void set_meta(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                     struct meta_text *m, struct slots *s)
{
    sim_uid_of(w, kind, id, m->uid);
    snprintf(m->rv, sizeof m->rv, "%llu", (unsigned long long)rv);
    s->at[S_UID] = m->uid;
    s->at[S_RV] = m->rv;
    s->at[S_BORN] = m->born;
    s->at[S_CHANGED] = m->changed;
}

static void set_traces(struct sim_gen_id id, char out[128], struct slots *s)
{
    int n = 0;

    out[0] = '\0';
    if (id.touches != 0)
        n = snprintf(out, 128, ",\"" SIM_TOUCHED "\":\"%u\"", id.touches);
    if (id.at_us != 0)
        snprintf(out + n, 128 - (size_t)n, ",\"" SIM_CHANGED "\":\"%lld\"", (long long)id.at_us);
    s->at[S_TRACES] = out;
}

static void set_state(const struct sim_pod *p, const struct meta_text *m, char state[192],
                      char last[256], struct slots *s)
{
    s->at[S_READY_WORD] = p->ready ? "True" : "False";
    s->at[S_READY] = p->ready ? "true" : "false";
    s->at[S_REASON] = p->ready ? ""
                               : ",\"reason\":\"ContainersNotReady\",\"message\":"
                                 "\"containers with unready status: [main]\"";
    snprintf(state, 192, "{\"running\":{\"startedAt\":\"%s\"}}",
             p->restarts != 0 ? m->changed : m->born);
    snprintf(last, 256, "{}");
    if (p->restarts != 0)
        snprintf(last, 256,
                 "{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\",\"startedAt\":\"%s\","
                 "\"finishedAt\":\"%s\"}}",
                 m->born, m->changed);
    s->at[S_STATE] = state;
    s->at[S_LAST] = last;
}

static int render_pod(const struct sim_world *w, struct sim_gen_id id, uint64_t rv,
                      struct kr_buf *out)
{
    char owner_uid[40], restarts[16], traces[128], state[192], last[256], version[8];
    char ids[SIM_CONTAINERS_MAX][72], image[72], config[72], suffix[8];
    struct slots s = {{NULL}};
    struct meta_text m;
    struct sim_pod p;

    sim_pod_of(w, id, &p);
    set_meta(w, SIM_KIND_POD, id, rv, &m, &s);
    sim_time(p.born_ms, m.born);
    sim_time(p.changed_ms, m.changed);
    sim_uid_of(w, SIM_KIND_REPLICASET, (struct sim_gen_id){.index = p.owner.index}, owner_uid);
    snprintf(restarts, sizeof restarts, "%u", p.restarts);
    snprintf(version, sizeof version, "%u", p.owner.index % 7);
    snprintf(suffix, sizeof suffix, "%.5s", p.name + strlen(p.name) - 5);
    hex64(sim_hash(7, p.owner.index % 7, (uint64_t)p.owner.word[0] << 8 | (uint8_t)p.owner.word[2]),
          image);
    hex64(sim_hash(w->seed, p.owner.index, 5), config);
    for (unsigned i = 0; i < p.containers; i++) {
        hex64(sim_hash(w->seed, id.index,
                       (uint64_t)(i + 1) << 40 | (uint64_t)id.life << 20 |
                           (i == 0 ? id.restarts : 0)),
              ids[i]);
        s.at[S_CONTAINER_1 + i] = ids[i];
    }
    set_traces(id, traces, &s);
    set_state(&p, &m, state, last, &s);
    s.at[S_NAME] = p.name;
    s.at[S_NS] = p.owner.ns;
    s.at[S_APP] = p.owner.name;
    s.at[S_WORD] = p.owner.word;
    s.at[S_RS] = p.owner.rs;
    s.at[S_HASH] = p.owner.template_hash;
    s.at[S_TIER] = p.owner.index % 2 != 0 ? "backend" : "frontend";
    s.at[S_OWNER] = owner_uid;
    s.at[S_NODE] = p.node;
    s.at[S_IP] = p.ip;
    s.at[S_HOST_IP] = p.host_ip;
    s.at[S_RESTARTS] = restarts;
    s.at[S_VERSION] = version;
    s.at[S_IMAGE] = image;
    s.at[S_CONFIG] = config;
    s.at[S_SUFFIX] = suffix;
    return fill(&w->heavy->pods[p.containers - 1], &s, out);
}

static int render_node(const struct sim_world *w, struct sim_gen_id id, uint64_t rv,
                       struct kr_buf *out)
{
    struct sim_condition pressure = sim_condition_of(w, 0, id);
    char name[32], ip[32], cidr[32], since[32], zone[8];
    struct slots s = {{NULL}};
    struct meta_text m;

    set_meta(w, SIM_KIND_NODE, id, rv, &m, &s);
    sim_time(sim_born_ms(w, SIM_KIND_NODE, id), m.born);
    sim_time(id.at_us != 0 ? id.at_us / 1000 : w->born_wall_ms, m.changed);
    sim_time(pressure.since_ms, since);
    sim_node_name(id.index, name);
    snprintf(ip, sizeof ip, "10.0.%u.%u", id.index / 250 % 256, id.index % 250 + 1);
    snprintf(cidr, sizeof cidr, "10.%u.%u.0/24", 64 + id.index / 256 % 128, id.index % 256);
    snprintf(zone, sizeof zone, "rack-%u", id.index % 4);
    s.at[S_NAME] = name;
    s.at[S_HOST_IP] = ip;
    s.at[S_IP] = cidr;
    s.at[S_TIER] = zone;
    s.at[S_SINCE] = since;
    s.at[S_APP] = w->cluster;
    s.at[S_READY_WORD] = pressure.status;
    s.at[S_REASON] = pressure.reason;
    s.at[S_STATE] = pressure.message;
    s.at[S_TRACES] = id.index == 0 ? ",\"node-role.kubernetes.io/control-plane\":\"\"" : "";
    return fill(&w->heavy->node, &s, out);
}

int sim_heavy_render(const struct sim_world *w, int kind, struct sim_gen_id id, uint64_t rv,
                     struct kr_buf *out)
{
    return kind == SIM_KIND_POD ? render_pod(w, id, rv, out) : render_node(w, id, rv, out);
}

/* ---- the texts, made as long as they are wanted */

/* How long the objects are that come of the texts as they are now. */
static size_t length(const struct sim_heavy *h, int kind, uint32_t index)
{
    struct sim_world w = {.cluster = "c1", .seed = 1, .pods = 15, .nodes = 3, .heavy = h};
    struct kr_buf out;
    size_t n;

    kr_buf_init(&out, TEXT_MAX);
    n = sim_heavy_render(&w, kind, (struct sim_gen_id){.index = index}, 100000, &out) == 0 ? out.n
                                                                                           : 0;
    kr_buf_deinit(&out);
    return n;
}

/* One filler more until the object has its size. */
static int grow(struct sim_heavy *h, int kind, unsigned containers, uint32_t wanted)
{
    struct kr_buf *text = kind == SIM_KIND_POD ? &h->pods[containers - 1] : &h->node;
    size_t n;

    for (unsigned fillers = 0; fillers < FILLER_MAX; fillers++) {
        kr_buf_deinit(text);
        kr_buf_init(text, TEXT_MAX);
        if (kind == SIM_KIND_POD)
            sim_heavy_pod_text(containers, fillers, text);
        else
            sim_heavy_node_text(fillers, text);
        n = length(h, kind, (containers - 1) * SIM_PODS_PER_DEPLOYMENT);
        if (n == 0)
            return KR_ENOMEM;
        if (n + 70 >= wanted)
            break;
    }
    return 0;
}

struct sim_heavy *sim_heavy_create(uint32_t pod_bytes, uint32_t node_bytes)
{
    struct sim_heavy *h = calloc(1, sizeof *h);
    int rc = h != NULL ? grow(h, SIM_KIND_NODE, 1, node_bytes) : KR_ENOMEM;

    for (unsigned n = 1; rc == 0 && n <= SIM_CONTAINERS_MAX; n++)
        rc = grow(h, SIM_KIND_POD, n, pod_bytes);
    if (rc == 0)
        return h;
    sim_heavy_destroy(h);
    return NULL;
}

void sim_heavy_destroy(struct sim_heavy *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < SIM_CONTAINERS_MAX; i++)
        kr_buf_deinit(&h->pods[i]);
    kr_buf_deinit(&h->node);
    free(h);
}
