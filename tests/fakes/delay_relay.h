/* SPDX-License-Identifier: Apache-2.0 */
/* delay_relay: what its parts share. delay_relay.c moves bytes; delay_start.c reads the command
 * line and opens the sockets. */
#ifndef KR_TESTS_DELAY_RELAY_H
#define KR_TESTS_DELAY_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { UP, DOWN, WAYS };
enum { READ_MAX = 256 * 1024, EVENTS = 64, READS_PER_EVENT = 4 };

enum chunk_kind { CHUNK_DATA, CHUNK_EOF, CHUNK_RESET };

struct chunk {
    struct chunk *next; /* on its wire, then on its lane's ready list */
    struct lane *lane;
    uint64_t due_ns;
    enum chunk_kind kind;
    size_t len;
    size_t sent;
    unsigned char data[];
};

struct queue {
    struct chunk *head;
    struct chunk **tail;
};

struct wire {
    struct queue queue; /* in order of arrival, hence of due_ns */
    uint64_t free_ns;   /* when the last byte has left the sender */
    bool dropped;
};

struct side {
    struct conn *conn; /* NULL marks the listener and other descriptors */
    int fd;
    uint32_t mask; /* what epoll watches now */
    bool lost;     /* both ways of the socket are over: epoll would report it for ever */
};

struct lane { /* one way of one connection */
    struct conn *conn;
    struct side *from;
    struct side *to;
    struct queue ready; /* arrived, waiting for the socket */
    size_t queued;      /* bytes on the wire and ready */
    size_t on_wire;     /* chunks on the wire */
    int way;
    bool ended; /* nothing more is read */
    bool done;  /* the end was passed on */
};

struct conn {
    struct conn *next;
    struct conn *prev;
    struct side side[2]; /* the client, the target */
    struct lane lane[WAYS];
    uint64_t passed; /* bytes in both directions */
    bool dead;
};

struct options {
    const char *listen;
    const char *to;
    uint64_t delay_ns;
    uint64_t rate_kbps; /* 0: no limit */
    uint64_t cut_after; /* 0: never */
    size_t buffer;
    bool drop[WAYS];
};

struct relay {
    struct options opt;
    struct sockaddr_storage target;
    socklen_t target_len;
    int epoll_fd;
    struct side listener;
    struct side timer;
    struct side signals;
    uint64_t timer_ns; /* what the timer is set to, 0: not at all */
    struct wire wire[WAYS];
    struct conn *conns;
    struct conn *dead;
    size_t read_size;
    bool stop;
    unsigned char buf[READ_MAX];
};

/* delay_relay.c */
_Noreturn void delay_die(const char *what);
void delay_watch_start(struct relay *r, struct side *s, uint32_t mask);
void delay_run(struct relay *r); /* until a signal ends it; the two wires are empty at first */

/* delay_start.c; both end the program when they cannot */
void delay_parse(struct options *o, int argc, char **argv);
void delay_start(struct relay *r);

#endif
