/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/file_watch.h"

#include <string.h>
#include <sys/stat.h>

static void look_at(const struct kr_file_watch *w, struct kr_file_mark marks[KR_FILE_WATCH_MAX])
{
    struct stat st;

    memset(marks, 0, KR_FILE_WATCH_MAX * sizeof *marks); /* also what is between the fields */
    for (size_t i = 0; i < w->n; i++) {
        if (stat(w->paths[i], &st) != 0) {
            marks[i].size = -1;
            continue;
        }
        marks[i].device = st.st_dev;
        marks[i].inode = st.st_ino;
        marks[i].size = st.st_size;
        marks[i].changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
}

void kr_file_watch_init(struct kr_file_watch *w, const char *const *paths, size_t n)
{
    w->n = 0;
    for (size_t i = 0; i < n && w->n < KR_FILE_WATCH_MAX; i++) {
        if (paths[i] != NULL)
            w->paths[w->n++] = paths[i];
    }
    look_at(w, w->seen);
    memcpy(w->last, w->seen, sizeof w->last);
}

bool kr_file_watch_look(struct kr_file_watch *w)
{
    struct kr_file_mark now[KR_FILE_WATCH_MAX];
    bool settled;

    look_at(w, now);
    settled = memcmp(now, w->last, sizeof now) == 0;
    memcpy(w->last, now, sizeof now);
    if (!settled || memcmp(now, w->seen, sizeof now) == 0)
        return false;
    memcpy(w->seen, now, sizeof now);
    return true;
}
