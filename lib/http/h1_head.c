/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_head.h"

#include "base/err.h"

#define T KR_H1_TOKEN
#define V KR_H1_VALUE
#define R KR_H1_TARGET
#define H KR_H1_HOST

/* RFC 9110 section 5.6.2 (token) and 5.5 (field-value, with obs-text); RFC 3986 for host, without
 * the comma; a target is any visible ASCII but the fragment's '#'. */
static const uint8_t classes[256] = {
    ['\t'] = V,
    [' '] = V,
    ['!'] = T | V | R | H,
    ['"'] = V | R,
    ['#'] = T | V,
    ['$' ... '\''] = T | V | R | H,
    ['(' ... ')'] = V | R | H,
    ['*' ... '+'] = T | V | R | H,
    [','] = V | R,
    ['-' ... '.'] = T | V | R | H,
    ['/'] = V | R,
    ['0' ... '9'] = T | V | R | H,
    [':' ... ';'] = V | R | H,
    ['<'] = V | R,
    ['='] = V | R | H,
    ['>' ... '@'] = V | R,
    ['A' ... 'Z'] = T | V | R | H,
    ['['] = V | R | H,
    ['\\'] = V | R,
    [']'] = V | R | H,
    ['^'] = T | V | R,
    ['_'] = T | V | R | H,
    ['`'] = T | V | R,
    ['a' ... 'z'] = T | V | R | H,
    ['{'] = V | R,
    ['|'] = T | V | R,
    ['}'] = V | R,
    ['~'] = T | V | R | H,
    [0x80 ... 0xFF] = V,
};

bool kr_h1_all_of(struct kr_bytes b, enum kr_h1_class set)
{
    for (size_t i = 0; i < b.n; i++) {
        if ((classes[b.p[i]] & set) == 0)
            return false;
    }
    return true;
}

bool kr_h1_refuse(struct kr_h1_reader *r, int rc, int status, const char *why)
{
    r->rc = rc;
    r->status = status;
    r->why = why;
    return false;
}

static bool bad(struct kr_h1_reader *r, const char *why)
{
    return kr_h1_refuse(r, KR_EPROTO, 400, why);
}

static bool add_failed(struct kr_h1_reader *r, int rc)
{
    if (rc == KR_ENOMEM)
        return kr_h1_refuse(r, rc, 503, "out of memory");
    return kr_h1_refuse(r, KR_ETOOBIG, 431, "the header is too large");
}

/* RFC 9112 section 3.2.2. The authority is compared with Host once that is known. */
static bool parse_absolute(struct kr_h1_reader *r, struct kr_bytes target, size_t scheme)
{
    struct kr_bytes rest = kr_bytes_skip(target, scheme);
    size_t slash = kr_bytes_find(rest, '/');

    r->facts.target_authority = kr_bytes_of(rest.p, slash);
    if (slash == 0 || !kr_h1_all_of(r->facts.target_authority, H))
        return bad(r, "the request target's authority is malformed");
    r->head->path = slash == rest.n ? KR_LIT("/") : kr_bytes_skip(rest, slash);
    return true;
}

static bool parse_target(struct kr_h1_reader *r, struct kr_bytes method, struct kr_bytes target)
{
    if (kr_bytes_is(method, "CONNECT"))
        return kr_h1_refuse(r, KR_EPROTO, 405, "CONNECT is not served here");
    if (target.n == 0 || !kr_h1_all_of(target, R))
        return bad(r, "the request target has bytes that do not belong there");
    r->head->path = target;
    if (target.p[0] == '/')
        return true;
    if (kr_bytes_is(target, "*") && kr_bytes_is(method, "OPTIONS"))
        return true;
    if (target.n > 8 && kr_bytes_eq_fold(kr_bytes_of(target.p, 8), KR_LIT("https://")))
        return parse_absolute(r, target, 8);
    if (target.n > 7 && kr_bytes_eq_fold(kr_bytes_of(target.p, 7), KR_LIT("http://")))
        return parse_absolute(r, target, 7);
    return bad(r, "the request target is not a path");
}

static bool parse_version(struct kr_h1_reader *r, struct kr_bytes version)
{
    r->http10 = kr_bytes_is(version, "HTTP/1.0");
    if (r->http10 || kr_bytes_is(version, "HTTP/1.1"))
        return true;
    if (r->response || kr_bytes_is(version, "HTTP/2.0")) /* HTTP/2's preface without ALPN */
        return bad(r, "the HTTP version is not 1.1");
    if (version.n == 8 && kr_bytes_starts(version, KR_LIT("HTTP/")) && version.p[6] == '.')
        return kr_h1_refuse(r, KR_EPROTO, 505, "the HTTP version is not 1.1");
    return bad(r, "the request line is malformed");
}

