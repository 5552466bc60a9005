/* SPDX-License-Identifier: Apache-2.0 */
/* signer: the whole program but for its main. */
#ifndef SIGNER_SIGNER_H
#define SIGNER_SIGNER_H

#include "base/log.h"
#include "signer/options.h"

/* Runs until SIGTERM. Returns the exit code. */
int signer_run(const struct signer_options *options, struct kr_log *log);

#endif
