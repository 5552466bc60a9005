/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners, and dialling them: direct, past a dead address, through a proxy of the test. */
#include "net/dial.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "net/connect.h"
#include "net/socket.h"

struct scene {
    struct kr_loop *loop;
    struct kr_listener *listener;
    uint16_t port;
    int accepted; /* descriptor; -1 */
    int accepts;
    int pauses;
    char from[KR_ADDR_TEXT];
    int calls;
    int rc;
    int fd;
    char peer[KR_ADDR_TEXT];
    struct kr_note why;
};

static void on_accept(void *owner, int fd, const char *peer)
{
    struct scene *s = owner;

    if (s->accepted >= 0)
        close(s->accepted);
    s->accepted = fd;
    s->accepts++;
    strcpy(s->from, peer);
}

static void on_pause(void *owner, int err)
{
    struct scene *s = owner;

    assert_int_equal(err, EMFILE);
    s->pauses++;
}

static void listen_at(struct scene *s, const char *host)
{
    struct kr_hostport at = {.port = 0};
    struct kr_note why = {""};

    strcpy(at.host, host);
    *s = (struct scene){.loop = kr_loop_create(NULL), .accepted = -1, .fd = -1};
    s->listener = kr_listener_create(s->loop,
                                     &(struct kr_listener_config){.at = &at,
                                                                  .user_timeout_ms = 30000,
                                                                  .on_accept = on_accept,
                                                                  .on_pause = on_pause,
                                                                  .owner = s},
                                     &why);
    assert_non_null(s->listener);
    s->port = kr_listener_port(s->listener);
    assert_int_not_equal(s->port, 0);
}

static void scene_end(struct scene *s)
{
    if (s->accepted >= 0)
        close(s->accepted);
    if (s->fd >= 0)
        close(s->fd);
    kr_listener_destroy(s->listener);
    kr_loop_destroy(s->loop);
}

static void on_done(void *owner, int rc, int fd, const char *peer, const struct kr_note *why)
{
    struct scene *s = owner;

    s->calls++;
    s->rc = rc;
    s->fd = fd;
    strcpy(s->peer, peer);
    s->why = *why;
}

static struct kr_dial *dial(struct scene *s, const char *host, uint16_t port,
                            const struct kr_proxy *proxy, int64_t timeout_ms)
{
    struct kr_dial *d = kr_dial_start(s->loop,
                                      &(struct kr_dial_config){.host = host,
                                                               .port = port,
                                                               .proxy = proxy,
                                                               .timeout_ms = timeout_ms,
                                                               .on_done = on_done,
                                                               .owner = s},
                                      NULL);

    assert_non_null(d);
    assert_int_equal(s->calls, 0);
    return d;
}

static void until_called(struct scene *s)
{
    for (int i = 0; i < 1000 && s->calls == 0; i++)
        kr_loop_turn(s->loop, 20);
    assert_int_equal(s->calls, 1);
}

static void test_dial_by_name_then_connected_and_accepted(void **state)
{
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    dial(&s, "localhost", s.port, NULL, 0);
    until_called(&s);
    assert_int_equal(s.rc, 0);
    assert_int_equal(strncmp(s.peer, "127.0.0.1:", 10), 0);
    while (s.accepts == 0)
        kr_loop_turn(s.loop, 20);
    assert_int_equal(strncmp(s.from, "127.0.0.1:", 10), 0);
    assert_int_equal(strncmp(kr_listener_text(s.listener), "127.0.0.1:", 10), 0);
    scene_end(&s);
}

static void test_listen_on_any_v6_then_v4_is_taken_too(void **state)
{
    struct scene s;

    (void)state;
    listen_at(&s, "::");
    dial(&s, "127.0.0.1", s.port, NULL, 0);
    until_called(&s);
    assert_int_equal(s.rc, 0);
    while (s.accepts == 0)
        kr_loop_turn(s.loop, 20);
    assert_int_equal(strncmp(s.from, "127.0.0.1:", 10), 0);
    scene_end(&s);
}

static void test_dial_a_closed_port_then_refused_with_the_address(void **state)
{
    struct scene s;
    uint16_t port;

    (void)state;
    listen_at(&s, "127.0.0.1");
    port = s.port;
    kr_listener_destroy(s.listener);
    s.listener = NULL;
    dial(&s, "127.0.0.1", port, NULL, 0);
    until_called(&s);
    assert_int_equal(s.rc, KR_ECONNREFUSED);
    assert_int_equal(s.fd, -1);
    assert_non_null(strstr(s.why.text, "127.0.0.1:"));
    scene_end(&s);
}

