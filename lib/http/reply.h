/* SPDX-License-Identifier: Apache-2.0 */
/* reply: answers an exchange with a head and a body that are known, throws away what still comes of
 * the request, and frees itself when the exchange ends.
 * Memory:  copies head and body; the caller keeps its own.
 * Threads: the exchange's thread. */
#ifndef KR_HTTP_REPLY_H
#define KR_HTTP_REPLY_H

#include "http/exchange.h"

/* On a server connection, within on_request or later in the place of the exchange's user, which is
 * called no more; what that user has not consumed yet stays owed (consume it before). Adds
 * content-length if the head has none; no body goes to HEAD. KR_ENOMEM (or another failure of
 * kr_exchange_send_head): the exchange was aborted. Either way it is the caller's no longer. */
int kr_reply(struct kr_exchange *ex, const struct kr_head *head, struct kr_bytes body);

#endif
