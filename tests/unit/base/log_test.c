/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t fixed_wall_ms(void)
{
    return 1795964400123; /* 2026-11-29T15:00:00.123Z */
}

struct sink {
    struct kr_log log;
    int fds[2];
    char line[2 * KR_LOG_LINE_MAX];
    size_t n;
};

static int setup(void **state)
{
    static struct sink s;

    s = (struct sink){.n = 0};
    assert_int_equal(pipe(s.fds), 0);
    kr_log_init(&s.log, s.fds[1], KR_LOG_INFO);
    s.log.now_wall_ms = fixed_wall_ms;
    *state = &s;
    return 0;
}

static int teardown(void **state)
{
    struct sink *s = *state;

    close(s->fds[0]);
    close(s->fds[1]);
    return 0;
}

static const char *line(struct sink *s)
{
    ssize_t n = read(s->fds[0], s->line, sizeof s->line - 1);

    assert_true(n > 0);
    s->n = (size_t)n;
    s->line[n] = '\0';
    return s->line;
}

static void test_line_has_time_level_event_and_fields(void **state)
{
    struct sink *s = *state;

    KR_LOG_AT(&s->log, KR_LOG_INFO, "tunnel-up", KR_S("cluster", "c1"), KR_U("streams", 5),
              KR_I("delta", -3), KR_T("again", true), KR_B("lane", KR_LIT("bulk")));
    assert_string_equal(line(s), "time=2026-11-29T15:00:00.123Z level=info event=tunnel-up "
                                 "cluster=c1 streams=5 delta=-3 again=true lane=bulk\n");
    KR_LOG_AT(&s->log, KR_LOG_ERROR, "stopped");
    assert_string_equal(line(s), "time=2026-11-29T15:00:00.123Z level=error event=stopped\n");
}

static void test_values_when_not_plain_are_quoted_and_escaped(void **state)
{
    struct sink *s = *state;

    KR_LOG_AT(&s->log, KR_LOG_WARN, "odd", KR_S("a", "two words"), KR_S("b", "x\" level=error"),
              KR_S("c", "1\n2\r\t\x1b[31m"), KR_S("d", "\xC3\xA4"), KR_S("e", ""), KR_S("f", NULL),
              KR_S("g", "back\\slash"), KR_B("h", kr_bytes_of("\0", 1)));
    assert_string_equal(
        line(s), "time=2026-11-29T15:00:00.123Z level=warn event=odd a=\"two words\" "
                 "b=\"x\\\" level=error\" c=\"1\\n2\\r\\t\\x1b[31m\" d=\"\\xc3\\xa4\" e=\"\" "
                 "f=\"\" g=\"back\\\\slash\" h=\"\\x00\"\n");
}

static void test_levels_when_too_noisy_then_values_are_not_evaluated(void **state)
{
    struct sink *s = *state;
    int evaluated = 0;

    KR_LOG_AT(&s->log, KR_LOG_DEBUG, "noise", KR_I("n", ++evaluated));
    KR_LOG_AT((struct kr_log *)NULL, KR_LOG_ERROR, "silence", KR_I("n", ++evaluated));
    assert_int_equal(evaluated, 0);
    KR_LOG_AT(&s->log, KR_LOG_INFO, "end");
    assert_non_null(strstr(line(s), "event=end"));
}

static void test_line_when_too_long_is_cut_whole_and_marked(void **state)
{
    struct sink *s = *state;
    static char big[3 * KR_LOG_LINE_MAX];

    for (int fill = 0; fill < 3; fill++) {
        for (size_t n = 3900; n < 4200; n++) {
            const char *text;

            memset(big, fill == 0 ? 'x' : fill == 1 ? ' ' : '\n', n);
            KR_LOG_AT(&s->log, KR_LOG_INFO, "big", KR_B("v", kr_bytes_of(big, n)),
                      KR_S("after", "more"));
            text = line(s);
            assert_true(s->n <= KR_LOG_LINE_MAX);
            assert_int_equal(text[s->n - 1], '\n');
            assert_ptr_equal(strchr(text, '\n'), text + s->n - 1);
            if (strstr(text, "after=more") == NULL)
                assert_non_null(strstr(text, " cut=true\n"));
            if (fill != 0)
                assert_non_null(strstr(strchr(text, '"') + 1, "\""));
        }
    }
}

static void test_allow_when_burst_is_used_holds_back_and_counts(void **state)
{
    struct kr_log_limit limit = {0};
    uint64_t held;

    (void)state;
    assert_true(kr_log_allow(&limit, 1000, 2, 100, &held));
    assert_true(kr_log_allow(&limit, 1001, 2, 100, &held));
    assert_false(kr_log_allow(&limit, 1002, 2, 100, &held));
    assert_false(kr_log_allow(&limit, 1099, 2, 100, NULL));
    assert_true(kr_log_allow(&limit, 1100, 2, 100, &held));
    assert_int_equal(held, 2);
    assert_true(kr_log_allow(&limit, 1101, 2, 100, &held));
    assert_int_equal(held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_line_has_time_level_event_and_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(test_values_when_not_plain_are_quoted_and_escaped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_levels_when_too_noisy_then_values_are_not_evaluated,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_line_when_too_long_is_cut_whole_and_marked, setup,
                                        teardown),
        cmocka_unit_test(test_allow_when_burst_is_used_holds_back_and_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
