/* SPDX-License-Identifier: Apache-2.0 */
/* ctl: kuberelayctl, the operator's command: finds the command, runs it, tells how it ended.
 * Errors: one line on `err`; exit code 0, 1 for a failure, 2 for wrong use. */
#ifndef KR_CTL_CTL_H
#define KR_CTL_CTL_H

#include <stdio.h>

/* argv[0] is the program's name. Returns the exit code. */
int ctl_run(int argc, char *const *argv, FILE *out, FILE *err);

#endif
