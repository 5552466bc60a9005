/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/relay_socket.h"

#define REST_MS 1000 /* for the rest of a frame that the client has the start of */

void hub_socket_begin(struct hub_request *r)
{
    r->websocket = true;
    r->frames = (struct kr_ws_frames){.whole = 0};
    r->fw.tap = true;
}

/* Whether no byte behind the last whole frame has gone to the client. */
static bool at_boundary(const struct hub_request *r)
{
    return !r->frames.lost && kr_forward_may_finish_at(&r->fw, r->frames.whole);
}

void hub_socket_feed(struct hub_request *r, struct kr_bytes in)
{
    uint64_t before = r->frames.whole;

    kr_ws_frames_feed(&r->frames, in);
    if (r->close_code == 0 || (r->frames.whole == before && r->fw.held == 0))
        return;
    r->fw.held = (size_t)(r->fw.down_bytes - r->frames.whole);
    kr_timer_start(r->w->sched, &r->deadline, 0); /* not from inside of the forward */
}

static void finish(struct hub_request *r)
{
    struct kr_exchange *out = r->fw.out;
    uint8_t frame[KR_WS_CLOSE_MAX];
    size_t n = 0;

    if (!r->frames.closed)
        n = kr_ws_close_write(frame, r->close_code, kr_bytes_str(r->close_reason));
    r->fw.out = NULL;
    if (out != NULL)
        kr_exchange_abort(out, KR_ABORT_CANCEL);
    kr_forward_finish_with(&r->fw, r->frames.whole, kr_bytes_of(frame, n));
}

void hub_socket_end(struct hub_request *r, unsigned code, const char *why)
{
    if (r->close_code != 0 || r->fw.down_ended)
        return;
    r->close_code = code;
    r->close_reason = why;
    if (at_boundary(r))
        finish(r);
    else if (r->frames.lost || kr_timer_start(r->w->sched, &r->deadline, REST_MS) != 0)
        hub_socket_end_now(r);
}

void hub_socket_end_now(struct hub_request *r)
{
    if (r->fw.down_ended)
        return;
    if (at_boundary(r)) {
        finish(r);
        return;
    }
    kr_forward_cut(&r->fw);
    hub_request_end(r);
}
