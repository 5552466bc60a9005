/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
static int read_event(const char *line, struct kr_watch_event *e)
{
    struct kr_note why = {.text = ""};
    int rc = kr_watch_event_read(kr_bytes_str(line), e, &why);

    assert_true((rc == 0) == (why.text[0] == '\0'));
    return rc;
}

static void test_event_when_plain_then_type_object_and_version(void **state)
{
    static const struct {
        const char *name;
        enum kr_event_type type;
    } types[] = {
        {"ADDED", KR_EVENT_ADDED},
        {"MODIFIED", KR_EVENT_MODIFIED},
        {"DELETED", KR_EVENT_DELETED},
        {"BOOKMARK", KR_EVENT_BOOKMARK},
    };
    static const char object[] = "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"12\"}}";
    struct kr_watch_event e;
    char line[200];

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(types); i++) {
        const char *type = types[i / 2].name;

        if (i % 2 == 0)
            snprintf(line, sizeof line, "{\"type\":\"%s\",\"object\":%s}", type, object);
        else
            snprintf(line, sizeof line, " { \"object\" : %s , \"x\":1, \"type\" : \"%s\" } \r",
                     object, type);
        assert_int_equal(read_event(line, &e), 0);
        assert_int_equal(e.type, types[i / 2].type);
        assert_true(kr_bytes_is(e.object, object) && kr_bytes_is(e.version, "12"));
        assert_true(e.cells.n == 0 && e.columns.n == 0 && !e.initial_end && e.code == 0);
    }
}

static void test_event_when_a_table_then_its_row(void **state)
{
    struct kr_watch_event e;

    (void)state;
    assert_int_equal(
        read_event(
            "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
            "\"metadata\":{\"resourceVersion\":\"5\"},\"columnDefinitions\":[{\"name\":\"N\"}],"
            "\"rows\":[{\"cells\":[\"a\",1],\"object\":{\"kind\":\"Pod\",\"metadata\":"
            "{\"resourceVersion\":\"7\"}}}]}}",
            &e),
        0);
    assert_true(kr_bytes_is(e.columns, "[{\"name\":\"N\"}]") && kr_bytes_is(e.cells, "[\"a\",1]"));
    assert_true(kr_bytes_starts(e.object, KR_LIT("{\"kind\":\"Pod\"")));
    assert_true(kr_bytes_is(e.version, "7"));
    assert_int_equal(
        read_event("{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":"
                   "\"meta.k8s.io/v1\",\"columnDefinitions\":null,\"rows\":[{\"object\":{}}]}}",
                   &e),
        0);
    assert_true(e.columns.n == 0 && e.cells.n == 0 && kr_bytes_is(e.object, "{}"));
    assert_int_equal(e.version.n, 0);
}

/* Somebody's own kind of that name is an object like any other. */
static void test_event_when_a_table_of_another_group_then_an_object(void **state)
{
    struct kr_watch_event e;

    (void)state;
    assert_int_equal(read_event("{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":"
                                "\"example.com/v1\",\"rows\":[]}}",
                                &e),
                     0);
    assert_true(kr_bytes_starts(e.object, KR_LIT("{\"kind\":\"Table\"")));
}

static void test_event_when_the_bookmark_of_the_end_then_told(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":"
        "\"9\","
        "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
        "\"metadata\":{\"resourceVersion\":\"9\"},\"rows\":[{\"cells\":[],\"object\":{\"metadata\":"
        "{\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}]}}",
    };
    struct kr_watch_event e;

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_int_equal(read_event(lines[i], &e), 0);
        assert_true(e.type == KR_EVENT_BOOKMARK && e.initial_end && kr_bytes_is(e.version, "9"));
    }
    assert_int_equal(read_event("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":"
                                "{\"k8s.io/initial-events-end\":\"true\"}}}}",
                                &e),
                     0);
    assert_false(e.initial_end); /* only a bookmark ends them */
}

static void test_event_when_a_bookmark_has_no_row_then_no_object(void **state)
{
    static const char *const rows[] = {"[]", "null", "[{}]", "[{\"object\":null}]"};
    struct kr_watch_event e;
    char line[300];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(line, sizeof line,
                 "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Table\",\"apiVersion\":"
                 "\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"8\"},\"rows\":%s}}",
                 rows[i]);
        assert_int_equal(read_event(line, &e), 0);
        assert_true(e.object.n == 0 && kr_bytes_is(e.version, "8"));
        memcpy(strstr(line, "BOOKMARK"), "MODIFIED", 8);
        assert_int_equal(read_event(line, &e), KR_EPROTO);
    }
}

