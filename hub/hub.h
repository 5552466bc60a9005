/* SPDX-License-Identifier: Apache-2.0 */
/* hub: the whole program: builds the parts, runs the loop, reloads on SIGHUP, drains on SIGTERM. */
#ifndef HUB_HUB_H
#define HUB_HUB_H

#include "base/log.h"
#include "hub/options.h"

/* Runs until a signal ends it. The exit code: 0 after a drain, 1 when it could not start. */
int hub_run(const struct hub_options *options, struct kr_log *log);

#endif
