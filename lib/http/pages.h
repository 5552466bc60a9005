/* SPDX-License-Identifier: Apache-2.0 */
/* pages: a little HTTP/1.1 server for an operator's port: GET (DELETE, POST) of a few paths, each
 * answered with a text that is made on the spot.
 * Memory: owns its connections. Limits: 64 connections, 10 s for a head, 60 s idle, a page of at
 * most 64 MiB. Threads: one. */
#ifndef KR_HTTP_PAGES_H
#define KR_HTTP_PAGES_H

#include "base/buf.h"
#include "base/list.h"
#include "base/pipe.h"
#include "base/sched.h"

/* Writes the page of `path` (without query) into `body`; returns the status code. `type` may be
 * changed; it is text/plain. 404 for what is not there. */
typedef int kr_page(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type);

struct kr_pages { /* embed it; the fields belong to pages.c */
    struct kr_sched *sched;
    kr_page *page;
    kr_page *remove; /* set after the init: takes DELETE of a path; NULL: 405 */
    kr_page *post;   /* the same for POST; a body is not looked at */
    void *owner;
    struct kr_list conns;
    size_t count;
};

void kr_pages_init(struct kr_pages *p, struct kr_sched *sched, kr_page *page, void *owner);
/* Takes the pipe over; closes it when there are too many. */
void kr_pages_serve(struct kr_pages *p, struct kr_pipe *pipe);
/* Closes all; each is gone after the next turns of the loop (count is 0). */
void kr_pages_close(struct kr_pages *p);

#endif
