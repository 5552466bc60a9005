/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/upsert_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"

#define UID "0a1b2c3d-0001-4000-8000-00000000000a"
#define META "\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"" UID "\""

struct world {
    struct kr_dictionaries *dictionaries;
    struct kr_packer *packer;
    struct kr_unpacker *unpacker;
    struct hub_upsert_check *check;
    struct kr_buf packed;
    struct hub_incoming in;
    struct kr_note why;
    char text[8192];
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    w->dictionaries = kr_dictionaries_create(true, true);
    w->packer = kr_packer_create(w->dictionaries);
    w->unpacker = kr_unpacker_create(w->dictionaries);
    w->check = hub_upsert_check_create(w->dictionaries);
    w->packed.max = 8u << 20;
    *state = w;
    return w->check == NULL;
}

static int teardown(void **state)
{
    struct world *w = *state;

    hub_upsert_check_destroy(w->check);
    kr_packer_destroy(w->packer);
    kr_unpacker_destroy(w->unpacker);
    kr_dictionaries_destroy(w->dictionaries);
    kr_buf_deinit(&w->packed);
    free(w);
    return 0;
}

static struct kr_upsert told(struct world *w, struct kr_bytes text)
{
    struct kr_upsert u = {.ns = KR_LIT("shop"),
                          .name = KR_LIT("web"),
                          .uid = KR_LIT(UID),
                          .version = KR_LIT("42"),
                          .hash = 7,
                          .lossy = true,
                          .size = (uint32_t)text.n};

    w->packed.n = 0;
    assert_int_equal(kr_pack(w->packer, text, &w->packed, &u.dictionary), 0);
    u.packed = kr_buf_bytes(&w->packed);
    return u;
}

static int check(struct world *w, const struct kr_upsert *u)
{
    w->why.text[0] = '\0';
    return hub_upsert_check(w->check, u, &w->in, &w->why);
}

static int check_text(struct world *w, const char *text)
{
    struct kr_upsert u = told(w, kr_bytes_str(text));

    return check(w, &u);
}

/* What the shelf would hold. */
static const char *held(struct world *w)
{
    assert_in_range(w->in.size, 0, sizeof w->text - 1);
    assert_int_equal(
        kr_unpack(w->unpacker, w->in.packed, w->in.dictionary, (uint8_t *)w->text, w->in.size), 0);
    w->text[w->in.size] = '\0';
    return w->text;
}

static void test_check_when_all_is_right_then_as_it_came(void **state)
{
    struct world *w = *state;
    const char *text =
        "[\"web\",1]\n{" META ",\"labels\":{\"b\":\"2\",\"a\":\"\\u0031\"}},\"spec\":{}}";

    assert_int_equal(check_text(w, text), 0);
    assert_string_equal(held(w), text);
    assert_ptr_equal(w->in.packed.p, w->packed.p);
    assert_int_equal(w->in.label_count, 2);
    assert_true(kr_bytes_is(w->in.labels[0].key, "a"));
    assert_true(kr_bytes_is(w->in.labels[0].value, "1"));
    assert_true(kr_bytes_is(w->in.labels[1].key, "b"));
    assert_true(w->in.lossy);
    assert_int_equal(w->in.hash, 7);
    assert_true(kr_bytes_is(w->in.version, "42"));
    assert_int_equal(check_text(w, "\n{" META "}}"), 0); /* without cells and labels */
    assert_int_equal(w->in.label_count, 0);
}

static const char *const bad[] = {
    "",
    "{" META "}}", /* no newline */
    "\n",
    "\n[]",
    "\n{}",
    "\n{" META "}",
    "\n{" META "}} x",
    "\n{" META "},\"a\":01}",
    "[\"web\"\n{" META "}}",
    "{\"web\":1}\n{" META "}}",
    "\"web\"\n{" META "}}",
    /* another name, namespace, uid */
    "\n{\"metadata\":{\"name\":\"other\",\"namespace\":\"shop\",\"uid\":\"" UID "\"}}",
    "\n{\"metadata\":{\"name\":\"web\",\"namespace\":\"other\",\"uid\":\"" UID "\"}}",
    "\n{\"metadata\":{\"name\":\"web\",\"uid\":\"" UID "\"}}",
    "\n{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"x\"}}",
    "\n{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"}}",
    /* two readers could see two objects */
    "\n{" META ",\"name\":\"other\"}}",
    "\n{" META "},\"metadata\":{\"name\":\"other\"}}",
    "\n{" META ",\"n\\u0061me\":\"other\"}}",
    "\n{" META "},\"met\\u0061data\":{}}",
    "\n{" META ",\"labels\":{},\"labels\":{\"a\":\"b\"}}}",
    "\n{" META ",\"labels\":null}}",
    "\n{" META ",\"annotations\":null}}",
    "\n{" META ",\"labels\":[]}}",
    "\n{" META ",\"labels\":{\"a\":1}}}",
    /* what the hub puts back */
    "\n{\"kind\":\"Pod\"," META "}}",
    "\n{\"apiVersion\":\"\"," META "}}",
    "\n{" META ",\"resourceVersion\":\"1\"}}",
    "\n{" META ",\"resourceVersion\":null}}",
};

