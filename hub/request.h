/* SPDX-License-Identifier: Apache-2.0 */
/* request: one client request on its way through the hub: the pipeline of steps (pipeline.c), then
 * the relay to the agent (relay.c).
 * Memory: one object per request; for a watch it shrinks to what its end needs once the answer
 * began. Limits: maxRequests. */
#ifndef HUB_REQUEST_H
#define HUB_REQUEST_H

#include "http/forward.h"
#include "http/ws_frames.h"
#include "hub/answer.h"
#include "hub/caller.h"
#include "hub/clusters.h"
#include "hub/front.h"
#include "hub/impersonation.h"
#include "hub/projects.h"
#include "kube/cluster_path.h"
#include "kube/request_info.h"
#include "kube/watch_lines.h"

#define HUB_BODY_MAX_TEXT "3211264"

struct hub_audit_entry;
struct hub_stay;
struct hub_write;

struct hub_request {
    struct kr_forward fw;
    struct hub_worker *w;
    const struct hub_peer *peer;
    struct hub_caller *caller; /* counted; NULL until it is known who asks */
    struct kr_list link;       /* hub_worker.live */
    struct kr_arena arena;
    struct kr_request_info info; /* its text is gone once a long-running answer began */
    struct kr_cluster_path cluster_path;
    bool by_name; /* addressed by host name: no prefix */
    struct hub_cluster *cluster;
    struct hub_waiter waiter;
    struct kr_timer deadline; /* until the answer begins; then: until its next byte, or, while
                                 draining, until a watch ends */
    struct kr_timer hold;     /* while waiting for a tunnel */
    union {
        struct kr_watch_lines lines;
        struct kr_ws_frames frames; /* of the server, if it is a WebSocket */
    };
    char audit_id[37];
    uint8_t id[16];
    const char *verb_label; /* for metrics, from a fixed set */
    int64_t started_ms;
    uint64_t own_bytes;  /* of the body of an answer that was made here, as they were taken */
    uint64_t seen_bytes; /* that the client had taken when progress was last looked at */
    int code;            /* that the client got, 0 before */
    int attempts;
    bool lost;   /* the agent or the tunnel went; the API server may have had it */
    int verdict; /* enum kr_case that on_response decided, or -1 */
    bool is_watch;
    bool websocket;                /* an upgrade to it was accepted */
    unsigned close_code;           /* relay_socket.c's; 0: it is not to end */
    const char *close_reason;      /* a constant */
    struct hub_stay *stay;         /* access.c's: what a long stream is judged by again */
    struct hub_audit_entry *audit; /* audit.c's; NULL: nothing is logged */
    char rule[HUB_RULE_MAX];       /* which rule of the hub decided; for the audit */
    struct hub_impersonation as;   /* whom the client acts as; as.user.n is 0: itself */
    struct kr_bytes upgrade;       /* the token that the client asks to upgrade to; empty: none */
    bool long_running;
    bool review;             /* fleet_review.c waits for its body */
    struct hub_write *write; /* fleet_write.c's; NULL: an ordinary request */
};

/* Takes the exchange over; within on_request. */
void hub_request_start(struct hub_worker *w, const struct hub_peer *peer, struct kr_exchange *ex);
/* Whether a request that is under way is about that cluster. */
bool hub_requests_use(const struct hub_worker *w, const struct hub_cluster *c);
/* All watches end cleanly, spread over `spread_ms`, so that clients do not come back in step. */
void hub_requests_end_watches(struct hub_worker *w, int64_t spread_ms);

/* pipeline.c: runs the steps from the first one on. */
void hub_pipeline_run(struct hub_request *r);
/* relay.c: the last step: to the agent, or wait for it, or say that it is away. */
void hub_relay(struct hub_request *r);
/* relay.c: the client may not have the stream any more, whose answer has begun: a watch ends
 * cleanly, a WebSocket with 1008 and `why` (a constant), anything else is cut. May end it. */
void hub_relay_lose(struct hub_request *r, const char *why);
/* relay.c: the same for all that run over a tunnel. */
void hub_relay_lose_tunnel(struct hub_worker *w, const struct kr_conn *conn, const char *why);
/* The exchange is answered by the hub itself and the request is over. */
void hub_request_refuse(struct hub_request *r, enum kr_case which, struct kr_bytes detail);
/* Frees it; the exchanges are gone or released. */
void hub_request_end(struct hub_request *r);

#endif
