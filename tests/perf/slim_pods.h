/* SPDX-License-Identifier: Apache-2.0 */
/* slim_pods: pods made up from a seed, as an API server would send them: about 14 KiB each, of
 * which some 45 % are managedFields. Memory: appends to the caller's buf. */
#ifndef PERF_SLIM_PODS_H
#define PERF_SLIM_PODS_H

#include "base/buf.h"
#include "base/rand.h"

/* One pod; `item` leaves apiVersion and kind out, as in a list. */
void slim_pod(struct kr_buf *out, struct kr_rand *rand, unsigned number, bool item);

#endif
