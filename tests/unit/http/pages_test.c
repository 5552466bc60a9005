/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fakes/mem_pipe.h"
#include "http/pages.h"

enum { VISITORS = 65 }; /* one more than are let in */

struct world {
    struct kr_sched sched;
    struct kr_pages pages;
    struct kr_mem_peer peers[VISITORS];
    struct kr_mem_pair *pairs[VISITORS];
    int n;
    int64_t now_ms;
};

static void run(struct world *w, int64_t ms)
{
    w->now_ms += ms;
    kr_sched_run(&w->sched, w->now_ms, 0);
}

static int page(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    (void)owner;
    if (kr_bytes_is(path, "/livez"))
        return kr_buf_append_str(body, "ok"), 200;
    if (!kr_bytes_is(path, "/json"))
        return 404;
    *type = "application/json";
    return kr_buf_append_str(body, "{}"), 200;
}

static void setup(struct world *w)
{
    *w = (struct world){0};
    kr_sched_init(&w->sched, 0, 0);
    kr_pages_init(&w->pages, &w->sched, page, NULL);
}

static struct kr_mem_peer *visit(struct world *w)
{
    struct kr_mem_peer *p = &w->peers[w->n];

    w->pairs[w->n++] = kr_mem_pair_create(&w->sched);
    kr_mem_peer_init(p, kr_mem_pair_end(w->pairs[w->n - 1], 0));
    kr_pages_serve(&w->pages, kr_mem_pair_end(w->pairs[w->n - 1], 1));
    return p;
}

static void finish(struct world *w)
{
    kr_pages_close(&w->pages);
    run(w, 0);
    assert_int_equal(w->pages.count, 0);
    for (int i = 0; i < w->n; i++)
        kr_mem_peer_close(&w->peers[i], KR_PIPE_ABORT);
    run(w, 0);
    for (int i = 0; i < w->n; i++)
        kr_mem_peer_deinit(&w->peers[i]);
    kr_sched_deinit(&w->sched);
}

static bool has(const struct kr_mem_peer *p, const char *text)
{
    return p->in.n != 0 && memmem(p->in.p, p->in.n, text, strlen(text)) != NULL;
}

static const struct {
    const char *request;
    const char *line;
    const char *field;
    const char *end; /* of the answer; NULL: does not matter */
} rows[] = {
    {"GET /livez HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", "content-length: 2\r\n",
     "\r\n\r\nok"},
    {"GET /livez?verbose HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", "text/plain", "\r\n\r\nok"},
    {"HEAD /livez HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", "content-length: 2\r\n",
     "\r\n\r\n"},
    {"GET /json HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ", "application/json", "\r\n\r\n{}"},
    {"GET /nope HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 404 ", "content-length: 0\r\n", NULL},
    {"POST /livez HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 ",
     "content-length: 0\r\n", NULL},
    {"nonsense\r\n\r\n", "HTTP/1.1 400 ", "", NULL},
};

static void test_request_when_of_each_kind_then_answered(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct kr_mem_peer *p = visit(&w);

        kr_mem_peer_send(p, kr_bytes_str(rows[i].request));
        run(&w, 0);
        assert_true(kr_bytes_starts(kr_buf_bytes(&p->in), kr_bytes_str(rows[i].line)));
        assert_true(has(p, rows[i].field));
        if (rows[i].end != NULL) {
            size_t n = strlen(rows[i].end);

            assert_memory_equal(p->in.p + p->in.n - n, rows[i].end, n);
        }
    }
    finish(&w);
}

static int removed(void *owner, struct kr_bytes path, struct kr_buf *body, const char **type)
{
    (void)owner;
    (void)type;
    if (!kr_bytes_is(path, "/thing"))
        return 404;
    return kr_buf_append_str(body, "gone"), 200;
}

static void test_delete_when_somebody_takes_it_then_done_and_else_405(void **state)
{
    const struct kr_bytes request = KR_LIT("DELETE /thing HTTP/1.1\r\nHost: h\r\n\r\n");
    struct kr_mem_peer *p;
    struct world w;

    (void)state;
    setup(&w);
    p = visit(&w);
    kr_mem_peer_send(p, request);
    run(&w, 0);
    assert_true(has(p, "HTTP/1.1 405 "));
    w.pages.remove = removed;
    p = visit(&w);
    kr_mem_peer_send(p, request);
    run(&w, 0);
    assert_true(has(p, "HTTP/1.1 200 "));
    assert_true(has(p, "\r\n\r\ngone"));
    finish(&w);
}

static void test_connections_when_too_many_then_the_next_is_closed(void **state)
{
    struct world w;

    (void)state;
    setup(&w);
    for (int i = 0; i < VISITORS; i++)
        visit(&w);
    assert_int_equal(w.pages.count, VISITORS - 1);
    run(&w, 61000); /* silent ones are closed, so that others get in */
    run(&w, 0);
    assert_int_equal(w.pages.count, 0);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_of_each_kind_then_answered),
        cmocka_unit_test(test_delete_when_somebody_takes_it_then_done_and_else_405),
        cmocka_unit_test(test_connections_when_too_many_then_the_next_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
