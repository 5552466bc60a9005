/* SPDX-License-Identifier: Apache-2.0 */
#include "request.h"

#include <stdlib.h>
#include <strings.h>

#include "base/err.h"

void sim_response_init(struct sim_response *r)
{
    *r = (struct sim_response){.status = 200, .content_type = "application/json"};
    kr_head_init(&r->more, KR_HEAD_MAX);
    kr_buf_init(&r->body, SIM_OUT_MAX);
}

void sim_response_deinit(struct sim_response *r)
{
    kr_head_deinit(&r->more);
    kr_buf_deinit(&r->body);
    sim_source_destroy(r->source);
    r->source = NULL;
}

void sim_source_wake(struct sim_source *s)
{
    if (s->wake != NULL)
        s->wake(s->wake_owner);
}

void sim_source_destroy(struct sim_source *s)
{
    if (s != NULL)
        s->ops->destroy(s);
}

static int hex(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int sim_decode(struct kr_bytes in, bool plus, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < in.n; i++) {
        int c = in.p[i];

        if (n + 1 >= size)
            return KR_ETOOBIG;
        if (c == '%') {
            int hi = i + 2 < in.n ? hex(in.p[i + 1]) : -1;
            int lo = i + 2 < in.n ? hex(in.p[i + 2]) : -1;

            if (hi < 0 || lo < 0)
                return KR_EINVAL;
            c = hi << 4 | lo;
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == 0)
            return KR_EINVAL;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return 0;
}

static const char *decoded(struct sim_params *p, struct kr_bytes in)
{
    char *out = kr_arena_alloc(&p->arena, in.n + 1);

    return out != NULL && sim_decode(in, true, out, in.n + 2) == 0 ? out : NULL;
}

int sim_params_parse(struct sim_params *p, struct kr_bytes query)
{
    p->n = 0;
    kr_arena_init(&p->arena, 1024, 2 * KR_HEAD_MAX);
    while (query.n != 0) {
        size_t end = kr_bytes_find(query, '&');
        struct kr_bytes pair = {query.p, end};
        size_t eq = kr_bytes_find(pair, '=');

        query = kr_bytes_skip(query, end < query.n ? end + 1 : end);
        if (pair.n == 0)
            continue;
        if (p->n == SIM_PARAMS_MAX)
            return KR_EINVAL;
        p->all[p->n].name = decoded(p, kr_bytes_of(pair.p, eq));
        p->all[p->n].value =
            decoded(p, eq < pair.n ? kr_bytes_skip(pair, eq + 1) : kr_bytes_of(NULL, 0));
        if (p->all[p->n].name == NULL || p->all[p->n].value == NULL)
            return KR_EINVAL;
        p->n++;
    }
    return 0;
}

void sim_params_deinit(struct sim_params *p)
{
    kr_arena_deinit(&p->arena);
    p->n = 0;
}

const char *sim_param(const struct sim_params *p, const char *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->all[i].name, name) == 0)
            return p->all[i].value;
    return NULL;
}

const char *sim_param_or(const struct sim_params *p, const char *name, const char *otherwise)
{
    const char *value = sim_param(p, name);

    return value != NULL ? value : otherwise;
}

bool sim_param_true(const struct sim_params *p, const char *name)
{
    const char *value = sim_param(p, name);

    return value != NULL && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0;
}

int64_t sim_param_int(const struct sim_params *p, const char *name, int64_t otherwise)
{
    const char *value = sim_param(p, name);
    uint64_t n;

    if (value == NULL || !kr_bytes_to_u64(kr_bytes_str(value), INT64_MAX, &n))
        return otherwise;
    return (int64_t)n;
}
