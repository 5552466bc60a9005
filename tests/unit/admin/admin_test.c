/* SPDX-License-Identifier: Apache-2.0 */
/* The admin port over a real socket. */
#include "admin/admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"

enum { LEVEL, FAMILIES };

static const struct kr_metric_family families[FAMILIES] = {
    [LEVEL] = {.name = "kuberelay_level", .type = KR_GAUGE, .help = "How high it is."},
};

struct scene {
    struct kr_loop *loop;
    struct kr_tls_io *io;
    struct kr_metrics *metrics;
    struct kr_admin admin;
    const char *missing; /* what unready says */
    int64_t level;
    char answer[4096];
};

static void measure(void *owner)
{
    struct scene *s = owner;

    kr_metric_set(kr_metrics_series(s->metrics, LEVEL, NULL, 0), s->level);
}

static const char *unready(void *owner)
{
    return ((struct scene *)owner)->missing;
}

static int admin_open(struct scene *s, const char *listen, struct kr_note *why)
{
    struct kr_admin_config cfg = {
        .io = s->io,
        .listen = listen,
        .loopback_only = true,
        .metrics = s->metrics,
        .measure = measure,
        .unready = unready,
        .owner = s,
    };

    return kr_admin_open(&s->admin, &cfg, why);
}

static void scene_begin(struct scene *s)
{
    *s = (struct scene){.loop = kr_loop_create(NULL)};
    s->io = kr_tls_io_create(s->loop);
    s->metrics = kr_metrics_create(families, FAMILIES);
    assert_non_null(s->io);
    assert_non_null(s->metrics);
}

static void scene_end(struct scene *s)
{
    kr_admin_close(&s->admin);
    kr_tls_io_destroy(s->io);
    kr_admin_deinit(&s->admin);
    kr_metrics_destroy(s->metrics);
    kr_loop_destroy(s->loop);
}

static int connect_to(const char *address)
{
    struct kr_hostport at;
    struct kr_addr to;
    int fd;

    assert_int_equal(kr_hostport_parse(address, 0, &at, NULL), 0);
    assert_true(kr_addr_parse(at.host, at.port, &to));
    fd = socket(to.u.sa.sa_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &to.u.sa, to.len), 0); /* the backlog takes it */
    return fd;
}

/* The whole answer to GET `path`; the connection ends behind it. */
static const char *get(struct scene *s, const char *path)
{
    int fd = connect_to(kr_admin_address(&s->admin));
    size_t have = 0;
    ssize_t n = -1;
    char request[256];

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
             path);
    assert_int_equal(send(fd, request, strlen(request), 0), (ssize_t)strlen(request));
    while (n != 0) {
        kr_loop_turn(s->loop, 20);
        n = recv(fd, s->answer + have, sizeof s->answer - 1 - have, MSG_DONTWAIT);
        have += n > 0 ? (size_t)n : 0;
    }
    s->answer[have] = '\0';
    close(fd);
    return s->answer;
}

static void test_metrics_when_asked_then_measured_before(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s);
    assert_int_equal(admin_open(&s, "127.0.0.1:0", NULL), 0);
    s.level = 7;
    assert_non_null(strstr(get(&s, "/metrics"), "kuberelay_level 7\n"));
    assert_non_null(strstr(s.answer, "content-type: text/plain; version=0.0.4; charset=utf-8"));
    scene_end(&s);
}

static void test_readyz_when_something_is_missing_then_503_and_livez_stays(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s);
    assert_int_equal(admin_open(&s, "127.0.0.1:0", NULL), 0);
    assert_non_null(strstr(get(&s, "/readyz"), "HTTP/1.1 200"));
    s.missing = "no level\n";
    assert_non_null(strstr(get(&s, "/readyz"), "HTTP/1.1 503"));
    assert_non_null(strstr(s.answer, "\r\n\r\nno level\n"));
    assert_non_null(strstr(get(&s, "/livez"), "HTTP/1.1 200"));
    scene_end(&s);
}

static void test_other_paths_then_404_that_names_the_pages(void **state)
{
    struct scene s;

    (void)state;
    scene_begin(&s);
    assert_int_equal(admin_open(&s, "127.0.0.1:0", NULL), 0);
    assert_non_null(strstr(get(&s, "/metric"), "HTTP/1.1 404"));
    assert_non_null(strstr(s.answer, "/metrics /livez /readyz\n"));
    scene_end(&s);
}

static void test_an_address_that_others_reach_then_refused(void **state)
{
    struct kr_note why = {""};
    struct scene s;

    (void)state;
    scene_begin(&s);
    assert_int_equal(admin_open(&s, "0.0.0.0:0", &why), KR_EINVAL);
    assert_non_null(strstr(why.text, "only a loopback address"));
    assert_int_equal(admin_open(&s, "nowhere", &why), KR_EINVAL);
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metrics_when_asked_then_measured_before),
        cmocka_unit_test(test_readyz_when_something_is_missing_then_503_and_livez_stays),
        cmocka_unit_test(test_other_paths_then_404_that_names_the_pages),
        cmocka_unit_test(test_an_address_that_others_reach_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