static void test_dial_nonsense_then_refused_at_once(void **state)
{
    struct kr_dial_config cfg = {.host = "", .port = 1, .on_done = on_done};
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    assert_null(kr_dial_start(s.loop, &cfg, NULL));
    cfg.host = "hub\r\nX: y"; /* it would end up in a CONNECT request */
    assert_null(kr_dial_start(s.loop, &cfg, NULL));
    cfg = (struct kr_dial_config){.host = "x", .port = 0, .on_done = on_done};
    assert_null(kr_dial_start(s.loop, &cfg, NULL));
    scene_end(&s);
}

static void test_cancel_at_every_stage_then_no_callback(void **state)
{
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    for (int turns = 0; turns < 2; turns++) {
        struct kr_dial *d = dial(&s, "127.0.0.1", s.port, NULL, 0);

        for (int i = 0; i < turns && s.calls == 0; i++)
            kr_loop_turn(s.loop, 0);
        if (s.calls == 0)
            kr_dial_cancel(d);
        s.calls = 0;
        if (s.fd >= 0)
            close(s.fd);
        s.fd = -1;
    }
    kr_dial_cancel(NULL);
    kr_loop_turn(s.loop, 10);
    assert_int_equal(s.calls, 0);
    scene_end(&s);
}

struct race {
    struct kr_connect connect;
    int calls;
    int rc;
    int fd;
    char to[KR_ADDR_TEXT];
};

static void on_raced(struct kr_connect *c, int rc, int fd, const struct kr_addr *to)
{
    struct race *r = (struct race *)(void *)c;

    r->calls++;
    r->rc = rc;
    r->fd = fd;
    if (to != NULL)
        kr_addr_text(to, r->to);
}

/* A listener whose backlog is full answers nothing: the next address must win after 250 ms. */
static void test_first_address_is_dead_then_second_one_wins(void **state)
{
    struct kr_addr addrs[3];
    struct race r = {.calls = 0};
    struct scene s;
    int64_t start;

    (void)state;
    listen_at(&s, "127.0.0.1");
    kr_addr_parse("127.0.0.2", s.port, &addrs[0]); /* refused at once */
    kr_addr_parse("192.0.2.1", s.port, &addrs[1]); /* documentation net: silent or unreachable */
    kr_addr_parse("127.0.0.1", s.port, &addrs[2]);
    start = kr_loop_sched(s.loop)->now_ms;
    assert_int_equal(kr_connect_start(&r.connect, s.loop, addrs, 3, on_raced), 0);
    assert_int_equal(r.calls, 0);
    for (int i = 0; i < 100 && r.calls == 0; i++)
        kr_loop_turn(s.loop, 50);
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.rc, 0);
    assert_int_equal(strncmp(r.to, "127.0.0.1:", 10), 0);
    assert_true(kr_loop_sched(s.loop)->now_ms < start + 3000);
    close(r.fd);
    scene_end(&s);
}

/* The scene's listener plays the proxy. */
static void proxy_says(const char *answer, const char *user, int rc, const char *words)
{
    struct kr_proxy proxy;
    char asked[2048] = "";
    struct scene s;
    ssize_t n = -1;

    listen_at(&s, "127.0.0.1");
    assert_int_equal(kr_proxy_parse("http://127.0.0.1:1", NULL, &proxy, NULL), 0);
    proxy.at.port = s.port;
    strcpy(proxy.user, user);
    dial(&s, "hub.example.com", 8443, &proxy, 2000);
    while (n <= 0 && s.calls == 0) {
        kr_loop_turn(s.loop, 20);
        if (s.accepted >= 0)
            n = recv(s.accepted, asked, sizeof asked - 1, MSG_DONTWAIT);
    }
    assert_int_equal(strncmp(asked, "CONNECT hub.example.com:8443 HTTP/1.1\r\n", 39), 0);
    assert_int_equal(strstr(asked, "Proxy-Authorization") != NULL, user[0] != '\0');
    if (answer == NULL) {
        close(s.accepted);
        s.accepted = -1;
    } else { /* in two pieces */
        assert_int_equal(send(s.accepted, answer, 5, MSG_NOSIGNAL), 5);
        kr_loop_turn(s.loop, 10);
        assert_int_equal(s.calls, 0);
        assert_true(send(s.accepted, answer + 5, strlen(answer + 5), MSG_NOSIGNAL) > 0);
    }
    until_called(&s);
    assert_int_equal(s.rc, rc);
    if (strstr(s.why.text, words) == NULL)
        fail_msg("dial says: %s", s.why.text);
    assert_int_equal(s.fd >= 0, rc == 0);
    kr_proxy_deinit(&proxy);
    scene_end(&s);
}

