/* SPDX-License-Identifier: Apache-2.0 */
/* Input: flags byte, a header name, LF, a header value (Connection list, Location). */
#include "base/assert.h"
#include "base/err.h"
#include "kube/headers.h"

static bool starts(struct kr_bytes name, const char *prefix)
{
    return kr_bytes_starts(name, kr_bytes_str(prefix));
}

static void check_rules(struct kr_bytes name, unsigned flags)
{
    enum kr_header_rule req = kr_header_request_rule(name, flags);
    enum kr_header_rule res = kr_header_response_rule(name, flags);

    KR_ASSERT(req != KR_HEADER_LOCATION && res != KR_HEADER_REFUSE);
    if (starts(name, "impersonate-"))
        KR_ASSERT(req == KR_HEADER_REFUSE);
    if (starts(name, "x-remote-") || starts(name, "x-forwarded-") || starts(name, "kuberelay-") ||
        starts(name, "proxy-") || kr_bytes_is(name, "authorization") ||
        kr_header_is_hop_by_hop(name))
        KR_ASSERT(req == KR_HEADER_DROP);
    if (kr_bytes_is(name, "cookie") && (flags & KR_HEADERS_PROXY) == 0)
        KR_ASSERT(req == KR_HEADER_DROP);
    if (starts(name, "kuberelay-") || kr_header_is_hop_by_hop(name))
        KR_ASSERT(res == KR_HEADER_DROP);
}

static void check_location(struct kr_bytes value)
{
    const struct kr_bytes prefix = KR_LIT("/clusters/c1");
    struct kr_buf out;
    struct kr_note why;

    kr_buf_init(&out, 1 << 20);
    if (kr_location_rewrite(value, prefix, KR_LIT("10.0.0.1:443"), &out, &why) == 0) {
        struct kr_bytes path = kr_bytes_skip(kr_buf_bytes(&out), prefix.n);

        KR_ASSERT(kr_bytes_starts(kr_buf_bytes(&out), prefix) && path.n >= 1 && path.p[0] == '/');
        KR_ASSERT(path.n < 2 || path.p[1] != '/');
        KR_ASSERT(kr_bytes_find(path, '\\') == path.n && kr_bytes_find(path, '\n') == path.n);
    }
    kr_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_bytes in;
    struct kr_bytes value;
    struct kr_bytes name;
    size_t at;

    if (n == 0 || n > 100000)
        return 0;
    in = kr_bytes_of(data + 1, n - 1);
    at = kr_bytes_find(in, '\n');
    name = kr_bytes_of(in.p, at);
    value = kr_bytes_skip(in, at < in.n ? at + 1 : at);
    check_rules(name, data[0] & 3);
    kr_header_list_has(value, name);
    check_location(value);
    return 0;
}
