/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/handshakes.h"

#include <string.h>

#include "base/assert.h"
#include "net/tls_pipe.h"

#define LOOK_MS 25
#define GREETING_MS 500 /* for the first message */
#define GREETING_SHORT_MS 50
#define ANSWER_MS 3000 /* for the next one */
#define ANSWER_SHORT_MS 1000

static void rest(struct hub_handshakes *hs)
{
    bool full = hs->count >= hs->max;

    kr_listener_pause(hs->listener, full || hs->stopped);
    if (full)
        kr_timer_start(hs->sched, &hs->make_room, LOOK_MS);
}

static uint8_t slot_of(const char *peer)
{
    const char *port = strrchr(peer, ':');
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *c = peer; *c != '\0' && c != port; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    return (uint8_t)(hash ^ hash >> 8 ^ hash >> 16 ^ hash >> 24);
}

static bool keeps_waiting(const struct hub_handshakes *hs, const struct hub_handshake *h)
{
    struct kr_tls_progress p = kr_tls_pipe_progress(h->pipe);
    int64_t silent_ms = hs->sched->now_ms - (p.answered ? p.since_ms : h->since_ms);
    size_t share = hs->by_slot[h->slot];

    if (p.waits_for_us)
        return false;
    if (p.answered)
        return silent_ms >= (share > hs->max / 2 ? ANSWER_SHORT_MS : ANSWER_MS);
    return silent_ms >= (share > hs->max / 8 ? GREETING_SHORT_MS : GREETING_MS);
}

/* Their callbacks come later and end them. */
static void on_make_room(struct kr_timer *t)
{
    struct hub_handshakes *hs = KR_CONTAINER_OF(t, struct hub_handshakes, make_room);

    KR_LIST_FOREACH_SAFE(node, &hs->running)
    {
        struct hub_handshake *h = KR_CONTAINER_OF(node, struct hub_handshake, link);

        if (h->pipe == NULL || !keeps_waiting(hs, h))
            continue;
        kr_pipe_close(h->pipe, KR_PIPE_ABORT);
        h->pipe = NULL;
    }
    if (hs->count >= hs->max)
        kr_timer_start(hs->sched, &hs->make_room, LOOK_MS);
}

void hub_handshakes_init(struct hub_handshakes *hs, struct kr_sched *sched, size_t max)
{
    *hs = (struct hub_handshakes){.sched = sched, .max = max};
    kr_list_init(&hs->running);
    kr_timer_init(&hs->make_room, on_make_room);
}

void hub_handshakes_deinit(struct hub_handshakes *hs)
{
    kr_timer_stop(hs->sched, &hs->make_room);
}

void hub_handshake_begin(struct hub_handshakes *hs, struct hub_handshake *h, struct kr_pipe *pipe,
                         const char *peer)
{
    h->pipe = pipe;
    h->since_ms = hs->sched->now_ms;
    h->slot = slot_of(peer);
    hs->by_slot[h->slot]++;
    kr_list_append(&hs->running, &h->link);
    hs->count++;
    rest(hs);
}

void hub_handshake_end(struct hub_handshakes *hs, struct hub_handshake *h)
{
    kr_list_remove(&h->link);
    h->pipe = NULL;
    hs->count--;
    hs->by_slot[h->slot]--;
    rest(hs);
}

void hub_handshakes_stop(struct hub_handshakes *hs)
{
    hs->stopped = true;
    rest(hs);
}
