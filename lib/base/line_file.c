/* SPDX-License-Identifier: Apache-2.0 */
#include "base/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define LAST_MAX (1u << 20) /* of the last line that is looked for */

struct kr_line_file {
    struct kr_line_file_config cfg;
    int fd;
    bool regular;
    bool own; /* we opened it */
    int64_t size;
    struct kr_buf waiting; /* from the beginning of a line */
    size_t sent;           /* of the first line that waits, when its rest did not fit */
    int64_t stalled_ms;    /* when what waits began to wait; 0: nothing does */
    bool stalled;
    int error;
};

static bool is_stdout(const struct kr_line_file *f)
{
    return kr_bytes_is(kr_bytes_str(f->cfg.path), "-");
}

/* Not blocking, so that a named pipe without a reader does not hold the start up. */
static int open_path(const struct kr_line_file *f, struct kr_note *why)
{
    int fd = is_stdout(f)
                 ? STDOUT_FILENO
                 : open(f->cfg.path,
                        O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);

    if (fd < 0 && (errno == EACCES || errno == EROFS)) /* readable it need not be */
        fd = open(f->cfg.path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd >= 0 ? fd : kr_note_set(why, KR_EIO, "%s: %m", f->cfg.path);
}

static void use(struct kr_line_file *f, int fd)
{
    struct stat st = {0};

    if (f->own && f->fd >= 0)
        close(f->fd);
    f->fd = fd;
    f->own = !is_stdout(f);
    f->regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    f->size = f->regular ? (int64_t)st.st_size : 0;
    f->sent = 0; /* half a line stays behind, the whole one comes here */
}

struct kr_line_file *kr_line_file_open(const struct kr_line_file_config *cfg, struct kr_note *why)
{
    struct kr_line_file *f = calloc(1, sizeof *f);
    int fd;

    if (f == NULL) {
        kr_note_text(why, "out of memory");
        return NULL;
    }
    f->cfg = *cfg;
    f->fd = -1;
    kr_buf_init(&f->waiting, KR_LINE_WAIT_MAX);
    fd = open_path(f, why);
    if (fd < 0) {
        free(f);
        return NULL;
    }
    use(f, fd);
    return f;
}

void kr_line_file_close(struct kr_line_file *f)
{
    if (f == NULL)
        return;
    kr_line_file_flush(f, 0);
    if (f->own)
        close(f->fd);
    kr_buf_deinit(&f->waiting);
    free(f);
}

int kr_line_file_reopen(struct kr_line_file *f, struct kr_note *why)
{
    int fd = open_path(f, why);

    if (fd < 0)
        return fd;
    use(f, fd);
    return 0;
}

/* ---- writing ---- */

/* FILE to FILE.1 and so on. If that does not work the file grows on: no line is lost for it. */
static void rotate(struct kr_line_file *f)
{
    char from[PATH_MAX];
    char to[PATH_MAX];

    for (int64_t i = f->cfg.keep; i > 0; i--) {
        bool first = i == 1;
        int n = first ? snprintf(from, sizeof from, "%s", f->cfg.path)
                      : snprintf(from, sizeof from, "%s.%d", f->cfg.path, (int)(i - 1));

        if (n >= (int)sizeof from ||
            snprintf(to, sizeof to, "%s.%d", f->cfg.path, (int)i) >= (int)sizeof to)
            return;
        if (rename(from, to) != 0 && first)
            return;
    }
    if (kr_line_file_reopen(f, NULL) != 0)
        f->size = 0; /* not again with every line */
}

/* A pipe that polls as writable takes PIPE_BUF bytes at once. */
static ssize_t write_some(struct kr_line_file *f)
{
    struct pollfd p = {.fd = f->fd, .events = POLLOUT};
    size_t n = f->waiting.n - f->sent;

    if (!f->regular) {
        if (poll(&p, 1, 0) <= 0) {
            errno = EAGAIN;
            return -1;
        }
        n = n < PIPE_BUF ? n : PIPE_BUF;
    }
    return write(f->fd, f->waiting.p + f->sent, n);
}

/* Whole lines that are written go. */
static void drop_written(struct kr_line_file *f)
{
    size_t n = f->sent;

    while (n > 0 && f->waiting.p[n - 1] != '\n')
        n--;
    kr_buf_drop(&f->waiting, n);
    f->sent -= n;
}

static void note_stall(struct kr_line_file *f, int64_t now_ms)
{
    if (f->stalled_ms == 0)
        f->stalled_ms = now_ms != 0 ? now_ms : 1;
    if (now_ms - f->stalled_ms >= KR_LINE_STALL_MS)
        f->stalled = true;
}

/* 0, or the errno that ended it. */
static int write_all(struct kr_line_file *f, bool *some)
{
    while (f->sent < f->waiting.n) {
        ssize_t n = write_some(f);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? EAGAIN : errno;
        f->sent += (size_t)n;
        f->size += n;
        *some = true;
    }
    return 0;
}

void kr_line_file_flush(struct kr_line_file *f, int64_t now_ms)
{
    bool some = false;
    int error = write_all(f, &some);

    if (some)
        drop_written(f);
    if (some || error == 0) {
        f->stalled_ms = 0;
        f->stalled = false;
        f->error = 0;
    }
    if (error == 0)
        return;
    note_stall(f, now_ms);
    if (error != EAGAIN)
        f->error = error;
}

static bool has_room(struct kr_line_file *f, size_t n)
{
    return f->waiting.n + n <= KR_LINE_WAIT_MAX && kr_buf_reserve(&f->waiting, n) == 0;
}

/* Only between lines: none is torn in two files. */
static bool is_long_enough(const struct kr_line_file *f, size_t more)
{
    return f->regular && f->own && f->cfg.max_size != 0 && f->waiting.n == 0 && f->size != 0 &&
           f->size + (int64_t)more > f->cfg.max_size;
}

int kr_line_file_put(struct kr_line_file *f, struct kr_bytes line, int64_t now_ms)
{
    if (is_long_enough(f, line.n + 1))
        rotate(f);
    if (!has_room(f, line.n + 1))
        kr_line_file_flush(f, now_ms);
    if (!has_room(f, line.n + 1)) {
        f->stalled = true;
        return KR_EFULL;
    }
    kr_buf_append(&f->waiting, line);
    kr_buf_append_str(&f->waiting, "\n");
    kr_line_file_flush(f, now_ms);
    return 0;
}

bool kr_line_file_ok(const struct kr_line_file *f)
{
    return f->error == 0 && !f->stalled;
}

size_t kr_line_file_waiting(const struct kr_line_file *f)
{
    return f->waiting.n;
}

int kr_line_file_errno(const struct kr_line_file *f)
{
    return f->error;
}

/* ---- what is there ---- */

int kr_line_file_last(struct kr_line_file *f, struct kr_buf *out)
{
    size_t want = f->size < LAST_MAX ? (size_t)f->size : LAST_MAX;
    uint8_t *text = want != 0 ? malloc(want) : NULL;
    ssize_t got = text != NULL ? pread(f->fd, text, want, (off_t)(f->size - (int64_t)want)) : 0;
    size_t end = got > 0 ? (size_t)got : 0;
    size_t begin;
    int rc = 0;

    if (want != 0 && text == NULL)
        return KR_ENOMEM;
    if (end != 0 && text[end - 1] == '\n')
        end--;
    else if (end != 0)
        rc = kr_buf_append_str(&f->waiting, "\n"); /* half a line of a crash */
    for (begin = end; begin > 0 && text[begin - 1] != '\n';)
        begin--;
    if (rc == 0)
        rc = kr_buf_append(out, kr_bytes_of(text + begin, end - begin));
    free(text);
    return rc;
}
