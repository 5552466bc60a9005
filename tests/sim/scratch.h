/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for the files of one run, in memory where there is such a file system.
 *
 * A run that is killed cannot remove its own: the next one does. Whose run still goes on is told by
 * a lock on the folder, which ends with the process. The caller owns the lock; errors abort. */
#ifndef SIM_SCRATCH_H
#define SIM_SCRATCH_H

#include <stddef.h>

/* Removes what killed runs have left, writes the path of a new, empty folder; returns its lock. */
int scratch_make(char *path, size_t size);

/* Removes the folder, the files in it, and the lock. */
void scratch_drop(const char *path, int lock);

#endif
