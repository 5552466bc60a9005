/* SPDX-License-Identifier: Apache-2.0 */
#include "http/pages.h"

#include <stdlib.h>

#include "base/assert.h"
#include "http/h1_conn.h"
#include "http/reply.h"

#define CONNS_MAX 64
#define PAGE_MAX (64u << 20)

struct visitor {
    struct kr_pages *p;
    struct kr_list link;
    struct kr_conn *conn;
};

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct visitor *v = owner;
    struct kr_buf body = {.max = PAGE_MAX};
    const char *type = "text/plain; charset=utf-8";
    struct kr_bytes path = ex->head.path;
    struct kr_head head;
    int status = 405;

    path.n = kr_bytes_find(path, '?');
    if (kr_bytes_is(ex->head.method, "GET") || kr_bytes_is(ex->head.method, "HEAD"))
        status = v->p->page(v->p->owner, path, &body, &type);
    else if (kr_bytes_is(ex->head.method, "DELETE") && v->p->remove != NULL)
        status = v->p->remove(v->p->owner, path, &body, &type);
    else if (kr_bytes_is(ex->head.method, "POST") && v->p->post != NULL)
        status = v->p->post(v->p->owner, path, &body, &type);
    kr_head_init(&head, KR_HEAD_MAX);
    head.status = status;
    kr_head_add_str(&head, "content-type", type);
    kr_head_add_u64(&head, "content-length", body.n);
    kr_reply(ex, &head, kr_buf_bytes(&body));
    kr_head_deinit(&head);
    kr_buf_deinit(&body);
}

static void on_close(void *owner, int rc, const struct kr_note *why)
{
    struct visitor *v = owner;

    (void)rc, (void)why;
    kr_list_remove(&v->link);
    v->p->count--;
    free(v);
}

static const struct kr_conn_user conn_user = {on_request, NULL, NULL, on_close};

void kr_pages_init(struct kr_pages *p, struct kr_sched *sched, kr_page *page, void *owner)
{
    *p = (struct kr_pages){.sched = sched, .page = page, .owner = owner};
    kr_list_init(&p->conns);
}

void kr_pages_serve(struct kr_pages *p, struct kr_pipe *pipe)
{
    struct visitor *v = p->count < CONNS_MAX ? calloc(1, sizeof *v) : NULL;
    struct kr_h1_config cfg = {
        .sched = p->sched,
        .user_ops = &conn_user,
        .owner = v,
        .head_timeout_ms = 10000,
        .idle_timeout_ms = 60000,
    };

    if (v != NULL)
        v->conn = kr_h1_server_create(&cfg, pipe);
    if (v == NULL || v->conn == NULL) {
        free(v);
        kr_pipe_close(pipe, KR_PIPE_ABORT);
        return;
    }
    v->p = p;
    kr_list_append(&p->conns, &v->link);
    p->count++;
}

void kr_pages_close(struct kr_pages *p)
{
    KR_LIST_FOREACH_SAFE(node, &p->conns)
    {
        kr_conn_close(KR_CONTAINER_OF(node, struct visitor, link)->conn);
    }
}