static void test_event_when_an_error_then_the_status(void **state)
{
    struct kr_watch_event e;

    (void)state;
    assert_int_equal(
        read_event("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":"
                   "\"Expired\",\"message\":\"too \\\"old\\\"\",\"details\":"
                   "{\"retryAfterSeconds\":3}}}",
                   &e),
        0);
    assert_int_equal(e.type, KR_EVENT_ERROR);
    assert_int_equal(e.code, 410);
    assert_true(kr_bytes_is(e.reason, "Expired") && kr_bytes_is(e.message, "too \\\"old\\\""));
    assert_int_equal(e.retry_after_s, 3);
    assert_int_equal(read_event("{\"type\":\"ERROR\",\"object\":{\"code\":-1,\"reason\":5,"
                                "\"details\":{\"retryAfterSeconds\":1e3}}}",
                                &e),
                     0);
    assert_true(e.code == 0 && e.reason.n == 0 && e.message.n == 0 && e.retry_after_s == 0);
}

static void test_event_when_not_one_then_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "null",
        "{\"type\":\"ADDED\"}",
        "{\"object\":{}}",
        "{\"type\":\"added\",\"object\":{}}",
        "{\"type\":\"GONE\",\"object\":{}}",
        "{\"type\":1,\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":null}",
        "{\"type\":\"ADDED\",\"object\":[]}",
        "{\"type\":\"ADDED\",\"object\":{}",
        "{\"type\":\"ADDED\",\"object\":{}}}",
        "{\"type\":\"ADDED\" \"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":{},}",
        "{\"type\":\"ADDED\",,\"object\":{}}",
        "{,\"type\":\"ADDED\",\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\" {}}",
        "{\"type\":\"ADDED\",\"object\":{\"a\":1,}}",
        "{\"type\":\"ADDED\",\"object\":{\"a\" 1}}",
        "{\"type\":\"ADDED\",\"object\":{\"a\"}}",
        "{\"type\":\"ADDED\",\"object\":{\"a\":}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{]}}",
        "{\"type\":\"ADDED\",\"object\":{}} x",
        "{\"type\":\"DELETED\",\"object\":{\"a\":01}}",
        "{\"type\":\"DELETED\",\"object\":{\"a\":[{]}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"a\":\"\t\"}}",
        "{\"type\":\"ERROR\",\"object\":{\"a\":{\"b\",}}}",
        "{\"type\":\"ADDED\",\"type\":\"ADDED\",\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":{},\"\\u006fbject\":{}}",
    };
    struct kr_watch_event e;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        if (read_event(bad[i], &e) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
    }
}

/* Who uses it checks what it uses. */
static void test_event_when_an_object_is_odd_inside_then_framed(void **state)
{
    static const char *const objects[] = {"{\"a\":01}", "{\"a\":[{\"b\"}]}", "{\"a\":\"\x01\"}",
                                          "{\"a\":{\"b\" \"}\"}}"};
    struct kr_watch_event e;
    char line[200];

    (void)state;
    for (size_t i = 0; i < COUNT(objects); i++) {
        snprintf(line, sizeof line, "{\"type\":\"MODIFIED\",\"object\":%s}", objects[i]);
        assert_int_equal(read_event(line, &e), 0);
        assert_true(kr_bytes_is(e.object, objects[i]));
        snprintf(line, sizeof line, "{\"type\":\"DELETED\",\"object\":%s}", objects[i]);
        assert_int_equal(read_event(line, &e), KR_EPROTO);
    }
}

static void test_event_when_a_row_is_odd_then_refused(void **state)
{
    static const char *const rows[] = {
        "{\"cells\":[01],\"object\":{}}", "{\"cells\":[1],\"object\":{},}",
        "{\"cells\":[1] \"object\":{}}", "{\"cells\":,\"object\":{}}"};
    struct kr_watch_event e;
    char line[300];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(line, sizeof line,
                 "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":"
                 "\"meta.k8s.io/v1\",\"rows\":[%s]}}",
                 rows[i]);
        assert_int_equal(read_event(line, &e), KR_EPROTO);
    }
}

