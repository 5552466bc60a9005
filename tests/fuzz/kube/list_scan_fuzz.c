/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte that says how the list is cut into chunks, a byte for the largest item, the list.
 * However it is cut, the same comes of it; and from a well-formed list come its elements. */
#include "base/assert.h"
#include "base/err.h"
#include "kube/list_scan.h"

struct reader {
    struct kr_list_scan scan;
    struct kr_buf told; /* each item with a newline behind it */
    uint64_t skipped;
};

static int on_item(void *user, struct kr_bytes item)
{
    struct reader *r = user;
    struct kr_bytes cells;
    struct kr_bytes object;

    KR_ASSERT(item.n != 0 && item.n <= r->scan.item_max);
    kr_row_read(item, &cells, &object);
    kr_buf_append(&r->told, item);
    kr_buf_append_str(&r->told, "\n");
    return 0;
}

static void on_skipped(void *user, uint64_t n)
{
    struct reader *r = user;

    KR_ASSERT(n != 0);
    r->skipped += n;
}

static int read_list(struct reader *r, struct kr_bytes in, size_t chunk, size_t item_max)
{
    static const struct kr_list_scan_ops ops = {on_item, on_skipped};
    struct kr_note why;
    int rc;

    kr_buf_init(&r->told, in.n * 2 + 1);
    r->skipped = 0;
    KR_ASSERT(kr_list_scan_init(&r->scan, &ops, r, item_max) == 0);
    while (in.n != 0) {
        const size_t n = in.n < chunk ? in.n : chunk;

        if (kr_list_scan_feed(&r->scan, kr_bytes_of(in.p, n)) != 0)
            break;
        in = kr_bytes_skip(in, n);
    }
    rc = kr_list_scan_end(&r->scan, &why);
    KR_ASSERT(rc == 0 || rc == KR_EPROTO || rc == KR_ETOOBIG);
    KR_ASSERT(kr_list_scan_feed(&r->scan, kr_bytes_of(NULL, 0)) == rc);
    return rc;
}

static void done(struct reader *r)
{
    kr_list_scan_deinit(&r->scan);
    kr_buf_deinit(&r->told);
}

static void expect_same(struct kr_buf *a, struct kr_buf *b)
{
    KR_ASSERT(kr_bytes_eq(kr_buf_bytes(a), kr_buf_bytes(b)));
}

/* Step by step through a list that is well-formed: the items are those that came. */
static void check_items(struct kr_bytes list, struct kr_bytes told)
{
    struct kr_scan members;
    struct kr_scan items;
    struct kr_bytes key;
    struct kr_bytes value;

    KR_ASSERT(kr_scan_object(list, &members));
    while (kr_scan_member(&members, &key, &value)) {
        if (!kr_scan_key_is(key, "items") && !kr_scan_key_is(key, "rows"))
            continue;
        kr_scan_array(value, &items); /* or null */
        while (kr_scan_element(&items, &value)) {
            KR_ASSERT(kr_bytes_starts(told, value) && told.p[value.n] == '\n');
            told = kr_bytes_skip(told, value.n + 1);
        }
    }
    KR_ASSERT(told.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct reader whole;
    struct reader cut;
    struct kr_bytes in;
    size_t item_max;
    int rc;

    if (n < 2)
        return 0;
    in = kr_bytes_of(data + 2, n - 2);
    item_max = data[1] == 255 ? 1 << 20 : 1 + data[1];
    rc = read_list(&whole, in, in.n + 1, item_max);
    KR_ASSERT(read_list(&cut, in, 1 + data[0] % 80, item_max) == rc);
    expect_same(&whole.told, &cut.told);
    expect_same(&whole.scan.version, &cut.scan.version);
    expect_same(&whole.scan.cont, &cut.scan.cont);
    expect_same(&whole.scan.kind, &cut.scan.kind);
    expect_same(&whole.scan.columns, &cut.scan.columns);
    KR_ASSERT(whole.scan.items == cut.scan.items && whole.skipped == cut.skipped);
    if (rc == 0 && whole.skipped == 0 && kr_scan_check(in, KR_SCAN_DEPTH_MAX, NULL) == 0)
        check_items(in, kr_buf_bytes(&whole.told));
    done(&whole);
    done(&cut);
    return 0;
}
