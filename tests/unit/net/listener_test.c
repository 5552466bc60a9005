/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
    struct kr_loop *loop;
    char dir[32];
    char path[64];
};

static void on_accept(void *owner, int fd, const char *peer)
{
    (void)owner, (void)peer;
    close(fd);
}

static int set_up(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    *state = p;
    if (p == NULL)
        return -1;
    p->loop = kr_loop_create(NULL);
    snprintf(p->dir, sizeof p->dir, "/tmp/kr-listener-XXXXXX");
    if (p->loop == NULL || mkdtemp(p->dir) == NULL)
        return -1;
    snprintf(p->path, sizeof p->path, "%s/socket", p->dir);
    return 0;
}

static int tear_down(void **state)
{
    struct place *p = *state;

    (void)unlink(p->path); /* not there after most tests */
    rmdir(p->dir);
    kr_loop_destroy(p->loop);
    free(p);
    return 0;
}

static struct kr_listener *listen_at(struct place *p, struct kr_note *why)
{
    struct kr_listener_config cfg = {.unix_path = p->path, .on_accept = on_accept};

    return kr_listener_create(p->loop, &cfg, why);
}

static void bind_at(const char *path, bool listens, int *fd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    *fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(*fd >= 0);
    assert_int_equal(bind(*fd, (const struct sockaddr *)&a, sizeof a), 0);
    if (listens)
        assert_int_equal(listen(*fd, 1), 0);
}

static void test_unix_path_when_a_killed_run_left_a_socket_then_it_is_replaced(void **state)
{
    struct place *p = *state;
    struct kr_note why = {""};
    struct kr_listener *l;
    struct stat st;
    int fd;

    bind_at(p->path, false, &fd);
    close(fd);
    l = listen_at(p, &why);
    assert_non_null(l);
    assert_int_equal(stat(p->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    kr_listener_destroy(l);
    assert_int_equal(access(p->path, F_OK), -1);
}

static void test_unix_path_when_somebody_listens_then_it_is_refused(void **state)
{
    struct place *p = *state;
    struct kr_note why = {""};
    int fd;

    bind_at(p->path, true, &fd);
    assert_null(listen_at(p, &why));
    assert_non_null(strstr(why.text, "Address already in use"));
    assert_int_equal(access(p->path, F_OK), 0);
    close(fd);
}

static void test_unix_path_when_it_is_a_file_then_the_file_stays(void **state)
{
    struct place *p = *state;
    struct kr_note why = {""};
    FILE *f = fopen(p->path, "w");
    char text[8] = "";

    assert_non_null(f);
    fputs("mine", f);
    fclose(f);
    assert_null(listen_at(p, &why));
    assert_non_null(strstr(why.text, "Address already in use"));
    f = fopen(p->path, "r");
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text - 1, f), 4);
    fclose(f);
    assert_string_equal(text, "mine");
}

static void test_unix_path_when_it_is_a_link_to_a_file_then_both_stay(void **state)
{
    struct place *p = *state;
    struct kr_note why = {""};
    struct stat st;

    assert_int_equal(symlink("/etc/hostname", p->path), 0);
    assert_null(listen_at(p, &why));
    assert_int_equal(lstat(p->path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_unix_path_when_a_killed_run_left_a_socket_then_it_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unix_path_when_somebody_listens_then_it_is_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unix_path_when_it_is_a_file_then_the_file_stays,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unix_path_when_it_is_a_link_to_a_file_then_both_stay,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