/* Whichever member comes first. */
static void test_event_when_members_are_in_another_order_then_the_same(void **state)
{
    static const char *const lines[] = {
        "{\"type\":\"MODIFIED\",\"object\":{\"rows\":[{\"object\":{\"metadata\":{"
        "\"resourceVersion\":"
        "\"7\"}},\"cells\":[1]}],\"metadata\":{\"resourceVersion\":\"5\"},\"apiVersion\":"
        "\"meta.k8s.io/v1\",\"kind\":\"Table\"}}",
        "{\"object\":{\"apiVersion\":\"meta.k8s.io/"
        "v1\",\"kind\":\"Table\",\"rows\":[{\"cells\":[1],"
        "\"object\":{\"metadata\":{\"resourceVersion\":\"7\"}}}],\"metadata\":{\"resourceVersion\":"
        "\"5\"}},\"type\":\"MODIFIED\"}",
        "{ \"object\" : { \"apiVersion\" : \"meta.k8s.io/v1\" , \"kind\" : \"Table\" , \"rows\" : "
        "[ { "
        "\"cells\" : [1] , \"object\" : {\"metadata\":{\"resourceVersion\":\"7\"}} } ] } , "
        "\"type\" : "
        "\"MODIFIED\" } ",
    };
    struct kr_watch_event e;

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_int_equal(read_event(lines[i], &e), 0);
        assert_true(kr_bytes_is(e.object, "{\"metadata\":{\"resourceVersion\":\"7\"}}"));
        assert_true(kr_bytes_is(e.cells, "[1]") && kr_bytes_is(e.version, "7"));
    }
    assert_int_equal(
        read_event("{\"type\":\"ADDED\",\"object\":{\"rows\":[{\"object\":{}}],\"kind\":"
                   "\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"rows\":[{\"object\":{}}]}}",
                   &e),
        KR_EPROTO);
}

static void test_event_when_a_table_has_not_one_row_then_refused(void **state)
{
    static const char *const rows[] = {"[{\"object\":{}},{\"object\":{}}]",
                                       "[[]]",
                                       "[{\"object\":1}]",
                                       "{}",
                                       "[]",
                                       "null",
                                       "[{}]"};
    struct kr_watch_event e;
    char line[300];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        snprintf(line, sizeof line,
                 "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\",\"apiVersion\":"
                 "\"meta.k8s.io/v1\",\"rows\":%s}}",
                 rows[i]);
        assert_int_equal(read_event(line, &e), KR_EPROTO);
    }
}

/* F033 */
static void test_f033_event_when_too_deep_then_too_big(void **state)
{
    static const size_t depths[] = {1000, 2047, 2048, 2049, 10001};

    (void)state;
    for (size_t i = 0; i < COUNT(depths); i++) {
        struct kr_watch_event e;
        struct kr_buf line;

        kr_buf_init(&line, 1 << 20);
        kr_buf_append_str(&line, "{\"type\":\"ADDED\",\"object\":{\"a\":");
        for (size_t d = 0; d < depths[i]; d++)
            kr_buf_append_str(&line, "[");
        for (size_t d = 0; d < depths[i]; d++)
            kr_buf_append_str(&line, "]");
        kr_buf_append_str(&line, "}}");
        assert_int_equal(kr_watch_event_read(kr_buf_bytes(&line), &e, NULL),
                         depths[i] <= KR_SCAN_DEPTH_MAX ? 0 : KR_ETOOBIG);
        kr_buf_deinit(&line);
    }
}

/* ---- lines ---- */

struct sink {
    struct kr_event_reader reader;
    struct kr_buf told; /* lines in angle brackets, "!n" for those skipped */
    unsigned calls;
    unsigned stop_at;
};

static int on_line(void *user, struct kr_bytes line)
{
    struct sink *s = user;

    kr_buf_append_str(&s->told, "<");
    kr_buf_append(&s->told, line);
    kr_buf_append_str(&s->told, ">");
    return ++s->calls == s->stop_at ? KR_EFULL : 0;
}

static void on_skipped(void *user, uint64_t n)
{
    struct sink *s = user;

    kr_buf_printf(&s->told, "!%llu", (unsigned long long)n);
}

static void start(struct sink *s, size_t line_max)
{
    static const struct kr_event_reader_ops ops = {on_line, on_skipped};

    memset(s, 0, sizeof *s);
    kr_buf_init(&s->told, 1 << 22);
    kr_event_reader_init(&s->reader, &ops, s, line_max);
}

static void stop(struct sink *s)
{
    kr_event_reader_deinit(&s->reader);
    kr_buf_deinit(&s->told);
}

static int feed(struct sink *s, struct kr_bytes in)
{
    uint8_t *copy = malloc(in.n != 0 ? in.n : 1);
    int rc;

    assert_non_null(copy);
    if (in.n != 0)
        memcpy(copy, in.p, in.n);
    rc = kr_event_reader_feed(&s->reader, kr_bytes_of(copy, in.n));
    free(copy);
    return rc;
}

