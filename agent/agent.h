/* SPDX-License-Identifier: Apache-2.0 */
/* agent: the whole program: builds the parts, runs the loop, reloads on SIGHUP, drains on SIGTERM.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/options.h"
#include "base/log.h"

/* Runs until a signal ends it. The exit code: 0 after a drain, 1 when it could not start. */
int agent_run(const struct agent_options *options, struct kr_log *log);

#endif
