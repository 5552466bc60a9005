/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_render.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "kube/json_scan.h"

static const struct hub_kind pod = {
    .api_version = {(const uint8_t *)"v1", 2},
    .kind = {(const uint8_t *)"Pod", 3},
    .top = {(const uint8_t *)"\"apiVersion\":\"v1\",\"kind\":\"Pod\",", 31},
};

#define HEAD "{\"apiVersion\":\"v1\",\"kind\":\"Pod\","
#define VERSION "\"resourceVersion\":\"5\","
#define LABEL "\"kuberelay.io/cluster\":\"c1\""
#define NOTES                                                                                      \
    "\"kcp.io/cluster\":\"c1\",\"kuberelay.io/resource-version\":\"77\","                          \
    "\"multicluster.x-k8s.io/cluster-name\":\"c1\""

static const struct hub_face face = {
    .cluster = "c1", .revision = 5, .origin = {(const uint8_t *)"77", 2}};

static void expect(const char *slim, const char *shown)
{
    struct kr_buf out = {.max = 65536};

    assert_int_equal(hub_render_object(&out, &pod, kr_bytes_str(slim), &face), 0);
    assert_int_equal(kr_scan_check(kr_buf_bytes(&out), 32, NULL), 0);
    assert_int_equal(kr_buf_append(&out, kr_bytes_of("", 1)), 0);
    assert_string_equal((const char *)out.p, shown);
    kr_buf_deinit(&out);
}

static void test_render_when_maps_are_there_then_they_are_filled(void **state)
{
    (void)state;
    expect("{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"},\"annotations\":{\"p\":\"q\"}},"
           "\"spec\":{}}",
           HEAD "\"metadata\":{" VERSION "\"name\":\"a\",\"labels\":{" LABEL
                ",\"x\":\"y\"},\"annotations\":{" NOTES ",\"p\":\"q\"}},\"spec\":{}}");
    expect("{\"metadata\":{\"annotations\":{\"p\":\"q\"},\"name\":\"a\",\"labels\":{\"x\":\"y\"}}}",
           HEAD "\"metadata\":{" VERSION "\"annotations\":{" NOTES
                ",\"p\":\"q\"},\"name\":\"a\",\"labels\":{" LABEL ",\"x\":\"y\"}}}");
}

static void test_render_when_maps_are_missing_empty_or_null_then_they_are_made(void **state)
{
    (void)state;
    expect("{\"metadata\":{\"name\":\"a\"}}",
           HEAD "\"metadata\":{" VERSION "\"labels\":{" LABEL "},\"annotations\":{" NOTES
                "},\"name\":\"a\"}}");
    expect("{\"metadata\":{\"labels\":{},\"annotations\":{ },\"name\":\"a\"}}",
           HEAD "\"metadata\":{" VERSION "\"labels\":{" LABEL "},\"annotations\":{" NOTES
                " },\"name\":\"a\"}}");
    expect("{\"metadata\":{\"labels\":null,\"name\":\"a\",\"annotations\":null}}",
           HEAD "\"metadata\":{" VERSION "\"labels\":{" LABEL
                "},\"name\":\"a\",\"annotations\":{" NOTES "}}}");
}

static void test_render_when_other_things_look_like_it_then_they_stay(void **state)
{
    (void)state;
    expect("{\"spec\":{\"metadata\":{\"labels\":{\"in\":\"template\"}},\"s\":\"\\\"}{\\\\\"},"
           "\"metadata\":{\"name\":\"a\",\"ownerReferences\":[{\"labels\":{}}],\"labels\":{\"x\":"
           "\"{\\\"\"}}}",
           HEAD "\"spec\":{\"metadata\":{\"labels\":{\"in\":\"template\"}},\"s\":\"\\\"}{\\\\\"},"
                "\"metadata\":{" VERSION "\"annotations\":{" NOTES
                "},\"name\":\"a\",\"ownerReferences\":[{\"labels\":{}}],\"labels\":{" LABEL
                ",\"x\":\"{\\\"\"}}}");
    expect(" { \"metadata\" : { \"labels\" : { \"x\" : \"y\" } , \"name\" : \"a\" } } ",
           " {\"apiVersion\":\"v1\",\"kind\":\"Pod\", \"metadata\" : {" VERSION
           "\"annotations\":{" NOTES "}, \"labels\" : {" LABEL
           ", \"x\" : \"y\" } , \"name\" : \"a\" } } ");
}