static void test_lines_when_cut_in_two_anywhere_then_the_same(void **state)
{
    const struct kr_bytes all =
        KR_LIT("one\ntwo \xf0\x9f\x9a\x80\r\n\n\r\nfar too long\n1234567890\nthree\nrest");
    static const char want[] = "<one><two \xf0\x9f\x9a\x80>!12<1234567890><three>";

    (void)state;
    for (size_t a = 0; a <= all.n; a++) {
        for (size_t b = a; b <= all.n; b++) {
            struct sink s;

            start(&s, 10);
            assert_int_equal(feed(&s, kr_bytes_of(all.p, a)), 0);
            assert_int_equal(feed(&s, kr_bytes_of(all.p + a, b - a)), 0);
            assert_int_equal(feed(&s, kr_bytes_skip(all, b)), 0);
            assert_true(kr_bytes_is(kr_buf_bytes(&s.told), want));
            stop(&s);
        }
    }
}

/* F034: an annotation of 3,000 emoji and one of letters of three bytes, in pieces of many sizes. */
static void test_f034_lines_when_characters_are_split_then_whole(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 2047, 2048, 4095, 4096};
    struct kr_buf line;

    (void)state;
    kr_buf_init(&line, 1 << 16);
    kr_buf_append_str(&line,
                      "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"annotations\":{\"e\":\"");
    for (int i = 0; i < 3000; i++)
        kr_buf_append_str(&line, "\xf0\x9f\x9a\x80");
    kr_buf_append_str(&line, "\",\"k\":\"");
    for (int i = 0; i < 3000; i++)
        kr_buf_append_str(&line, "\xe2\x82\xac");
    kr_buf_append_str(&line, "\"}}}}");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct kr_bytes told;
        struct sink s;

        start(&s, 1 << 20);
        for (int twice = 0; twice < 2; twice++) {
            for (size_t at = 0; at < line.n; at += sizes[i])
                feed(&s, kr_bytes_of(line.p + at, line.n - at < sizes[i] ? line.n - at : sizes[i]));
            assert_int_equal(s.calls, twice);
            feed(&s, twice == 0 ? KR_LIT("\r\n") : KR_LIT("\n"));
            assert_int_equal(s.calls, twice + 1); /* as soon as its end is there */
        }
        told = kr_buf_bytes(&s.told);
        assert_int_equal(told.n, 2 * (line.n + 2));
        assert_memory_equal(told.p + 1, line.p, line.n);
        assert_memory_equal(told.p + 3 + line.n, line.p, line.n);
        stop(&s);
    }
    kr_buf_deinit(&line);
}

static void test_lines_when_one_is_endless_then_no_memory_is_held(void **state)
{
    uint8_t piece[1000];
    struct sink s;

    (void)state;
    memset(piece, '[', sizeof piece);
    start(&s, 4096);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(feed(&s, kr_bytes_of(piece, sizeof piece)), 0);
    assert_int_equal(s.reader.line.cap, 0);
    feed(&s, KR_LIT("\nnext\n"));
    assert_true(kr_bytes_is(kr_buf_bytes(&s.told), "!2000000<next>"));
    stop(&s);
}

static void test_lines_when_the_owner_stops_then_his_code_sticks(void **state)
{
    struct sink s;

    (void)state;
    start(&s, 100);
    s.stop_at = 2;
    assert_int_equal(feed(&s, KR_LIT("a\nb\nc\n")), KR_EFULL);
    assert_int_equal(feed(&s, KR_LIT("d\n")), KR_EFULL);
    assert_int_equal(s.calls, 2);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_when_plain_then_type_object_and_version),
        cmocka_unit_test(test_event_when_a_table_then_its_row),
        cmocka_unit_test(test_event_when_a_table_of_another_group_then_an_object),
        cmocka_unit_test(test_event_when_the_bookmark_of_the_end_then_told),
        cmocka_unit_test(test_event_when_a_bookmark_has_no_row_then_no_object),
        cmocka_unit_test(test_event_when_an_error_then_the_status),
        cmocka_unit_test(test_event_when_not_one_then_refused),
        cmocka_unit_test(test_event_when_an_object_is_odd_inside_then_framed),
        cmocka_unit_test(test_event_when_a_row_is_odd_then_refused),
        cmocka_unit_test(test_event_when_members_are_in_another_order_then_the_same),
        cmocka_unit_test(test_event_when_a_table_has_not_one_row_then_refused),
        cmocka_unit_test(test_f033_event_when_too_deep_then_too_big),
        cmocka_unit_test(test_lines_when_cut_in_two_anywhere_then_the_same),
        cmocka_unit_test(test_f034_lines_when_characters_are_split_then_whole),
        cmocka_unit_test(test_lines_when_one_is_endless_then_no_memory_is_held),
        cmocka_unit_test(test_lines_when_the_owner_stops_then_his_code_sticks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
