/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/proto_body.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/err.h"

#define REV "28160000000000001"
#define CLUSTER "kuberelay.io/cluster"
#define NOTE_CLUSTER "kcp.io/cluster"
#define SLIMMED "kuberelay.io/slimmed"

/* ---- bodies, written as client-go writes them ---- */

static void put_number(struct kr_buf *out, size_t v)
{
    uint8_t b;

    for (; v >= 0x80; v >>= 7) {
        b = (uint8_t)(v | 0x80);
        assert_int_equal(kr_buf_append(out, kr_bytes_of(&b, 1)), 0);
    }
    b = (uint8_t)v;
    assert_int_equal(kr_buf_append(out, kr_bytes_of(&b, 1)), 0);
}

static void put(struct kr_buf *out, unsigned number, struct kr_bytes value)
{
    put_number(out, number << 3 | 2);
    put_number(out, value.n);
    assert_int_equal(kr_buf_append(out, value), 0);
}

static void put_entry(struct kr_buf *out, unsigned number, const char *key, const char *value)
{
    struct kr_buf entry = {.max = 1 << 20};

    put(&entry, 1, kr_bytes_str(key));
    put(&entry, 2, kr_bytes_str(value));
    put(out, number, kr_buf_bytes(&entry));
    kr_buf_deinit(&entry);
}

/* Puts what is in `inner` into `number` of an object or options, with something behind it, and that
 * into an envelope. */
static void wrap(struct kr_buf *out, unsigned number, struct kr_bytes inner)
{
    struct kr_buf raw = {.max = 1 << 20};
    struct kr_buf type = {.max = 1024};

    put(&raw, number, inner);
    put(&raw, 3, KR_LIT("the spec, which has " REV " and " CLUSTER " too"));
    put(&type, 1, KR_LIT("v1"));
    put(&type, 2, KR_LIT("ConfigMap"));
    assert_int_equal(kr_buf_append(out, kr_bytes_of("k8s\0", 4)), 0);
    put(out, 1, kr_buf_bytes(&type));
    put(out, 2, kr_buf_bytes(&raw));
    put(out, 3, KR_LIT(""));
    put(out, 4, KR_LIT(""));
    kr_buf_deinit(&raw);
    kr_buf_deinit(&type);
}

/* ObjectMeta; version NULL: none. */
static void put_meta(struct kr_buf *meta, const char *version, bool injected, size_t filler)
{
    char text[70000];

    assert_true(filler < sizeof text);
    memset(text, 'x', filler);
    text[filler] = '\0';
    put(meta, 1, KR_LIT("a"));
    if (version != NULL)
        put(meta, 6, kr_bytes_str(version));
    put_number(meta, 7 << 3); /* generation */
    put_number(meta, 300);
    if (injected)
        put_entry(meta, 11, CLUSTER, "c1");
    put_entry(meta, 11, "team", "x");
    if (injected) {
        put_entry(meta, 12, NOTE_CLUSTER, "c1");
        put_entry(meta, 12, "kuberelay.io/resource-version", "77");
    }
    put_entry(meta, 12, "mine", text);
}

static void object(struct kr_buf *out, const char *version, bool injected, size_t filler)
{
    struct kr_buf meta = {.max = 1 << 20};

    put_meta(&meta, version, injected, filler);
    wrap(out, 1, kr_buf_bytes(&meta));
    kr_buf_deinit(&meta);
}

static void assert_same(const struct kr_buf *is, const struct kr_buf *want)
{
    assert_int_equal(is->n, want->n);
    assert_memory_equal(is->p, want->p, want->n);
}

static void change(enum kr_body_kind kind, const struct kr_buf *from, const struct kr_buf *want)
{
    struct kr_write_body b;
    struct kr_note why = {""};
    struct kr_buf edited = {.max = 1 << 20};
    struct kr_buf filled = {.max = 1 << 20};
    uint32_t offset = 0;

    if (kr_proto_body_read(kind, kr_buf_bytes(from), KR_LIT(REV), &b, &why) != 0)
        fail_msg("%s", why.text);
    assert_true(b.has_version);
    assert_int_equal(b.version_count, 1);
    assert_int_equal(kr_buf_append_str(&edited, "before"), 0);
    kr_buf_drop(&edited, 6);
    assert_int_equal(kr_proto_body_edit(&b, kr_buf_bytes(from), &edited, &offset), 0);
    assert_int_equal(edited.p[offset], 0);
    assert_int_equal(kr_proto_body_fill(kr_buf_bytes(&edited), offset, KR_LIT("4711"), &filled), 0);
    assert_same(&filled, want);
    kr_buf_deinit(&edited);
    kr_buf_deinit(&filled);
}