static void test_proxy_then_its_answer_decides(void **state)
{
    (void)state;
    proxy_says("HTTP/1.1 200 OK\r\nX: y\r\n\r\n", "", 0, "");
    proxy_says("HTTP/1.1 200 OK\r\n\r\n", "me", 0, "");
    proxy_says("HTTP/1.1 407 Auth\r\n\r\n", "", KR_EDENIED, "credentials");
    proxy_says("HTTP/1.1 502 Bad\r\n\r\n", "", KR_ECONNREFUSED, "status 502");
    proxy_says("nonsense\r\n\r\n", "", KR_EPROTO, "HTTP/1");
    proxy_says("HTTP/1.1 200 OK\r\n\r\nmore", "", KR_EPROTO, "behind");
    proxy_says(NULL, "", KR_ECONNLOST, "closed the connection");
}

static void test_proxy_that_is_silent_then_deadline(void **state)
{
    struct kr_proxy proxy;
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    assert_int_equal(kr_proxy_parse("127.0.0.1:1", NULL, &proxy, NULL), 0);
    proxy.at.port = s.port;
    dial(&s, "hub.example.com", 8443, &proxy, 50);
    until_called(&s);
    assert_int_equal(s.rc, KR_ETIMEDOUT);
    assert_non_null(strstr(s.why.text, "wait for proxy"));
    scene_end(&s);
}

static void test_name_on_the_list_then_proxy_is_not_used(void **state)
{
    struct kr_proxy proxy;
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    assert_int_equal(kr_proxy_parse("127.0.0.1:1", "10.0.0.0/8,localhost", &proxy, NULL), 0);
    dial(&s, "localhost", s.port, &proxy, 0);
    until_called(&s);
    assert_int_equal(s.rc, 0);
    scene_end(&s);
}

static void test_no_descriptors_left_then_accepting_pauses_and_resumes(void **state)
{
    struct rlimit old;
    struct rlimit low;
    struct kr_addr to;
    struct scene s;
    int fd;

    (void)state;
    listen_at(&s, "127.0.0.1");
    kr_addr_parse("127.0.0.1", s.port, &to);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, &to.u.sa, to.len), 0);
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = (rlim_t)fd + 1; /* the lowest free one is fd + 1 */
    setrlimit(RLIMIT_NOFILE, &low);
    for (int i = 0; i < 20; i++)
        kr_loop_turn(s.loop, 2);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(s.accepts, 0);
    assert_in_range(s.pauses, 1, 2); /* not once per turn */
    for (int i = 0; i < 100 && s.accepts == 0; i++)
        kr_loop_turn(s.loop, 20);
    assert_int_equal(s.accepts, 1);
    close(fd);
    scene_end(&s);
}

static void test_listener_paused_then_nothing_is_accepted_until_resumed(void **state)
{
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    kr_listener_pause(s.listener, true);
    dial(&s, "127.0.0.1", s.port, NULL, 0);
    until_called(&s);
    kr_loop_turn(s.loop, 10);
    assert_int_equal(s.accepts, 0);
    kr_listener_pause(s.listener, false);
    for (int i = 0; i < 100 && s.accepts == 0; i++)
        kr_loop_turn(s.loop, 20);
    assert_int_equal(s.accepts, 1);
    scene_end(&s);
}

static void test_listen_on_a_port_that_is_taken_then_refused_with_the_reason(void **state)
{
    struct kr_hostport at = {.host = "127.0.0.1"};
    struct kr_note why;
    struct scene s;

    (void)state;
    listen_at(&s, "127.0.0.1");
    at.port = s.port;
    assert_null(kr_listener_create(
        s.loop, &(struct kr_listener_config){.at = &at, .on_accept = on_accept, .owner = &s},
        &why));
    assert_non_null(strstr(why.text, "in use"));
    strcpy(at.host, "localhost");
    assert_null(kr_listener_create(
        s.loop, &(struct kr_listener_config){.at = &at, .on_accept = on_accept, .owner = &s},
        &why));
    assert_non_null(strstr(why.text, "not an IP address"));
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dial_by_name_then_connected_and_accepted),
        cmocka_unit_test(test_listen_on_any_v6_then_v4_is_taken_too),
        cmocka_unit_test(test_dial_a_closed_port_then_refused_with_the_address),
        cmocka_unit_test(test_dial_nonsense_then_refused_at_once),
        cmocka_unit_test(test_cancel_at_every_stage_then_no_callback),
        cmocka_unit_test(test_first_address_is_dead_then_second_one_wins),
        cmocka_unit_test(test_proxy_then_its_answer_decides),
        cmocka_unit_test(test_proxy_that_is_silent_then_deadline),
        cmocka_unit_test(test_name_on_the_list_then_proxy_is_not_used),
        cmocka_unit_test(test_no_descriptors_left_then_accepting_pauses_and_resumes),
        cmocka_unit_test(test_listener_paused_then_nothing_is_accepted_until_resumed),
        cmocka_unit_test(test_listen_on_a_port_that_is_taken_then_refused_with_the_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
