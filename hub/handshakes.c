/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/handshakes.h"

#include "base/assert.h"

#define PATIENCE_MS 1000
#define LOOK_MS 250

static void rest(struct hub_handshakes *hs)
{
    bool full = hs->count >= hs->max;

    kr_listener_pause(hs->listener, full || hs->stopped);
    if (full)
        kr_timer_start(hs->sched, &hs->make_room, LOOK_MS);
}

/* Their callbacks come later and end them. */
static void on_make_room(struct kr_timer *t)
{
    struct hub_handshakes *hs = KR_CONTAINER_OF(t, struct hub_handshakes, make_room);

    KR_LIST_FOREACH_SAFE(node, &hs->running)
    {
        struct hub_handshake *h = KR_CONTAINER_OF(node, struct hub_handshake, link);

        if (hs->sched->now_ms - h->since_ms < PATIENCE_MS)
            break;
        if (h->pipe != NULL)
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

void hub_handshake_begin(struct hub_handshakes *hs, struct hub_handshake *h, struct kr_pipe *pipe)
{
    h->pipe = pipe;
    h->since_ms = hs->sched->now_ms;
    kr_list_append(&hs->running, &h->link);
    hs->count++;
    rest(hs);
}

void hub_handshake_end(struct hub_handshakes *hs, struct hub_handshake *h)
{
    kr_list_remove(&h->link);
    h->pipe = NULL;
    hs->count--;
    rest(hs);
}

void hub_handshakes_stop(struct hub_handshakes *hs)
{
    hs->stopped = true;
    rest(hs);
}
