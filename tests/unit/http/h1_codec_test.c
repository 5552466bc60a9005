/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

/* One message (or more) read in pieces of `piece` bytes; what happened, as a text. */
struct story {
    struct kr_h1_reader r;
    struct kr_head head;
    struct kr_buf text;
    bool head_request;
    bool failed;
};

static void tell_fields(struct kr_buf *text, const struct kr_head *h)
{
    for (size_t i = 0; i < h->n; i++) {
        kr_buf_append(text, h->fields[i].name);
        kr_buf_append_str(text, "=");
        kr_buf_append(text, h->fields[i].value);
        kr_buf_append_str(text, ";");
    }
}

static void tell_head(struct story *s)
{
    const struct kr_head *h = &s->head;

    if (h->status != 0) {
        kr_buf_printf(&s->text, "[%d ", h->status);
    } else {
        kr_buf_append_str(&s->text, "[");
        kr_buf_append(&s->text, h->method);
        kr_buf_append_str(&s->text, " ");
        kr_buf_append(&s->text, h->authority);
        kr_buf_append_str(&s->text, " ");
        kr_buf_append(&s->text, h->path);
        kr_buf_append_str(&s->text, " ");
    }
    tell_fields(&s->text, h);
    kr_buf_append_str(&s->text, "]");
}

static void begin(struct story *s)
{
    kr_head_deinit(&s->head);
    kr_h1_reader_start(&s->r, &s->head, s->head_request);
}

static void tell(struct story *s, enum kr_h1_event ev, struct kr_bytes body)
{
    if (ev == KR_H1_HEAD) {
        tell_head(s);
        if (s->head.status >= 100 && s->head.status < 200)
            begin(s);
    } else if (ev == KR_H1_BODY) {
        kr_buf_append(&s->text, body);
    } else if (ev == KR_H1_END) {
        kr_buf_append_str(&s->text, "/");
        tell_fields(&s->text, &s->r.trailers);
        begin(s);
    } else if (ev == KR_H1_FAILED) {
        kr_buf_printf(&s->text, "!%d", s->r.status);
        s->failed = true;
    }
}

static void feed(struct story *s, struct kr_bytes in)
{
    enum kr_h1_event ev = KR_H1_HEAD;

    while (!s->failed && ev != KR_H1_MORE) {
        struct kr_bytes body = {NULL, 0};

        ev = kr_h1_read(&s->r, &in, &body);
        tell(s, ev, body);
    }
}

static void feed_pieces(struct story *s, struct kr_bytes in, size_t piece)
{
    while (in.n != 0) {
        size_t n = piece < in.n ? piece : in.n;
        uint8_t *copy = malloc(n);

        memcpy(copy, in.p, n);
        feed(s, kr_bytes_of(copy, n));
        free(copy);
        in = kr_bytes_skip(in, n);
    }
}

static void story_init(struct story *s, bool response, bool head_request)
{
    *s = (struct story){.head_request = head_request};
    kr_buf_init(&s->text, 16 << 20);
    kr_head_init(&s->head, KR_HEAD_MAX);
    kr_h1_reader_init(&s->r, response, KR_HEAD_MAX);
    begin(s);
}

static void story_deinit(struct story *s)
{
    kr_buf_deinit(&s->text);
    kr_head_deinit(&s->head);
    kr_h1_reader_deinit(&s->r);
}

static void check_pieces(bool response, bool head_request, struct kr_bytes in, const char *want,
                         size_t piece, size_t cut)
{
    struct story s;

    story_init(&s, response, head_request);
    feed(&s, kr_bytes_of(in.p, cut));
    feed_pieces(&s, kr_bytes_skip(in, cut), piece);
    if (response && !s.failed)
        tell(&s, kr_h1_read_eof(&s.r), (struct kr_bytes){NULL, 0});
    kr_buf_append(&s.text, kr_bytes_of("", 1));
    assert_string_equal((const char *)s.text.p, want);
    story_deinit(&s);
}

/* Whole, byte by byte, and cut in two at every byte. */
static void check_bytes(bool response, bool head_request, struct kr_bytes in, const char *want)
{
    check_pieces(response, head_request, in, want, in.n, 0);
    check_pieces(response, head_request, in, want, 1, 0);
    check_pieces(response, head_request, in, want, 7, 0);
    for (size_t cut = 1; cut < in.n && in.n < 4096; cut++)
        check_pieces(response, head_request, in, want, in.n, cut);
}

