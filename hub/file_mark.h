/* SPDX-License-Identifier: Apache-2.0 */
/* file_mark: by which a file is told from the one that was there before. */
#ifndef HUB_FILE_MARK_H
#define HUB_FILE_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct hub_file_mark {
    int64_t seconds;
    int64_t nanoseconds;
    uint64_t size;
    uint64_t inode;
};

/* A file that is not there (or NULL) has the mark of zeros. Follows symbolic links. */
struct hub_file_mark hub_file_mark_of(const char *file);
bool hub_file_mark_same(const struct hub_file_mark *a, const struct hub_file_mark *b);

#endif
