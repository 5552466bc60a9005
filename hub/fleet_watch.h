/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_watch: serves one WATCH: what is there (if asked for), then the log of its type from the
 * place where that was, as fast as its reader takes it. There is no queue: a reader that is slow
 * stays behind in the log, and one that falls off it ends, cleanly, as kube-apiserver ends one.
 * A version that the log does not reach is told by an ERROR event (410 Expired) after 200, as
 * kube-apiserver's watch cache does: informers list again, and retrying watchers, which would take
 * an HTTP 410 for one more failure to retry, stop.
 * Memory: what its reader has not taken of one piece; nothing while nothing happens. */
#ifndef HUB_FLEET_WATCH_H
#define HUB_FLEET_WATCH_H

#include "hub/fleet_read.h"

/* Answers now; the read ends with it. */
void hub_watch_start(struct hub_read *rd);
/* The type is complete: what was to wait for that (the bookmark behind initial events) may come. */
void hub_watch_ready(struct hub_read *rd);
/* What the reader may see has changed. */
void hub_watch_judge_again(struct hub_read *rd);
/* Ends cleanly, after `after_ms`. */
void hub_watch_end(struct hub_read *rd, int64_t after_ms);

#endif
