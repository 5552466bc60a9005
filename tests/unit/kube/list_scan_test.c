/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define ITEM_MAX 4096

/* What came of a list, in words: items in angle brackets, "!n" for those skipped. */
struct reader {
    struct kr_list_scan scan;
    struct kr_buf told;
    struct kr_bytes chunk; /* the one that is being fed */
    unsigned in_place;
    unsigned calls;
    unsigned stop_at; /* the call that returns KR_EFULL */
    size_t columns_at_item;
    struct kr_note why;
};

static int on_item(void *user, struct kr_bytes item)
{
    struct reader *r = user;

    kr_buf_append_str(&r->told, "<");
    kr_buf_append(&r->told, item);
    kr_buf_append_str(&r->told, ">");
    r->in_place += item.p >= r->chunk.p && item.p + item.n <= r->chunk.p + r->chunk.n;
    r->columns_at_item = r->scan.columns.n;
    return ++r->calls == r->stop_at ? KR_EFULL : 0;
}

static void on_skipped(void *user, uint64_t n)
{
    struct reader *r = user;

    kr_buf_printf(&r->told, "!%llu", (unsigned long long)n);
}

static void start(struct reader *r)
{
    static const struct kr_list_scan_ops ops = {on_item, on_skipped};

    memset(r, 0, sizeof *r);
    kr_buf_init(&r->told, 1 << 22);
    assert_int_equal(kr_list_scan_init(&r->scan, &ops, r, ITEM_MAX), 0);
}

/* A copy of just this size, so that a sanitizer sees one byte too far. */
static int feed(struct reader *r, struct kr_bytes in)
{
    uint8_t *copy = malloc(in.n != 0 ? in.n : 1);
    int rc;

    assert_non_null(copy);
    if (in.n != 0)
        memcpy(copy, in.p, in.n);
    r->chunk = kr_bytes_of(copy, in.n);
    rc = kr_list_scan_feed(&r->scan, r->chunk);
    free(copy);
    return rc;
}

static int end(struct reader *r)
{
    int rc = kr_list_scan_end(&r->scan, &r->why);

    assert_true((rc == 0) == (r->why.text[0] == '\0'));
    return rc;
}

static void stop(struct reader *r)
{
    kr_list_scan_deinit(&r->scan);
    kr_buf_deinit(&r->told);
}

static int read_whole(struct reader *r, const char *list)
{
    start(r);
    feed(r, kr_bytes_str(list));
    return end(r);
}

static bool told(const struct reader *r, const char *what)
{
    return kr_bytes_is(kr_buf_bytes(&r->told), what);
}

static const char pods[] =
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\\u0037\","
    "\"continue\":\"abc\",\"remainingItemCount\":4},\"items\":[{\"a\":\"]}\\\\\\\"\"},{}, "
    "{\"b\":[{\"c\":\"caf\xc3\xa9 \xf0\x9f\x9a\x80\"}]} ,[1,[]]]}\n";
static const char pods_told[] = "<{\"a\":\"]}\\\\\\\"\"}><{}>"
                                "<{\"b\":[{\"c\":\"caf\xc3\xa9 \xf0\x9f\x9a\x80\"}]}><[1,[]]>";

static void check_pods(struct reader *r)
{
    assert_int_equal(end(r), 0);
    assert_true(told(r, pods_told));
    assert_true(kr_bytes_is(kr_buf_bytes(&r->scan.version), "17"));
    assert_true(kr_bytes_is(kr_buf_bytes(&r->scan.cont), "abc"));
    assert_true(kr_bytes_is(kr_buf_bytes(&r->scan.kind), "PodList"));
    assert_int_equal(r->scan.items, 4);
}

static void test_list_when_cut_in_two_anywhere_then_the_same(void **state)
{
    const struct kr_bytes all = KR_LIT(pods);

    (void)state;
    for (size_t at = 0; at <= all.n; at++) {
        struct reader r;

        start(&r);
        assert_int_equal(feed(&r, kr_bytes_of(all.p, at)), 0);
        assert_int_equal(feed(&r, kr_bytes_skip(all, at)), 0);
        check_pods(&r);
        stop(&r);
    }
}

