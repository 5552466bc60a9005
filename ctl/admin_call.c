/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/admin_call.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

#define ANSWER_MAX (64u << 20)
#define SILENCE_S 10
#define PIECE 65536

static int fail(struct kr_note *why, const char *socket, const char *what)
{
    bool late = errno == EAGAIN || errno == EWOULDBLOCK;

    return kr_note_set(why, late ? KR_ETIMEDOUT : KR_EIO, "%.120s: %s: %s", socket, what,
                       late ? "no answer in time" : strerror(errno));
}

/* What somebody who has just installed a hub forgets. */
static int no_socket(struct kr_note *why, const char *socket)
{
    const char *advice = "";

    if (errno == ENOENT || errno == ECONNREFUSED)
        advice = " (is the hub running, with this adminSocket? else: --socket PATH)";
    else if (errno == EACCES)
        advice = " (it is for the hub's user, and root)";
    return kr_note_set(why, KR_EIO, "%.120s: connecting: %s%s", socket, strerror(errno), advice);
}

/* A connected socket, or -1 with errno. */
static int dial(const char *path)
{
    const struct timeval silence = {.tv_sec = SILENCE_S};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof addr.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(addr.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence) != 0 ||
        connect(fd, (const struct sockaddr *)&addr, sizeof addr) != 0) {
        int cause = errno;

        close(fd);
        errno = cause;
        return -1;
    }
    return fd;
}

static int send_request(int fd, const char *method, const char *path)
{
    char text[1024];
    int n =
        snprintf(text, sizeof text,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method, path);

    if (n < 0 || (size_t)n >= sizeof text) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return send(fd, text, (size_t)n, MSG_NOSIGNAL) == n ? 0 : -1; /* it fits any socket buffer */
}

static int receive(int fd, struct kr_buf *answer, const char *socket, struct kr_note *why)
{
    ssize_t got;

    do {
        int rc = kr_buf_reserve(answer, PIECE);

        if (rc != 0)
            return kr_note_set(why, rc, "%.120s: the answer: %s", socket, kr_err_text(rc));
        do
            got = recv(fd, answer->p + answer->n, PIECE, 0);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return fail(why, socket, "reading");
        answer->n += (size_t)got;
    } while (got != 0);
    return 0;
}

/* "HTTP/1.1 200 OK\r\n...\r\n\r\n" and the body, whose length was told. */
static int take_apart(struct kr_bytes in, struct kr_buf *body, int *status)
{
    const uint8_t *end = in.n != 0 ? memmem(in.p, in.n, "\r\n\r\n", 4) : NULL;
    uint64_t code;

    if (end == NULL || in.n < 13 || !kr_bytes_starts(in, KR_LIT("HTTP/1.1 ")) ||
        !kr_bytes_to_u64(kr_bytes_of(in.p + 9, 3), 999, &code))
        return KR_EPROTO;
    *status = (int)code;
    return kr_buf_append(body, kr_bytes_skip(in, (size_t)(end - in.p) + 4));
}

int ctl_admin_call(const char *socket, const char *method, const char *path, struct kr_buf *body,
                   int *status, struct kr_note *why)
{
    struct kr_buf answer = {.max = ANSWER_MAX};
    int fd = dial(socket);
    int rc = 0;

    if (fd < 0)
        return no_socket(why, socket);
    if (send_request(fd, method, path) != 0)
        rc = fail(why, socket, "writing");
    if (rc == 0)
        rc = receive(fd, &answer, socket, why);
    if (rc == 0) {
        rc = take_apart(kr_buf_bytes(&answer), body, status);
        if (rc != 0)
            kr_note_set(why, rc, "%.120s: not the answer of a hub", socket);
    }
    close(fd);
    kr_buf_deinit(&answer);
    return rc;
}
