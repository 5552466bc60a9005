/* SPDX-License-Identifier: Apache-2.0 */
/* `kuberelayctl clusters` against a socket that answers what the test says. */
#include "ctl/ctl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET "admin.sock"

struct hub {
    const char *answer;
    int fd;
    char request[1024];
    pthread_t thread;
};

static char *last_out;
static char *last_err;

static int enter_empty_dir(void **state)
{
    char name[] = "/tmp/kr_clusters_XXXXXX";

    if (mkdtemp(name) == NULL || chdir(name) != 0)
        return -1;
    *state = strdup(name);
    return *state != NULL ? 0 : -1;
}

static int leave_dir(void **state)
{
    char command[64];

    snprintf(command, sizeof command, "rm -rf %s", (char *)*state);
    free(*state);
    free(last_out);
    free(last_err);
    last_out = last_err = NULL;
    return chdir("/") == 0 ? system(command) : -1;
}

static int ctl(const char *line)
{
    char *text = strdup(line);
    char *argv[32] = {(char *)"kuberelayctl"};
    size_t out_n;
    size_t err_n;
    FILE *out;
    FILE *err;
    int argc = 1;
    int rc;

    free(last_out);
    free(last_err);
    out = open_memstream(&last_out, &out_n);
    err = open_memstream(&last_err, &err_n);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    rc = ctl_run(argc, argv, out, err);
    fclose(out);
    fclose(err);
    free(text);
    return rc;
}

/* Takes one call, answers it, closes. */
static void *serve(void *arg)
{
    struct hub *h = arg;
    int fd = accept(h->fd, NULL, NULL);
    size_t n = 0;
    ssize_t got;

    while (strstr(h->request, "\r\n\r\n") == NULL &&
           (got = read(fd, h->request + n, sizeof h->request - 1 - n)) > 0)
        n += (size_t)got;
    if (write(fd, h->answer, strlen(h->answer)) < 0)
        h->request[0] = '\0';
    close(fd);
    return NULL;
}

static void start(struct hub *h, const char *answer)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX, .sun_path = SOCKET};

    *h = (struct hub){.answer = answer, .fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    unlink(SOCKET);
    assert_int_equal(bind(h->fd, (struct sockaddr *)&addr, sizeof addr), 0);
    assert_int_equal(listen(h->fd, 4), 0);
    assert_int_equal(pthread_create(&h->thread, NULL, serve, h), 0);
}

static void stop(struct hub *h)
{
    pthread_join(h->thread, NULL);
    close(h->fd);
}

#define OK "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
#define EDGE_1                                                                                     \
    "{\"name\":\"edge-1\",\"state\":\"connected\",\"sinceMs\":1000,\"nowMs\":3601000,"             \
    "\"agentVersion\":\"0.1.0\",\"serverVersion\":\"v1.33.0\",\"nodes\":3,\"objects\":20000,"      \
    "\"bytes\":19500464,\"receivedBytes\":18999156,\"rawBytes\":294665863,\"types\":[]}"
#define EDGE_2                                                                                     \
    "{\"name\":\"edge-2\",\"state\":\"away\",\"sinceMs\":5000,\"nowMs\":6000,"                     \
    "\"agentVersion\":\"\\u001b[31mred\",\"serverVersion\":\"\",\"nodes\":0,\"objects\":0,"        \
    "\"bytes\":12,\"receivedBytes\":0,\"rawBytes\":0}"

static void test_clusters_when_table_then_a_row_each_and_nothing_for_the_terminal(void **state)
{
    struct hub h;

    (void)state;
    start(&h, OK "{\"clusters\":[" EDGE_1 "," EDGE_2 "]}");
    assert_int_equal(ctl("clusters --socket " SOCKET), 0);
    stop(&h);
    assert_int_equal(strncmp(h.request, "GET /clusters HTTP/1.1\r\n", 24), 0);
    assert_string_equal(last_out,
                        "NAME     STATE       AGE   AGENT      KUBERNETES   NODES   OBJECTS   "
                        "BYTES      SAVED\n"
                        "edge-1   connected   60m   0.1.0      v1.33.0      3       20000     "
                        "18.5 MiB   93.6%\n"
                        "edge-2   away        1s    ?[31mred   -            0       0         "
                        "12 B       -\n");
}