/* F034: characters of several bytes in pieces of one to seven bytes. */
static void test_f034_list_when_in_small_pieces_then_the_same(void **state)
{
    (void)state;
    for (size_t size = 1; size <= 7; size++) {
        struct kr_bytes rest = KR_LIT(pods);
        struct reader r;

        start(&r);
        while (rest.n != 0) {
            const size_t n = rest.n < size ? rest.n : size;

            assert_int_equal(feed(&r, kr_bytes_of(rest.p, n)), 0);
            rest = kr_bytes_skip(rest, n);
        }
        check_pods(&r);
        stop(&r);
    }
}

static void test_list_when_items_lie_in_one_chunk_then_not_copied(void **state)
{
    struct reader r;

    (void)state;
    assert_int_equal(read_whole(&r, pods), 0);
    assert_int_equal(r.in_place, 4);
    stop(&r);
}

static void test_list_when_cut_short_then_an_error(void **state)
{
    (void)state;
    for (size_t n = 0; n + 2 < sizeof pods - 1; n++) {
        struct reader r;

        start(&r);
        assert_int_equal(feed(&r, kr_bytes_of(pods, n)), 0);
        assert_int_equal(end(&r), KR_EPROTO);
        assert_non_null(strstr(r.why.text, "cut short"));
        assert_int_equal(feed(&r, kr_bytes_str("x")), KR_EPROTO); /* it sticks */
        stop(&r);
    }
}

/* F027: null for no items. */
static void test_f027_list_when_items_are_null_then_empty(void **state)
{
    static const char *const lists[] = {
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}",
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}",
        "{\"items\": [ ] ,\"metadata\":{\"resourceVersion\":\"5\"},\"kind\":\"PodList\"}",
        "{\"items\":null,\"metadata\":{\"resourceVersion\":\"5\",\"continue\":null},\"kind\":"
        "\"PodList\"}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct reader r;

        assert_int_equal(read_whole(&r, lists[i]), 0);
        assert_true(told(&r, "") && r.scan.items == 0 && r.scan.cont.n == 0);
        assert_true(kr_bytes_is(kr_buf_bytes(&r.scan.version), "5"));
        assert_true(kr_bytes_is(kr_buf_bytes(&r.scan.kind), "PodList"));
        stop(&r);
    }
}

static void test_list_when_members_stand_in_any_order_then_the_same(void **state)
{
    static const char *const members[] = {"\"kind\":\"L\"", "\"items\":[{\"x\":1}]",
                                          "\"metadata\":{\"resourceVersion\":\"9\"}",
                                          "\"other\":{\"items\":[{}],\"kind\":\"no\"}"};

    (void)state;
    for (unsigned order = 0; order < 256; order++) {
        const unsigned at[] = {order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6 & 3};
        struct reader r;
        char list[300];

        if ((1U << at[0] | 1U << at[1] | 1U << at[2] | 1U << at[3]) != 15)
            continue;
        snprintf(list, sizeof list, " { %s,%s , %s,\n%s}", members[at[0]], members[at[1]],
                 members[at[2]], members[at[3]]);
        assert_int_equal(read_whole(&r, list), 0);
        assert_true(told(&r, "<{\"x\":1}>"));
        assert_true(kr_bytes_is(kr_buf_bytes(&r.scan.kind), "L"));
        assert_true(kr_bytes_is(kr_buf_bytes(&r.scan.version), "9"));
        stop(&r);
    }
}

static void test_list_when_keys_are_escaped_then_they_count(void **state)
{
    struct reader r;

    (void)state;
    assert_int_equal(read_whole(&r, "{\"\\u0069tems\":[{}],\"ki\\u006ed\":\"L\"}"), 0);
    assert_true(told(&r, "<{}>") && kr_bytes_is(kr_buf_bytes(&r.scan.kind), "L"));
    stop(&r);
}

