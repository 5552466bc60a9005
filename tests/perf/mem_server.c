/* SPDX-License-Identifier: Apache-2.0 */
/* mem_server: answers every GET over HTTP/1.1 and TLS with the bytes of one file, from memory, in
 * full records: what TLS and the kernel cost, and nothing else. One thread, one connection at a
 * time.
 *
 *   mem_server FILE CERT KEY      prints "listening 127.0.0.1:PORT" */
#include "h2_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD = 16384, REQUEST_MAX = 8192 };

struct content {
    const unsigned char *p;
    size_t n;
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static struct content map_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct content c = {NULL, 0};
    struct stat st;
    void *p;

    if (fd < 0 || fstat(fd, &st) < 0)
        die(path);
    p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED)
        die("mmap");
    close(fd);
    c.p = p;
    c.n = (size_t)st.st_size;
    return c;
}

static int listen_here(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        die("listen");
    printf("listening 127.0.0.1:%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

/* Reads up to the empty line; false when the peer is gone or sends too much. */
static bool read_request(SSL *ssl)
{
    char buf[REQUEST_MAX];
    size_t n = 0;

    while (n < sizeof(buf)) {
        int got = SSL_read(ssl, buf + n, (int)(sizeof(buf) - n));

        if (got <= 0)
            return false;
        n += (size_t)got;
        if (memmem(buf, n, "\r\n\r\n", 4) != NULL)
            return true;
    }
    return false;
}

static bool write_all(SSL *ssl, const unsigned char *p, size_t n)
{
    while (n > 0) {
        int put = SSL_write(ssl, p, n > RECORD ? RECORD : (int)n);

        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

static void serve(SSL *ssl, const struct content *c)
{
    char head[160];
    int n = snprintf(head, sizeof(head),
                     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     c->n);

    if (SSL_accept(ssl) != 1)
        return;
    while (read_request(ssl) && write_all(ssl, (const unsigned char *)head, (size_t)n) &&
           write_all(ssl, c->p, c->n))
        ;
}

int main(int argc, char **argv)
{
    struct tls_files files = {NULL, NULL, NULL};
    struct content content;
    SSL_CTX *ctx;
    int listener;

    if (argc != 4) {
        fputs("usage: mem_server FILE CERT KEY\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    files.cert = argv[2];
    files.key = argv[3];
    ctx = peer_tls_context(true, &files);
    content = map_file(argv[1]);
    listener = listen_here();
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        SSL *ssl = fd >= 0 ? SSL_new(ctx) : NULL;

        if (ssl != NULL && SSL_set_fd(ssl, fd) == 1)
            serve(ssl, &content);
        SSL_free(ssl);
        if (fd >= 0)
            close(fd);
    }
}