static void test_check_when_object_is_hostile_then_refused(void **state)
{
    struct world *w = *state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int rc = check_text(w, bad[i]);

        if (rc != KR_EPROTO || w->why.text[0] == '\0')
            fail_msg("%s\nis %d: %s", bad[i], rc, w->why.text);
    }
    assert_int_equal(check_text(w, "\n{" META "}}"), 0); /* no trace of them is left */
}

/* Agents leave it to the object, since it is long and cannot be packed. */
static void test_check_when_no_uid_is_told_then_the_objects(void **state)
{
    static const char *const odd[] = {
        "\n{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"a b\"}}",
        "\n{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":7}}",
        "\n{" META ",\"uid\":\"x\"}}"};
    struct world *w = *state;
    struct kr_upsert u = told(w, KR_LIT("\n{" META "}}"));

    u.uid = kr_bytes_of(NULL, 0);
    assert_int_equal(check(w, &u), 0);
    assert_true(kr_bytes_is(w->in.uid, UID));
    u = told(w, KR_LIT("\n{" META ",\"labels\":{\"kuberelay.io/cluster\":\"x\"}}}"));
    u.uid = kr_bytes_of(NULL, 0);
    assert_int_equal(check(w, &u), 0); /* cut, and packed anew */
    assert_true(kr_bytes_is(w->in.uid, UID));
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        u = told(w, kr_bytes_str(odd[i]));
        u.uid = kr_bytes_of(NULL, 0);
        assert_int_equal(check(w, &u), KR_EPROTO);
    }
}

static void test_check_when_injected_keys_are_in_it_then_cut_out(void **state)
{
    static const struct {
        const char *in;
        const char *out;
    } cases[] = {
        {"[1]\n{" META ",\"labels\":{\"kuberelay.io/cluster\":\"edge-9\"}},\"x\":1}",
         "[1]\n{" META ",\"labels\":{}},\"x\":1}"},
        {"\n{" META
         ",\"labels\":{\"a\":\"b\", \"kuberelay.io/cluster\" : \"edge-9\" ,\"c\":\"d\"}}}",
         "\n{" META ",\"labels\":{\"a\":\"b\",\"c\":\"d\"}}}"},
        {"\n{" META ",\"annotations\":{\"kcp.io/cluster\":\"x\",\"a\":\"b\","
         "\"multicluster.x-k8s.io/cluster-name\":\"x\",\"kuberelay.io/stale-since\":\"x\","
         "\"kuberelay.io/slimmed\":\"x\",\"kuberelay.io/resource-version\":\"x\"},"
         "\"labels\":{\"kuberelay.io/cluster\":\"y\",\"kuberelay.io/cluster\":\"z\",\"k\":\"v\"}}}",
         "\n{" META ",\"annotations\":{\"a\":\"b\"},\"labels\":{\"k\":\"v\"}}}"},
        {"\n{" META ",\"annotations\":{\"kcp\\u002eio/cluster\":\"x\"}}}",
         "\n{" META ",\"annotations\":{}}}"},
    };
    struct world *w = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(check_text(w, cases[i].in), 0);
        assert_string_equal(held(w), cases[i].out);
    }
    assert_int_equal(check_text(w, cases[2].in), 0);
    assert_int_equal(w->in.label_count, 1);
    assert_true(kr_bytes_is(w->in.labels[0].key, "k"));
}

