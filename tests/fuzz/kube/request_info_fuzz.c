/* SPDX-License-Identifier: Apache-2.0 */
/* Input: METHOD SP TARGET, with or without a cluster prefix. What is accepted must be what a server
 * that decodes once and splits at '/' would see too. */
#include "base/assert.h"
#include "base/err.h"
#include "kube/cluster_path.h"
#include "kube/request_info.h"

#include <stdlib.h>

static void check_plain(struct kr_bytes part)
{
    KR_ASSERT(kr_bytes_find(part, '/') == part.n && kr_bytes_find(part, '%') == part.n &&
              kr_bytes_find(part, '\\') == part.n && kr_bytes_find(part, 0) == part.n);
    KR_ASSERT(!kr_bytes_is(part, ".") && !kr_bytes_is(part, ".."));
}

static void check_accepted(const struct kr_request_info *ri)
{
    KR_ASSERT(ri->target.n >= 1 && ri->target.p[0] == '/');
    KR_ASSERT(ri->is_resource == (ri->class == KR_REQUEST_RESOURCE));
    KR_ASSERT(ri->is_resource || (ri->resource.n == 0 && ri->name.n == 0 && !ri->proxied));
    KR_ASSERT(!ri->is_resource || ri->resource.n != 0);
    KR_ASSERT(!ri->proxied || (kr_bytes_is(ri->subresource, "proxy") && ri->long_running));
    KR_ASSERT(!ri->connects || ri->long_running);
    KR_ASSERT((kr_request_deadline_ms(ri) == 0) == ri->long_running);
    KR_ASSERT(!(ri->has_timeout && ri->bad_timeout));
    check_plain(ri->group);
    check_plain(ri->version);
    check_plain(ri->ns);
    check_plain(ri->resource);
    check_plain(ri->subresource);
    for (size_t i = 0; i < ri->target.n; i++)
        KR_ASSERT(ri->target.p[i] > 0x20 && ri->target.p[i] < 0x7F && ri->target.p[i] != '#');
    for (size_t i = 0; i + 1 < ri->path.n && !ri->proxied; i++)
        KR_ASSERT(ri->path.p[i] != '/' || ri->path.p[i + 1] != '/');
}

static void parse(struct kr_bytes method, struct kr_bytes target)
{
    struct kr_arena arena;
    struct kr_request_info ri;
    struct kr_note why;
    int rc;

    kr_arena_init(&arena, 256, KR_REQUEST_INFO_ARENA(target.n) + method.n);
    rc = kr_request_info_parse(&ri, method, target, &arena, &why);
    KR_ASSERT(rc == 0 || rc == KR_EINVAL); /* never short of the promised arena */
    if (rc == 0)
        check_accepted(&ri);
    kr_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_bytes in = {data, n};
    size_t at = kr_bytes_find(in, ' ');
    struct kr_bytes method = kr_bytes_of(data, at);
    struct kr_bytes target = kr_bytes_skip(in, at < n ? at + 1 : at);
    struct kr_cluster_path cp;
    struct kr_arena arena;
    struct kr_note why;

    if (n > 100000)
        return 0;
    parse(method, target);
    kr_arena_init(&arena, 256, target.n + 1024);
    if (kr_cluster_path_split(target, &arena, &cp, &why) == 0) {
        KR_ASSERT(cp.rest.n >= 1 && cp.rest.p[0] == '/' && cp.name.n >= 1 && cp.name.n <= 63);
        parse(method, cp.rest);
    }
    kr_cluster_from_authority(target, KR_LIT("hub.example"), &cp, &why);
    kr_arena_deinit(&arena);
    return 0;
}
