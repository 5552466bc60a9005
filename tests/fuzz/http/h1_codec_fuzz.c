/* SPDX-License-Identifier: Apache-2.0 */
/* h1_codec under arbitrary input. The first byte chooses: bit 0 responses, bit 1 an answer to HEAD,
 * bits 2.. the size of the pieces for the second reading. Invariants: whole and piecewise feeding
 * tell the same story; what was accepted is framed in exactly one way; a head that was accepted can
 * be written and read again with the same outcome. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_HEAD = 8192 };

/* The story: a text that both readings must agree on. */
static void tell_head(struct kr_buf *story, const struct kr_head *h)
{
    kr_buf_printf(story, "\n<head %d ", h->status);
    kr_buf_append(story, h->method);
    kr_buf_append_str(story, " ");
    kr_buf_append(story, h->authority);
    kr_buf_append_str(story, " ");
    kr_buf_append(story, h->path);
    for (size_t i = 0; i < h->n; i++) {
        kr_buf_append_str(story, "\n");
        kr_buf_append(story, h->fields[i].name);
        kr_buf_append_str(story, ":");
        kr_buf_append(story, h->fields[i].value);
    }
    kr_buf_append_str(story, ">");
}

static void check_head(const struct kr_h1_reader *r, const struct kr_head *h)
{
    bool length = kr_head_find(h, KR_LIT("content-length")) != NULL;
    bool coding = kr_head_find(h, KR_LIT("transfer-encoding")) != NULL;

    KR_ASSERT(!(length && coding));
    KR_ASSERT(r->framing != KR_H1_CHUNKED || coding);
    KR_ASSERT(r->framing != KR_H1_LENGTH || kr_head_content_length(h) >= 0);
    KR_ASSERT(kr_head_find(h, KR_LIT("host")) == NULL || r->response);
    if (!r->response)
        KR_ASSERT(h->authority.n != 0 && h->path.n != 0 && h->method.n != 0);
}

/* Writes the head and reads it back. */
static void check_round_trip(const struct kr_h1_reader *r, const struct kr_head *h)
{
    struct kr_buf text;
    struct kr_h1_reader again;
    struct kr_head head;
    struct kr_bytes in;
    struct kr_bytes body;

    kr_buf_init(&text, 1 << 20);
    kr_head_init(&head, MAX_HEAD * 8);
    kr_h1_reader_init(&again, r->response, MAX_HEAD * 8);
    kr_h1_reader_start(&again, &head, r->head_request);
    if (r->response)
        KR_ASSERT(kr_h1_write_response(&text, h, true) == 0);
    else
        KR_ASSERT(kr_h1_write_request(&text, h, true) == 0);
    kr_buf_append_str(&text, "\r\n");
    in = kr_buf_bytes(&text);
    KR_ASSERT(kr_h1_read(&again, &in, &body) == KR_H1_HEAD);
    KR_ASSERT(in.n == 0 && head.status == h->status);
    KR_ASSERT(kr_bytes_eq(head.path, h->path) && kr_bytes_eq(head.authority, h->authority));
    kr_h1_reader_deinit(&again);
    kr_head_deinit(&head);
    kr_buf_deinit(&text);
}

struct reading {
    struct kr_h1_reader r;
    struct kr_head head;
    struct kr_buf story;
    bool head_request;
    bool in_body;
    bool over;
};

static void begin(struct reading *g)
{
    kr_head_deinit(&g->head);
    kr_h1_reader_start(&g->r, &g->head, g->head_request);
}

static void on_event(struct reading *g, enum kr_h1_event ev, struct kr_bytes body)
{
    if (ev == KR_H1_BODY) {
        if (!g->in_body)
            kr_buf_append_str(&g->story, "\n<body ");
        kr_buf_append(&g->story, body);
        KR_ASSERT(body.n != 0);
        g->in_body = true;
        return;
    }
    if (ev == KR_H1_MORE)
        return;
    g->in_body = false;
    if (ev == KR_H1_HEAD) {
        check_head(&g->r, &g->head);
        check_round_trip(&g->r, &g->head);
        tell_head(&g->story, &g->head);
        if (g->r.response && g->head.status < 200)
            begin(g);
    } else if (ev == KR_H1_END) {
        tell_head(&g->story, &g->r.trailers);
        begin(g);
    } else if (ev == KR_H1_FAILED) {
        kr_buf_printf(&g->story, "\n<failed %d %d %s>", g->r.rc, g->r.status, g->r.why);
        g->over = true;
    }
}

static void feed(struct reading *g, struct kr_bytes in)
{
    enum kr_h1_event ev = KR_H1_HEAD;

    while (!g->over && ev != KR_H1_MORE) {
        struct kr_bytes body = {NULL, 0};

        ev = kr_h1_read(&g->r, &in, &body);
        on_event(g, ev, body);
    }
    KR_ASSERT(g->over || in.n == 0);
}

static void read_all(struct reading *g, const uint8_t *data, size_t size, uint8_t mode,
                     size_t piece)
{
    *g = (struct reading){.head_request = (mode & 2) != 0};
    kr_buf_init(&g->story, 64 << 20);
    kr_head_init(&g->head, MAX_HEAD);
    kr_h1_reader_init(&g->r, (mode & 1) != 0, MAX_HEAD);
    begin(g);
    while (size != 0) {
        size_t n = piece < size ? piece : size;
        uint8_t *copy = malloc(n); /* lent bytes are gone after the call */

        KR_ASSERT(copy != NULL);
        memcpy(copy, data, n);
        feed(g, kr_bytes_of(copy, n));
        free(copy);
        data += n;
        size -= n;
    }
    if (!g->over)
        on_event(g, kr_h1_read_eof(&g->r), (struct kr_bytes){NULL, 0});
}

static void end(struct reading *g)
{
    kr_buf_deinit(&g->story);
    kr_head_deinit(&g->head);
    kr_h1_reader_deinit(&g->r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole;
    struct reading pieces;

    if (size == 0 || size > 1 << 20)
        return 0;
    read_all(&whole, data + 1, size - 1, data[0], size);
    read_all(&pieces, data + 1, size - 1, data[0], (data[0] >> 2) + 1u);
    KR_ASSERT(kr_bytes_eq(kr_buf_bytes(&whole.story), kr_buf_bytes(&pieces.story)));
    end(&whole);
    end(&pieces);
    return 0;
}
