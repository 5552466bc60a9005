/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-written codec of RelayRequest and RelayResponse against protobuf-c's. */
#include "wire/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <kuberelay/v1/kuberelay.pb-c.h>

#include "base/err.h"
#include "wire/proto_scan.h"
#include "wire/request_header.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const struct kr_bytes groups[] = {{(const uint8_t *)"dev", 3},
                                         {(const uint8_t *)"caf\xC3\xA9", 5}};
static const struct kr_bytes values[] = {{(const uint8_t *)"v1", 2}, {(const uint8_t *)"", 0}};
static const struct kr_extra extra[] = {
    {.key = {(const uint8_t *)"scopes", 6}, .values = values, .value_count = 2},
    {.key = {(const uint8_t *)"none", 4}},
};
static const struct kr_relay_request request = {
    .request_id = {1, 2, 3, 0, 5},
    .user = {(const uint8_t *)"jane", 4},
    .groups = groups,
    .group_count = 2,
    .uid = {(const uint8_t *)"u-1", 3},
    .extra = extra,
    .extra_count = 2,
    .deadline_ms = 65000,
    .attempt = 1,
    .method = {(const uint8_t *)"GET", 3},
    .upgrade_token = {(const uint8_t *)"websocket", 9},
    .rebase = {.subscription = 1ull << 60,
               .uid = {(const uint8_t *)"u-2", 3},
               .hash = 0x0102030405060708,
               .offsets = {0, 7, 300000},
               .offset_count = 3},
    .member_token = {(const uint8_t *)"m.t", 3},
    .user_token = {(const uint8_t *)"u.t.s", 5},
};

static void check_request(const struct kr_relay_request *m)
{
    assert_memory_equal(m->request_id, request.request_id, 16);
    assert_true(kr_bytes_is(m->user, "jane"));
    assert_int_equal(m->group_count, 2);
    assert_true(kr_bytes_eq(m->groups[0], groups[0]) && kr_bytes_eq(m->groups[1], groups[1]));
    assert_true(kr_bytes_is(m->uid, "u-1"));
    assert_int_equal(m->extra_count, 2);
    assert_true(kr_bytes_is(m->extra[0].key, "scopes"));
    assert_int_equal(m->extra[0].value_count, 2);
    assert_true(kr_bytes_is(m->extra[0].values[0], "v1"));
    assert_int_equal(m->extra[0].values[1].n, 0);
    assert_int_equal(m->extra[1].value_count, 0);
    assert_int_equal(m->deadline_ms, 65000);
    assert_int_equal(m->attempt, 1);
    assert_true(kr_bytes_is(m->method, "GET"));
    assert_true(kr_bytes_is(m->upgrade_token, "websocket"));
    assert_true(m->rebase.subscription == request.rebase.subscription);
    assert_true(kr_bytes_is(m->rebase.uid, "u-2"));
    assert_true(m->rebase.hash == request.rebase.hash);
    assert_int_equal(m->rebase.offset_count, 3);
    assert_memory_equal(m->rebase.offsets, request.rebase.offsets, 12);
    assert_true(kr_bytes_is(m->member_token, "m.t"));
    assert_true(kr_bytes_is(m->user_token, "u.t.s"));
}

static void test_request_when_written_then_protobuf_c_reads_it(void **state)
{
    Kuberelay__V1__RelayRequest *p;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 4096);
    assert_int_equal(kr_relay_request_encode(&request, &out), 0);
    p = kuberelay__v1__relay_request__unpack(NULL, out.n, out.p);
    assert_non_null(p);
    assert_int_equal(p->request_id.len, 16);
    assert_string_equal(p->user, "jane");
    assert_int_equal(p->n_groups, 2);
    assert_string_equal(p->groups[1], "caf\xC3\xA9");
    assert_string_equal(p->uid, "u-1");
    assert_int_equal(p->n_extra, 2);
    assert_string_equal(p->extra[0]->key, "scopes");
    assert_int_equal(p->extra[0]->n_values, 2);
    assert_string_equal(p->extra[0]->values[1], "");
    assert_int_equal(p->deadline_ms, 65000);
    assert_int_equal(p->attempt, 1);
    assert_string_equal(p->method, "GET");
    assert_string_equal(p->upgrade_token, "websocket");
    assert_true(p->rebase->subscription == request.rebase.subscription);
    assert_string_equal(p->rebase->uid, "u-2");
    assert_true(p->rebase->hash == request.rebase.hash);
    assert_int_equal(p->rebase->n_offsets, 3);
    assert_int_equal(p->rebase->offsets[2], 300000);
    assert_string_equal(p->member_token, "m.t");
    assert_string_equal(p->user_token, "u.t.s");
    assert_int_equal(kuberelay__v1__relay_request__get_packed_size(p), out.n);
    kuberelay__v1__relay_request__free_unpacked(p, NULL);
    kr_buf_deinit(&out);
}