static void test_render_when_lossy_stale_or_odd_then_it_is_said(void **state)
{
    const struct hub_face odd = {
        .cluster = "c1",
        .revision = UINT64_MAX,
        .origin = KR_LIT("a\"b"),
        .lossy = true,
        .stale_since = KR_LIT("2026-01-02T03:04:05Z"),
    };
    struct kr_buf out = {.max = 65536};

    (void)state;
    assert_int_equal(hub_render_object(&out, &pod, KR_LIT("{\"metadata\":{\"name\":\"a\"}}"), &odd),
                     0);
    assert_int_equal(kr_buf_append(&out, kr_bytes_of("", 1)), 0);
    assert_string_equal(
        (const char *)out.p,
        HEAD "\"metadata\":{\"resourceVersion\":\"18446744073709551615\",\"labels\":{" LABEL
             "},\"annotations\":{\"kcp.io/cluster\":\"c1\",\"kuberelay.io/resource-version\":"
             "\"a\\\"b\",\"kuberelay.io/slimmed\":\"true\",\"kuberelay.io/stale-since\":"
             "\"2026-01-02T03:04:05Z\",\"multicluster.x-k8s.io/cluster-name\":\"c1\"},\"name\":"
             "\"a\"}}");
    kr_buf_deinit(&out);
}

static void test_render_partial_then_metadata_only(void **state)
{
    static const char slim[] =
        "{\"spec\":{},\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
        "\"labels\":{\"x\":\"y\"}},\"status\":{}}";
    struct kr_buf out = {.max = 65536};
    struct hub_spots spots;

    (void)state;
    assert_int_equal(hub_spots_find(KR_LIT(slim), true, &spots), 0);
    assert_true(kr_bytes_is(spots.created, "2026-01-02T03:04:05Z"));
    assert_int_equal(hub_render_partial(&out, "v1", KR_LIT(slim), &spots, &face), 0);
    assert_int_equal(kr_buf_append(&out, kr_bytes_of("", 1)), 0);
    assert_string_equal((const char *)out.p,
                        "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
                        "\"metadata\":{" VERSION "\"annotations\":{" NOTES
                        "},\"name\":\"a\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\","
                        "\"labels\":{" LABEL ",\"x\":\"y\"}}}");
    kr_buf_deinit(&out);
}

static void test_render_when_it_is_no_object_then_nothing_is_written(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"metadata\":{}}",
        "{\"metadata\":[]}",
        "{\"metadata\":{\"name\":\"a\"",
        "{\"metadata\":{\"labels\":{",
        "{\"metadata\":{\"labels\":5,\"a\":1}}",
        "{\"metadata\":{\"labels\":nul",
        "{\"spec\":\"\\",
    };
    struct kr_buf out = {.max = 65536};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(hub_render_object(&out, &pod, kr_bytes_str(texts[i]), &face), KR_EPROTO);
        assert_int_equal(out.n, 0);
    }
    out.max = 100;
    assert_int_equal(
        hub_render_object(&out, &pod, KR_LIT("{\"metadata\":{\"name\":\"a\"}}"), &face),
        KR_ETOOBIG);
    assert_int_equal(out.n, 0);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_render_when_maps_are_there_then_they_are_filled),
        cmocka_unit_test(test_render_when_maps_are_missing_empty_or_null_then_they_are_made),
        cmocka_unit_test(test_render_when_other_things_look_like_it_then_they_stay),
        cmocka_unit_test(test_render_when_lossy_stale_or_odd_then_it_is_said),
        cmocka_unit_test(test_render_partial_then_metadata_only),
        cmocka_unit_test(test_render_when_it_is_no_object_then_nothing_is_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
