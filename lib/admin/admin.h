/* SPDX-License-Identifier: Apache-2.0 */
/* admin: what each serving program tells operators and probes on a plain HTTP/1.1 port:
 *   /metrics  all of its metrics, as Prometheus reads them (text format 0.0.4)
 *   /livez    200 as long as the loop turns
 *   /readyz   200, or 503 with a line that says what is missing
 * Memory: as of a kr_page_port. Errors: those of the address. Threads: the loop's. */
#ifndef KR_ADMIN_ADMIN_H
#define KR_ADMIN_ADMIN_H

#include "admin/page_port.h"
#include "base/metrics.h"

struct kr_admin_config {
    struct kr_tls_io *io;
    const char *listen; /* HOST:PORT, numeric */
    bool loopback_only; /* any other address is refused */
    struct kr_metrics *metrics;
    void (*measure)(void *owner);        /* before /metrics: sets what is not counted on the way */
    const char *(*unready)(void *owner); /* a line with its newline; NULL: it is ready */
    void *owner;
};

struct kr_admin { /* the fields belong to admin.c */
    struct kr_page_port port;
    struct kr_admin_config cfg;
};

/* 0, or KR_EINVAL or KR_EIO with the reason. */
int kr_admin_open(struct kr_admin *a, const struct kr_admin_config *cfg, struct kr_note *why);
/* As of kr_page_port. */
void kr_admin_close(struct kr_admin *a);
void kr_admin_deinit(struct kr_admin *a);
/* Where it listens, "ip:port"; while it is open. */
const char *kr_admin_address(const struct kr_admin *a);

#endif
