/* SPDX-License-Identifier: Apache-2.0 */
/* A crash at a chosen file operation: preloaded into a program, it kills the program at the N-th
 * (FAILPOINT_AT) operation that changes something below the folder FAILPOINT_DIR: creating a file,
 * write, fsync, ftruncate, rename, link, unlink. A write is done by half before that, all else not
 * at all. What the kernel was given stays, so this is a process that dies, not a machine that loses
 * power. Operations of several threads are counted as they come. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static bool is_within(const char *path)
{
    const char *dir = getenv("FAILPOINT_DIR");
    size_t n = dir != NULL ? strlen(dir) : 0;

    return n != 0 && strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool is_fd_within(int fd)
{
    char link[64];
    char path[PATH_MAX];
    ssize_t n;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return false;
    path[n] = '\0';
    return is_within(path);
}

/* True: this is the operation to die at. */
static bool is_due(void)
{
    static atomic_long done;
    const char *at = getenv("FAILPOINT_AT");

    return at != NULL && atomic_fetch_add(&done, 1) + 1 == strtol(at, NULL, 10);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

static void pass(bool within)
{
    if (within && is_due())
        die();
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

ssize_t write(int fd, const void *p, size_t n)
{
    ssize_t (*real)(int, const void *, size_t) = next("write");

    if (!is_fd_within(fd) || !is_due())
        return real(fd, p, n);
    (void)!real(fd, p, n / 2);
    die();
    return -1;
}

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    ssize_t (*real)(int, const void *, size_t, off64_t) = next("pwrite64");

    if (!is_fd_within(fd) || !is_due())
        return real(fd, p, n, at);
    (void)!real(fd, p, n / 2, at);
    die();
    return -1;
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    return pwrite64(fd, p, n, at);
}

int fsync(int fd)
{
    int (*real)(int) = next("fsync");

    pass(is_fd_within(fd));
    return real(fd);
}

int fdatasync(int fd)
{
    int (*real)(int) = next("fdatasync");

    pass(is_fd_within(fd));
    return real(fd);
}

int ftruncate64(int fd, off64_t n)
{
    int (*real)(int, off64_t) = next("ftruncate64");

    pass(is_fd_within(fd));
    return real(fd, n);
}

int ftruncate(int fd, off_t n)
{
    return ftruncate64(fd, n);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = next("rename");

    pass(is_within(to));
    return real(from, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned) = next("renameat2");

    pass(is_within(to));
    return real(a, from, b, to, flags);
}

int link(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = next("link");

    pass(is_within(to));
    return real(from, to);
}

int unlink(const char *path)
{
    int (*real)(const char *) = next("unlink");

    pass(is_within(path));
    return real(path);
}

int mkostemp(char *template, int flags)
{
    int (*real)(char *, int) = next("mkostemp");

    pass(is_within(template));
    return real(template, flags);
}

int mkostemp64(char *template, int flags)
{
    return mkostemp(template, flags);
}

int open64(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) = next("open64");
    mode_t mode = 0;
    va_list more;

    if ((flags & O_CREAT) != 0) {
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
        pass(is_within(path));
    }
    return real(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list more;

    if ((flags & O_CREAT) != 0) {
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    return open64(path, flags, mode);
}