bool kr_h1_parse_request_line(struct kr_h1_reader *r, struct kr_bytes line)
{
    struct kr_bytes copy = kr_arena_copy(&r->head->arena, line);
    struct kr_bytes rest = copy;
    struct kr_bytes method;
    size_t at;

    if (copy.p == NULL)
        return add_failed(r, KR_ENOMEM);
    at = kr_bytes_find(rest, ' ');
    method = kr_bytes_of(rest.p, at);
    if (at == 0 || at == rest.n || !kr_h1_all_of(method, T))
        return bad(r, "the request line is malformed");
    rest = kr_bytes_skip(rest, at + 1);
    at = kr_bytes_find(rest, ' ');
    if (at == 0 || at == rest.n)
        return bad(r, "the request line is malformed");
    if (!parse_version(r, kr_bytes_skip(rest, at + 1)))
        return false;
    r->head->method = method;
    r->head->scheme = KR_LIT("https");
    return parse_target(r, method, kr_bytes_of(rest.p, at));
}

bool kr_h1_parse_status_line(struct kr_h1_reader *r, struct kr_bytes line)
{
    uint64_t status;

    if (line.n < 13 || line.p[8] != ' ' || line.p[12] != ' ')
        return bad(r, "the status line is malformed");
    if (!parse_version(r, kr_bytes_of(line.p, 8)))
        return false;
    if (!kr_bytes_to_u64(kr_bytes_of(line.p + 9, 3), 599, &status) || status < 100 ||
        !kr_h1_all_of(line, V))
        return bad(r, "the status line is malformed");
    r->head->status = (int)status;
    return true;
}

static bool note_length(struct kr_h1_facts *f, struct kr_bytes value)
{
    f->lengths++;
    if (!kr_bytes_to_u64(value, INT64_MAX, &f->length))
        f->length_bad = true;
    return true;
}

/* Remembers what decides over framing; false: the field does not go into the head. */
static bool note_fact(struct kr_h1_reader *r, struct kr_bytes name, struct kr_bytes value)
{
    struct kr_h1_facts *f = &r->facts;

    if (name.n == 4 && kr_bytes_is(name, "host") && !r->response) {
        f->hosts++;
        r->head->authority = value;
        return false;
    }
    if (name.n == 14 && kr_bytes_is(name, "content-length"))
        return note_length(f, value);
    if (name.n == 17 && kr_bytes_is(name, "transfer-encoding")) {
        f->codings++;
        if (!kr_bytes_eq_fold(value, KR_LIT("chunked")))
            f->coding_bad = true;
    } else if (name.n == 10 && kr_bytes_is(name, "connection")) {
        f->connection = true;
    } else if (name.n == 7 && kr_bytes_is(name, "upgrade")) {
        f->upgrade = true;
    } else if (name.n == 6 && kr_bytes_is(name, "expect")) {
        f->expects++;
        if (!kr_bytes_eq_fold(value, KR_LIT("100-continue")))
            f->expect_bad = true;
    }
    return true;
}

/* Splits a field line (RFC 9112 section 5); false after a refusal. */
static bool split_field(struct kr_h1_reader *r, struct kr_bytes line, struct kr_bytes *name,
                        struct kr_bytes *value)
{
    size_t colon = kr_bytes_find(line, ':');

    if (line.p[0] == ' ' || line.p[0] == '\t')
        return bad(r, "a header line is folded");
    if (colon == 0 || colon == line.n)
        return bad(r, "a header line has no name");
    *name = kr_bytes_of(line.p, colon);
    if (!kr_h1_all_of(*name, T))
        return bad(r, "a header name has bytes that do not belong there");
    *value = kr_bytes_trim(kr_bytes_skip(line, colon + 1));
    if (!kr_h1_all_of(*value, V))
        return bad(r, "a header value has bytes that do not belong there");
    if (name->n > KR_FIELD_MAX - 32 || value->n > KR_FIELD_MAX)
        return kr_h1_refuse(r, KR_ETOOBIG, 431, "a header field is too large");
    return true;
}

