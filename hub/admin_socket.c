/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/admin_socket.h"

#include <stdio.h>

#include "hub/can_i_page.h"
#include "hub/clusters_page.h"
#include "hub/forget.h"
#include "hub/registry_page.h"

static int on_get(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct hub_worker *w = owner;
    int status = hub_registry_page_get(w, path, body, type);

    if (status == 0)
        status = hub_can_i_page(w, path, body, type);
    if (status != 0)
        return status;
    if (!kr_bytes_is(path, "/clusters")) {
        kr_buf_append_str(body, "/clusters /can-i\n");
        return 404;
    }
    *type = "application/json";
    return hub_clusters_page(w, body) == 0 ? 200 : 500;
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
    struct hub_worker *w = owner;
    const struct kr_bytes prefix = KR_LIT("/clusters/");
    int status = hub_registry_page_delete(w, path, body);

    (void)type;
    if (status != 0)
        return status;
    if (!kr_bytes_starts(path, prefix)) {
        kr_buf_append_str(body, "/clusters/NAME\n");
        return 404;
    }
    return forget(w, kr_bytes_skip(path, prefix.n), body);
}

static int on_post(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct hub_worker *w = owner;
    int status = hub_registry_page_post(w, path, body, type);

    if (status != 0)
        return status;
    kr_buf_append_str(body, "/tokens /registry /keys\n");
    return 404;
}

int hub_admin_socket_open(struct kr_page_port *p, struct hub_worker *w, struct kr_note *why)
{
    struct kr_page_port_config cfg = {
        .io = w->io,
        .unix_path = w->options->admin_socket,
        .get = on_get,
        .remove = on_delete,
        .post = on_post,
        .owner = w,
    };
    int rc = cfg.unix_path != NULL ? kr_page_port_open(p, &cfg, why) : 0;

    return rc == 0 ? 0 : kr_note_wrap(why, rc, "adminSocket");
}
