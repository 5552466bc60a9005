/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "wire/proto_scan.h"

static const struct kr_bytes features[] = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"bc", 2}};

static const struct kr_agent_state agent_state = {
    .cluster_uid = {(const uint8_t *)"uid-1", 5},
    .instance = {(const uint8_t *)"inst", 4},
    .boot_id = {(const uint8_t *)"0123456789\0ABCDE", 16},
    .lane = KR_LANE_BULK,
    .version = {(const uint8_t *)"0.1.0", 5},
    .api_server_version = {(const uint8_t *)"v1.37.2", 7},
    .api_server = KR_API_UNAUTHORIZED,
    .nodes = 600,
    .heartbeat = 1ull << 40,
    .loop_lag_ms = 3,
    .draining = true,
    .features = features,
    .feature_count = 2,
};

static void test_agent_state_when_sent_then_read_back(void **state)
{
    struct kr_agent_state got;
    struct kr_arena arena;
    struct kr_note why;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, KR_STATE_MAX);
    assert_int_equal(kr_agent_state_encode(&agent_state, &out), 0);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(out.n));
    assert_int_equal(kr_agent_state_decode(&got, kr_buf_bytes(&out), &arena, &why), 0);
    assert_true(kr_bytes_is(got.cluster_uid, "uid-1"));
    assert_true(kr_bytes_is(got.instance, "inst"));
    assert_true(kr_bytes_eq(got.boot_id, agent_state.boot_id));
    assert_int_equal(got.lane, KR_LANE_BULK);
    assert_true(kr_bytes_is(got.version, "0.1.0"));
    assert_true(kr_bytes_is(got.api_server_version, "v1.37.2"));
    assert_int_equal(got.api_server, KR_API_UNAUTHORIZED);
    assert_int_equal(got.nodes, 600);
    assert_true(got.heartbeat == 1ull << 40);
    assert_int_equal(got.loop_lag_ms, 3);
    assert_true(got.draining);
    assert_int_equal(got.feature_count, 2);
    assert_true(kr_bytes_is(got.features[1], "bc"));
    kr_arena_deinit(&arena);
    kr_buf_deinit(&out);
}

static void test_hub_state_when_sent_then_read_back(void **state)
{
    const struct kr_hub_state m = {
        .replica = KR_LIT("hub-0"),
        .heartbeat_ms = 10000,
        .hubs = features,
        .hub_count = 2,
        .hubs_generation = 7,
        .draining = true,
        .refusal = KR_REFUSAL_BUSY,
        .refusal_reason = KR_LIT("busy \xC3\xA9"),
        .retry_after_ms = 2000,
        .hub_time_wall_ms = -5,
        .version = KR_LIT("0.1.0"),
    };
    struct kr_hub_state got;
    struct kr_arena arena;
    struct kr_note why;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, KR_STATE_MAX);
    assert_int_equal(kr_hub_state_encode(&m, &out), 0);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(out.n));
    assert_int_equal(kr_hub_state_decode(&got, kr_buf_bytes(&out), &arena, &why), 0);
    assert_true(kr_bytes_is(got.replica, "hub-0"));
    assert_int_equal(got.heartbeat_ms, 10000);
    assert_int_equal(got.hub_count, 2);
    assert_true(kr_bytes_is(got.hubs[0], "a"));
    assert_int_equal(got.hubs_generation, 7);
    assert_true(got.draining);
    assert_int_equal(got.refusal, KR_REFUSAL_BUSY);
    assert_true(kr_bytes_eq(got.refusal_reason, m.refusal_reason));
    assert_int_equal(got.retry_after_ms, 2000);
    assert_true(got.hub_time_wall_ms == -5);
    assert_int_equal(got.feature_count, 0);
    kr_arena_deinit(&arena);
    kr_buf_deinit(&out);
}

static void test_hub_state_when_empty_then_all_defaults(void **state)
{
    struct kr_hub_state got;
    struct kr_arena arena;
    struct kr_note why;

    (void)state;
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(0));
    assert_int_equal(kr_hub_state_decode(&got, KR_LIT(""), &arena, &why), 0);
    assert_int_equal(got.replica.n, 0);
    assert_int_equal(got.refusal, KR_REFUSAL_NONE);
    kr_arena_deinit(&arena);
}

/* A message of one field, repeated. */
static int decode_agent(uint32_t number, struct kr_bytes value, size_t times, struct kr_note *why)
{
    struct kr_agent_state got;
    struct kr_arena arena;
    struct kr_buf in;
    int rc;

    kr_buf_init(&in, 4 * KR_STATE_MAX);
    assert_int_equal(kr_proto_put_element(&in, 3, agent_state.boot_id), 0);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(kr_proto_put_element(&in, number, value), 0);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(in.n));
    rc = kr_agent_state_decode(&got, kr_buf_bytes(&in), &arena, why);
    assert_true(arena.used <= KR_DECODE_ARENA(in.n));
    kr_arena_deinit(&arena);
    kr_buf_deinit(&in);
    return rc;
}

