/* SPDX-License-Identifier: Apache-2.0 */
/* sync_call: one Sync call, as the files behind sync_out.h see it: sync_out.c (the call and its
 * messages), sync_open.c (what is asked for), sync_follow.c (what the reflector tells). */
#ifndef AGENT_SYNC_CALL_H
#define AGENT_SYNC_CALL_H

#include "agent/list_gate.h"
#include "agent/reflector.h"
#include "agent/sync_kept.h"
#include "agent/sync_out.h"
#include "agent/sync_pack.h"
#include "wire/grpc_call.h"
#include "wire/sync_sender.h"

enum agent_sync_phase {
    AGENT_SYNC_OPENING,  /* its first message has not come */
    AGENT_SYNC_REFUSED,  /* the hub was told why; nothing follows */
    AGENT_SYNC_COUNTING, /* a list of which only hashes are taken */
    AGENT_SYNC_ASKING,   /* for what the hub holds in the buckets that differ */
    AGENT_SYNC_SENDING,  /* a list of which is sent what differs */
    AGENT_SYNC_CATCHING, /* a watch from a version that the hub is known to have passed */
    AGENT_SYNC_LIVE,     /* the hub holds what the API server has */
    AGENT_SYNC_ENDED,
};

struct agent_sync { /* of the agent: what all calls share */
    struct agent_core *c;
    struct agent_list_gate gate;
    struct agent_kept_all kept;
    struct agent_pack pack;
    struct kr_list calls; /* agent_sync_call.link */
    size_t n;
    struct kr_metric *m_calls;
};

struct agent_sync_call {
    struct agent_sync *all;
    struct kr_list link;
    struct kr_grpc_stream stream;
    struct kr_sync_sender *sender;
    struct kr_timer deadline; /* for the first message, for buckets */
    struct kr_task pump;
    struct kr_task freed;
    enum agent_sync_phase phase;
    char *replica;
    /* what is asked for */
    uint64_t number;
    struct agent_target target;
    struct kr_profile *profile;
    struct kr_arena arena; /* of namespaces */
    struct kr_bytes *namespaces;
    size_t namespace_count; /* 0: all */
    bool metadata_only;
    uint32_t priority;
    bool packs; /* the hub can unpack our dictionary */
    /* what was found out */
    struct agent_kept *kept; /* NULL: refused, or taken by another call */
    struct agent_reflector reflector;
    bool reflecting; /* it is inited */
    struct agent_audit_entry *audit;
    struct kr_columns columns;
    struct kr_digest digest; /* of the hub */
    struct kr_buf reached;   /* the version that the hub was told last; then what it holds began */
    bool wanted[KR_BUCKETS]; /* still to come */
    bool begun[KR_BUCKETS];  /* the first pairs of it came */
    size_t wanted_count;
    uint32_t skipped;
    size_t shown; /* objects in the metric */
    bool sent;    /* in this run of bytes */
    bool hurried; /* what was held back while catching up goes out after all */
    bool columns_sent;
    int64_t progress_ms; /* when progress was told */
    struct kr_metric *m_objects;
    struct kr_metric *m_slim;
    struct kr_metric *m_sent_bytes;
    struct kr_metric *m_sent;
    struct kr_metric *m_unchanged;
    struct kr_metric *m_skipped;
};

/* sync_out.c */
/* Something waits in the sender: it goes out before the loop waits. */
void agent_sync_pump_later(struct agent_sync_call *s);
/* The call is over, with that gRPC status. */
void agent_sync_end(struct agent_sync_call *s, int status, const char *text);

void agent_sync_metrics(struct agent_sync_call *s);

/* sync_open.c */
/* The hub's first message. 0, or a code that ends the call. */
int agent_sync_open(struct agent_sync_call *s, const struct kr_sync_open *open,
                    struct kr_note *why);
int agent_sync_take_buckets(struct agent_sync_call *s, const struct kr_bucket_pairs *b,
                            struct kr_note *why);
/* Asks for the buckets in which the table and the digest differ. */
void agent_sync_ask_buckets(struct agent_sync_call *s);
/* The buckets in which they differ, into `out` (may be NULL). */
size_t agent_sync_differ(const struct agent_sync_call *s, bool out[KR_BUCKETS]);
/* Begins to follow; an empty version means a list. */
void agent_sync_follow(struct agent_sync_call *s, enum agent_sync_phase phase,
                       struct kr_bytes version);
/* Lets go of what outlives the call. */
void agent_sync_leave(struct agent_sync_call *s);

/* sync_follow.c */
extern const struct agent_reflector_ops agent_sync_reflector_ops;
/* The hub holds what the API server had. */
void agent_sync_snapshot_end(struct agent_sync_call *s);

#endif
