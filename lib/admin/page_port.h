/* SPDX-License-Identifier: Apache-2.0 */
/* page_port: an operator's pages (http/pages.h) on a port of their own, unencrypted: a TCP address
 * or a Unix socket.
 * Memory:  embedded; it stays until its connections have ended: after close and a turn of the
 *          loop, or when `io` is destroyed. Then deinit.
 * Limits:  those of kr_pages. Errors: those of the address or the socket.
 * Threads: the loop's. */
#ifndef KR_ADMIN_PAGE_PORT_H
#define KR_ADMIN_PAGE_PORT_H

#include "http/pages.h"
#include "net/net_io.h"
#include "net/socket.h"

struct kr_page_port { /* the fields belong to page_port.c */
    struct kr_tls_io *io;
    struct kr_listener *listener;
    struct kr_pages pages;
};

struct kr_page_port_config {
    struct kr_tls_io *io;
    const struct kr_hostport *at; /* or else: */
    const char *unix_path;        /* a socket that only this user may open */
    kr_page *get;
    kr_page *remove; /* DELETE and POST; NULL: 405 */
    kr_page *post;
    void *owner; /* of the pages */
};

/* 0, or KR_EIO with the reason; then `p` is as good as zeroed. */
int kr_page_port_open(struct kr_page_port *p, const struct kr_page_port_config *cfg,
                      struct kr_note *why);
/* Nobody is accepted any more, and connections end. A zeroed one is fine, here and below. */
void kr_page_port_close(struct kr_page_port *p);
void kr_page_port_deinit(struct kr_page_port *p);

#endif
