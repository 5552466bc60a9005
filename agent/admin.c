/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/admin.h"

#include <stdlib.h>

#include "agent/counters.h"
#include "base/err.h"
#include "http/pages.h"
#include "net/socket.h"
#include "net/tcp_pipe.h"

struct agent_admin {
    struct agent_core *c;
    struct kr_listener *listener;
    struct kr_pages pages;
    bool (*is_attached)(void *owner);
    void *owner;
};

static int page(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct agent_admin *a = owner;
    struct agent_core *c = a->c;

    if (kr_bytes_is(path, "/metrics")) {
        kr_metric_set(kr_metrics_series(c->metrics, AGENT_WINDOW_LEFT, NULL, 0), c->h2.window_left);
        *type = "text/plain; version=0.0.4; charset=utf-8";
        return kr_metrics_render(&c->metrics, 1, body) == 0 ? 200 : 500;
    }
    if (kr_bytes_is(path, "/readyz") && (c->draining || !a->is_attached(a->owner))) {
        kr_buf_append_str(body, c->draining ? "shutting down\n" : "no hub has accepted a tunnel\n");
        return 503;
    }
    if (kr_bytes_is(path, "/livez") || kr_bytes_is(path, "/readyz")) {
        kr_buf_append_str(body, "ok\n");
        return 200;
    }
    kr_buf_append_str(body, "/metrics /livez /readyz\n");
    return 404;
}

static void on_accept(void *owner, int fd, const char *peer)
{
    struct agent_admin *a = owner;
    struct kr_pipe *pipe = kr_tcp_pipe_create(a->c->io, fd);

    (void)peer;
    if (pipe != NULL)
        kr_pages_serve(&a->pages, pipe);
}

struct agent_admin *agent_admin_create(struct agent_core *c, bool (*is_attached)(void *owner),
                                       void *owner, struct kr_note *why)
{
    struct agent_admin *a = calloc(1, sizeof *a);
    struct kr_listener_config cfg = {.on_accept = on_accept, .owner = a};
    struct kr_hostport at;

    if (a == NULL)
        return NULL;
    a->c = c;
    a->is_attached = is_attached;
    a->owner = owner;
    kr_pages_init(&a->pages, c->sched, page, a);
    cfg.at = &at;
    if (kr_hostport_parse(c->options->admin_listen, 0, &at, why) == 0)
        a->listener = kr_listener_create(c->loop, &cfg, why);
    if (a->listener == NULL) {
        kr_note_wrap(why, KR_EIO, "adminListen");
        free(a);
        return NULL;
    }
    return a;
}

void agent_admin_close(struct agent_admin *a)
{
    kr_listener_pause(a->listener, true);
    kr_pages_close(&a->pages);
}

void agent_admin_destroy(struct agent_admin *a)
{
    if (a == NULL)
        return;
    kr_listener_destroy(a->listener);
    free(a);
}

const char *agent_admin_address(const struct agent_admin *a)
{
    return kr_listener_text(a->listener);
}