/* It is written into a header field. */
static void test_request_when_token_is_no_token_then_refused(void **state)
{
    static const char *const tokens[] = {"a b", "a\nb", "a\x7f", "caf\xC3\xA9"};

    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        struct kr_relay_request m = {.user = KR_LIT("jane")};
        struct kr_buf out = {.max = 4096};
        struct kr_relay_request got;
        struct kr_arena arena;

        m.member_token = kr_bytes_str(tokens[i]);
        kr_arena_init(&arena, 256, 65536);
        assert_int_equal(kr_relay_request_encode(&m, &out), 0);
        assert_int_equal(kr_relay_request_decode(&got, kr_buf_bytes(&out), &arena, NULL),
                         KR_EPROTO);
        kr_arena_deinit(&arena);
        kr_buf_deinit(&out);
    }
}

static void test_request_when_protobuf_c_writes_then_read(void **state)
{
    Kuberelay__V1__RelayRequest p = KUBERELAY__V1__RELAY_REQUEST__INIT;
    Kuberelay__V1__Rebase rebase = KUBERELAY__V1__REBASE__INIT;
    Kuberelay__V1__Extra e = KUBERELAY__V1__EXTRA__INIT;
    Kuberelay__V1__Extra e2 = KUBERELAY__V1__EXTRA__INIT;
    Kuberelay__V1__Extra *es[] = {&e, &e2};
    char *gs[] = {(char *)"dev", (char *)"caf\xC3\xA9"};
    char *vs[] = {(char *)"v1", (char *)""};
    struct kr_relay_request got;
    struct kr_arena arena;
    struct kr_note why;
    uint8_t buf[512];
    size_t n;

    (void)state;
    p.request_id = (ProtobufCBinaryData){16, (uint8_t *)request.request_id};
    p.user = (char *)"jane";
    p.n_groups = 2;
    p.groups = gs;
    p.uid = (char *)"u-1";
    e.key = (char *)"scopes";
    e.n_values = 2;
    e.values = vs;
    e2.key = (char *)"none";
    p.n_extra = 2;
    p.extra = es;
    p.deadline_ms = 65000;
    p.attempt = 1;
    p.method = (char *)"GET";
    p.upgrade_token = (char *)"websocket";
    rebase.subscription = request.rebase.subscription;
    rebase.uid = (char *)"u-2";
    rebase.hash = request.rebase.hash;
    rebase.n_offsets = 3;
    rebase.offsets = (uint32_t *)request.rebase.offsets;
    p.rebase = &rebase;
    p.member_token = (char *)"m.t";
    p.user_token = (char *)"u.t.s";
    n = kuberelay__v1__relay_request__pack(&p, buf);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(n));
    assert_int_equal(kr_relay_request_decode(&got, kr_bytes_of(buf, n), &arena, &why), 0);
    check_request(&got);
    kr_arena_deinit(&arena);
}

