/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the cells of a row, a newline, a slim object. If the object is one that a cluster may
 * send, it is shown well-formed, as the same object and with what tells where it is from; whatever
 * it is, nothing is read outside of it. */
#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_row.h"
#include "kube/object_facts.h"

static const struct hub_kind kind = {
    .api_version = {(const uint8_t *)"v1", 2},
    .kind = {(const uint8_t *)"Pod", 3},
    .top = {(const uint8_t *)"\"apiVersion\":\"v1\",\"kind\":\"Pod\",", 31},
};

static bool has(struct kr_bytes text, const char *word)
{
    return text.n != 0 && memmem(text.p, text.n, word, strlen(word)) != NULL;
}

/* What subscriptions.c lets in. */
static bool is_slim(struct kr_bytes object, struct kr_object_facts *facts)
{
    return kr_object_facts(object, facts, NULL) == 0 && facts->name.n != 0 &&
           facts->api_version.n == 0 && facts->kind.n == 0 && facts->version.n == 0 &&
           !has(object, "kuberelay") && !has(object, "kcp.io") && !has(object, "multicluster");
}

static void check_shown(struct kr_bytes shown, const struct kr_object_facts *before)
{
    struct kr_object_facts after;
    struct kr_bytes value;

    KR_ASSERT(kr_object_facts(shown, &after, NULL) == 0);
    KR_ASSERT(kr_bytes_is(after.kind, "Pod") && kr_bytes_is(after.version, "7"));
    KR_ASSERT(kr_bytes_eq(before->name, after.name) && kr_bytes_eq(before->ns, after.ns));
    KR_ASSERT(kr_bytes_eq(before->uid, after.uid) && kr_bytes_eq(before->owners, after.owners));
    KR_ASSERT(kr_scan_find(after.labels, "kuberelay.io/cluster", &value) &&
              kr_bytes_is(value, "\"c1\""));
    KR_ASSERT(kr_scan_find(after.annotations, "kcp.io/cluster", &value) &&
              kr_bytes_is(value, "\"c1\""));
    KR_ASSERT(kr_scan_find(after.annotations, "kuberelay.io/slimmed", &value));
}

static void check_row(struct kr_buf *out, struct kr_bytes cells, struct kr_bytes slim,
                      const struct hub_face *face, enum kr_include_object include)
{
    static struct hub_type type;
    struct hub_columns *columns;
    struct hub_row row = {.kind = &kind, .meta_version = "v1", .include = include};

    kr_list_init(&type.shelves);
    columns = hub_columns_get(&type, NULL);
    KR_ASSERT(columns != NULL);
    row.columns = columns;
    out->n = 0;
    KR_ASSERT(hub_row_write(out, &row, cells, slim, KR_LIT("name"), face) == 0);
    KR_ASSERT(kr_scan_check(kr_buf_bytes(out), KR_SCAN_DEPTH_MAX, NULL) != KR_EPROTO);
    hub_columns_unref(columns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t line = kr_bytes_find(kr_bytes_of(data, n), '\n');
    struct kr_bytes cells = kr_bytes_of(data, line);
    struct kr_bytes slim = kr_bytes_of(data + line, n - line);
    const struct hub_face face = {
        .cluster = "c1", .revision = 7, .origin = cells, .lossy = true, .stale_since = KR_LIT("x")};
    struct kr_object_facts facts;
    struct kr_buf out;
    int rc;

    if (line < n)
        slim = kr_bytes_skip(slim, 1);
    if (cells.n > 255)
        return 0;
    kr_buf_init(&out, 8 * n + 8192);
    rc = hub_render_object(&out, &kind, slim, &face);
    if (is_slim(slim, &facts)) {
        KR_ASSERT(rc == 0);
        check_shown(kr_buf_bytes(&out), &facts);
        if (kr_scan_check(cells, 64, NULL) == 0) {
            check_row(&out, cells, slim, &face, KR_INCLUDE_METADATA);
            check_row(&out, cells, slim, &face, KR_INCLUDE_OBJECT);
        }
    }
    kr_buf_deinit(&out);
    return 0;
}
