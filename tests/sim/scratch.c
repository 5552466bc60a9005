/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define PREFIX "fleet-sim-"

/* The folder's lock, or -1: it is gone, not ours, or in use. */
static int lock_of(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool is_removed(int lock)
{
    struct stat st;

    return fstat(lock, &st) < 0 || st.st_nlink == 0;
}

void scratch_drop(const char *path, int lock)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        (void)unlinkat(dirfd(dir), entry->d_name, 0); /* which "." and ".." do not allow */
    if (dir != NULL)
        closedir(dir);
    (void)rmdir(path);
    close(lock);
}

static void sweep(const char *base)
{
    DIR *dir = opendir(base);
    const struct dirent *entry;
    char path[PATH_MAX];
    int lock;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        lock = lock_of(path);
        if (lock >= 0)
            scratch_drop(path, lock);
    }
    if (dir != NULL)
        closedir(dir);
}

int scratch_make(char *path, size_t size)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    int lock;

    sweep(base);
    for (int tries = 1;; tries++) {
        (void)snprintf(path, size, "%s/" PREFIX "XXXXXX", base);
        KR_ASSERT(mkdtemp(path) != NULL);
        lock = lock_of(path);
        if (lock >= 0 && !is_removed(lock))
            return lock;
        if (lock >= 0) /* another run swept it before it was locked */
            close(lock);
        KR_ASSERT(tries < 100);
    }
}