static void check(bool response, const char *in, const char *want)
{
    check_bytes(response, false, kr_bytes_str(in), want);
}

#define GET "GET / HTTP/1.1\r\nHost: h\r\n"
#define POST "POST / HTTP/1.1\r\nHost: h\r\n"
#define TE POST "Transfer-Encoding: chunked\r\n\r\n"
#define TE_HEAD "[POST h / transfer-encoding=chunked;]"

static void test_request_when_well_formed_then_it_is_read(void **state)
{
    (void)state;
    check(false, GET "\r\n", "[GET h / ]/");
    check(false,
          "GET /a//b?x=1&x=%2F HTTP/1.1\r\nHOST:  hub.example:6443 \t\r\nX-A:\r\nx-a: 2\r\n\r\n",
          "[GET hub.example:6443 /a//b?x=1&x=%2F x-a=;x-a=2;]/");
    check(false, "\r\n" GET "\r\n", "[GET h / ]/"); /* RFC 9112 section 2.2 */
    check(false, GET "Connection: Upgrade\r\nUpgrade: h2c\r\nTE: trailers\r\n\r\n",
          "[GET h / connection=Upgrade;upgrade=h2c;te=trailers;]/");
    check(false, POST "Content-Length: 5\r\n\r\nhello" GET "\r\n",
          "[POST h / content-length=5;]hello/[GET h / ]/");
    check(false, POST "Content-Length: 0\r\n\r\n", "[POST h / content-length=0;]/");
    check(false, GET "X: \xc3\xa4 \t b\r\n\r\n", "[GET h / x=\xc3\xa4 \t b;]/");
    check(false, "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
          "[GET h / connection=keep-alive;]/");
    check(false, "M-SEARCH / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "[M-SEARCH [::1]:80 / ]/");
}

static void test_request_when_target_has_another_form_then_only_the_harmless_pass(void **state)
{
    (void)state;
    check(false, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "[OPTIONS h * ]/");
    check(false, "GET * HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET https://H/a?b HTTP/1.1\r\nHost: h\r\n\r\n", "[GET h /a?b ]/");
    check(false, "GET HTTP://h HTTP/1.1\r\nHost: h\r\n\r\n", "[GET h / ]/");
    check(false, "GET https://other/a HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET https:///a HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET https://u@h/a HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET https://h?x HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", "!405");
    check(false, "GET h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", "!400");
    check(false, "GET a/b HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
}

static void test_request_when_line_is_malformed_then_400(void **state)
{
    (void)state;
    check(false, "GET /\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET /  HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, " GET / HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", "!400");
    check(false, "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GE(T / HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET / http/1.1\r\nHost: h\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.2\r\nHost: h\r\n\r\n", "!505");
    check(false, "GET / HTTP/3.0\r\nHost: h\r\n\r\n", "!505");
    check(false, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "!400");
    check(false, "\r\n\r\n" GET "\r\n", "!400");
    check(false, "\x16\x03\x01\x02\n", "!400");
    check_bytes(false, false, KR_LIT("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"), "!400");
}

static void test_request_when_line_ends_are_wrong_then_400(void **state)
{
    (void)state;
    check(false, "GET / HTTP/1.1\nHost: h\n\n", "!400");
    check(false, GET "X: 1\n\r\n", "!400");
    check(false, GET "X: 1\r\n\n", "!400");
    check(false, GET "X: 1\rY: 2\r\n\r\n", "!400");
    check(false, GET "X: 1\r\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\r\nHost: h\r\n\r\n", "!400");
    check(false, "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
}

static void test_request_when_a_field_is_malformed_then_400(void **state)
{
    (void)state;
    check(false, GET "X: 1\r\n folded\r\n\r\n", "!400");
    check(false, GET "X: 1\r\n\tfolded\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\n Host: h\r\n\r\n", "!400");
    check(false, GET "X : 1\r\n\r\n", "!400");
    check(false, GET ": 1\r\n\r\n", "!400");
    check(false, GET "X\r\n\r\n", "!400");
    check(false, GET "X[]: 1\r\n\r\n", "!400");
    check(false, GET "\xc3\xa4: 1\r\n\r\n", "!400");
    check(false, GET "X: a\x01\r\n\r\n", "!400");
    check(false, GET "X: a\x7f\r\n\r\n", "!400");
    check_bytes(false, false, KR_LIT(GET "X: a\0b\r\n\r\n"), "!400");
    check_bytes(false, false, KR_LIT(GET "X\0: b\r\n\r\n"), "!400");
}

static void test_request_when_host_is_not_exactly_one_then_400(void **state)
{
    (void)state;
    check(false, "GET / HTTP/1.1\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.0\r\n\r\n", "!400");
    check(false, GET "Host: h\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\nHost:\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", "!400");
    check(false, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "!400");
}

static void test_request_when_framing_is_ambiguous_then_it_is_refused(void **state)
{
    (void)state;
    check(false, POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", "!400");
    check(false, POST "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n", "!400");
    check(false, POST "Content-Length: 4\r\nTransfer-Encoding: gzip\r\n\r\n", "!400");
    check(false, POST "Content-Length: 4\r\nContent-Length: 4\r\n\r\n", "!400");
    check(false, POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\n", "!400");
    check(false, POST "Content-Length: 4, 4\r\n\r\n", "!400");
    check(false, POST "Content-Length: +4\r\n\r\n", "!400");
    check(false, POST "Content-Length: -4\r\n\r\n", "!400");
    check(false, POST "Content-Length: 0x4\r\n\r\n", "!400");
    check(false, POST "Content-Length: 4 4\r\n\r\n", "!400");
    check(false, POST "Content-Length:\r\n\r\n", "!400");
    check(false, POST "Content-Length: 9223372036854775808\r\n\r\n", "!400");
    check(false, POST "Content-Length: 99999999999999999999999\r\n\r\n", "!400");
    check(false, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "!400");
    check(false, POST "Transfer-Encoding: chunked, chunked\r\n\r\n", "!501");
    check(false, POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "!501");
    check(false, POST "Transfer-Encoding: identity\r\n\r\n", "!501");
    check(false, POST "Transfer-Encoding: xchunked\r\n\r\n", "!501");
    check(false, POST "Transfer-Encoding:\r\n\r\n", "!501");
    check(false, POST "Transfer-Encoding : chunked\r\n\r\n", "!400");
    check(false,
          POST "Transfer-Encoding: \x0b"
               "chunked\r\n\r\n",
          "!400");
    check(false, "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "!400");
}

static void test_chunked_when_well_formed_then_the_body_is_read(void **state)
{
    (void)state;
    check(false, TE "5\r\nhello\r\n0\r\n\r\n", TE_HEAD "hello/");
    check(false, TE "0\r\n\r\n" GET "\r\n", TE_HEAD "/[GET h / ]/");
    check(false, TE "00000000000000a\r\n0123456789\r\n1\r\nx\r\n00\r\n\r\n",
          TE_HEAD "0123456789x/");
    check(false, TE "A\r\n0123456789\r\n0\r\n\r\n", TE_HEAD "0123456789/");
    check(false, TE "1;a=b;c=\"d e\"\r\nx\r\n0;z\r\n\r\n", TE_HEAD "x/");
    check(false, TE "1\r\nx\r\n0\r\nX-Sum: 1\r\nY:2\r\n\r\n", TE_HEAD "x/x-sum=1;y=2;");
    check(false, TE "0\r\nContent-Length: 5\r\nHost: evil\r\nX: 1\r\n\r\n", TE_HEAD "/x=1;");
    check(false, POST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
          "[POST h / transfer-encoding=Chunked;]/");
}

static void test_chunked_when_malformed_then_400(void **state)
{
    (void)state;
    check(false, TE "\r\n", TE_HEAD "!400");
    check(false, TE "x\r\n", TE_HEAD "!400");
    check(false, TE "0x1\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "-1\r\n", TE_HEAD "!400");
    check(false, TE " 1\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "1 \r\nx\r\n", TE_HEAD "!400");
    check(false, TE "1 ;a\r\nx\r\n", TE_HEAD "!400");
    check(false, TE ";a\r\n", TE_HEAD "!400");
    check(false, TE "1\nx\r\n", TE_HEAD "!400");
    check(false, TE "1\rx\r\n", TE_HEAD "!400");
    check(false, TE "1;a\nx\r\n", TE_HEAD "!400");
    check(false, TE "1;a\x01\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "1;a\rb\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "1\r\nxy\r\n", TE_HEAD "x!400");
    check(false, TE "1\r\nx\n0\r\n\r\n", TE_HEAD "x!400");
    check(false, TE "1\r\nx\r0\r\n\r\n", TE_HEAD "x!400");
    check(false, TE "00000000000000001\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "8000000000000000\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "FFFFFFFFFFFFFFFF\r\nx\r\n", TE_HEAD "!400");
    check(false, TE "0\r\nX : 1\r\n\r\n", TE_HEAD "!400");
    check(false, TE "0\r\n folded: 1\r\n\r\n", TE_HEAD "!400");
    check(false, TE "0\r\nX: 1\n\r\n", TE_HEAD "!400");
}

static void test_expect_when_not_100_continue_then_417(void **state)
{
    struct story s;

    (void)state;
    check(false, POST "Expect: 200-ok\r\nContent-Length: 1\r\n\r\n", "!417");
    check(false, POST "Expect: 100-continue, x\r\nContent-Length: 1\r\n\r\n", "!417");
    check(false, POST "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n", "!417");
    story_init(&s, false, false);
    feed(&s, KR_LIT(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n"));
    assert_true(s.r.expects_continue);
    assert_true(s.r.keep_alive);
    story_deinit(&s);
    story_init(&s, false, false);
    feed(&s, KR_LIT("POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\n"
                    "Content-Length: 1\r\n\r\n"));
    assert_false(s.r.expects_continue);
    assert_false(s.r.keep_alive);
    story_deinit(&s);
}

static void test_keep_alive_when_connection_says_close_then_not(void **state)
{
    struct story s;

    (void)state;
    story_init(&s, false, false);
    feed(&s, KR_LIT(POST "Connection: foo, Close\r\nContent-Length: 1\r\n\r\n"));
    assert_false(s.r.keep_alive);
    assert_false(kr_h1_reader_idle(&s.r));
    feed(&s, KR_LIT("x"));
    assert_true(kr_h1_reader_idle(&s.r));
    assert_int_equal(kr_h1_read_eof(&s.r), KR_H1_MORE);
    feed(&s, KR_LIT("G"));
    assert_int_equal(kr_h1_read_eof(&s.r), KR_H1_FAILED);
    assert_int_equal(s.r.rc, KR_ECONNLOST);
    story_deinit(&s);
}

/* before, then n times c, then after. */
static void check_long(const char *before, size_t n, const char *after, const char *want_end)
{
    struct kr_buf in;
    struct story s;

    kr_buf_init(&in, 4 << 20);
    kr_buf_append_str(&in, before);
    kr_buf_reserve(&in, n);
    memset(in.p + in.n, 'a', n);
    in.n += n;
    kr_buf_append_str(&in, after);
    for (size_t piece = 1; piece <= in.n; piece = piece < 500 ? piece * 499 : in.n + 1) {
        story_init(&s, false, false);
        feed_pieces(&s, kr_buf_bytes(&in), piece);
        assert_true(s.text.n >= strlen(want_end));
        assert_memory_equal(s.text.p + s.text.n - strlen(want_end), want_end, strlen(want_end));
        assert_true(s.r.line.cap <= 128 * 1024);
        story_deinit(&s);
    }
    kr_buf_deinit(&in);
}

static void test_request_when_a_limit_is_passed_then_414_or_431(void **state)
{
    (void)state;
    check_long("GET /", KR_FIELD_MAX - 14, " HTTP/1.1\r\nHost: h\r\n\r\n", "]/");
    check_long("GET /", KR_FIELD_MAX - 13, " HTTP/1.1\r\nHost: h\r\n\r\n", "!414");
    check_long("GET /", 2 * KR_FIELD_MAX, "", "!414");
    check_long(GET "X: ", KR_FIELD_MAX, "\r\n\r\n", "]/");
    check_long(GET "X: ", KR_FIELD_MAX + 1, "\r\n\r\n", "!431");
    check_long(GET "X: ", 2 * KR_FIELD_MAX, "", "!431");
    check_long(GET, 2 * KR_FIELD_MAX, ": x\r\n\r\n", "!431");
    check_long(TE "1;", 255, "\r\nx\r\n0\r\n\r\n", "x/");
    check_long(TE "1;", 256, "\r\nx\r\n0\r\n\r\n", "!400");
    check_long(TE "0\r\nX: ", KR_H1_TRAILERS_MAX, "\r\n\r\n", "!431");
    check_long(TE "0\r\nX: ", KR_H1_TRAILERS_MAX - 60, "\r\n\r\n", ";");
}

static void test_request_when_fields_are_many_then_431(void **state)
{
    static const struct {
        size_t fields;
        size_t size; /* of each value */
        const char *want_end;
    } cases[] = {
        {256, 1, "]/"}, {512, 1, "]/"}, {513, 1, "!431"}, {255, 900, "]/"}, {300, 900, "!431"},
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct kr_buf in;
        struct story s;

        kr_buf_init(&in, 1 << 20);
        kr_buf_append_str(&in, GET);
        for (size_t i = 0; i < cases[k].fields; i++)
            kr_buf_printf(&in, "x%zu: %0*d\r\n", i, (int)cases[k].size, 7);
        kr_buf_append_str(&in, "\r\n");
        story_init(&s, false, false);
        feed(&s, kr_buf_bytes(&in));
        assert_memory_equal(s.text.p + s.text.n - strlen(cases[k].want_end), cases[k].want_end,
                            strlen(cases[k].want_end));
        story_deinit(&s);
        kr_buf_deinit(&in);
    }
}

static void test_response_when_framed_then_the_body_ends_where_it_says(void **state)
{
    (void)state;
    check(true, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "[200 content-length=2;]hi/");
    check(true, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nh", "[200 content-length=2;]h!400");
    check(true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nA: b\r\n\r\n",
          "[200 transfer-encoding=chunked;]hi/a=b;");
    check(true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
          "[200 transfer-encoding=chunked;]hi!400");
    check(true, "HTTP/1.0 200 OK\r\n\r\nall of it", "[200 ]all of it/");
    check(true, "HTTP/1.1 204 \r\n\r\n", "[204 ]/");
    check(true, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
          "[304 content-length=9;]/");
    check(true,
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
          "[100 ][103 a=b;][200 content-length=0;]/");
    check_bytes(true, true, KR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
                "[200 content-length=9;]/");
    check(true, "HTTP/1.1 200 OK\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
          "[200 host=x;content-length=0;]/");
}

static void test_response_when_malformed_then_it_fails(void **state)
{
    (void)state;
    check(true, "HTTP/1.1 200\r\n\r\n", "!400");
    check(true, "HTTP/2 200 OK\r\n\r\n", "!400");
    check(true, "HTTP/1.1 099 OK\r\n\r\n", "!400");
    check(true, "HTTP/1.1 600 OK\r\n\r\n", "!400");
    check(true, "HTTP/1.1 2000 OK\r\n\r\n", "!400");
    check(true, "HTTP/1.1 200 O\x01K\r\n\r\n", "!400");
    check(true, "HTTP/1.1  200 OK\r\n\r\n", "!400");
    check(true, "\r\nHTTP/1.1 200 OK\r\n\r\n", "!400");
    check(true, "HTTP/1.1 200 OK\n\n", "!400");
    check(true, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "!400");
    check(true, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
          "!400");
    check(true, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "!501");
    check(true, "HTTP/1.1 200 OK\r\nX : 1\r\n\r\n", "!400");
}

static void test_write_when_a_value_could_split_the_head_then_einval(void **state)
{
    struct kr_head h;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 4096);
    kr_head_init(&h, 4096);
    h.status = 200;
    assert_int_equal(kr_head_add_str(&h, "x", "a\r\nb: c"), 0);
    assert_int_equal(kr_h1_write_response(&out, &h, true), KR_EINVAL);
    kr_head_deinit(&h);
    h.status = 200;
    assert_int_equal(kr_head_add_str(&h, "x y", "a"), 0);
    assert_int_equal(kr_h1_write_response(&out, &h, true), KR_EINVAL);
    kr_head_deinit(&h);
    h.method = KR_LIT("GET");
    h.authority = KR_LIT("h");
    h.path = KR_LIT("/ HTTP/1.1\r\nX: y");
    assert_int_equal(kr_h1_write_request(&out, &h, true), KR_EINVAL);
    h.path = KR_LIT("/");
    h.authority = KR_LIT("");
    assert_int_equal(kr_h1_write_request(&out, &h, true), KR_EINVAL);
    kr_head_deinit(&h);
    kr_buf_deinit(&out);
}

static void test_write_when_fields_belong_to_the_connection_then_they_are_left_out(void **state)
{
    static const char *const ours[] = {
        "connection", "keep-alive", "proxy-connection", "transfer-encoding",
        "te",         "host",       "upgrade"};
    struct kr_head h;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 4096);
    kr_head_init(&h, 4096);
    h.method = KR_LIT("GET");
    h.authority = KR_LIT("h:1");
    h.path = KR_LIT("/p?q");
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        assert_int_equal(kr_head_add_str(&h, ours[i], "x"), 0);
    assert_int_equal(kr_head_add_str(&h, "content-length", "3"), 0);
    assert_int_equal(kr_head_add_str(&h, "accept", "*/*"), 0);
    assert_int_equal(kr_h1_write_request(&out, &h, true), 0);
    kr_buf_append(&out, kr_bytes_of("", 1));
    assert_string_equal((char *)out.p, "GET /p?q HTTP/1.1\r\nhost: h:1\r\ncontent-length: 3\r\n"
                                       "accept: */*\r\n");
    kr_head_deinit(&h);
    kr_buf_deinit(&out);
}

static void test_write_upgrade_when_the_token_is_one_then_two_fields(void **state)
{
    static const char *const bad[] = {"a b", "a,b", "a\r\nb", "a;b", "a\0"};
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 4096);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            kr_h1_write_upgrade(&out, kr_bytes_of(bad[i], i == 4 ? 2 : strlen(bad[i]))), KR_EINVAL);
    assert_int_equal(out.n, 0);
    assert_int_equal(kr_h1_write_upgrade(&out, KR_LIT("SPDY/3.1")), 0);
    kr_buf_append(&out, kr_bytes_of("", 1));
    assert_string_equal((char *)out.p, "connection: Upgrade\r\nupgrade: SPDY/3.1\r\n");
    kr_buf_deinit(&out);
}

static void test_write_chunk_size_when_any_size_then_it_is_hexadecimal(void **state)
{
    uint8_t out[16];

    (void)state;
    assert_int_equal(kr_h1_write_chunk_size(out, 1), 3);
    assert_memory_equal(out, "1\r\n", 3);
    assert_int_equal(kr_h1_write_chunk_size(out, 0x1a0f), 6);
    assert_memory_equal(out, "1a0f\r\n", 6);
    assert_int_equal(kr_h1_write_chunk_size(out, 0xffffffff), 10);
    assert_memory_equal(out, "ffffffff\r\n", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_well_formed_then_it_is_read),
        cmocka_unit_test(test_request_when_target_has_another_form_then_only_the_harmless_pass),
        cmocka_unit_test(test_request_when_line_is_malformed_then_400),
        cmocka_unit_test(test_request_when_line_ends_are_wrong_then_400),
        cmocka_unit_test(test_request_when_a_field_is_malformed_then_400),
        cmocka_unit_test(test_request_when_host_is_not_exactly_one_then_400),
        cmocka_unit_test(test_request_when_framing_is_ambiguous_then_it_is_refused),
        cmocka_unit_test(test_chunked_when_well_formed_then_the_body_is_read),
        cmocka_unit_test(test_chunked_when_malformed_then_400),
        cmocka_unit_test(test_expect_when_not_100_continue_then_417),
        cmocka_unit_test(test_keep_alive_when_connection_says_close_then_not),
        cmocka_unit_test(test_request_when_a_limit_is_passed_then_414_or_431),
        cmocka_unit_test(test_request_when_fields_are_many_then_431),
        cmocka_unit_test(test_response_when_framed_then_the_body_ends_where_it_says),
        cmocka_unit_test(test_response_when_malformed_then_it_fails),
        cmocka_unit_test(test_write_when_a_value_could_split_the_head_then_einval),
        cmocka_unit_test(test_write_when_fields_belong_to_the_connection_then_they_are_left_out),
        cmocka_unit_test(test_write_upgrade_when_the_token_is_one_then_two_fields),
        cmocka_unit_test(test_write_chunk_size_when_any_size_then_it_is_hexadecimal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
