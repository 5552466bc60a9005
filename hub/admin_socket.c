/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/admin_socket.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "http/pages.h"
#include "hub/can_i_page.h"
#include "hub/clusters_page.h"
#include "hub/forget.h"
#include "hub/registry_page.h"
#include "net/socket.h"
#include "net/tcp_pipe.h"

struct hub_admin_socket {
    struct hub_worker *w;
    struct kr_listener *listener;
    struct kr_pages pages;
};

static int on_get(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct hub_admin_socket *a = owner;
    int status = hub_registry_page_get(a->w, path, body, type);

    if (status == 0)
        status = hub_can_i_page(a->w, path, body, type);
    if (status != 0)
        return status;
    if (!kr_bytes_is(path, "/clusters")) {
        kr_buf_append_str(body, "/clusters /can-i\n");
        return 404;
    }
    *type = "application/json";
    return hub_clusters_page(a->w, body) == 0 ? 200 : 500;
}

static int forget(struct hub_worker *w, struct kr_bytes name, struct kr_buf *body)
{
    struct hub_cluster *c = hub_clusters_find(&w->clusters, name);
    char text[sizeof c->name];

    snprintf(text, sizeof text, "%.*s", (int)name.n, (const char *)name.p);
    if (c == NULL && !hub_forget_expected(w, text)) {
        kr_buf_append_str(body, "no such cluster\n");
        return 404;
    }
    if (c != NULL && !hub_forget_cluster(w, c)) {
        kr_buf_append_str(body, "its agent is connected, or requests are under way\n");
        return 409;
    }
    kr_buf_append_str(body, "forgotten\n");
    return 200;
}

static int on_delete(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct hub_admin_socket *a = owner;
    const struct kr_bytes prefix = KR_LIT("/clusters/");
    int status = hub_registry_page_delete(a->w, path, body);

    (void)type;
    if (status != 0)
        return status;
    if (!kr_bytes_starts(path, prefix)) {
        kr_buf_append_str(body, "/clusters/NAME\n");
        return 404;
    }
    return forget(a->w, kr_bytes_skip(path, prefix.n), body);
}

static int on_post(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct hub_admin_socket *a = owner;
    int status = hub_registry_page_post(a->w, path, body, type);

    if (status != 0)
        return status;
    kr_buf_append_str(body, "/tokens /registry /keys\n");
    return 404;
}

static void on_accept(void *owner, int fd, const char *peer)
{
    struct hub_admin_socket *a = owner;
    struct kr_pipe *pipe = kr_tcp_pipe_create(a->w->io, fd);

    (void)peer;
    if (pipe != NULL)
        kr_pages_serve(&a->pages, pipe);
}

int hub_admin_socket_create(struct hub_worker *w, struct hub_admin_socket **out,
                            struct kr_note *why)
{
    struct kr_listener_config cfg = {
        .unix_path = w->options->admin_socket,
        .on_accept = on_accept,
    };
    struct hub_admin_socket *a;

    *out = NULL;
    if (cfg.unix_path == NULL)
        return 0;
    a = calloc(1, sizeof *a);
    if (a == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    a->w = w;
    cfg.owner = a;
    kr_pages_init(&a->pages, w->sched, on_get, a);
    a->pages.remove = on_delete;
    a->pages.post = on_post;
    a->listener = kr_listener_create(w->loop, &cfg, why);
    if (a->listener == NULL) {
        free(a);
        return kr_note_wrap(why, KR_EIO, "adminSocket");
    }
    *out = a;
    return 0;
}

void hub_admin_socket_close(struct hub_admin_socket *a)
{
    if (a == NULL)
        return;
    kr_listener_pause(a->listener, true);
    kr_pages_close(&a->pages);
}

void hub_admin_socket_destroy(struct hub_admin_socket *a)
{
    if (a == NULL)
        return;
    kr_listener_destroy(a->listener);
    free(a);
}