static void test_clusters_when_json_then_as_the_hub_tells(void **state)
{
    struct hub h;

    (void)state;
    start(&h, OK "{\"clusters\":[]}");
    assert_int_equal(ctl("clusters -o json --socket " SOCKET), 0);
    stop(&h);
    assert_string_equal(last_out, "{\"clusters\":[]}\n");
}

static void test_clusters_when_the_answer_is_odd_then_one_line(void **state)
{
    static const char *const answers[] = {
        "",      "HTTP/1.1 200 OK\r\n",  "HTTP/1.1 500 Oops\r\n\r\n", "HTTP/2 200\r\n\r\n", OK,
        OK "[]", OK "{\"clusters\":{}}", OK "{\"clusters\":[",
    };

    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct hub h;

        start(&h, answers[i]);
        assert_int_equal(ctl("clusters --socket " SOCKET), 1);
        stop(&h);
        assert_string_equal(last_out, "");
        assert_int_equal(strncmp(last_err, "kuberelayctl: ", 14), 0);
    }
    unlink(SOCKET);
    assert_int_equal(ctl("clusters --socket " SOCKET), 1);
    assert_non_null(strstr(last_err, SOCKET));
    assert_non_null(strstr(last_err, "is the hub running"));
}

static void test_clusters_when_used_wrongly_then_code_2(void **state)
{
    (void)state;
    assert_int_equal(ctl("clusters --output yaml"), 2);
    assert_int_equal(ctl("clusters -o"), 2);
    assert_int_equal(ctl("clusters -x json"), 2);
    assert_int_equal(ctl("clusters -ojson"), 2);
    assert_int_equal(ctl("clusters edge-1"), 2);
    assert_int_equal(ctl("clusters forget"), 2);
    assert_int_equal(ctl("clusters forget ../x"), 2);
}

static void test_forget_when_asked_then_deletes_and_tells_why_not(void **state)
{
    struct hub h;

    (void)state;
    start(&h, "HTTP/1.1 200 OK\r\n\r\nforgotten\n");
    assert_int_equal(ctl("clusters forget edge-1 --socket " SOCKET), 0);
    stop(&h);
    assert_string_equal(last_out, "edge-1\n");
    assert_int_equal(strncmp(h.request, "DELETE /clusters/edge-1 HTTP/1.1\r\n", 34), 0);
    start(&h, "HTTP/1.1 409 Conflict\r\n\r\n");
    assert_int_equal(ctl("clusters forget edge-1 --socket " SOCKET), 1);
    stop(&h);
    assert_non_null(strstr(last_err, "is connected"));
    start(&h, "HTTP/1.1 404 Not Found\r\n\r\n");
    assert_int_equal(ctl("clusters forget edge-9 --socket " SOCKET), 1);
    stop(&h);
    assert_non_null(strstr(last_err, "knows no cluster edge-9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_clusters_when_table_then_a_row_each_and_nothing_for_the_terminal, enter_empty_dir,
            leave_dir),
        cmocka_unit_test_setup_teardown(test_clusters_when_json_then_as_the_hub_tells,
                                        enter_empty_dir, leave_dir),
        cmocka_unit_test_setup_teardown(test_clusters_when_the_answer_is_odd_then_one_line,
                                        enter_empty_dir, leave_dir),
        cmocka_unit_test_setup_teardown(test_clusters_when_used_wrongly_then_code_2,
                                        enter_empty_dir, leave_dir),
        cmocka_unit_test_setup_teardown(test_forget_when_asked_then_deletes_and_tells_why_not,
                                        enter_empty_dir, leave_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
