/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/messages.h"

#include <kuberelay/v1/kuberelay.pb-c.h>

#include "base/err.h"
#include "wire/proto_scan.h"

/* protobuf-c allocates from the arena, and gives nothing back: the arena goes as a whole. */
struct budget {
    struct kr_arena *arena;
    size_t left;
};

static void *budget_alloc(void *data, size_t n)
{
    struct budget *b = data;
    void *p;

    if (n > b->left)
        return NULL;
    p = kr_arena_alloc(b->arena, n);
    if (p != NULL)
        b->left -= n;
    return p;
}

static void budget_free(void *data, void *p)
{
    (void)data;
    (void)p;
}

/* What protobuf-c does not check: strings are UTF-8 without NUL, lists are short. Messages within
 * messages are not used in these types. */
static int scan(const ProtobufCMessageDescriptor *d, struct kr_bytes in, struct kr_note *why)
{
    size_t elements = 0;

    if (in.n > KR_STATE_MAX)
        return kr_note_set(why, KR_ETOOBIG, "%s of %zu bytes", d->short_name, in.n);
    while (in.n != 0) {
        const ProtobufCFieldDescriptor *fd;
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return kr_note_set(why, KR_EPROTO, "malformed %s", d->short_name);
        fd = protobuf_c_message_descriptor_get_field(d, f.number);
        if (fd == NULL)
            continue;
        if (fd->label == PROTOBUF_C_LABEL_REPEATED && ++elements > KR_LIST_MAX)
            return kr_note_set(why, KR_ETOOBIG, "%s has more than %d list entries", d->short_name,
                               KR_LIST_MAX);
        if (fd->type == PROTOBUF_C_TYPE_STRING && f.type == KR_PROTO_BYTES &&
            (!kr_bytes_is_utf8(f.bytes) || f.bytes.n > KR_TEXT_MAX))
            return kr_note_set(why, KR_EPROTO, "%s.%s is no text", d->short_name, fd->name);
    }
    return 0;
}

static int unpack(const ProtobufCMessageDescriptor *d, struct kr_bytes in, struct kr_arena *arena,
                  ProtobufCMessage **out, struct kr_note *why)
{
    struct budget budget = {.arena = arena, .left = KR_DECODE_ARENA(in.n)};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    int rc = scan(d, in, why);

    if (rc != 0)
        return rc;
    *out = protobuf_c_message_unpack(d, &allocator, in.n, in.p);
    return *out != NULL ? 0 : kr_note_set(why, KR_EPROTO, "%s cannot be decoded", d->short_name);
}

/* Views of protobuf-c's strings; NULL when memory is short (n != 0). */
static const struct kr_bytes *view(char *const *list, size_t n, struct kr_arena *arena)
{
    struct kr_bytes *out = kr_arena_alloc(arena, n * sizeof *out + 1);

    for (size_t i = 0; i < n && out != NULL; i++)
        out[i] = kr_bytes_str(list[i]);
    return out;
}

/* The other way: C strings in the arena. */
static char *text(struct kr_bytes b, struct kr_arena *arena, int *rc)
{
    struct kr_bytes copy = kr_arena_copy(arena, b);

    if (copy.p == NULL)
        *rc = KR_ENOMEM;
    return (char *)copy.p;
}

static char **texts(const struct kr_bytes *list, size_t n, struct kr_arena *arena, int *rc)
{
    char **out = kr_arena_alloc(arena, n * sizeof *out + 1);

    if (out == NULL)
        *rc = KR_ENOMEM;
    for (size_t i = 0; i < n && out != NULL; i++)
        out[i] = text(list[i], arena, rc);
    return out;
}

static int pack(const ProtobufCMessage *m, struct kr_buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    int rc = n > KR_STATE_MAX ? KR_ETOOBIG : kr_buf_reserve(out, n);

    if (rc == 0)
        out->n += protobuf_c_message_pack(m, out->p + out->n);
    return rc;
}

int kr_agent_state_encode(const struct kr_agent_state *m, struct kr_buf *out)
{
    Kuberelay__V1__AgentState p = KUBERELAY__V1__AGENT_STATE__INIT;
    struct kr_arena arena;
    int rc = 0;

    kr_arena_init(&arena, 1024, 2 * KR_STATE_MAX);
    p.cluster_uid = text(m->cluster_uid, &arena, &rc);
    p.instance = text(m->instance, &arena, &rc);
    p.boot_id = (ProtobufCBinaryData){.len = m->boot_id.n, .data = (uint8_t *)m->boot_id.p};
    p.lane = (Kuberelay__V1__Lane)m->lane;
    p.version = text(m->version, &arena, &rc);
    p.api_server_version = text(m->api_server_version, &arena, &rc);
    p.api_server = (Kuberelay__V1__ApiServerHealth)m->api_server;
    p.nodes = m->nodes;
    p.heartbeat = m->heartbeat;
    p.loop_lag_ms = m->loop_lag_ms;
    p.draining = m->draining;
    p.bundle_generation = m->bundle_generation;
    p.n_features = m->feature_count;
    p.features = texts(m->features, m->feature_count, &arena, &rc);
    if (rc == 0)
        rc = pack(&p.base, out);
    kr_arena_deinit(&arena);
    return rc;
}

