/* SPDX-License-Identifier: Apache-2.0 */
/* The writing half of h1_codec. */
#include "http/h1_codec.h"

#include "base/err.h"
#include "http/h1_head.h"

/* RFC 9110 section 15; a status without an entry gets no phrase, which RFC 9112 section 4 allows.
 */
static const struct {
    int status;
    const char *text;
} phrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

static const char *phrase(int status)
{
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        if (phrases[i].status == status)
            return phrases[i].text;
    }
    return "";
}

/* What the connection itself decides. */
static bool is_ours(struct kr_bytes name, bool response, bool length)
{
    switch (name.n) {
    case 2:
        return kr_bytes_is(name, "te");
    case 4:
        return !response && kr_bytes_is(name, "host");
    case 7:
        return !response && kr_bytes_is(name, "upgrade");
    case 10:
        return kr_bytes_is(name, "connection") || kr_bytes_is(name, "keep-alive");
    case 14:
        return !length && kr_bytes_is(name, "content-length");
    case 16:
        return kr_bytes_is(name, "proxy-connection");
    case 17:
        return kr_bytes_is(name, "transfer-encoding");
    default:
        return false;
    }
}

static void put(struct kr_buf *out, struct kr_bytes in)
{
    if (in.n != 0)
        memcpy(out->p + out->n, in.p, in.n);
    out->n += in.n;
}

int kr_h1_write_fields(struct kr_buf *out, const struct kr_head *head, bool length)
{
    int rc = kr_buf_reserve(out, head->size + 128); /* size counts 32 a field: room for ": \r\n" */

    for (size_t i = 0; rc == 0 && i < head->n; i++) {
        const struct kr_field *f = &head->fields[i];

        if (is_ours(f->name, head->status != 0, length))
            continue;
        if (f->name.n == 0 || !kr_h1_all_of(f->name, KR_H1_TOKEN) ||
            !kr_h1_all_of(f->value, KR_H1_VALUE))
            return KR_EINVAL;
        put(out, f->name);
        put(out, KR_LIT(": "));
        put(out, f->value);
        put(out, KR_LIT("\r\n"));
    }
    return rc;
}

int kr_h1_write_request(struct kr_buf *out, const struct kr_head *head, bool length)
{
    int rc = kr_buf_reserve(out, head->method.n + head->path.n + head->authority.n +
                                     sizeof " HTTP/1.1\r\nhost: \r\n");

    if (rc != 0)
        return rc;
    if (head->method.n == 0 || !kr_h1_all_of(head->method, KR_H1_TOKEN) || head->path.n == 0 ||
        !kr_h1_all_of(head->path, KR_H1_TARGET) || head->authority.n == 0 ||
        !kr_h1_all_of(head->authority, KR_H1_HOST))
        return KR_EINVAL;
    put(out, head->method);
    put(out, KR_LIT(" "));
    put(out, head->path);
    put(out, KR_LIT(" HTTP/1.1\r\nhost: "));
    put(out, head->authority);
    put(out, KR_LIT("\r\n"));
    return kr_h1_write_fields(out, head, length);
}

int kr_h1_write_upgrade(struct kr_buf *out, struct kr_bytes token)
{
    int rc = kr_buf_reserve(out, token.n + sizeof "connection: Upgrade\r\nupgrade: \r\n");

    if (rc != 0)
        return rc;
    for (size_t i = 0; i < token.n; i++) { /* RFC 9110 section 7.8: name, slash, version */
        if (token.p[i] != '/' && !kr_h1_all_of(kr_bytes_of(token.p + i, 1), KR_H1_TOKEN))
            return KR_EINVAL;
    }
    put(out, KR_LIT("connection: Upgrade\r\nupgrade: "));
    put(out, token);
    put(out, KR_LIT("\r\n"));
    return 0;
}

int kr_h1_write_response(struct kr_buf *out, const struct kr_head *head, bool length)
{
    int rc;

    if (head->status < 100 || head->status > 999)
        return KR_EINVAL;
    rc = kr_buf_printf(out, "HTTP/1.1 %d %s\r\n", head->status, phrase(head->status));
    return rc != 0 ? rc : kr_h1_write_fields(out, head, length);
}

size_t kr_h1_write_chunk_size(uint8_t *out, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    size_t digits = 1;

    while (digits < 8 && n >> (4 * digits) != 0)
        digits++;
    for (size_t i = 0; i < digits; i++)
        out[i] = (uint8_t)hex[n >> (4 * (digits - 1 - i)) & 15];
    out[digits] = '\r';
    out[digits + 1] = '\n';
    return digits + 2;
}
