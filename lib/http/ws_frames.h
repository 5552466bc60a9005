/* SPDX-License-Identifier: Apache-2.0 */
/* ws_frames: where the frames of a WebSocket end, in a direction whose bytes pass by unread: so
 * that a Close frame of our own can be put behind a whole one and is not taken for somebody's data.
 * Rules:  RFC 6455 section 5.2 (frames), 5.4 (a control frame may stand between the fragments of a
 *         message), 5.5.1 and 7.4.1 (Close, 1008).
 * Errors: a length that no frame has (its top bit is set) makes it lost: no end is known any more.
 * Memory: none of its own. Pure. */
#ifndef KR_HTTP_WS_FRAMES_H
#define KR_HTTP_WS_FRAMES_H

#include "base/bytes.h"

#define KR_WS_GOING_AWAY 1001
#define KR_WS_POLICY_VIOLATION 1008
#define KR_WS_CLOSE_MAX 127 /* a control frame, without a mask */

struct kr_ws_frames { /* zeroed is the start; read whole, lost and closed */
    uint64_t whole;   /* bytes up to the end of the last whole frame */
    uint64_t fed;
    uint64_t left; /* of the body of the frame that has begun */
    uint8_t head[14];
    uint8_t head_n;
    bool lost;
    bool closed; /* a Close frame came: nothing may follow */
};

void kr_ws_frames_feed(struct kr_ws_frames *f, struct kr_bytes in);
/* A Close frame of a server with that code and reason, which is cut to fit; its length. */
size_t kr_ws_close_write(uint8_t out[KR_WS_CLOSE_MAX], unsigned code, struct kr_bytes reason);

#endif
