/* SPDX-License-Identifier: Apache-2.0 */
/* bearer: the bearer token of a request: in Authorization, or, as browsers send it, among the
 * subprotocols of a WebSocket (apiserver pkg/authentication/request/websocket/protocol.go: another
 * subprotocol must stand beside it).
 * Memory: borrows the head or lives in the arena. Pure. */
#ifndef HUB_BEARER_H
#define HUB_BEARER_H

#include "base/note.h"
#include "http/head.h"

#define HUB_BEARER_MAX 8192
#define HUB_BEARER_PROTOCOL "base64url.bearer.authorization.k8s.io."

/* KR_ENOENT: none is there. KR_EDENIED: there is something, and it is no token, or there are two;
 * KR_ENOMEM. */
int hub_bearer_find(const struct kr_head *head, struct kr_arena *arena, struct kr_bytes *token,
                    struct kr_note *why);

#endif
