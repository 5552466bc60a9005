/* SPDX-License-Identifier: Apache-2.0 */
/* mem_pipe: a kr_pipe for tests: two ends joined in memory, driven by tasks of a kr_sched, with the
 * manners of a bad network on demand. Each end obeys base/pipe.h: nothing is called from inside a
 * call into it, on_close comes once and last.
 * Memory:  the pair frees itself after both ends had their on_close; `kr_mem_pair_destroy` is for
 *          a pair of which an end was never closed (nobody is called).
 * Units:   bytes.
 * Threads: one. */
#ifndef KR_FAKES_MEM_PIPE_H
#define KR_FAKES_MEM_PIPE_H

#include "base/buf.h"
#include "base/pipe.h"
#include "base/sched.h"

struct kr_mem_pair;

struct kr_mem_pair *kr_mem_pair_create(struct kr_sched *sched);
void kr_mem_pair_destroy(struct kr_mem_pair *m);
struct kr_pipe *kr_mem_pair_end(struct kr_mem_pair *m, int end); /* 0 or 1 */
/* Bytes travelling to `end` are handed over n at a time (0: all there are; the start). */
void kr_mem_pair_step(struct kr_mem_pair *m, int end, size_t n);
/* Nothing is handed to `end` while stalled; the other end's writes stop at the capacity. */
void kr_mem_pair_stall(struct kr_mem_pair *m, int end, bool stalled);
/* Bytes under way to `end` before the other end's writes wait (65536 at the start), and how much
 * room one fill of the other end gets (>= 1024; 16384 at the start). */
void kr_mem_pair_capacity(struct kr_mem_pair *m, int end, size_t capacity, size_t room);
/* The link is gone: what is under way is lost, both ends close with rc. */
void kr_mem_pair_cut(struct kr_mem_pair *m, int rc);
/* The same once `end` has been handed n (> 0) more bytes. */
void kr_mem_pair_cut_after(struct kr_mem_pair *m, int end, size_t n);
bool kr_mem_pair_reading(const struct kr_mem_pair *m, int end);
size_t kr_mem_pair_waiting(const struct kr_mem_pair *m, int end); /* bytes under way to `end` */

/* A user of a pipe that speaks plain bytes: what came is in `in`, what is in `out` is sent. */
struct kr_mem_peer {
    struct kr_pipe *pipe; /* NULL once it closed */
    struct kr_buf in;
    struct kr_buf out;
    bool eof;
    bool closed;
    int rc; /* of on_close */
};

void kr_mem_peer_init(struct kr_mem_peer *p, struct kr_pipe *pipe);
void kr_mem_peer_deinit(struct kr_mem_peer *p); /* the pipe must be closed or destroyed */
void kr_mem_peer_send(struct kr_mem_peer *p, struct kr_bytes bytes);
/* Ends its direction behind what is in `out`; the other one goes on. */
void kr_mem_peer_end(struct kr_mem_peer *p);
void kr_mem_peer_close(struct kr_mem_peer *p, enum kr_pipe_close how);

#endif
