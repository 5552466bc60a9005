/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/admin.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/pages.h"
#include "hub/cache.h"
#include "hub/counters.h"
#include "net/socket.h"
#include "net/tcp_pipe.h"

struct hub_admin {
    struct hub_worker *w;
    struct kr_listener *listener;
    struct kr_pages pages;
};

static void show_cache(struct hub_worker *w)
{
    size_t objects = 0;

    KR_LIST_FOREACH(node, hub_cache_types(w->cache))
    {
        objects += KR_CONTAINER_OF(node, struct hub_type, link)->objects;
    }
    kr_metric_set(kr_metrics_series(w->metrics, HUB_CACHE_OBJECTS, NULL, 0), (int64_t)objects);
    kr_metric_set(kr_metrics_series(w->metrics, HUB_CACHE_BYTES, NULL, 0),
                  (int64_t)hub_cache_bytes(w->cache));
}

static int metrics(struct hub_worker *w, struct kr_buf *body, const char **type)
{
    kr_metric_set(kr_metrics_series(w->metrics, HUB_WINDOW_LEFT, NULL, 0), w->h2.window_left);
    if (w->cache != NULL)
        show_cache(w);
    *type = "text/plain; version=0.0.4; charset=utf-8";
    return kr_metrics_render(&w->metrics, 1, body) == 0 ? 200 : 500;
}

static int page(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct hub_admin *a = owner;

    if (kr_bytes_is(path, "/metrics"))
        return metrics(a->w, body, type);
    if (kr_bytes_is(path, "/readyz") && a->w->unready) {
        kr_buf_append_str(body, "shutting down\n");
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
    struct hub_admin *a = owner;
    struct kr_pipe *pipe = kr_tcp_pipe_create(a->w->io, fd);

    (void)peer;
    if (pipe != NULL)
        kr_pages_serve(&a->pages, pipe);
}

static int check_loopback(const struct kr_hostport *at, struct kr_note *why)
{
    struct kr_addr addr;

    if (kr_addr_parse(at->host, at->port, &addr) &&
        (kr_addr_in(&addr, "127.0.0.0/8") || kr_addr_in(&addr, "::1/128")))
        return 0;
    return kr_note_set(why, KR_EINVAL, "it is not encrypted: only a loopback address is accepted");
}

struct hub_admin *hub_admin_create(struct hub_worker *w, struct kr_note *why)
{
    struct hub_admin *a = calloc(1, sizeof *a);
    struct kr_listener_config cfg = {.on_accept = on_accept, .owner = a};
    struct kr_hostport at;

    if (a == NULL)
        return NULL;
    a->w = w;
    kr_pages_init(&a->pages, w->sched, page, a);
    cfg.at = &at;
    if (kr_hostport_parse(w->options->admin_listen, 0, &at, why) == 0 &&
        check_loopback(&at, why) == 0)
        a->listener = kr_listener_create(w->loop, &cfg, why);
    if (a->listener == NULL) {
        kr_note_wrap(why, KR_EIO, "adminListen");
        free(a);
        return NULL;
    }
    return a;
}

void hub_admin_close(struct hub_admin *a)
{
    kr_listener_pause(a->listener, true);
    kr_pages_close(&a->pages);
}

void hub_admin_destroy(struct hub_admin *a)
{
    if (a == NULL)
        return;
    kr_listener_destroy(a->listener);
    free(a);
}

const char *hub_admin_address(const struct hub_admin *a)
{
    return kr_listener_text(a->listener);
}
