/* SPDX-License-Identifier: Apache-2.0 */
/* store_sqlite: hub/store.h in one SQLite file, for a single hub.
 * Every commit is synced before it counts (WAL, synchronous=FULL), unless it is opened to be lazy.
 * The schema has a version (PRAGMA user_version) and is brought up to date when the file is opened;
 * a file of a newer version is refused. */
#ifndef HUB_STORE_SQLITE_H
#define HUB_STORE_SQLITE_H

#include "hub/store.h"

/* Opens or makes the file, mode 0600. *out is closed by its ops. `lazy`: commits are not synced
 * (the file stays whole, the last of them may be lost with the power); sync does it. */
int hub_store_sqlite_open(struct hub_store **out, const char *path, bool lazy, struct kr_note *why);

#endif