/* ---- what is changed ---- */

static void test_object_when_it_is_of_the_fleet_view_then_only_that_is_taken_out(void **state)
{
    /* Around the sizes at which a length, or two of them, take one byte more. */
    static const size_t fillers[] = {0,     20,    40,    60,    70,    80,    90,
                                     100,   110,   127,   128,   200,   16000, 16100,
                                     16200, 16250, 16300, 16350, 16383, 16384, 65000};

    (void)state;
    for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++) {
        struct kr_buf from = {.max = 1 << 20};
        struct kr_buf want = {.max = 1 << 20};

        object(&from, REV, true, fillers[i]);
        object(&want, "4711", false, fillers[i]);
        change(KR_BODY_OBJECT, &from, &want);
        kr_buf_deinit(&from);
        kr_buf_deinit(&want);
    }
}

static void test_object_when_the_live_version_is_longer_then_the_lengths_grow(void **state)
{
    struct kr_buf from = {.max = 1 << 20};
    struct kr_buf out = {.max = 1 << 20};
    struct kr_buf want = {.max = 1 << 20};
    char version[301];
    struct kr_write_body b;
    uint32_t offset;

    (void)state;
    memset(version, '9', 300);
    version[300] = '\0';
    object(&from, REV, false, 0);
    object(&want, version, false, 0);
    assert_int_equal(kr_proto_body_read(KR_BODY_OBJECT, kr_buf_bytes(&from), KR_LIT(REV), &b, NULL),
                     0);
    assert_int_equal(kr_proto_body_edit(&b, kr_buf_bytes(&from), &out, &offset), 0);
    from.n = 0;
    assert_int_equal(kr_proto_body_fill(kr_buf_bytes(&out), offset, kr_bytes_str(version), &from),
                     0);
    assert_same(&from, &want);
    kr_buf_deinit(&from);
    kr_buf_deinit(&out);
    kr_buf_deinit(&want);
}

static void test_object_when_it_has_no_version_then_only_keys_are_cut(void **state)
{
    struct kr_buf from = {.max = 1 << 20};
    struct kr_buf want = {.max = 1 << 20};
    struct kr_buf out = {.max = 1 << 20};
    struct kr_write_body b;
    uint32_t offset;

    (void)state;
    object(&from, NULL, true, 100);
    object(&want, NULL, false, 100);
    assert_int_equal(kr_proto_body_read(KR_BODY_OBJECT, kr_buf_bytes(&from), KR_LIT(""), &b, NULL),
                     0);
    assert_true(b.injected && !b.has_version && !b.slimmed);
    assert_int_equal(kr_proto_body_edit(&b, kr_buf_bytes(&from), &out, &offset), 0);
    assert_same(&out, &want);
    kr_buf_deinit(&from);
    kr_buf_deinit(&out);
    kr_buf_deinit(&want);
}

static void test_object_when_there_is_nothing_of_the_fleet_view_then_as_it_came(void **state)
{
    struct kr_buf from = {.max = 1 << 20};
    struct kr_buf out = {.max = 1 << 20};
    struct kr_write_body b;
    uint32_t offset;

    (void)state;
    object(&from, "77", false, 10);
    assert_int_equal(kr_proto_body_read(KR_BODY_OBJECT, kr_buf_bytes(&from), KR_LIT(REV), &b, NULL),
                     0);
    assert_true(b.has_version && kr_bytes_is(b.foreign, "77") && !b.injected);
    assert_int_equal(kr_proto_body_edit(&b, kr_buf_bytes(&from), &out, &offset), 0);
    assert_same(&out, &from);
    kr_buf_deinit(&from);
    kr_buf_deinit(&out);
}