static void test_check_when_what_is_told_is_impossible_then_refused(void **state)
{
    static const char long_name[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const char *const names[] = {"",    ".",   "..",      "a/b", "a%b",
                                        "a b", "a\"", long_name, "\x7f"};
    static const char *const spaces[] = {"Shop", "a.b", "-a", "a/b", long_name};
    struct world *w = *state;
    struct kr_upsert u = told(w, KR_LIT("\n{" META "}}"));
    struct kr_upsert odd;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        odd = u;
        odd.name = kr_bytes_str(names[i]);
        assert_int_equal(check(w, &odd), KR_EPROTO);
    }
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        odd = u;
        odd.ns = kr_bytes_str(spaces[i]);
        assert_int_equal(check(w, &odd), KR_EPROTO);
    }
    odd = u;
    odd.version = kr_bytes_str(long_name);
    assert_int_equal(check(w, &odd), KR_EPROTO);
    odd.version = KR_LIT("1\",\"x\":\"");
    assert_int_equal(check(w, &odd), KR_EPROTO);
    assert_int_equal(check(w, &u), 0);
}

static void test_check_when_it_does_not_unpack_then_refused(void **state)
{
    struct world *w = *state;
    struct kr_upsert u = told(w, KR_LIT("\n{" META "}}"));
    struct kr_upsert odd = u;

    odd.size = u.size + 1;
    assert_int_equal(check(w, &odd), KR_EPROTO);
    odd.size = u.size - 1;
    assert_int_equal(check(w, &odd), KR_EPROTO);
    odd.size = KR_PLAIN_MAX + 1;
    assert_int_equal(check(w, &odd), KR_ETOOBIG);
    odd = u;
    odd.dictionary = 200;
    assert_int_equal(check(w, &odd), KR_ENOENT);
    odd.dictionary = 70000;
    assert_int_equal(check(w, &odd), KR_ENOENT);
    odd = u;
    odd.packed.n--;
    assert_int_equal(check(w, &odd), KR_EPROTO);
    odd = u;
    odd.size = 0;
    odd.packed.n = 0;
    assert_int_equal(check(w, &odd), KR_EPROTO);
    assert_int_equal(check(w, &u), 0);
}

static void test_check_when_cells_or_labels_are_too_many_then_refused(void **state)
{
    struct world *w = *state;
    struct kr_buf text = {.max = 4u << 20};

    kr_buf_append_str(&text, "[0");
    for (int i = 0; i < 64; i++)
        kr_buf_append_str(&text, ",0");
    kr_buf_append_str(&text, "]\n{" META "}}");
    {
        struct kr_upsert u = told(w, kr_buf_bytes(&text));

        assert_int_equal(check(w, &u), KR_ETOOBIG);
    }
    text.n = 0;
    kr_buf_append_str(&text, "\n{" META ",\"labels\":{\"x\":\"y\"");
    for (int i = 0; i < HUB_OBJECT_LABELS_MAX; i++)
        kr_buf_printf(&text, ",\"k%d\":\"v\"", i);
    kr_buf_append_str(&text, "}}}");
    {
        struct kr_upsert u = told(w, kr_buf_bytes(&text));

        assert_int_equal(check(w, &u), KR_ETOOBIG);
    }
    kr_buf_deinit(&text);
}

static void test_check_when_it_is_as_large_as_may_be_then_it_passes(void **state)
{
    struct world *w = *state;
    struct kr_buf text = {.max = KR_PLAIN_MAX};
    struct kr_upsert u;

    kr_buf_append_str(&text,
                      "\n{" META ",\"labels\":{\"kuberelay.io/cluster\":\"x\"}},\"spec\":\"");
    while (text.n < KR_PLAIN_MAX - 2)
        kr_buf_append_str(&text, "x");
    kr_buf_append_str(&text, "\"}");
    assert_int_equal(text.n, KR_PLAIN_MAX);
    u = told(w, kr_buf_bytes(&text));
    assert_int_equal(check(w, &u), 0);
    assert_in_range(w->in.size, KR_PLAIN_MAX - 100, KR_PLAIN_MAX - 1);
    kr_buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_when_all_is_right_then_as_it_came),
        cmocka_unit_test(test_check_when_object_is_hostile_then_refused),
        cmocka_unit_test(test_check_when_no_uid_is_told_then_the_objects),
        cmocka_unit_test(test_check_when_injected_keys_are_in_it_then_cut_out),
        cmocka_unit_test(test_check_when_what_is_told_is_impossible_then_refused),
        cmocka_unit_test(test_check_when_it_does_not_unpack_then_refused),
        cmocka_unit_test(test_check_when_cells_or_labels_are_too_many_then_refused),
        cmocka_unit_test(test_check_when_it_is_as_large_as_may_be_then_it_passes),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
