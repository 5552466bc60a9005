/* SPDX-License-Identifier: Apache-2.0 */
/* messages: what hub and agent say to each other, as plain structs, and as protobuf bytes
 * (proto/kuberelay/v1/kuberelay.proto).
 * Decoding: never trusts: every string is checked to be UTF-8 without NUL, every list has a
 *         maximum, memory comes from the caller's arena and is bounded by 8 times the message plus
 *         64 KiB (protobuf-c alone would spend 50 times a hostile message). Unknown fields are
 *         skipped; an unknown number of an enum becomes its 0, but an unknown refusal is a denial.
 * Memory: decoded text lives in the arena, or in `in` (relay messages): both must outlive it.
 * Errors: KR_EPROTO, KR_ETOOBIG, KR_ENOMEM, with a note. Encoding: those of kr_buf. Pure. */
#ifndef KR_WIRE_MESSAGES_H
#define KR_WIRE_MESSAGES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/note.h"

#define KR_STATE_MAX (64u * 1024) /* largest AgentState or HubState */
#define KR_LIST_MAX 64            /* hubs, features */
#define KR_GROUPS_MAX 1000
#define KR_EXTRA_MAX 256        /* keys */
#define KR_EXTRA_VALUES_MAX 256 /* values of one key */
#define KR_TOKEN_MAX 8192       /* a bearer token */
#define KR_TEXT_MAX 4096        /* one user, group, key or value */

/* The arena that is enough to decode a message of n bytes. */
#define KR_DECODE_ARENA(n) (8 * (size_t)(n) + 64u * 1024)

enum kr_lane {
    KR_LANE_UNSPECIFIED,
    KR_LANE_INTERACTIVE,
    KR_LANE_BULK,
};

enum kr_api_health {
    KR_API_UNKNOWN,
    KR_API_OK,
    KR_API_UNREACHABLE,
    KR_API_UNAUTHORIZED,
};

struct kr_agent_state {
    struct kr_bytes cluster_uid;
    struct kr_bytes instance;
    struct kr_bytes boot_id; /* 16 bytes */
    enum kr_lane lane;
    struct kr_bytes version;
    struct kr_bytes api_server_version;
    enum kr_api_health api_server;
    uint32_t nodes;
    uint64_t heartbeat;
    uint32_t loop_lag_ms;
    bool draining;
    const struct kr_bytes *features;
    size_t feature_count;
    uint64_t bundle_generation;
};

enum kr_refusal {
    KR_REFUSAL_NONE,
    KR_REFUSAL_VERSION,
    KR_REFUSAL_BUSY,
    KR_REFUSAL_DENIED,
};

struct kr_hub_state {
    struct kr_bytes replica;
    uint32_t heartbeat_ms;
    const struct kr_bytes *hubs;
    size_t hub_count;
    uint64_t hubs_generation;
    bool draining;
    enum kr_refusal refusal;
    struct kr_bytes refusal_reason;
    uint32_t retry_after_ms;
    int64_t hub_time_wall_ms;
    struct kr_bytes version;
    const struct kr_bytes *features;
    size_t feature_count;
    struct kr_bytes bundle; /* PEM */
    uint64_t bundle_generation;
    bool pending;
};

struct kr_extra {
    struct kr_bytes key;
    const struct kr_bytes *values;
    size_t value_count;
};

#define KR_REBASE_OFFSETS_MAX 8

/* A write that was built on an object of the fleet view. */
struct kr_rebase {
    uint64_t subscription; /* 0: no rebase */
    struct kr_bytes uid;
    uint64_t hash;
    uint32_t offsets[KR_REBASE_OFFSETS_MAX]; /* ascending, in the body */
    size_t offset_count;
};

struct kr_relay_request {
    uint8_t request_id[16];
    struct kr_bytes user; /* never empty */
    const struct kr_bytes *groups;
    size_t group_count;
    struct kr_bytes uid;
    const struct kr_extra *extra;
    size_t extra_count;
    uint32_t deadline_ms; /* 0: none */
    uint32_t attempt;
    struct kr_bytes method;        /* upgrades only */
    struct kr_bytes upgrade_token; /* upgrades only */
    struct kr_rebase rebase;
    struct kr_bytes member_token; /* of the member cluster: user and groups say nothing then */
    struct kr_bytes user_token;   /* by which the hub knows the user */
};

enum kr_origin {
    KR_ORIGIN_UNSPECIFIED,
    KR_ORIGIN_API_SERVER,
    KR_ORIGIN_AGENT,
};

struct kr_relay_response {
    enum kr_origin origin;
    uint32_t queue_us;
    uint32_t server_us;
    struct kr_bytes leg;
    bool not_sent;
};

int kr_agent_state_encode(const struct kr_agent_state *m, struct kr_buf *out);
int kr_agent_state_decode(struct kr_agent_state *m, struct kr_bytes in, struct kr_arena *arena,
                          struct kr_note *why);
int kr_hub_state_encode(const struct kr_hub_state *m, struct kr_buf *out);
int kr_hub_state_decode(struct kr_hub_state *m, struct kr_bytes in, struct kr_arena *arena,
                        struct kr_note *why);

/* The two that travel with every relayed request are written and read without protobuf-c
 * (relay_messages.c): no allocation but the lists, text borrows `in`. */
int kr_relay_request_encode(const struct kr_relay_request *m, struct kr_buf *out);
int kr_relay_request_decode(struct kr_relay_request *m, struct kr_bytes in, struct kr_arena *arena,
                            struct kr_note *why);
int kr_relay_response_encode(const struct kr_relay_response *m, struct kr_buf *out);
int kr_relay_response_decode(struct kr_relay_response *m, struct kr_bytes in, struct kr_note *why);

#endif