static void test_table_when_columns_come_first_then_there_at_the_rows(void **state)
{
    struct reader r;

    (void)state;
    assert_int_equal(read_whole(&r, "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"3\"},"
                                    "\"columnDefinitions\":[{\"name\":\"Name\"}],"
                                    "\"rows\":[{\"cells\":[\"a\"],\"object\":{}}]}"),
                     0);
    assert_true(told(&r, "<{\"cells\":[\"a\"],\"object\":{}}>"));
    assert_true(kr_bytes_is(kr_buf_bytes(&r.scan.columns), "[{\"name\":\"Name\"}]"));
    assert_int_equal(r.columns_at_item, r.scan.columns.n);
    stop(&r);
    assert_int_equal(read_whole(&r, "{\"rows\":[{}],\"columnDefinitions\":null}"), 0);
    assert_true(told(&r, "<{}>") && r.scan.columns.n == 0);
    stop(&r);
}

/* `items` of ITEM_MAX - 1, ITEM_MAX and ITEM_MAX + 1 bytes, in chunks of many sizes. */
static void test_list_when_an_item_is_too_large_then_skipped_and_the_rest_comes(void **state)
{
    static const size_t chunks[] = {1, 100, ITEM_MAX, 1 << 20};

    (void)state;
    for (size_t c = 0; c < COUNT(chunks); c++) {
        struct kr_bytes rest;
        struct kr_buf list;
        struct reader r;
        char last[32];

        kr_buf_init(&list, 1 << 16);
        kr_buf_append_str(&list, "{\"items\":[");
        for (size_t size = ITEM_MAX - 1; size <= ITEM_MAX + 1; size++)
            kr_buf_printf(&list, "{\"a\":\"%0*d\"},", (int)size - 8, 0);
        kr_buf_append_str(&list, "{}]}");
        start(&r);
        for (rest = kr_buf_bytes(&list); rest.n != 0;) {
            const size_t n = rest.n < chunks[c] ? rest.n : chunks[c];

            assert_int_equal(feed(&r, kr_bytes_of(rest.p, n)), 0);
            rest = kr_bytes_skip(rest, n);
        }
        assert_int_equal(end(&r), 0);
        assert_int_equal(r.calls, 3);
        assert_int_equal(r.scan.items, 4);
        snprintf(last, sizeof last, "!%d<{}>", ITEM_MAX + 1);
        assert_memory_equal(r.told.p + r.told.n - strlen(last), last, strlen(last));
        stop(&r);
        kr_buf_deinit(&list);
    }
}

static void put_deep(struct kr_buf *list, size_t depth, const char *open, const char *close)
{
    for (size_t i = 0; i < depth; i++)
        kr_buf_append_str(list, open);
    kr_buf_append_str(list, "0");
    for (size_t i = 0; i < depth; i++)
        kr_buf_append_str(list, close);
}

/* F033: what is too deep is skipped, the list goes on. */
static void test_f033_list_when_an_item_is_too_deep_then_skipped_and_the_rest_comes(void **state)
{
    static const size_t depths[] = {33, 64, 200, 1000, 9999, 10001, 2000000};

    (void)state;
    for (size_t i = 0; i < COUNT(depths); i++) {
        const bool fits = 2 * depths[i] + 1 <= ITEM_MAX;
        struct kr_buf list;
        struct reader r;

        kr_buf_init(&list, 1 << 23);
        kr_buf_append_str(&list, "{\"items\":[");
        put_deep(&list, depths[i], "[", "]");
        kr_buf_append_str(&list, ",{}]}");
        start(&r);
        assert_int_equal(feed(&r, kr_buf_bytes(&list)), 0);
        assert_int_equal(end(&r), 0);
        assert_int_equal(r.calls, fits ? 2 : 1);
        assert_int_equal(r.scan.items, 2);
        stop(&r);
        kr_buf_deinit(&list);
    }
}

static void test_list_when_an_item_is_small_but_too_deep_then_skipped(void **state)
{
    static const struct kr_list_scan_ops ops = {on_item, on_skipped};
    struct kr_buf list;
    struct reader r;

    (void)state;
    kr_buf_init(&list, 1 << 16);
    kr_buf_append_str(&list, "{\"items\":[");
    put_deep(&list, KR_SCAN_DEPTH_MAX, "[", "]");
    kr_buf_append_str(&list, ",");
    put_deep(&list, KR_SCAN_DEPTH_MAX + 1, "[", "]");
    kr_buf_append_str(&list, "]}");
    start(&r);
    kr_list_scan_deinit(&r.scan);
    assert_int_equal(kr_list_scan_init(&r.scan, &ops, &r, 1 << 16), 0);
    assert_int_equal(feed(&r, kr_buf_bytes(&list)), 0);
    assert_int_equal(end(&r), 0);
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.scan.items, 2);
    stop(&r);
    kr_buf_deinit(&list);
}

