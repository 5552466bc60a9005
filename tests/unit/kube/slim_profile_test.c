/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/slim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define LAST_APPLIED "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]"

/* One path, kept or dropped. */
static struct kr_profile *make(const char *keep, const char *drop)
{
    const struct kr_bytes kept = kr_bytes_str(keep);
    const struct kr_bytes dropped = kr_bytes_str(drop);
    struct kr_note why = {.text = ""};
    struct kr_profile_paths paths = {
        .keep = &kept,
        .keep_count = keep != NULL,
        .drop = &dropped,
        .drop_count = drop != NULL,
    };
    struct kr_profile *p = kr_profile_create(&paths, &why);

    assert_true((p != NULL) == (why.text[0] == '\0'));
    return p;
}

static void expect_well(struct kr_profile *p)
{
    assert_non_null(p);
    kr_profile_destroy(p);
}

static void test_profile_when_a_path_is_malformed_then_refused(void **state)
{
    static const char *const bad[] = {"",
                                      ".",
                                      "a.",
                                      ".a",
                                      "a..b",
                                      "a[",
                                      "a[]",
                                      "a[*",
                                      "a[*]b",
                                      "a[1]",
                                      "a[x]",
                                      "a[\"x]",
                                      "a[\"x\"",
                                      "a[\"\\x\"]",
                                      "a b",
                                      "a*",
                                      "a]",
                                      "a\"b\"",
                                      "[*]",
                                      "[*].a",
                                      "a[\"\x01\"]",
                                      "\xff",
                                      "a.[*]",
                                      "a\\b",
                                      "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"};
    static const char *const undroppable[] = {"metadata", "metadata.name", "metadata[*]",
                                              "metadata.labels.x", "[\"metadata\"].uid"};
    char longest[520];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct kr_profile *p = make(bad[i], NULL);

        if (p != NULL)
            fail_msg("accepted: %s", bad[i]);
        assert_null(make(NULL, bad[i]));
    }
    for (size_t i = 0; i < COUNT(undroppable); i++)
        assert_null(make(NULL, undroppable[i]));
    memset(longest, 'a', sizeof longest);
    longest[513] = '\0';
    assert_null(make(longest, NULL));
    longest[512] = '\0';
    expect_well(make(longest, NULL));
}

static void test_profile_when_paths_are_well_formed_then_made(void **state)
{
    static const char *const good[] = {"a",
                                       "a.b",
                                       "a[*]",
                                       "a[*][*].b",
                                       "a[\"b.c\"]",
                                       "a[\"\"]",
                                       "[\"a\"].b",
                                       "a-b.c_d/e",
                                       "caf\xc3\xa9.x",
                                       LAST_APPLIED,
                                       "metadata.annotations",
                                       "metadata.annotations[*]",
                                       "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p",
                                       "a[\"\\u0000\"]"};

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        expect_well(make(good[i], NULL));
        expect_well(make(NULL, good[i]));
    }
}

static void test_profile_when_there_are_many_paths_then_at_most_64(void **state)
{
    static const char object[] = "{\"s\":{\"p0\":1,\"p63\":2,\"p64\":3,\"p\":4}}";
    struct kr_bytes list[65];
    char text[65][8];
    struct kr_profile *p;
    struct kr_slim seen;
    struct kr_buf out;

    (void)state;
    for (size_t i = 0; i < 65; i++) {
        snprintf(text[i], sizeof text[i], "s.p%zu", i);
        list[i] = kr_bytes_str(text[i]);
    }
    assert_null(
        kr_profile_create(&(struct kr_profile_paths){.keep = list, .keep_count = 65}, NULL));
    assert_null(
        kr_profile_create(&(struct kr_profile_paths){.drop = list, .drop_count = 65}, NULL));
    assert_null(kr_profile_create(
        &(struct kr_profile_paths){
            .keep = list, .keep_count = 64, .drop = list + 64, .drop_count = 1},
        NULL));
    p = kr_profile_create(&(struct kr_profile_paths){.keep = list, .keep_count = 64}, NULL);
    assert_non_null(p);
    kr_buf_init(&out, 100);
    assert_int_equal(kr_slim(p, kr_bytes_str(object), &out, &seen, NULL), 0);
    assert_true(kr_bytes_is(kr_buf_bytes(&out), "{\"s\":{\"p0\":1,\"p63\":2}}"));
    kr_buf_deinit(&out);
    kr_profile_destroy(p);
}

static void test_profile_destroy_when_null_then_nothing(void **state)
{
    (void)state;
    kr_profile_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile_when_a_path_is_malformed_then_refused),
        cmocka_unit_test(test_profile_when_paths_are_well_formed_then_made),
        cmocka_unit_test(test_profile_when_there_are_many_paths_then_at_most_64),
        cmocka_unit_test(test_profile_destroy_when_null_then_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