int kr_agent_state_decode(struct kr_agent_state *m, struct kr_bytes in, struct kr_arena *arena,
                          struct kr_note *why)
{
    const Kuberelay__V1__AgentState *p;
    ProtobufCMessage *base;
    int rc = unpack(&kuberelay__v1__agent_state__descriptor, in, arena, &base, why);

    *m = (struct kr_agent_state){.nodes = 0};
    if (rc != 0)
        return rc;
    p = (const Kuberelay__V1__AgentState *)base;
    if (p->boot_id.len != 16)
        return kr_note_set(why, KR_EPROTO, "AgentState.boot_id is not 16 bytes");
    *m = (struct kr_agent_state){
        .cluster_uid = kr_bytes_str(p->cluster_uid),
        .instance = kr_bytes_str(p->instance),
        .boot_id = kr_bytes_of(p->boot_id.data, p->boot_id.len),
        .lane = (unsigned)p->lane <= KR_LANE_BULK ? (enum kr_lane)p->lane : KR_LANE_UNSPECIFIED,
        .version = kr_bytes_str(p->version),
        .api_server_version = kr_bytes_str(p->api_server_version),
        .api_server = (unsigned)p->api_server <= KR_API_UNAUTHORIZED
                          ? (enum kr_api_health)p->api_server
                          : KR_API_UNKNOWN,
        .nodes = p->nodes,
        .heartbeat = p->heartbeat,
        .loop_lag_ms = p->loop_lag_ms,
        .draining = p->draining != 0,
        .features = view(p->features, p->n_features, arena),
        .feature_count = p->n_features,
        .bundle_generation = p->bundle_generation,
    };
    return m->features != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "no memory for AgentState");
}

int kr_hub_state_encode(const struct kr_hub_state *m, struct kr_buf *out)
{
    Kuberelay__V1__HubState p = KUBERELAY__V1__HUB_STATE__INIT;
    struct kr_arena arena;
    int rc = 0;

    kr_arena_init(&arena, 1024, 2 * KR_STATE_MAX);
    p.replica = text(m->replica, &arena, &rc);
    p.heartbeat_ms = m->heartbeat_ms;
    p.n_hubs = m->hub_count;
    p.hubs = texts(m->hubs, m->hub_count, &arena, &rc);
    p.hubs_generation = m->hubs_generation;
    p.draining = m->draining;
    p.refusal = (Kuberelay__V1__Refusal)m->refusal;
    p.refusal_reason = text(m->refusal_reason, &arena, &rc);
    p.retry_after_ms = m->retry_after_ms;
    p.hub_time_ms = m->hub_time_wall_ms;
    p.version = text(m->version, &arena, &rc);
    p.n_features = m->feature_count;
    p.features = texts(m->features, m->feature_count, &arena, &rc);
    p.bundle = (ProtobufCBinaryData){.len = m->bundle.n, .data = (uint8_t *)m->bundle.p};
    p.bundle_generation = m->bundle_generation;
    p.pending = m->pending;
    if (rc == 0)
        rc = pack(&p.base, out);
    kr_arena_deinit(&arena);
    return rc;
}

int kr_hub_state_decode(struct kr_hub_state *m, struct kr_bytes in, struct kr_arena *arena,
                        struct kr_note *why)
{
    const Kuberelay__V1__HubState *p;
    ProtobufCMessage *base;
    int rc = unpack(&kuberelay__v1__hub_state__descriptor, in, arena, &base, why);

    *m = (struct kr_hub_state){.heartbeat_ms = 0};
    if (rc != 0)
        return rc;
    p = (const Kuberelay__V1__HubState *)base;
    *m = (struct kr_hub_state){
        .replica = kr_bytes_str(p->replica),
        .heartbeat_ms = p->heartbeat_ms,
        .hubs = view(p->hubs, p->n_hubs, arena),
        .hub_count = p->n_hubs,
        .hubs_generation = p->hubs_generation,
        .draining = p->draining != 0,
        .refusal = (unsigned)p->refusal <= KR_REFUSAL_DENIED ? (enum kr_refusal)p->refusal
                                                             : KR_REFUSAL_DENIED,
        .refusal_reason = kr_bytes_str(p->refusal_reason),
        .retry_after_ms = p->retry_after_ms,
        .hub_time_wall_ms = p->hub_time_ms,
        .version = kr_bytes_str(p->version),
        .features = view(p->features, p->n_features, arena),
        .feature_count = p->n_features,
        .bundle = kr_bytes_of(p->bundle.data, p->bundle.len),
        .bundle_generation = p->bundle_generation,
        .pending = p->pending != 0,
    };
    return m->hubs != NULL && m->features != NULL
               ? 0
               : kr_note_set(why, KR_ENOMEM, "no memory for HubState");
}