/* Two million '[' that never close: no stack, no memory, an error at the end. */
static void test_f033_list_when_brackets_never_close_then_cut_short(void **state)
{
    uint8_t brackets[1000];
    struct reader r;

    (void)state;
    memset(brackets, '[', sizeof brackets);
    start(&r);
    assert_int_equal(feed(&r, KR_LIT("{\"items\":[")), 0);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(feed(&r, kr_bytes_of(brackets, sizeof brackets)), 0);
    assert_int_equal(end(&r), KR_EPROTO);
    stop(&r);
}

static void test_list_when_malformed_then_refused(void **state)
{
    static const char *const bad[] = {"[]",
                                      "1",
                                      "x{\"items\":[]}",
                                      "{\"items\":[]}x",
                                      "{\"items\":[]}{}",
                                      "{\"items\":[,]}",
                                      "{\"items\":[{},]}",
                                      "{\"items\":[{} {}]}",
                                      "{\"items\":[{}}",
                                      "{\"items\" []}",
                                      "{\"items\":{}}",
                                      "{\"items\":1}",
                                      "{\"items\":\"\"}",
                                      "{items:[]}",
                                      "{,\"items\":[]}",
                                      "{\"items\":[],}",
                                      "{\"items\":}",
                                      "{\"kind\":1,\"items\":[]}",
                                      "{\"kind\":,\"items\":[]}",
                                      "{\"kind\":\"a\nb\",\"items\":[]}",
                                      "{\"metadata\":{]},\"items\":[]}",
                                      "{\"metadata\":{\"resourceVersion\":5},\"items\":[]}",
                                      "{\"metadata\":{\"continue\":{}},\"items\":[]}",
                                      "{\"items\":[],\"items\":[]}",
                                      "{\"items\":[],\"rows\":[]}",
                                      "{\"kind\":\"A\",\"kind\":\"A\",\"items\":[]}",
                                      "{\"metadata\":{},\"\\u006detadata\":{},\"items\":[]}",
                                      "{\"\xff\":1,\"items\":[]}",
                                      "{\"kind\":\"Status\",\"code\":410}",
                                      "{}"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct reader r;

        if (read_whole(&r, bad[i]) != KR_EPROTO)
            fail_msg("accepted: %s", bad[i]);
        stop(&r);
    }
}

static void test_list_when_a_status_comes_then_its_kind_is_known(void **state)
{
    struct reader r;

    (void)state;
    assert_int_equal(read_whole(&r, "{\"kind\":\"Status\",\"code\":410}"), KR_EPROTO);
    assert_true(kr_bytes_is(kr_buf_bytes(&r.scan.kind), "Status"));
    stop(&r);
}

static void test_list_when_a_head_is_too_large_then_too_big(void **state)
{
    static const char *const members[] = {"kind", "metadata", "columnDefinitions"};
    static const size_t sizes[] = {65 * 1024, 65 * 1024, 257 * 1024};

    (void)state;
    for (size_t i = 0; i < COUNT(members); i++) {
        struct kr_buf list;
        struct reader r;

        kr_buf_init(&list, 1 << 20);
        kr_buf_printf(&list, "{\"%s\":\"%0*d\"", members[i], (int)sizes[i], 0);
        start(&r);
        assert_int_equal(feed(&r, kr_buf_bytes(&list)), KR_ETOOBIG);
        assert_int_equal(end(&r), KR_ETOOBIG);
        stop(&r);
        kr_buf_deinit(&list);
    }
}

