/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/headers.h"

#include "base/err.h"

/* What a name is; several may hold. */
enum kind {
    HOP = 1,         /* hop-by-hop */
    IDENTITY = 2,    /* request: could pass for somebody else, or the relay sets it itself */
    IMPERSONATE = 4, /* request: refused */
    REQUEST = 8,     /* allowed in a request */
    RESPONSE = 16,   /* allowed in a response */
    UNFIT = 32,      /* response: would bind the client's whole origin, or ask for credentials */
    OURS = 64,       /* between hub and agent only */
    UPGRADE = 128,   /* allowed in both on an upgrade */
    LOCATION = 256,  /* response: rewritten */
};

struct known {
    const char *name;
    unsigned kind;
};

#define LONGEST 35
#define PER_LENGTH 6

/* By length of the name. */
static const struct known by_length[LONGEST + 1][PER_LENGTH + 1] = {
    [2] = {{"te", HOP}},
    [4] = {{"host", IDENTITY}, {"etag", RESPONSE}, {"vary", RESPONSE}, {"date", RESPONSE}},
    [5] = {{"range", REQUEST}, {"allow", RESPONSE}},
    [6] = {{"expect", IDENTITY}, {"accept", REQUEST}, {"origin", UPGRADE}},
    [7] = {{"trailer", HOP},
           {"upgrade", HOP},
           {"baggage", REQUEST},
           {"warning", RESPONSE},
           {"expires", RESPONSE},
           {"alt-svc", UNFIT}},
    [8] = {{"audit-id", IDENTITY | RESPONSE},
           {"if-match", REQUEST},
           {"if-range", REQUEST},
           {"location", LOCATION}},
    [9] = {{"forwarded", IDENTITY}, {"x-real-ip", IDENTITY}},
    [10] = {{"connection", HOP},
            {"keep-alive", HOP},
            {"user-agent", REQUEST},
            {"tracestate", REQUEST}},
    [11] = {{"traceparent", REQUEST}, {"retry-after", RESPONSE}},
    [12] = {{"content-type", REQUEST | RESPONSE}},
    [13] = {{"authorization", IDENTITY},
            {"x-rewrite-url", IDENTITY},
            {"if-none-match", REQUEST},
            {"cache-control", REQUEST | RESPONSE},
            {"last-modified", RESPONSE},
            {"accept-ranges", RESPONSE}},
    [14] = {{"http2-settings", HOP},
            {"x-original-url", IDENTITY},
            {"content-length", REQUEST | RESPONSE}},
    [15] = {{"accept-encoding", REQUEST}, {"accept-language", REQUEST}},
    [16] = {{"content-encoding", REQUEST | RESPONSE}, {"www-authenticate", UNFIT}},
    [17] = {{"transfer-encoding", HOP}, {"if-modified-since", REQUEST}},
    [19] = {{"if-unmodified-since", REQUEST}, {"authentication-info", UNFIT}},
    [22] = {{"x-content-type-options", RESPONSE}},
    [25] = {{"strict-transport-security", UNFIT}},
    [35] = {{"x-accepted-stream-protocol-versions", RESPONSE}},
};

static const struct known prefixes[] = {
    {"content-", RESPONSE},
    {"impersonate-", IMPERSONATE},
    {"kubectl-", REQUEST},
    {"kuberelay-", OURS},
    {"proxy-", HOP},
    {"sec-websocket-", UPGRADE},
    {"x-forwarded-", IDENTITY},
    {"x-kubernetes-pf-", RESPONSE},
    {"x-remote-", IDENTITY},
    {"x-stream-", UPGRADE},
};

static unsigned kind_of(struct kr_bytes name)
{
    if (name.n == 0)
        return OURS;
    if (name.n <= LONGEST) {
        for (const struct known *k = by_length[name.n]; k->name != NULL; k++) {
            if (memcmp(k->name, name.p, name.n) == 0)
                return k->kind;
        }
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (prefixes[i].name[0] == (char)name.p[0] &&
            kr_bytes_starts(name, kr_bytes_str(prefixes[i].name)))
            return prefixes[i].kind;
    }
    return 0;
}

bool kr_header_is_hop_by_hop(struct kr_bytes name)
{
    return (kind_of(name) & HOP) != 0;
}

bool kr_header_list_has(struct kr_bytes list, struct kr_bytes name)
{
    while (list.n != 0) {
        size_t at = kr_bytes_find(list, ',');
        struct kr_bytes item = kr_bytes_of(list.p, at);

        list = kr_bytes_skip(list, at < list.n ? at + 1 : at);
        while (item.n != 0 && (item.p[0] == ' ' || item.p[0] == '\t'))
            item = kr_bytes_skip(item, 1);
        while (item.n != 0 && (item.p[item.n - 1] == ' ' || item.p[item.n - 1] == '\t'))
            item.n--;
        if (item.n != 0 && kr_bytes_eq_fold(item, name))
            return true;
    }
    return false;
}

