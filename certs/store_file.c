/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static int from_errno(int e)
{
    switch (e) {
    case ENOENT:
    case ENOTDIR:
        return KR_ENOENT;
    case EEXIST:
        return KR_EEXIST;
    case EACCES:
    case EPERM:
    case ELOOP: /* a symbolic link where none is allowed */
        return KR_EDENIED;
    case ENOMEM:
        return KR_ENOMEM;
    default:
        return KR_EIO;
    }
}

/* Takes errno as it is; `what` says what was tried. */
static int fail(struct kr_note *why, const char *what, const char *path)
{
    int e = errno;

    return kr_note_set(why, from_errno(e), "%s %s: %s", what, path, strerror(e));
}

static int check_private(const struct stat *st, const char *path, struct kr_note *why)
{
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return kr_note_set(why, KR_EDENIED, "%s belongs to user %u, not to us or root", path,
                           (unsigned)st->st_uid);
    if ((st->st_mode & 077) != 0)
        return kr_note_set(why, KR_EDENIED,
                           "%s has mode %04o: a key must be closed to group and "
                           "others (chmod 600)",
                           path, (unsigned)(st->st_mode & 07777));
    return 0;
}

static int read_all(struct kr_buf *out, int fd, size_t max, const char *path, struct kr_note *why)
{
    ssize_t got;

    /* Reserved once and in full: a growing buffer would leave copies of a key behind. */
    kr_buf_cleanse(out);
    kr_buf_init(out, max + 1);
    if (kr_buf_reserve(out, max + 1) != 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    while (out->n <= max) {
        got = read(fd, out->p + out->n, max + 1 - out->n);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return fail(why, "cannot read", path);
        if (got > 0)
            out->n += (size_t)got;
    }
    return kr_note_set(why, KR_ETOOBIG, "%s has more than %zu bytes", path, max);
}

static int read_file(struct kr_buf *out, const char *path, size_t max, bool private,
                     struct kr_note *why)
{
    struct stat st;
    int fd;
    int rc;

    /* O_NONBLOCK: a FIFO must not hold us up before fstat tells what it is. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (private ? O_NOFOLLOW : 0));
    if (fd < 0)
        return fail(why, "cannot open", path);
    if (fstat(fd, &st) != 0)
        rc = fail(why, "cannot examine", path);
    else if (!S_ISREG(st.st_mode))
        rc = kr_note_set(why, KR_EDENIED, "%s is not a regular file", path);
    else
        rc = private ? check_private(&st, path, why) : 0;
    if (rc == 0)
        rc = read_all(out, fd, max, path, why);
    if (rc != 0)
        kr_buf_cleanse(out);
    close(fd);
    return rc;
}

int kr_file_read(struct kr_buf *out, const char *path, size_t max, struct kr_note *why)
{
    return read_file(out, path, max, false, why);
}

int kr_file_read_private(struct kr_buf *out, const char *path, size_t max, struct kr_note *why)
{
    return read_file(out, path, max, true, why);
}

int kr_dir_ensure(const char *path, struct kr_note *why)
{
    struct stat st;

    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno != EEXIST)
        return fail(why, "cannot make the directory", path);
    if (stat(path, &st) != 0)
        return fail(why, "cannot examine", path);
    if (!S_ISDIR(st.st_mode))
        return kr_note_set(why, KR_EEXIST, "%s is not a directory", path);
    if ((st.st_mode & 022) != 0)
        return kr_note_set(why, KR_EDENIED,
                           "%s has mode %04o: group or others may write there "
                           "(chmod go-w)",
                           path, (unsigned)(st.st_mode & 07777));
    return 0;
}

int kr_dir_hold(const char *path, int *fd, struct kr_note *why)
{
    int rc;

    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return fail(why, "cannot open", path);
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    rc = errno == EWOULDBLOCK ? kr_note_set(why, KR_EEXIST, "another process uses %s", path)
                              : fail(why, "cannot lock", path);
    close(*fd);
    *fd = -1;
    return rc;
}

static int write_all(int fd, struct kr_bytes in)
{
    while (in.n != 0) {
        ssize_t put = write(fd, in.p, in.n);

        if (put < 0 && errno != EINTR)
            return -1;
        if (put > 0)
            in = kr_bytes_skip(in, (size_t)put);
    }
    return fsync(fd);
}

/* Makes the rename itself survive a crash. */
static void sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];
    int fd;

    if (slash == NULL)
        snprintf(dir, sizeof dir, ".");
    else
        snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* best effort: the file is there, whole, either way */
    close(fd);
}

/* Moves without replacing. Not every file system knows the flag; link(2) is the older way. */
static int move_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) != 0)
        return -1;
    return unlink(from);
}

static int move_over(const char *from, const char *to)
{
    return rename(from, to);
}

static int put_file(const char *path, struct kr_bytes content,
                    int (*move)(const char *from, const char *to), struct kr_note *why)
{
    char temp[PATH_MAX];
    int n = snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    int rc = 0;
    int fd;

    if (n < 0 || (size_t)n >= sizeof temp)
        return kr_note_set(why, KR_EINVAL, "the path %.80s... is too long", path);
    fd = mkostemp(temp, O_CLOEXEC); /* O_EXCL, mode 0600 */
    if (fd < 0)
        return fail(why, "cannot create", path);
    if (write_all(fd, content) != 0)
        rc = fail(why, "cannot write", path);
    if (close(fd) != 0 && rc == 0)
        rc = fail(why, "cannot write", path);
    if (rc == 0 && move(temp, path) != 0)
        rc = errno == EEXIST ? kr_note_set(why, KR_EEXIST, "%s exists; it is not overwritten", path)
                             : fail(why, "cannot create", path);
    if (rc != 0)
        unlink(temp);
    else
        sync_parent(path);
    return rc;
}

int kr_file_create(const char *path, struct kr_bytes content, struct kr_note *why)
{
    if (access(path, F_OK) == 0)
        return kr_note_set(why, KR_EEXIST, "%s exists; it is not overwritten", path);
    return put_file(path, content, move_new, why);
}

int kr_file_replace(const char *path, struct kr_bytes content, struct kr_note *why)
{
    return put_file(path, content, move_over, why);
}

int kr_file_create_pair(const char *path_a, struct kr_bytes a, const char *path_b,
                        struct kr_bytes b, struct kr_note *why)
{
    int rc;

    /* Asked before anything is written, so that the usual refusal leaves no trace. */
    if (access(path_b, F_OK) == 0)
        return kr_note_set(why, KR_EEXIST, "%s exists; it is not overwritten", path_b);
    rc = kr_file_create(path_a, a, why);
    if (rc != 0)
        return rc;
    rc = kr_file_create(path_b, b, why);
    if (rc != 0)
        unlink(path_a);
    return rc;
}