/* Copies name and value into the head's arena in one piece, the name in lower case. */
static bool copy_field(struct kr_head *head, struct kr_bytes *name, struct kr_bytes *value)
{
    uint8_t *p = kr_arena_alloc(&head->arena, name->n + value->n);

    if (p == NULL)
        return false;
    for (size_t i = 0; i < name->n; i++) {
        uint8_t c = name->p[i];

        p[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
    }
    if (value->n != 0)
        memcpy(p + name->n, value->p, value->n);
    *name = kr_bytes_of(p, name->n);
    *value = kr_bytes_of(p + name->n, value->n);
    return true;
}

bool kr_h1_parse_field(struct kr_h1_reader *r, struct kr_bytes line)
{
    struct kr_bytes name;
    struct kr_bytes value;
    int rc;

    if (!split_field(r, line, &name, &value))
        return false;
    if (r->head->n >= KR_H1_FIELDS_MAX)
        return kr_h1_refuse(r, KR_ETOOBIG, 431, "there are too many header fields");
    if (!copy_field(r->head, &name, &value))
        return add_failed(r, KR_ENOMEM);
    if (!note_fact(r, name, value))
        return true;
    rc = kr_head_add_ref(r->head, name, value);
    return rc == 0 || add_failed(r, rc);
}

/* Fields that would change framing, routing or identity after the fact (RFC 9110 section 6.5.1). */
static bool forbidden_in_trailers(struct kr_bytes name)
{
    static const char *const names[] = {
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-range",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "set-cookie",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kr_bytes_is(name, names[i]))
            return true;
    }
    return false;
}

bool kr_h1_parse_trailer(struct kr_h1_reader *r, struct kr_bytes line)
{
    struct kr_bytes name;
    struct kr_bytes value;
    int rc;

    if (!split_field(r, line, &name, &value))
        return false;
    if (!copy_field(&r->trailers, &name, &value))
        return add_failed(r, KR_ENOMEM);
    if (forbidden_in_trailers(name))
        return true;
    rc = kr_head_add_ref(&r->trailers, name, value);
    return rc == 0 || add_failed(r, rc);
}

/* RFC 9112 section 6: what both roles refuse, and the framing if it is explicit. */
static bool judge_framing(struct kr_h1_reader *r)
{
    const struct kr_h1_facts *f = &r->facts;

    if (f->lengths != 0 && f->codings != 0)
        return bad(r, "both Content-Length and Transfer-Encoding");
    if (f->lengths > 1 || f->length_bad)
        return bad(r, "Content-Length is repeated or no number");
    if (f->codings > 1 || (f->codings != 0 && r->http10))
        return bad(r, "Transfer-Encoding is repeated or not allowed");
    if (f->coding_bad)
        return kr_h1_refuse(r, KR_EPROTO, 501, "Transfer-Encoding is not chunked");
    r->framing = KR_H1_NONE;
    if (f->codings != 0)
        r->framing = KR_H1_CHUNKED;
    else if (f->length != 0)
        r->framing = KR_H1_LENGTH;
    r->left = f->length;
    return true;
}

static bool says_close(const struct kr_h1_reader *r)
{
    return r->facts.connection && kr_head_has_token(r->head, KR_LIT("connection"), KR_LIT("close"));
}

/* An upgrade with a body has two readings of what comes first, the body or the new protocol (RFC
 * 9931), and is refused. HTTP/1.0 knows no upgrades: there the field means nothing. */
static bool judge_upgrade(struct kr_h1_reader *r)
{
    const struct kr_h1_facts *f = &r->facts;

    r->upgrade = f->upgrade && f->connection && !r->http10 &&
                 kr_head_has_token(r->head, KR_LIT("connection"), KR_LIT("upgrade"));
    if (r->upgrade && r->framing != KR_H1_NONE)
        return bad(r, "a request for an upgrade has a body");
    return true;
}

bool kr_h1_judge_request(struct kr_h1_reader *r)
{
    const struct kr_h1_facts *f = &r->facts;
    struct kr_bytes host = r->head->authority;

    if (f->hosts != 1 || host.n == 0 || !kr_h1_all_of(host, H))
        return bad(r, "there must be one well-formed Host");
    if (f->target_authority.n != 0 && !kr_bytes_eq_fold(f->target_authority, host))
        return bad(r, "the request target names another host than Host");
    if (!judge_framing(r) || !judge_upgrade(r))
        return false;
    if (f->expects > 1 || f->expect_bad)
        return kr_h1_refuse(r, KR_EPROTO, 417, "only 100-continue can be expected");
    r->expects_continue = f->expects == 1 && !r->http10 && r->framing != KR_H1_NONE;
    r->keep_alive = !r->http10 && !says_close(r);
    return true;
}

bool kr_h1_judge_response(struct kr_h1_reader *r)
{
    int status = r->head->status;

    if (!judge_framing(r))
        return false;
    if (r->head_request || status < 200 || status == 204 || status == 304)
        r->framing = KR_H1_NONE;
    else if (r->facts.lengths == 0 && r->facts.codings == 0)
        r->framing = KR_H1_UNTIL_CLOSE;
    r->keep_alive = !r->http10 && r->framing != KR_H1_UNTIL_CLOSE && !says_close(r);
    return true;
}
