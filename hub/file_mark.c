/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/file_mark.h"

#include <stddef.h>
#include <sys/stat.h>

struct hub_file_mark hub_file_mark_of(const char *file)
{
    struct stat st;

    if (file == NULL || stat(file, &st) != 0)
        return (struct hub_file_mark){0};
    return (struct hub_file_mark){(int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                                  (uint64_t)st.st_size, (uint64_t)st.st_ino};
}

bool hub_file_mark_same(const struct hub_file_mark *a, const struct hub_file_mark *b)
{
    return a->seconds == b->seconds && a->nanoseconds == b->nanoseconds && a->size == b->size &&
           a->inode == b->inode;
}
