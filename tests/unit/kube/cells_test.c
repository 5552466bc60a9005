/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const char pods[] =
    "[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":\"d\"},"
    "{\"name\":\"Ready\",\"type\":\"string\"},{\"name\":\"Status\",\"type\":\"string\"},"
    "{\"name\":\"Restarts\",\"type\":\"string\"}, {\"name\" : \"Age\" , \"type\" : \"string\"} ]";

static const struct {
    const char *definition;
    bool age;
    bool timely;
} columns[] = {
    {"{\"name\":\"Age\",\"type\":\"string\"}", true, true},
    {"{\"name\":\"Age\",\"type\":\"date\"}", true, true},
    {"{\"name\":\"Age\",\"type\":\"integer\"}", false, false},
    {"{\"name\":\"Ages\",\"type\":\"string\"}", false, false},
    {"{\"name\":\"Last Seen\",\"type\":\"string\"}", false, true},
    {"{\"name\":\"First Seen\",\"type\":\"string\"}", false, true},
    {"{\"name\":\"Last Schedule\",\"type\":\"string\"}", false, true},
    {"{\"name\":\"Duration\",\"type\":\"string\"}", false, true},
    {"{\"name\":\"Since\",\"type\":\"date\",\"description\":\"when\"}", false, true},
    {"{\"name\":\"Created\",\"type\":\"date\",\"description\":\"Custom resource definition column "
     "(in JSONPath format): .metadata.creationTimestamp\"}",
     true, true},
    {"{\"name\":\"Born\",\"type\":\"date\",\"description\":\"CreationTimestamp is a timestamp "
     "representing the server time\"}",
     true, true},
    {"{\"name\":\"Name\",\"type\":\"string\",\"description\":\"Age\"}", false, false},
};

static void test_columns_when_read_then_those_that_tell_time_are_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(columns); i++) {
        struct kr_columns c;
        char text[256];

        snprintf(text, sizeof text, "[%s]", columns[i].definition);
        assert_int_equal(kr_columns_read(kr_bytes_str(text), &c), 0);
        assert_int_equal(c.n, 1);
        assert_true(kr_bytes_is(c.all[0].text, columns[i].definition));
        if (c.all[0].age != columns[i].age || c.all[0].timely != columns[i].timely)
            fail_msg("%s", columns[i].definition);
    }
}

static void test_columns_when_malformed_or_too_many_then_refused(void **state)
{
    struct kr_columns c;
    struct kr_buf text = {.max = 65536};

    (void)state;
    assert_int_equal(kr_columns_read(KR_LIT("null"), &c), KR_EPROTO);
    assert_int_equal(kr_columns_read(KR_LIT("[{}]"), &c), KR_EPROTO);
    assert_int_equal(kr_columns_read(KR_LIT("[1]"), &c), KR_EPROTO);
    assert_int_equal(kr_columns_read(KR_LIT("[]"), &c), 0);
    assert_int_equal(c.n, 0);
    kr_buf_append_str(&text, "[{\"name\":\"a\"}");
    for (size_t i = 1; i < KR_COLUMNS_MAX; i++)
        kr_buf_append_str(&text, ",{\"name\":\"a\"}");
    kr_buf_append_str(&text, "]");
    assert_int_equal(kr_columns_read(kr_buf_bytes(&text), &c), 0);
    assert_int_equal(c.n, KR_COLUMNS_MAX);
    text.n--;
    kr_buf_append_str(&text, ",{\"name\":\"a\"}]");
    assert_int_equal(kr_columns_read(kr_buf_bytes(&text), &c), KR_EPROTO);
    kr_buf_deinit(&text);
}

static const struct {
    const char *cells;
    const char *steady;
} cells[] = {
    {"[\"a\",\"1/1\",\"Running\",\"0\",\"5d\"]", "\"a\"\n\"1/1\"\n\"Running\"\n\"0\"\n\n"},
    {"[ \"a\" , \"1/1\", \"Running\",\"2 (3h ago)\",\"6d\" ]",
     "\"a\"\n\"1/1\"\n\"Running\"\n\"2\n\n"},
    {"[\"a\",\"1/1\",\"Running\",\"2 (5h2m ago)\",\"6d\"]", "\"a\"\n\"1/1\"\n\"Running\"\n\"2\n\n"},
    {"[\"a\",\"1/1\",\"Running\",\"2 (<invalid> ago)\",\"6d\"]",
     "\"a\"\n\"1/1\"\n\"Running\"\n\"2\n\n"},
    {"[\"long ago)\",\"( ago)\",\" (x y ago)\",\"(3h ago)\",1]",
     "\"long ago)\"\n\"( ago)\"\n\" (x y ago)\"\n\"(3h ago)\"\n\n"},
    {"[\" (3h ago)\",\" ago)\",\"\",2]", "\"\n\" ago)\"\n\"\"\n2\n"},
    {"[\"a\",null,1.50,{\"x\":[1]},\"5d\",\"more\"]",
     "\"a\"\nnull\n1.50\n{\"x\":[1]}\n\n\"more\"\n"},
    {"[]", ""},
};

static void test_steady_when_only_time_went_by_then_the_same(void **state)
{
    struct kr_columns c;

    (void)state;
    assert_int_equal(kr_columns_read(kr_bytes_str(pods), &c), 0);
    assert_int_equal(c.n, 5);
    for (size_t i = 0; i < COUNT(cells); i++) {
        struct kr_buf out = {.max = 1024};

        assert_int_equal(kr_cells_steady(&c, kr_bytes_str(cells[i].cells), &out), 0);
        if (!kr_bytes_is(kr_buf_bytes(&out), cells[i].steady))
            fail_msg("%s: %.*s", cells[i].cells, (int)out.n, (const char *)out.p);
        kr_buf_deinit(&out);
    }
}

static void test_steady_when_it_fails_then_nothing_is_left_behind(void **state)
{
    struct kr_columns c = {.n = 0};
    struct kr_buf out = {.max = 512};

    (void)state;
    kr_buf_append_str(&out, "before");
    assert_int_equal(kr_cells_steady(&c, KR_LIT("{}"), &out), KR_EPROTO);
    out.max = 12;
    assert_int_equal(kr_cells_steady(&c, KR_LIT("[1,22,333,4444]"), &out), KR_ETOOBIG);
    assert_true(kr_bytes_is(kr_buf_bytes(&out), "before"));
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_when_read_then_those_that_tell_time_are_known),
        cmocka_unit_test(test_columns_when_malformed_or_too_many_then_refused),
        cmocka_unit_test(test_steady_when_only_time_went_by_then_the_same),
        cmocka_unit_test(test_steady_when_it_fails_then_nothing_is_left_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