enum kr_header_rule kr_header_request_rule(struct kr_bytes name, unsigned flags)
{
    unsigned kind = kind_of(name);

    if ((kind & (HOP | IDENTITY | OURS)) != 0)
        return KR_HEADER_DROP;
    if ((kind & IMPERSONATE) != 0)
        return KR_HEADER_REFUSE;
    if ((flags & KR_HEADERS_PROXY) != 0 || (kind & REQUEST) != 0)
        return KR_HEADER_PASS;
    return (flags & KR_HEADERS_UPGRADE) != 0 && (kind & UPGRADE) != 0 ? KR_HEADER_PASS
                                                                      : KR_HEADER_DROP;
}

enum kr_header_rule kr_header_response_rule(struct kr_bytes name, unsigned flags)
{
    unsigned kind = kind_of(name);

    if ((kind & (HOP | UNFIT | OURS)) != 0)
        return KR_HEADER_DROP;
    if ((kind & LOCATION) != 0)
        return KR_HEADER_LOCATION;
    if ((flags & KR_HEADERS_PROXY) != 0 || (kind & RESPONSE) != 0)
        return KR_HEADER_PASS;
    return (flags & KR_HEADERS_UPGRADE) != 0 && (kind & UPGRADE) != 0 ? KR_HEADER_PASS
                                                                      : KR_HEADER_DROP;
}

/* The path of `location` when it is server-relative or on the own host; .n 0 otherwise. */
static struct kr_bytes own_path(struct kr_bytes location, struct kr_bytes own_host)
{
    static const char *const schemes[] = {"https://", "http://"};
    struct kr_bytes host;
    size_t n = 0;

    if (location.n != 0 && location.p[0] == '/')
        return location;
    for (size_t i = 0; i < 2 && own_host.n != 0; i++) {
        struct kr_bytes scheme = kr_bytes_str(schemes[i]);

        if (location.n <= scheme.n || !kr_bytes_eq_fold(kr_bytes_of(location.p, scheme.n), scheme))
            continue;
        host = kr_bytes_skip(location, scheme.n);
        n = kr_bytes_find(host, '/');
        if (n < host.n && kr_bytes_eq_fold(kr_bytes_of(host.p, n), own_host))
            return kr_bytes_skip(host, n);
    }
    return kr_bytes_of(NULL, 0);
}

/* The length of one '.' at p, raw or as %2E; 0: none. */
static size_t dot(const uint8_t *p, size_t n)
{
    if (n >= 1 && p[0] == '.')
        return 1;
    return n >= 3 && p[0] == '%' && p[1] == '2' && (p[2] | 0x20) == 'e' ? 3 : 0;
}

/* Whether the path has a segment "." or "..", which a client would resolve out of the prefix. */
static bool has_dot_segment(struct kr_bytes path)
{
    path.n = kr_bytes_find(path, '?');
    path.n = kr_bytes_find(path, '#');
    for (size_t i = 0; i < path.n; i++) {
        size_t at = i + 1;
        size_t n = 0;

        if (path.p[i] != '/')
            continue;
        for (size_t k; n < 2 && (k = dot(path.p + at, path.n - at)) != 0; n++)
            at += k;
        if (n != 0 && (at == path.n || path.p[at] == '/'))
            return true;
    }
    return false;
}

int kr_location_rewrite(struct kr_bytes location, struct kr_bytes prefix, struct kr_bytes own_host,
                        struct kr_buf *out, struct kr_note *why)
{
    struct kr_bytes path = own_path(location, own_host);
    int rc;

    for (size_t i = 0; i < location.n; i++) {
        if (location.p[i] < 0x21 || location.p[i] > 0x7E || location.p[i] == '\\')
            return kr_note_set(why, KR_EDENIED, "the redirect's Location is malformed");
    }
    if (path.n == 0 || (path.n > 1 && path.p[1] == '/'))
        return kr_note_set(why, KR_EDENIED, "the redirect leads to another server");
    if (has_dot_segment(path))
        return kr_note_set(why, KR_EDENIED, "the redirect's path has dot segments");
    rc = kr_buf_append(out, prefix);
    if (rc == 0)
        rc = kr_buf_append(out, path);
    return rc != 0 ? kr_note_set(why, rc, "no memory for the redirect") : 0;
}
