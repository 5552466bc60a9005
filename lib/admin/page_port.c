/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/page_port.h"

#include "base/err.h"
#include "net/tcp_pipe.h"

static void on_accept(void *owner, int fd, const char *peer)
{
    struct kr_page_port *p = owner;
    struct kr_pipe *pipe = kr_tcp_pipe_create(p->io, fd);

    (void)peer;
    if (pipe != NULL)
        kr_pages_serve(&p->pages, pipe);
}

int kr_page_port_open(struct kr_page_port *p, const struct kr_page_port_config *cfg,
                      struct kr_note *why)
{
    struct kr_listener_config listen = {
        .at = cfg->at,
        .unix_path = cfg->unix_path,
        .on_accept = on_accept,
        .owner = p,
    };
    struct kr_loop *loop = kr_tls_io_loop(cfg->io);

    p->io = cfg->io;
    kr_pages_init(&p->pages, kr_loop_sched(loop), cfg->get, cfg->owner);
    p->pages.remove = cfg->remove;
    p->pages.post = cfg->post;
    p->listener = kr_listener_create(loop, &listen, why);
    return p->listener != NULL ? 0 : KR_EIO;
}

void kr_page_port_close(struct kr_page_port *p)
{
    if (p->listener == NULL)
        return;
    kr_listener_pause(p->listener, true);
    kr_pages_close(&p->pages);
}

void kr_page_port_deinit(struct kr_page_port *p)
{
    kr_listener_destroy(p->listener);
    *p = (struct kr_page_port){0};
}