/* What is not read may be of any size. */
static void test_list_when_other_members_are_large_then_passed_over(void **state)
{
    uint8_t noise[5000];
    struct reader r;

    (void)state;
    memset(noise, 'n', sizeof noise);
    start(&r);
    for (int round = 0; round < 2; round++) {
        feed(&r, round == 0 ? KR_LIT("{\"") : KR_LIT("\":[\""));
        for (int i = 0; i < 200; i++)
            assert_int_equal(feed(&r, kr_bytes_of(noise, sizeof noise)), 0);
    }
    assert_int_equal(feed(&r, KR_LIT("\"],\"items\":[{}]}")), 0);
    assert_int_equal(end(&r), 0);
    assert_true(told(&r, "<{}>"));
    stop(&r);
}

static void test_list_when_the_owner_stops_then_his_code_sticks(void **state)
{
    struct reader r;

    (void)state;
    start(&r);
    r.stop_at = 2;
    assert_int_equal(feed(&r, KR_LIT("{\"items\":[{},{},{}")), KR_EFULL);
    assert_int_equal(feed(&r, KR_LIT("]}")), KR_EFULL);
    assert_int_equal(end(&r), KR_EFULL);
    assert_int_equal(r.calls, 2);
    stop(&r);
}

static void test_deinit_when_zeroed_then_fine(void **state)
{
    struct kr_list_scan s = {0};

    (void)state;
    kr_list_scan_deinit(&s);
    kr_list_scan_deinit(&s);
}

static void test_row_when_read_then_cells_and_object(void **state)
{
    struct kr_bytes cells;
    struct kr_bytes object;

    (void)state;
    assert_int_equal(
        kr_row_read(KR_LIT("{\"cells\":[1,\"]\"],\"object\":{\"a\":1}}"), &cells, &object), 0);
    assert_true(kr_bytes_is(cells, "[1,\"]\"]") && kr_bytes_is(object, "{\"a\":1}"));
    assert_int_equal(kr_row_read(KR_LIT("{\"object\":null,\"cells\":null}"), &cells, &object), 0);
    assert_true(cells.n == 0 && object.n == 0);
    assert_int_equal(kr_row_read(KR_LIT("{}"), &cells, &object), 0);
    assert_true(cells.n == 0 && object.n == 0);
    assert_int_equal(kr_row_read(KR_LIT("[]"), &cells, &object), KR_EPROTO);
    assert_int_equal(kr_row_read(KR_LIT("{\"cells\":[1,]}"), &cells, &object), KR_EPROTO);
    assert_int_equal(kr_row_read(KR_LIT("{\"cells\":[\"\x01\"]}"), &cells, &object), KR_EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_when_cut_in_two_anywhere_then_the_same),
        cmocka_unit_test(test_f034_list_when_in_small_pieces_then_the_same),
        cmocka_unit_test(test_list_when_items_lie_in_one_chunk_then_not_copied),
        cmocka_unit_test(test_list_when_cut_short_then_an_error),
        cmocka_unit_test(test_f027_list_when_items_are_null_then_empty),
        cmocka_unit_test(test_list_when_members_stand_in_any_order_then_the_same),
        cmocka_unit_test(test_list_when_keys_are_escaped_then_they_count),
        cmocka_unit_test(test_table_when_columns_come_first_then_there_at_the_rows),
        cmocka_unit_test(test_list_when_an_item_is_too_large_then_skipped_and_the_rest_comes),
        cmocka_unit_test(test_f033_list_when_an_item_is_too_deep_then_skipped_and_the_rest_comes),
        cmocka_unit_test(test_list_when_an_item_is_small_but_too_deep_then_skipped),
        cmocka_unit_test(test_f033_list_when_brackets_never_close_then_cut_short),
        cmocka_unit_test(test_list_when_malformed_then_refused),
        cmocka_unit_test(test_list_when_a_status_comes_then_its_kind_is_known),
        cmocka_unit_test(test_list_when_a_head_is_too_large_then_too_big),
        cmocka_unit_test(test_list_when_other_members_are_large_then_passed_over),
        cmocka_unit_test(test_list_when_the_owner_stops_then_his_code_sticks),
        cmocka_unit_test(test_deinit_when_zeroed_then_fine),
        cmocka_unit_test(test_row_when_read_then_cells_and_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
