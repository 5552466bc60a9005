/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/admin.h"

#include "base/err.h"

static int say(struct kr_buf *body, int status, const char *line)
{
    return kr_buf_append_str(body, line) == 0 ? status : 500;
}

static int metrics(struct kr_admin *a, struct kr_buf *body, const char **type)
{
    a->cfg.measure(a->cfg.owner);
    *type = "text/plain; version=0.0.4; charset=utf-8";
    return kr_metrics_render(&a->cfg.metrics, 1, body) == 0 ? 200 : 500;
}

static int ready(struct kr_admin *a, struct kr_buf *body)
{
    const char *line = a->cfg.unready(a->cfg.owner);

    return line != NULL ? say(body, 503, line) : say(body, 200, "ok\n");
}

static int page(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    struct kr_admin *a = owner;

    if (kr_bytes_is(path, "/metrics"))
        return metrics(a, body, type);
    if (kr_bytes_is(path, "/readyz"))
        return ready(a, body);
    if (kr_bytes_is(path, "/livez"))
        return say(body, 200, "ok\n");
    return say(body, 404, "/metrics /livez /readyz\n");
}

static int check_loopback(const struct kr_hostport *at, struct kr_note *why)
{
    struct kr_addr addr;

    if (kr_addr_parse(at->host, at->port, &addr) &&
        (kr_addr_in(&addr, "127.0.0.0/8") || kr_addr_in(&addr, "::1/128")))
        return 0;
    return kr_note_set(why, KR_EINVAL, "it is not encrypted: only a loopback address is accepted");
}

int kr_admin_open(struct kr_admin *a, const struct kr_admin_config *cfg, struct kr_note *why)
{
    struct kr_hostport at;
    struct kr_page_port_config port = {.io = cfg->io, .at = &at, .get = page, .owner = a};
    int rc = kr_hostport_parse(cfg->listen, 0, &at, why);

    a->cfg = *cfg;
    if (rc == 0 && cfg->loopback_only)
        rc = check_loopback(&at, why);
    return rc == 0 ? kr_page_port_open(&a->port, &port, why) : rc;
}

void kr_admin_close(struct kr_admin *a)
{
    kr_page_port_close(&a->port);
}

void kr_admin_deinit(struct kr_admin *a)
{
    kr_page_port_deinit(&a->port);
}

const char *kr_admin_address(const struct kr_admin *a)
{
    return kr_listener_text(a->port.listener);
}