static void test_response_when_written_then_same_on_both_sides(void **state)
{
    const struct kr_relay_response m = {.origin = KR_ORIGIN_AGENT,
                                        .queue_us = 5,
                                        .server_us = 1u << 31,
                                        .leg = KR_LIT("agent-apiserver"),
                                        .not_sent = true};
    struct kr_relay_response got;
    Kuberelay__V1__RelayResponse *p;
    struct kr_note why;
    struct kr_buf out;

    (void)state;
    kr_buf_init(&out, 4096);
    assert_int_equal(kr_relay_response_encode(&m, &out), 0);
    p = kuberelay__v1__relay_response__unpack(NULL, out.n, out.p);
    assert_non_null(p);
    assert_int_equal(p->origin, KUBERELAY__V1__ORIGIN__ORIGIN_AGENT);
    assert_int_equal(p->queue_us, 5);
    assert_true(p->server_us == 1u << 31);
    assert_string_equal(p->leg, "agent-apiserver");
    assert_true(p->not_sent);
    kuberelay__v1__relay_response__free_unpacked(p, NULL);
    assert_int_equal(kr_relay_response_decode(&got, kr_buf_bytes(&out), &why), 0);
    assert_int_equal(got.origin, KR_ORIGIN_AGENT);
    assert_true(got.server_us == 1u << 31 && got.queue_us == 5 && got.not_sent);
    assert_true(kr_bytes_eq(got.leg, m.leg));
    kr_buf_deinit(&out);
}

static void test_header_when_written_then_read_with_and_without_padding(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < 3; cut++) {
        struct kr_relay_request m = request;
        struct kr_relay_request got;
        struct kr_arena arena;
        struct kr_note why;
        struct kr_buf out;

        m.uid.n = cut;
        kr_buf_init(&out, KR_REQUEST_HEADER_MAX);
        assert_int_equal(kr_request_header_write(&m, &out), 0);
        assert_true(kr_bytes_find(kr_buf_bytes(&out), '=') == out.n);
        for (int padded = 0; padded < 2; padded++) {
            kr_arena_init(&arena, 256, 2 * KR_DECODE_ARENA(out.n));
            assert_int_equal(kr_request_header_read(&got, kr_buf_bytes(&out), &arena, &why), 0);
            assert_true(kr_bytes_is(got.user, "jane"));
            assert_int_equal(got.uid.n, cut);
            kr_arena_deinit(&arena);
            while (out.n % 4 != 0)
                kr_buf_append_str(&out, "=");
        }
        kr_buf_deinit(&out);
    }
}

static void test_header_when_malformed_then_refused(void **state)
{
    static const char *const cases[] = {"", "A", "====", "Cg==", "!!!!", "AA AA", "AAAA-_AA"};
    static uint8_t big[KR_REQUEST_HEADER_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_relay_request got;
        struct kr_arena arena;
        struct kr_note why = {""};

        kr_arena_init(&arena, 256, KR_DECODE_ARENA(100));
        assert_int_equal(kr_request_header_read(&got, kr_bytes_str(cases[i]), &arena, &why),
                         KR_EPROTO);
        assert_non_null(strstr(why.text, KR_REQUEST_HEADER));
        assert_int_equal(got.user.n, 0);
        kr_arena_deinit(&arena);
    }
    memset(big, 'A', sizeof big);
    {
        struct kr_relay_response got;
        struct kr_arena arena;
        struct kr_note why;

        kr_arena_init(&arena, 256, KR_DECODE_ARENA(sizeof big));
        assert_int_equal(kr_response_header_read(&got, kr_bytes_of(big, sizeof big), &arena, &why),
                         KR_ETOOBIG);
        kr_arena_deinit(&arena);
    }
}

static void test_header_when_identity_is_too_large_then_error_and_not_cut(void **state)
{
    static struct kr_bytes many[KR_GROUPS_MAX];
    static uint8_t text[100];
    struct kr_relay_request m = request;
    struct kr_buf out;

    (void)state;
    memset(text, 'g', sizeof text);
    for (size_t i = 0; i < KR_GROUPS_MAX; i++)
        many[i] = kr_bytes_of(text, 30);
    m.groups = many;
    m.group_count = KR_GROUPS_MAX;
    kr_buf_init(&out, 2 * KR_REQUEST_HEADER_MAX);
    assert_int_equal(kr_request_header_write(&m, &out), 0);
    assert_true(out.n <= KR_REQUEST_HEADER_MAX);
    out.n = 0;
    for (size_t i = 0; i < KR_GROUPS_MAX; i++)
        many[i] = kr_bytes_of(text, 100);
    assert_int_equal(kr_request_header_write(&m, &out), KR_ETOOBIG);
    assert_int_equal(out.n, 0);
    kr_buf_deinit(&out);
}

