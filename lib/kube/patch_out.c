/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/patch_out.h"

#include "base/err.h"
#include "base/json.h"

static void put(struct kr_patch_out *p, struct kr_bytes text)
{
    if (p->rc == 0)
        p->rc = kr_buf_append(p->buf, text);
}

static void put_str(struct kr_patch_out *p, const char *text)
{
    put(p, kr_bytes_str(text));
}

void kr_patch_start(struct kr_patch_out *p, struct kr_buf *buf)
{
    *p = (struct kr_patch_out){.buf = buf};
    kr_buf_init(&p->path, KR_PATCH_PATH_MAX);
    put_str(p, "[");
}

void kr_patch_end(struct kr_patch_out *p)
{
    put_str(p, "]");
    kr_buf_deinit(&p->path);
}

/* '~' and '/' as RFC 6901 says, and all as JSON wants it. */
void kr_patch_member(struct kr_patch_out *p, struct kr_bytes name)
{
    if (p->rc == 0)
        p->rc = kr_buf_append_str(&p->path, "/");
    while (p->rc == 0 && name.n != 0) {
        size_t n = 0;

        while (n < name.n && name.p[n] != '~' && name.p[n] != '/')
            n++;
        p->rc = kr_json_escape(&p->path, kr_bytes_of(name.p, n));
        if (p->rc == 0 && n < name.n)
            p->rc = kr_buf_append_str(&p->path, name.p[n] == '~' ? "~0" : "~1");
        name = kr_bytes_skip(name, n < name.n ? n + 1 : n);
    }
}

void kr_patch_element(struct kr_patch_out *p, size_t index)
{
    if (p->rc == 0)
        p->rc = kr_buf_printf(&p->path, "/%zu", index);
}

static void begin(struct kr_patch_out *p, const char *op)
{
    if (p->rc == 0 && p->operations == KR_PATCH_OPERATIONS_MAX)
        p->rc = KR_ETOOBIG;
    put_str(p, p->operations++ != 0 ? ",{\"op\":\"" : "{\"op\":\"");
    put_str(p, op);
}

static void put_path(struct kr_patch_out *p, const char *name)
{
    put_str(p, name);
    put(p, kr_buf_bytes(&p->path));
}

static void with_value(struct kr_patch_out *p, const char *op, struct kr_bytes value)
{
    begin(p, op);
    put_path(p, "\",\"path\":\"");
    put_str(p, "\",\"value\":");
    put(p, value);
    put_str(p, "}");
}

void kr_patch_remove(struct kr_patch_out *p)
{
    begin(p, "remove");
    put_path(p, "\",\"path\":\"");
    put_str(p, "\"}");
}

void kr_patch_add(struct kr_patch_out *p, struct kr_bytes value)
{
    with_value(p, "add", value);
}

void kr_patch_replace(struct kr_patch_out *p, struct kr_bytes value)
{
    with_value(p, "replace", value);
}

void kr_patch_move(struct kr_patch_out *p, size_t from, size_t to)
{
    size_t n = p->path.n;

    begin(p, "move");
    kr_patch_element(p, from);
    put_path(p, "\",\"from\":\"");
    kr_patch_back(p, n);
    kr_patch_element(p, to);
    put_path(p, "\",\"path\":\"");
    kr_patch_back(p, n);
    put_str(p, "\"}");
}