static void test_agent_state_when_hostile_then_refused(void **state)
{
    static uint8_t big[KR_TEXT_MAX + 1];
    struct kr_note why = {""};

    (void)state;
    memset(big, 'x', sizeof big);
    assert_int_equal(decode_agent(2, KR_LIT("ok"), 1, &why), 0);
    assert_int_equal(decode_agent(2, KR_LIT("a\0b"), 1, &why), KR_EPROTO);
    assert_int_equal(decode_agent(2, KR_LIT("\xff"), 1, &why), KR_EPROTO);
    assert_non_null(strstr(why.text, "instance"));
    assert_int_equal(decode_agent(2, kr_bytes_of(big, KR_TEXT_MAX), 1, &why), 0);
    assert_int_equal(decode_agent(2, kr_bytes_of(big, sizeof big), 1, &why), KR_EPROTO);
    assert_int_equal(decode_agent(3, KR_LIT("short"), 1, &why), KR_EPROTO);
    assert_int_equal(decode_agent(12, KR_LIT(""), KR_LIST_MAX, &why), 0);
    assert_int_equal(decode_agent(12, KR_LIT(""), KR_LIST_MAX + 1, &why), KR_ETOOBIG);
    assert_int_equal(decode_agent(99, KR_LIT("unknown"), 3, &why), 0);
    assert_int_equal(decode_agent(2, kr_bytes_of(big, 4000), 17, &why), KR_ETOOBIG);
    assert_int_equal(decode_agent(4, KR_LIT("no number"), 1, &why), KR_EPROTO);
}

static void test_agent_state_when_unknown_fields_flood_then_memory_stays_bounded(void **state)
{
    struct kr_note why;

    (void)state;
    /* 2 bytes each on the wire, far more in protobuf-c: refused by the budget or taken within it */
    decode_agent(15, KR_LIT(""), KR_STATE_MAX / 2 - 20, &why);
}

static void test_enum_when_unknown_then_the_safe_one(void **state)
{
    struct kr_agent_state a;
    struct kr_hub_state h;
    struct kr_arena arena;
    struct kr_note why;
    struct kr_buf in;

    (void)state;
    kr_arena_init(&arena, 256, 2 * KR_DECODE_ARENA(64));
    kr_buf_init(&in, 100);
    kr_proto_put_element(&in, 3, agent_state.boot_id);
    kr_proto_put_varint(&in, 4, 77);
    kr_proto_put_varint(&in, 7, UINT64_MAX);
    assert_int_equal(kr_agent_state_decode(&a, kr_buf_bytes(&in), &arena, &why), 0);
    assert_int_equal(a.lane, KR_LANE_UNSPECIFIED);
    assert_int_equal(a.api_server, KR_API_UNKNOWN);
    in.n = 0;
    kr_proto_put_varint(&in, 6, 77);
    assert_int_equal(kr_hub_state_decode(&h, kr_buf_bytes(&in), &arena, &why), 0);
    assert_int_equal(h.refusal, KR_REFUSAL_DENIED);
    kr_buf_deinit(&in);
    kr_arena_deinit(&arena);
}

static void test_agent_state_when_cut_anywhere_then_no_crash(void **state)
{
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, KR_STATE_MAX);
    assert_int_equal(kr_agent_state_encode(&agent_state, &out), 0);
    for (size_t n = 0; n < out.n; n++) {
        struct kr_agent_state got;
        struct kr_arena arena;
        struct kr_note why;

        kr_arena_init(&arena, 16, KR_DECODE_ARENA(n));
        kr_agent_state_decode(&got, kr_bytes_of(out.p, n), &arena, &why);
        kr_arena_deinit(&arena);
    }
    kr_buf_deinit(&out);
}

static void test_decode_when_memory_is_short_then_error_and_no_leak(void **state)
{
    struct kr_buf out;
    size_t ok = 0;

    (void)state;
    kr_buf_init(&out, KR_STATE_MAX);
    assert_int_equal(kr_agent_state_encode(&agent_state, &out), 0);
    for (size_t max = 0; max < 1000; max += 8) {
        struct kr_agent_state got;
        struct kr_arena arena;
        struct kr_note why;

        kr_arena_init(&arena, 16, max);
        ok += kr_agent_state_decode(&got, kr_buf_bytes(&out), &arena, &why) == 0;
        kr_arena_deinit(&arena);
    }
    assert_in_range(ok, 1, 124);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_state_when_sent_then_read_back),
        cmocka_unit_test(test_hub_state_when_sent_then_read_back),
        cmocka_unit_test(test_hub_state_when_empty_then_all_defaults),
        cmocka_unit_test(test_agent_state_when_hostile_then_refused),
        cmocka_unit_test(test_agent_state_when_unknown_fields_flood_then_memory_stays_bounded),
        cmocka_unit_test(test_enum_when_unknown_then_the_safe_one),
        cmocka_unit_test(test_agent_state_when_cut_anywhere_then_no_crash),
        cmocka_unit_test(test_decode_when_memory_is_short_then_error_and_no_leak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