static void test_request_when_user_is_empty_then_not_written(void **state)
{
    struct kr_relay_request m = request;
    struct kr_buf out;

    (void)state;
    m.user.n = 0;
    kr_buf_init(&out, 4096);
    assert_int_equal(kr_relay_request_encode(&m, &out), KR_EINVAL);
    kr_buf_deinit(&out);
}

/* A valid request, then one more field, `times`. */
static int decode_with(uint32_t number, struct kr_bytes value, size_t times)
{
    struct kr_relay_request got;
    struct kr_arena arena;
    struct kr_note why = {""};
    struct kr_buf in;
    int rc;

    kr_buf_init(&in, 1 << 20);
    assert_int_equal(kr_relay_request_encode(&request, &in), 0);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(kr_proto_put_element(&in, number, value), 0);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(in.n));
    rc = kr_relay_request_decode(&got, kr_buf_bytes(&in), &arena, &why);
    assert_int_equal(rc != 0, got.user.n == 0);
    assert_int_equal(rc != 0, why.text[0] != '\0');
    kr_arena_deinit(&arena);
    kr_buf_deinit(&in);
    return rc;
}

static void test_request_when_hostile_then_refused(void **state)
{
    static uint8_t big[KR_TEXT_MAX + 1];

    (void)state;
    memset(big, 'x', sizeof big);
    assert_int_equal(decode_with(2, KR_LIT("other"), 1), 0); /* the last one counts */
    assert_int_equal(decode_with(2, KR_LIT(""), 1), KR_EPROTO);
    assert_int_equal(decode_with(2, KR_LIT("a\0b"), 1), KR_EPROTO);
    assert_int_equal(decode_with(2, KR_LIT("a\r\nImpersonate-Group: x"), 1), KR_EPROTO);
    assert_int_equal(decode_with(2, KR_LIT("a\x7f"), 1), KR_EPROTO);
    assert_int_equal(decode_with(2, KR_LIT("\xC0\x80"), 1), KR_EPROTO);
    assert_int_equal(decode_with(2, kr_bytes_of(big, sizeof big), 1), KR_EPROTO);
    assert_int_equal(decode_with(3, KR_LIT(""), 1), KR_EPROTO);
    assert_int_equal(decode_with(3, KR_LIT("g"), KR_GROUPS_MAX - 2), 0);
    assert_int_equal(decode_with(3, KR_LIT("g"), KR_GROUPS_MAX - 1), KR_ETOOBIG);
    assert_int_equal(decode_with(1, KR_LIT("short"), 1), KR_EPROTO);
    assert_int_equal(decode_with(5, KR_LIT(""), 1), KR_EPROTO); /* no key */
    assert_int_equal(decode_with(5, KR_LIT("\n\1k"), KR_EXTRA_MAX - 2), 0);
    assert_int_equal(decode_with(5, KR_LIT("\n\1k"), KR_EXTRA_MAX - 1), KR_ETOOBIG);
    assert_int_equal(decode_with(5, KR_LIT("\n\2k"), 1), KR_EPROTO);
    assert_int_equal(decode_with(6, KR_LIT("no number"), 1), KR_EPROTO);
    assert_int_equal(decode_with(99, KR_LIT("newer"), 1), 0);
}

/* A body from which the versions were cut must never be sent as it is. */
static void test_rebase_when_malformed_then_refused(void **state)
{
    static const struct kr_bytes cases[] = {
        KR_LIT(""),
        KR_LIT("\x08\x01"),                                      /* a number only */
        KR_LIT("\x08\x01\x12\x01u"),                             /* without offsets */
        KR_LIT("\x12\x01u\x22\x01\x05"),                         /* without subscription */
        KR_LIT("\x08\x01\x22\x01\x05"),                          /* without uid */
        KR_LIT("\x08\x01\x12\x01u\x22\x02\x05\x05"),             /* twice the same */
        KR_LIT("\x08\x01\x12\x01u\x22\x02\x05\x04"),             /* backwards */
        KR_LIT("\x08\x01\x12\x01u\x22\x01\x80"),                 /* cut */
        KR_LIT("\x08\x01\x12\x01u\x22\x05\xff\xff\xff\xff\x1f"), /* beyond 32 bits */
        KR_LIT("\x08\x01\x12\x01u\x1a\x01x\x22\x01\x05"),        /* a hash of another type */
    };
    struct kr_relay_request m = request;

    (void)state;
    assert_int_equal(decode_with(10, KR_LIT("\x08\x01\x12\x01u\x22\x01\x05"), 1), KR_EPROTO);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_buf in = {.max = 4096};
        struct kr_relay_request got;
        struct kr_arena arena;
        struct kr_note why;

        m.rebase.subscription = 0;
        assert_int_equal(kr_relay_request_encode(&m, &in), 0);
        kr_proto_put_element(&in, 10, cases[i]);
        kr_arena_init(&arena, 256, KR_DECODE_ARENA(in.n));
        assert_int_equal(kr_relay_request_decode(&got, kr_buf_bytes(&in), &arena, &why), KR_EPROTO);
        kr_arena_deinit(&arena);
        kr_buf_deinit(&in);
    }
}

