/* SPDX-License-Identifier: Apache-2.0 */
/* delay_start: the command line and the sockets of delay_relay. */
#include "delay_relay.h"

#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static void resolve(const char *text, bool passive, struct sockaddr_storage *out, socklen_t *len)
{
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
    struct addrinfo *found = NULL;
    char host[256] = "";
    const char *colon = strrchr(text, ':');
    const char *start = text[0] == '[' ? text + 1 : text;
    int rc = EAI_NONAME;

    if (colon && (size_t)(colon - start) < sizeof(host)) {
        memcpy(host, start, (size_t)(colon - start));
        host[strcspn(host, "]")] = '\0';
        rc = getaddrinfo(host, colon + 1, &hint, &found);
    }
    if (rc != 0) {
        fprintf(stderr, "delay_relay: %s: %s\n", text, gai_strerror(rc));
        exit(2);
    }
    memcpy(out, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo(found);
}

static void print_address(int fd)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);
    char host[128], port[16];

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        delay_die("getsockname");
    if (getnameinfo((struct sockaddr *)&a, len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        delay_die("getnameinfo");
    printf(strchr(host, ':') ? "listening [%s]:%s\n" : "listening %s:%s\n", host, port);
    fflush(stdout);
}

static void listen_start(struct relay *r)
{
    struct sockaddr_storage a;
    socklen_t len;
    const int one = 1;

    resolve(r->opt.listen, true, &a, &len);
    r->listener.fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (r->listener.fd < 0)
        delay_die("socket");
    (void)setsockopt(r->listener.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(r->listener.fd, (struct sockaddr *)&a, len) < 0)
        delay_die("bind");
    if (listen(r->listener.fd, 4096) < 0)
        delay_die("listen");
    delay_watch_start(r, &r->listener, EPOLLIN);
}

static void signals_start(struct relay *r)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r->signals.fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (r->signals.fd < 0)
        delay_die("signalfd");
    delay_watch_start(r, &r->signals, EPOLLIN);
}

/* Small reads keep a slow link smooth: about 10 ms worth of bytes, never under 512. */
static size_t read_size(uint64_t rate_kbps)
{
    uint64_t bytes = rate_kbps * 1000U / 8U / 100U;

    if (rate_kbps == 0 || bytes > READ_MAX)
        return READ_MAX;
    return bytes < 512 ? 512 : (size_t)bytes;
}

void delay_start(struct relay *r)
{
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (r->epoll_fd < 0 || r->timer.fd < 0)
        delay_die("epoll");
    r->read_size = read_size(r->opt.rate_kbps);
    resolve(r->opt.to, false, &r->target, &r->target_len);
    signals_start(r);
    delay_watch_start(r, &r->timer, EPOLLIN);
    listen_start(r);
    print_address(r->listener.fd);
}

static void usage(void)
{
    fputs("usage: delay_relay --listen HOST:PORT --to HOST:PORT [--delay-ms N] [--rate-kbps N]\n"
          "       [--buffer-kib N] [--drop up|down|both] [--cut-after-bytes N]\n",
          stderr);
    exit(2);
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long n;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno || *end != '\0' || text[0] < '0' || text[0] > '9' || n > UINT32_MAX * 1000ULL)
        usage();
    return n;
}

static void parse_drop(struct options *o, const char *text)
{
    bool both = strcmp(text, "both") == 0;

    o->drop[UP] = both || strcmp(text, "up") == 0;
    o->drop[DOWN] = both || strcmp(text, "down") == 0;
    if (!o->drop[UP] && !o->drop[DOWN])
        usage();
}

static void parse_one(struct options *o, int key)
{
    if (key == 'l')
        o->listen = optarg;
    else if (key == 't')
        o->to = optarg;
    else if (key == 'd')
        o->delay_ns = number(optarg) * 1000000U;
    else if (key == 'r')
        o->rate_kbps = number(optarg);
    else if (key == 'b')
        o->buffer = (size_t)number(optarg) * 1024U;
    else if (key == 'x')
        parse_drop(o, optarg);
    else if (key == 'c')
        o->cut_after = number(optarg);
    else
        usage();
}

void delay_parse(struct options *o, int argc, char **argv)
{
    static const struct option names[] = {{"listen", required_argument, NULL, 'l'},
                                          {"to", required_argument, NULL, 't'},
                                          {"delay-ms", required_argument, NULL, 'd'},
                                          {"rate-kbps", required_argument, NULL, 'r'},
                                          {"buffer-kib", required_argument, NULL, 'b'},
                                          {"drop", required_argument, NULL, 'x'},
                                          {"cut-after-bytes", required_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
    int key;

    o->buffer = 64U * 1024 * 1024;
    while ((key = getopt_long(argc, argv, "", names, NULL)) != -1)
        parse_one(o, key);
    if (!o->listen || !o->to || optind != argc || o->buffer == 0)
        usage();
}
