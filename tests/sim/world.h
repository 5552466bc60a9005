/* SPDX-License-Identifier: Apache-2.0 */
/* world: clients, the hub's request pipeline, tunnels, agents and scripted API servers, joined by
 * memory pipes under virtual time. Two programs: `world` (world.c) is about the relay, `fleet`
 * (fleet.h) about the fleet view. What is real: lib/http, lib/wire, the hub from a request's head
 * to its relay (request, pipeline, relay, clusters, tunnel, answer), the agent's request and
 * Attach. What is not: sockets, TLS, the agent's dialling (tunnel.c) and its API server pool
 * (api.c). Every run is made from one seed. A broken promise prints the seed and ends the program.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "agent/core.h"
#include "agent/policy.h"
#include "base/sched.h"
#include "fakes/mem_pipe.h"
#include "hub/front.h"
#include "hub/options.h"
#include "hub/worker.h"

enum {
    CLUSTERS = 2,
    LANES = 2,
    USERS = 4,
    CALLS = 48,
    WORLD_T0_MS = 1000,
    FAULTS_END_MS = 40000,
    HUB_BUDGET = 4 << 20,
    AGENT_BUDGET = 1 << 20,
};

struct world;

struct tally { /* over all worlds of a run */
    size_t statuses[600];
    size_t cut;  /* answers that did not end well */
    size_t left; /* calls that their client gave up */
};

enum kind {
    KIND_GET,
    KIND_POST,
    KIND_WATCH,
    KIND_DELETE, /* a write without a body: nothing but its head says whether it went out */
    KIND_EARLY,  /* a PUT that is refused before its body was read */
    KINDS,
};

struct user { /* one connection of a client to the hub */
    struct world *w;
    struct kr_mem_pair *pair;
    struct kr_conn *client;
    struct kr_conn *server;
    struct hub_peer peer;
};

/* One request of a client: what it is, what became of it at the API server and at the client. */
struct call {
    struct world *w;
    unsigned id;
    enum kind kind;
    bool h1;                /* over HTTP/1.1, on a connection of its own */
    struct user own;        /* then */
    struct kr_exchange *ex; /* NULL before it starts and once it is over */
    struct kr_timer start;
    struct kr_timer leave; /* the client loses interest */
    struct kr_timer sip;   /* a slow reader takes what it was given */
    struct kr_timer pour;  /* a slow writer has more */
    bool slow_read;
    bool slow_write;
    uint64_t up_size;
    uint64_t down_size;
    uint64_t up_ready; /* of the request body, may be taken */
    uint64_t up_taken;
    uint64_t down_got; /* of the answer of the API server */
    size_t owed;
    uint8_t last; /* byte of the body */
    int status;
    bool from_api; /* the answer is the API server's */
    bool headed;
    bool ended;
    bool left;
    bool opened;
    int done;
    int rc;
    int64_t started_ms;
    /* at the API server */
    int executed;
    int arrived;
    uint64_t whole_down; /* bytes it sent, when it ended them itself */
    bool api_ended;
};

struct lane { /* one tunnel of an agent, and the dialling of it */
    struct world *w;
    struct edge *edge;
    struct kr_mem_pair *pair;
    struct hub_tunnel *hub;
    struct kr_conn *agent;
    struct tunnel *state;
    struct kr_timer redial;
    enum kr_lane lane;
};

struct edge { /* one cluster: agent and API server */
    struct world *w;
    struct agent_core core;
    struct agent_policy policy;
    struct lane lanes[LANES];
    char name[16];
    bool off; /* its agent does not run */
};

struct world {
    uint64_t seed;
    bool calm;
    bool trace;
    struct kr_log *log;               /* of hubs and agents; NULL: they log nothing */
    bool over;                        /* nothing dials any more */
    bool hub_down;                    /* nobody can be reached by dialling */
    const char *program;              /* by which the seed is run again */
    int64_t faults_end_ms;            /* from then on nothing is broken any more */
    int64_t wall_ms;                  /* what the wall clock is ahead of the other one */
    void (*on_turn)(struct world *w); /* behind each turn; may be NULL */
    struct kr_sched sched;
    struct kr_loop *lag; /* turns never; agents report how late it is */
    struct kr_rand rand;
    struct hub_options hub_options;
    struct agent_options agent_options;
    struct hub_worker hub;
    struct kr_h2_shared client_h2;
    struct edge edges[CLUSTERS];
    struct user users[USERS];
    struct call calls[CALLS];
    struct kr_timer fault;
};

void world_run(uint64_t seed, bool calm, bool trace, struct tally *tally);
/* What must hold; else the seed is printed and the program ends. */
__attribute__((format(printf, 3, 4))) void world_check(const struct world *w, bool ok,
                                                       const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void world_trace(const struct world *w, const char *fmt, ...);
/* A byte of the body of a call: `up` or down; lines of a few dozen bytes. */
uint8_t world_byte(const struct call *c, bool up, uint64_t at);
struct call *world_call_of(struct world *w, struct kr_bytes path);

/* parts.c */
bool world_one_in(struct world *w, unsigned n);
bool world_breaks(const struct world *w); /* whether links may be made that break */
/* Of a zeroed world: clocks, dice. */
void world_init(struct world *w, uint64_t seed, bool trace);
void world_deinit(struct world *w);
void world_make_hub(struct world *w);              /* by hub_options, without a fleet view */
void world_drop_hub(struct world *w);              /* no tunnel and no request is left */
void world_make_edge(struct world *w, unsigned i); /* its agent's core */
void world_drop_edge(struct edge *e);              /* with its pool; nothing is left of it */
void world_run_until(struct world *w, int64_t end_ms);
void world_heal(struct world *w);

/* user.c */
void user_start(struct user *u, struct world *w, bool h1);
void user_close(struct user *u);

/* client.c */
void call_plan(struct call *c, struct world *w, unsigned id);
void call_give_up(struct call *c);
void call_judge(const struct call *c);

/* tunnel.c */
void lane_start(struct lane *l, struct edge *e, enum kr_lane lane);
void lane_cut(struct lane *l);
void lane_close(struct lane *l);

/* api.c */
struct agent_apiserver *api_create(struct world *w, struct agent_core *c, bool h1,
                                   void (*answer)(struct agent_core *c, struct kr_exchange *ex));
void api_destroy(struct agent_apiserver *s);
void api_close(struct agent_apiserver *s);
void api_fault(struct agent_apiserver *s);
void api_heal(struct agent_apiserver *s);
void api_cut(struct agent_apiserver *s); /* the server restarts: no connection survives */

/* turn.c */
void turn_begin(struct agent_core *core, struct kr_exchange *ex);

#endif