static void test_object_when_it_says_slimmed_then_told(void **state)
{
    struct kr_buf from = {.max = 1 << 20};
    struct kr_buf meta = {.max = 1 << 20};
    struct kr_write_body b;

    (void)state;
    put(&meta, 6, KR_LIT("")); /* means any */
    put_entry(&meta, 12, SLIMMED, "true");
    wrap(&from, 1, kr_buf_bytes(&meta));
    assert_int_equal(kr_proto_body_read(KR_BODY_OBJECT, kr_buf_bytes(&from), KR_LIT(REV), &b, NULL),
                     0);
    assert_true(b.slimmed && b.injected && !b.has_version);
    kr_buf_deinit(&meta);
    kr_buf_deinit(&from);
}

static void test_delete_options_when_a_version_is_given_then_mapped(void **state)
{
    struct kr_buf from = {.max = 1 << 20};
    struct kr_buf want = {.max = 1 << 20};
    struct kr_buf inner = {.max = 1 << 20};

    (void)state;
    put(&inner, 1, KR_LIT("a-uid"));
    put(&inner, 2, KR_LIT(REV));
    wrap(&from, 2, kr_buf_bytes(&inner));
    inner.n = 0;
    put(&inner, 1, KR_LIT("a-uid"));
    put(&inner, 2, KR_LIT("4711"));
    wrap(&want, 2, kr_buf_bytes(&inner));
    change(KR_BODY_DELETE_OPTIONS, &from, &want);
    kr_buf_deinit(&inner);
    kr_buf_deinit(&from);
    kr_buf_deinit(&want);
}

/* ---- what is refused ---- */

static void refuse_text(enum kr_body_kind kind, struct kr_bytes text)
{
    struct kr_write_body b;
    struct kr_note why = {""};

    assert_int_equal(kr_proto_body_read(kind, text, KR_LIT(REV), &b, &why), KR_EPROTO);
    assert_true(why.text[0] != '\0');
}

static void test_read_when_two_readers_could_differ_then_refused(void **state)
{
    static const unsigned numbers[] = {6, 6};
    struct kr_buf meta = {.max = 1 << 20};
    struct kr_buf raw = {.max = 1 << 20};
    struct kr_buf text = {.max = 1 << 20};

    (void)state;
    for (size_t i = 0; i < 2; i++) /* two versions */
        put(&meta, numbers[i], KR_LIT(REV));
    wrap(&text, 1, kr_buf_bytes(&meta));
    refuse_text(KR_BODY_OBJECT, kr_buf_bytes(&text));

    meta.n = text.n = 0; /* two metadata */
    put(&meta, 6, KR_LIT(REV));
    put(&raw, 1, kr_buf_bytes(&meta));
    put(&raw, 1, kr_buf_bytes(&meta));
    assert_int_equal(kr_buf_append(&text, kr_bytes_of("k8s\0", 4)), 0);
    put(&text, 2, kr_buf_bytes(&raw));
    refuse_text(KR_BODY_OBJECT, kr_buf_bytes(&text));

    text.n = 4; /* two objects */
    put(&text, 2, KR_LIT(""));
    put(&text, 2, KR_LIT(""));
    refuse_text(KR_BODY_OBJECT, kr_buf_bytes(&text));

    meta.n = raw.n = text.n = 0; /* a key twice */
    put(&raw, 1, KR_LIT(CLUSTER));
    put(&raw, 1, KR_LIT("other"));
    put(&meta, 11, kr_buf_bytes(&raw));
    wrap(&text, 1, kr_buf_bytes(&meta));
    refuse_text(KR_BODY_OBJECT, kr_buf_bytes(&text));
    kr_buf_deinit(&meta);
    kr_buf_deinit(&raw);
    kr_buf_deinit(&text);
}

