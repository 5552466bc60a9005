/* SPDX-License-Identifier: Apache-2.0 */
/* store_file: certificates and keys on disk: bounded reads, and new files that appear whole, with
 * mode 0600, and never in place of another one.
 * Memory: a private read lands in the caller's buf; kr_buf_cleanse wipes it.
 * Errors: KR_EEXIST (nothing was changed), KR_ENOENT, KR_EDENIED (owner or mode), KR_ETOOBIG,
 * KR_EIO, KR_ENOMEM; the note names the path. Threads: any; blocks on the disk, so for start-up and
 * commands only. */
#ifndef KR_CERTS_STORE_FILE_H
#define KR_CERTS_STORE_FILE_H

#include "base/buf.h"
#include "base/note.h"

/* Replaces the content of *out by the file's, at most `max` bytes. Only regular files (symbolic
 * links to them are followed: that is how Kubernetes mounts a Secret). */
int kr_file_read(struct kr_buf *out, const char *path, size_t max, struct kr_note *why);
/* The same for a key: no symbolic link, owned by this user or root, closed to group and others. */
int kr_file_read_private(struct kr_buf *out, const char *path, size_t max, struct kr_note *why);

/* Makes the directory with mode 0700 (not its parents) unless it is there. One that others may
 * write to is refused: who can rename our files can replace our keys. */
int kr_dir_ensure(const char *path, struct kr_note *why);
/* Holds the directory for this process until *fd is closed, or the process ends however it does.
 * KR_EEXIST: another one holds it. */
int kr_dir_hold(const char *path, int *fd, struct kr_note *why);
/* Writes a new file: temporary name, fsync, then a rename that fails if `path` is taken. */
int kr_file_create(const char *path, struct kr_bytes content, struct kr_note *why);
/* The same in place of whatever is there: a reader sees the old file or the new one, whole. */
int kr_file_replace(const char *path, struct kr_bytes content, struct kr_note *why);
/* Two files or none. */
int kr_file_create_pair(const char *path_a, struct kr_bytes a, const char *path_b,
                        struct kr_bytes b, struct kr_note *why);

#endif
