/* SPDX-License-Identifier: Apache-2.0 */
/* relay_socket: the hub's end of a WebSocket that it passes on unread. It knows where the server's
 * frames end, so that a client which loses its right is told with a Close frame (1008), and not
 * with a connection that breaks. If half a frame went to the client, the rest of it is waited for,
 * a second at most; then the connection is cut, as it is for other protocols. Threads: the
 * worker's. */
#ifndef HUB_RELAY_SOCKET_H
#define HUB_RELAY_SOCKET_H

#include "hub/request.h"

/* The upgrade was accepted; within on_response. */
void hub_socket_begin(struct hub_request *r);
/* What the server sends, before it is queued. */
void hub_socket_feed(struct hub_request *r, struct kr_bytes in);
/* Ends it with that code and reason, a constant. May end the request. */
void hub_socket_end(struct hub_request *r, unsigned code, const char *why);
/* r->deadline has passed since then. */
void hub_socket_end_now(struct hub_request *r);

#endif