static void test_read_when_it_is_no_message_then_refused(void **state)
{
    static const struct kr_bytes texts[] = {
        KR_LIT(""),
        KR_LIT("k8s"),
        KR_LIT("{\"metadata\":{}}"),
        KR_LIT("k8s\0\x12"),
        KR_LIT("k8s\0\x12\x05\x0a"),
        KR_LIT("k8s\0\x12\x02\x0a\x05"),
        KR_LIT("k8s\0\x13\x14"),                                 /* a group */
        KR_LIT("k8s\0\x10\x01"),                                 /* raw as a number */
        KR_LIT("k8s\0\x12\x02\x08\x01"),                         /* metadata as a number */
        KR_LIT("k8s\0\x12\x04\x0a\x02\x30\x01"),                 /* a version as a number */
        KR_LIT("k8s\0\x12\x04\x0a\x02\x58\x01"),                 /* labels as a number */
        KR_LIT("k8s\0\x02\x00"),                                 /* field 0 */
        KR_LIT("k8s\0\x92\x80\x80\x80\x80\x80\x80\x80\x80\x02"), /* more than 64 bits */
        KR_LIT("k8s\0\x92\x80\x80\x80\x80\x01\x00"), /* cut to 32 bits it would be raw */
        KR_LIT("k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse_text(KR_BODY_OBJECT, texts[i]);
    refuse_text(KR_BODY_JSON_PATCH, KR_LIT("k8s\0"));
}

static void test_read_when_there_is_too_much_then_too_big(void **state)
{
    struct kr_buf meta = {.max = 1 << 20};
    struct kr_buf text = {.max = 1 << 20};
    struct kr_write_body b;

    (void)state;
    for (size_t i = 0; i <= KR_BODY_CUTS_MAX; i++)
        put_entry(&meta, 11, CLUSTER, "c");
    wrap(&text, 1, kr_buf_bytes(&meta));
    assert_int_equal(kr_proto_body_read(KR_BODY_OBJECT, kr_buf_bytes(&text), KR_LIT(REV), &b, NULL),
                     KR_ETOOBIG);
    kr_buf_deinit(&meta);
    kr_buf_deinit(&text);
}

static void test_fill_when_an_offset_is_elsewhere_then_refused(void **state)
{
    struct kr_buf from = {.max = 1 << 20};
    struct kr_buf edited = {.max = 1 << 20};
    struct kr_buf out = {.max = 1 << 20};
    struct kr_write_body b;
    uint32_t offset;
    size_t taken = 0;

    (void)state;
    object(&from, REV, true, 10);
    assert_int_equal(kr_proto_body_read(KR_BODY_OBJECT, kr_buf_bytes(&from), KR_LIT(REV), &b, NULL),
                     0);
    assert_int_equal(kr_proto_body_edit(&b, kr_buf_bytes(&from), &edited, &offset), 0);
    for (uint32_t i = 0; i < edited.n + 8; i++) {
        int rc = kr_proto_body_fill(kr_buf_bytes(&edited), i, KR_LIT("1"), &out);

        assert_true(rc == 0 ? i == offset : rc == KR_EPROTO && out.n == 0);
        taken += rc == 0;
        out.n = 0;
    }
    assert_int_equal(taken, 1);
    assert_int_equal(kr_proto_body_fill(kr_buf_bytes(&edited), offset, KR_LIT(""), &out),
                     KR_EPROTO);
    assert_int_equal(kr_proto_body_fill(kr_buf_bytes(&edited), offset, KR_LIT("\x01"), &out),
                     KR_EPROTO);
    assert_int_equal(kr_proto_body_fill(KR_LIT("{\"a\":\"\"}"), 6, KR_LIT("1"), &out), KR_EPROTO);
    kr_buf_deinit(&from);
    kr_buf_deinit(&edited);
    kr_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_when_it_is_of_the_fleet_view_then_only_that_is_taken_out),
        cmocka_unit_test(test_object_when_the_live_version_is_longer_then_the_lengths_grow),
        cmocka_unit_test(test_object_when_it_has_no_version_then_only_keys_are_cut),
        cmocka_unit_test(test_object_when_there_is_nothing_of_the_fleet_view_then_as_it_came),
        cmocka_unit_test(test_object_when_it_says_slimmed_then_told),
        cmocka_unit_test(test_delete_options_when_a_version_is_given_then_mapped),
        cmocka_unit_test(test_read_when_two_readers_could_differ_then_refused),
        cmocka_unit_test(test_read_when_it_is_no_message_then_refused),
        cmocka_unit_test(test_read_when_there_is_too_much_then_too_big),
        cmocka_unit_test(test_fill_when_an_offset_is_elsewhere_then_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
