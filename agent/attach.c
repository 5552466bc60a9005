/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/attach.h"

#include "base/assert.h"
#include "base/err.h"
#include "net/loop.h"
#include "wire/sync_messages.h"

#define BEAT_FIRST_MS 10000
#define BEAT_MIN_MS 100
#define BEAT_MAX_MS 60000

static int send_state(struct agent_attach *a)
{
    const struct kr_bytes features[] = {KR_LIT(KR_FEATURE_SYNC)};
    const struct agent_core *c = a->c;
    struct kr_agent_state s = {
        .cluster_uid = kr_bytes_str(c->health.cluster_uid),
        .instance = kr_bytes_str(c->self.instance),
        .boot_id = kr_bytes_of(c->boot_id, sizeof c->boot_id),
        .lane = a->lane,
        .version = KR_LIT(KR_VERSION),
        .api_server_version = kr_bytes_str(c->health.version),
        .api_server = c->health.health,
        .nodes = c->health.nodes,
        .heartbeat = ++a->count,
        .loop_lag_ms = (uint32_t)kr_loop_take_lag_ms(c->loop),
        .draining = c->draining,
        .bundle_generation = c->bundle_generation,
        .features = features,
        .feature_count = sizeof features / sizeof features[0],
    };
    struct kr_buf out = {.max = KR_STATE_MAX};
    int rc = kr_agent_state_encode(&s, &out);

    if (rc == 0)
        rc = kr_grpc_send(&a->stream, kr_buf_bytes(&out));
    kr_buf_deinit(&out);
    return rc;
}

void agent_attach_tell(struct agent_attach *a)
{
    if (!kr_grpc_is_open(&a->stream))
        return;
    if (send_state(a) != 0)
        a->ops->on_attach_end(a->owner, "the hub does not take the agent's states");
}

static void on_beat(struct kr_timer *t)
{
    struct agent_attach *a = KR_CONTAINER_OF(t, struct agent_attach, beat);

    kr_timer_start(a->c->sched, &a->beat, a->beat_ms);
    agent_attach_tell(a);
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static int on_message(void *user, struct kr_bytes message)
{
    struct agent_attach *a = user;
    struct kr_arena arena;
    struct kr_hub_state s;
    struct kr_note why = {""};
    int rc;

    kr_arena_init(&arena, 1024, KR_DECODE_ARENA(message.n));
    rc = kr_hub_state_decode(&s, message, &arena, &why);
    if (rc == 0) {
        a->beat_ms = clamp(s.heartbeat_ms, BEAT_MIN_MS, BEAT_MAX_MS);
        kr_timer_start(a->c->sched, &a->beat, a->beat_ms);
        a->ops->on_hub_state(a->owner, &s);
    }
    kr_arena_deinit(&arena);
    return rc;
}

static void on_end(void *user, int status, struct kr_bytes message)
{
    struct agent_attach *a = user;

    (void)status, (void)message;
    kr_timer_stop(a->c->sched, &a->beat);
    a->ops->on_attach_end(a->owner, "the Attach call ended");
}

static const struct kr_grpc_user stream_user = {.on_message = on_message, .on_end = on_end};

void agent_attach_init(struct agent_attach *a, struct agent_core *c, enum kr_lane lane,
                       const struct agent_attach_owner *ops, void *owner)
{
    *a = (struct agent_attach){
        .c = c, .lane = lane, .beat_ms = BEAT_FIRST_MS, .ops = ops, .owner = owner};
    kr_timer_init(&a->beat, on_beat);
}

void agent_attach_deinit(struct agent_attach *a)
{
    kr_timer_stop(a->c->sched, &a->beat);
    kr_grpc_deinit(&a->stream);
}

void agent_attach_accept(struct agent_attach *a, struct kr_exchange *ex)
{
    struct kr_grpc_limits limits = {.message = KR_STATE_MAX, .queue = 4 * KR_STATE_MAX};

    if (kr_grpc_is_open(&a->stream)) {
        kr_grpc_reject(ex, KR_GRPC_FAILED_PRECONDITION, "this tunnel is attached already");
        return;
    }
    kr_grpc_deinit(&a->stream);
    if (kr_grpc_accept(&a->stream, ex, limits, &stream_user, a) != 0)
        return;
    kr_timer_start(a->c->sched, &a->beat, a->beat_ms);
    agent_attach_tell(a);
}