static void test_rebase_when_there_are_too_many_offsets_then_refused(void **state)
{
    struct kr_relay_request m = request;
    struct kr_buf out = {.max = 4096};

    (void)state;
    m.rebase.offset_count = KR_REBASE_OFFSETS_MAX + 1;
    assert_int_equal(kr_relay_request_encode(&m, &out), KR_EINVAL);
    out.n = 0;
    m.rebase.subscription = 0; /* none at all */
    assert_int_equal(kr_relay_request_encode(&m, &out), 0);
    kr_buf_deinit(&out);
}

static void test_request_when_id_or_user_is_missing_then_refused(void **state)
{
    struct kr_relay_request got;
    struct kr_arena arena;
    struct kr_note why;
    struct kr_buf in;

    (void)state;
    kr_buf_init(&in, 1000);
    kr_arena_init(&arena, 256, KR_DECODE_ARENA(1000));
    assert_int_equal(kr_relay_request_decode(&got, KR_LIT(""), &arena, &why), KR_EPROTO);
    kr_proto_put_bytes(&in, 2, KR_LIT("jane"));
    assert_int_equal(kr_relay_request_decode(&got, kr_buf_bytes(&in), &arena, &why), KR_EPROTO);
    kr_proto_put_bytes(&in, 1, kr_bytes_of(request.request_id, 16));
    assert_int_equal(kr_relay_request_decode(&got, kr_buf_bytes(&in), &arena, &why), 0);
    kr_arena_deinit(&arena);
    kr_buf_deinit(&in);
}

static void test_request_when_cut_or_memory_is_short_then_no_crash(void **state)
{
    struct kr_buf in;

    (void)state;
    kr_buf_init(&in, 1000);
    assert_int_equal(kr_relay_request_encode(&request, &in), 0);
    for (size_t n = 0; n <= in.n; n++) {
        for (size_t max = 0; max < 300; max += 20) {
            struct kr_relay_request got;
            struct kr_arena arena;
            struct kr_note why;
            int rc;

            kr_arena_init(&arena, 16, max);
            rc = kr_relay_request_decode(&got, kr_bytes_of(in.p, n), &arena, &why);
            assert_int_equal(rc != 0, got.user.n == 0);
            kr_arena_deinit(&arena);
        }
    }
    kr_buf_deinit(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_when_written_then_protobuf_c_reads_it),
        cmocka_unit_test(test_request_when_protobuf_c_writes_then_read),
        cmocka_unit_test(test_request_when_token_is_no_token_then_refused),
        cmocka_unit_test(test_response_when_written_then_same_on_both_sides),
        cmocka_unit_test(test_header_when_written_then_read_with_and_without_padding),
        cmocka_unit_test(test_header_when_malformed_then_refused),
        cmocka_unit_test(test_header_when_identity_is_too_large_then_error_and_not_cut),
        cmocka_unit_test(test_request_when_user_is_empty_then_not_written),
        cmocka_unit_test(test_request_when_hostile_then_refused),
        cmocka_unit_test(test_rebase_when_malformed_then_refused),
        cmocka_unit_test(test_rebase_when_there_are_too_many_offsets_then_refused),
        cmocka_unit_test(test_request_when_id_or_user_is_missing_then_refused),
        cmocka_unit_test(test_request_when_cut_or_memory_is_short_then_no_crash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
