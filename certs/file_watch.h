/* SPDX-License-Identifier: Apache-2.0 */
/* file_watch: whether a few files have changed, for who looks now and then (every 2 s, say). Their
 * inode, size and time of change are compared: so it sees what Kubernetes does to a mounted Secret,
 * a swapped symbolic link. A change counts when two looks in a row see the same: whoever writes
 * several files has ended then. Threads: one owner. */
#ifndef KR_CERTS_FILE_WATCH_H
#define KR_CERTS_FILE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KR_FILE_WATCH_MAX 4
#define KR_FILE_WATCH_MS 2000 /* a good time between looks */

struct kr_file_mark {
    uint64_t device;
    uint64_t inode;
    int64_t size; /* -1: not there */
    int64_t changed_ns;
};

struct kr_file_watch { /* embed it; the fields belong to file_watch.c */
    const char *paths[KR_FILE_WATCH_MAX];
    size_t n;
    struct kr_file_mark seen[KR_FILE_WATCH_MAX];
    struct kr_file_mark last[KR_FILE_WATCH_MAX];
};

/* Paths are borrowed; NULL ones are skipped. What is there now is what was seen. */
void kr_file_watch_init(struct kr_file_watch *w, const char *const *paths, size_t n);
/* True once for each change. */
bool kr_file_watch_look(struct kr_file_watch *w);

#endif
