/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"

enum { BACKLOG = 4096, ACCEPTS_PER_TURN = 64, PAUSE_MS = 100, UNSENT_MAX = 256 * 1024 };

struct kr_listener {
    struct kr_loop *loop;
    struct kr_listener_config cfg;
    struct kr_fd fd;
    struct kr_timer resume;
    bool paused; /* by the owner */
    struct kr_addr at;
    char text[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
};

int kr_socket_open(const struct kr_addr *a)
{
    return socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int kr_socket_connect_unix(const char *path, struct kr_note *why)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    int fd;

    if (n == 0 || n >= sizeof a.sun_path) {
        kr_note_set(why, KR_EINVAL, "the path of the Unix socket is too long");
        return -1;
    }
    memcpy(a.sun_path, path, n);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    kr_note_set(why, KR_EUNAVAILABLE, "%.100s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

bool kr_socket_peer_uid(int fd, uint32_t *uid)
{
    struct ucred peer;
    socklen_t n = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0 || n != sizeof peer)
        return false;
    *uid = (uint32_t)peer.uid;
    return true;
}

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value); /* helps, but is not needed */
}

void kr_socket_tune(int fd, int user_timeout_ms)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_MAX);
    if (user_timeout_ms > 0)
        set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, user_timeout_ms);
}

static void describe(const struct sockaddr_storage *from, socklen_t len, char out[KR_ADDR_TEXT])
{
    struct kr_addr a = {.len = len};

    if (from->ss_family != AF_INET && from->ss_family != AF_INET6) {
        snprintf(out, KR_ADDR_TEXT, "unix");
        return;
    }
    memcpy(&a.u, from, sizeof a.u);
    kr_addr_text(&a, out);
}

static bool is_shortage(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

static void watch(struct kr_listener *l)
{
    bool on = !l->paused && !kr_timer_running(&l->resume);

    kr_fd_set(&l->fd, on ? KR_FD_READ : 0);
}

/* The descriptor stays readable while nothing can be accepted: without a pause the loop spins. */
static void hold(struct kr_listener *l, int err)
{
    if (kr_timer_start(kr_loop_sched(l->loop), &l->resume, PAUSE_MS) != 0)
        return;
    watch(l);
    if (l->cfg.on_pause != NULL)
        l->cfg.on_pause(l->cfg.owner, err);
}

static void on_resume(struct kr_timer *t)
{
    watch(KR_CONTAINER_OF(t, struct kr_listener, resume));
}

/* The owner may pause the listener from on_accept, but not destroy it. */
static void on_readable(struct kr_fd *f, unsigned events)
{
    struct kr_listener *l = KR_CONTAINER_OF(f, struct kr_listener, fd);

    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && !l->paused; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        char peer[KR_ADDR_TEXT];
        int fd = accept4(f->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && is_shortage(errno))
            hold(l, errno);
        if (fd < 0)
            return; /* the queue is empty, or that one has gone already */
        describe(&from, len, peer);
        if (l->cfg.unix_path == NULL)
            kr_socket_tune(fd, l->cfg.user_timeout_ms);
        l->cfg.on_accept(l->cfg.owner, fd, peer);
    }
}

static int listen_tcp(struct kr_listener *l, int *fd, struct kr_note *why)
{
    const struct kr_hostport *at = l->cfg.at;

    if (!kr_addr_parse(at->host, at->port, &l->at))
        return kr_note_set(why, KR_EINVAL, "listen on \"%.100s\": not an IP address", at->host);
    *fd = kr_socket_open(&l->at);
    if (*fd < 0)
        return KR_EIO;
    set_option(*fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (l->cfg.reuse_port)
        set_option(*fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (l->at.u.sa.sa_family == AF_INET6)
        set_option(*fd, IPPROTO_IPV6, IPV6_V6ONLY, !IN6_IS_ADDR_UNSPECIFIED(&l->at.u.v6.sin6_addr));
    if (l->cfg.peer_speaks_first)
        set_option(*fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
    if (bind(*fd, &l->at.u.sa, l->at.len) != 0 || listen(*fd, BACKLOG) != 0)
        return KR_EIO;
    if (getsockname(*fd, &l->at.u.sa, &l->at.len) != 0)
        return KR_EIO;
    kr_addr_text(&l->at, l->text);
    return 0;
}

/* A socket file that nobody listens on is left from a run that was killed. The kernel refuses to
 * connect to files of other kinds in the same words: they are somebody's. */
static bool is_stale(const struct sockaddr_un *a)
{
    struct stat st;
    int fd;
    bool stale;

    if (lstat(a->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    stale =
        fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return stale;
}

static int listen_unix(struct kr_listener *l, int *fd, struct kr_note *why)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(l->cfg.unix_path);
    mode_t mask;
    int rc;

    if (n == 0 || n >= sizeof a.sun_path)
        return kr_note_set(why, KR_EINVAL, "listen: the path of the Unix socket is too long");
    memcpy(a.sun_path, l->cfg.unix_path, n);
    memcpy(l->text, l->cfg.unix_path, n + 1);
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return KR_EIO;
    if (is_stale(&a))
        unlink(a.sun_path);
    mask = umask(l->cfg.unix_open ? 0111 : 0177);
    rc = bind(*fd, (const struct sockaddr *)&a, sizeof a);
    umask(mask);
    return rc == 0 && listen(*fd, BACKLOG) == 0 ? 0 : KR_EIO;
}

struct kr_listener *kr_listener_create(struct kr_loop *loop, const struct kr_listener_config *cfg,
                                       struct kr_note *why)
{
    struct kr_listener *l = calloc(1, sizeof *l);
    int fd = -1;
    int rc;

    if (l == NULL) {
        kr_note_set(why, KR_ENOMEM, "listen: out of memory");
        return NULL;
    }
    l->loop = loop;
    l->cfg = *cfg;
    rc = cfg->unix_path != NULL ? listen_unix(l, &fd, why) : listen_tcp(l, &fd, why);
    if (rc == KR_EIO && cfg->unix_path != NULL)
        kr_note_set(why, rc, "listen on %s: %s", cfg->unix_path, strerror(errno));
    else if (rc == KR_EIO)
        kr_note_set(why, rc, "listen on %s port %u: %s", cfg->at->host, cfg->at->port,
                    strerror(errno));
    if (rc != 0) {
        if (fd >= 0)
            close(fd);
        free(l);
        return NULL;
    }
    l->cfg.at = NULL; /* the caller's */
    kr_timer_init(&l->resume, on_resume);
    kr_fd_init(&l->fd, loop, fd, on_readable);
    watch(l);
    return l;
}

void kr_listener_destroy(struct kr_listener *l)
{
    if (l == NULL)
        return;
    kr_fd_stop(&l->fd);
    kr_timer_stop(kr_loop_sched(l->loop), &l->resume);
    close(l->fd.fd);
    if (l->cfg.unix_path != NULL)
        unlink(l->text);
    free(l);
}

const char *kr_listener_text(const struct kr_listener *l)
{
    return l->text;
}

uint16_t kr_listener_port(const struct kr_listener *l)
{
    return l->cfg.unix_path != NULL ? 0 : kr_addr_port(&l->at);
}

void kr_listener_pause(struct kr_listener *l, bool paused)
{
    l->paused = paused;
    watch(l);
}
