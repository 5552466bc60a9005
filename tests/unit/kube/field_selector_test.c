/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "kube/selector.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static int setup(void **state)
{
    struct kr_arena *arena = malloc(sizeof *arena);

    kr_arena_init(arena, 4096, 1024 * 1024);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    kr_arena_deinit(*state);
    free(*state);
    return 0;
}

static const char *spell(const struct kr_field_selector *s, char *out, size_t max)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < s->n; i++)
        n += (size_t)snprintf(out + n, max - n, "%s[%.*s]%s[%.*s]", i != 0 ? ";" : "",
                              (int)s->all[i].field.n, (const char *)s->all[i].field.p,
                              s->all[i].equal ? "=" : "!=", (int)s->all[i].value.n,
                              (const char *)s->all[i].value.p);
    return out;
}

static const struct {
    const char *text;
    const char *means; /* NULL: not well formed, then `why` */
    const char *why;
} cases[] = {
    {"", "", NULL},
    {",,", "", NULL},
    {"a=b", "[a]=[b]", NULL},
    {"a==b", "[a]=[b]", NULL},
    {"a!=b", "[a]!=[b]", NULL},
    {"a=b,c!=d,", "[a]=[b];[c]!=[d]", NULL},
    {"a=", "[a]=[]", NULL},
    {"=b", "[]=[b]", NULL},
    {" a = b ", "[ a ]=[ b ]", NULL},
    {"a=\\,\\=\\\\", "[a]=[,=\\]", NULL},
    {"a=\\\\,b=c", "[a]=[\\];[b]=[c]", NULL},
    {"a=!b", "[a]=[!b]", NULL},
    {"a", NULL, "invalid selector: 'a'; can't understand 'a'"},
    {"a=b,c", NULL, "invalid selector: 'a=b,c'; can't understand 'c'"},
    {"a!b", NULL, "invalid selector: 'a!b'; can't understand 'a!b'"},
    {"a=b=c", NULL, "invalid field selector: unescaped character in value: 61"},
    {"a=\\x", NULL, "invalid field selector: invalid escape sequence: \\x"},
    {"a=b\\", NULL, "invalid field selector: invalid escape sequence: \\"},
};

static void test_parse_when_given_any_text_then_as_apimachinery(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct kr_field_selector s;
        struct kr_note why = {""};
        char text[256];
        int rc = kr_field_selector_parse(kr_bytes_str(cases[i].text), *state, &s, &why);

        assert_int_equal(rc, cases[i].means != NULL ? 0 : KR_EINVAL);
        if (rc == 0)
            assert_string_equal(spell(&s, text, sizeof text), cases[i].means);
        else
            assert_string_equal(why.text, cases[i].why);
    }
}

static void test_parse_when_there_are_too_many_terms_then_too_big(void **state)
{
    struct kr_field_selector s;
    char text[65 * 4 + 1] = "";

    for (size_t i = 0; i < 64; i++)
        memcpy(text + i * 4, "a=b,", 5);
    assert_int_equal(kr_field_selector_parse(kr_bytes_str(text), *state, &s, NULL), 0);
    assert_int_equal(s.n, 64);
    memcpy(text + 64 * 4, "a=b", 4);
    assert_int_equal(kr_field_selector_parse(kr_bytes_str(text), *state, &s, NULL), KR_ETOOBIG);
}

static const struct {
    const char *group;
    const char *resource;
    const char *field;
    bool allowed;
} allowed[] = {
    {"", "pods", "metadata.name", true},
    {"apps", "deployments", "metadata.namespace", true},
    {"apps", "deployments", "status.replicas", false},
    {"apps", "replicasets", "status.replicas", true},
    {"", "pods", "spec.nodeName", true},
    {"", "pods", "spec.host", true},
    {"", "pods", "status.phase", true},
    {"x", "pods", "status.phase", false},
    {"", "pods", "spec.unschedulable", false},
    {"", "nodes", "spec.unschedulable", true},
    {"", "nodes", "spec.host", false},
    {"batch", "jobs", "status.successful", true},
    {"batch", "jobs", "status.succeeded", false},
    {"", "events", "source", true},
    {"", "events", "source.component", false},
    {"", "events", "involvedObject.uid", true},
    {"events.k8s.io", "events", "regarding.name", true},
    {"", "secrets", "type", true},
    {"", "configmaps", "type", false},
    {"", "pods", "", false},
};

static void test_allowed_when_asked_by_kind_then_as_kube_apiserver(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(allowed); i++) {
        struct kr_field_term term = {kr_bytes_str(allowed[i].field), KR_LIT("x"), true};
        struct kr_field_selector s = {&term, 1};
        struct kr_note why = {""};
        int rc = kr_field_selector_allowed(&s, kr_bytes_str(allowed[i].group),
                                           kr_bytes_str(allowed[i].resource), &why);

        if (rc != (allowed[i].allowed ? 0 : KR_EINVAL))
            print_error("%s %s\n", allowed[i].resource, allowed[i].field);
        assert_int_equal(rc, allowed[i].allowed ? 0 : KR_EINVAL);
        if (rc != 0)
            assert_memory_equal(why.text, "field label not supported: ", 27);
    }
}

static const char object[] =
    "{\"type\":\"a\\u0062c\",\"spec\":{\"nodeName\":\"n1\",\"hostNetwork\":true,\"unschedulable\":"
    "null,\"podIPs\":[1]},\"status\":{\"phase\":\"Running\",\"replicas\":3,\"podIPs\":[{}]},"
    "\"source\":{\"component\":\"kubelet\"}}";

static const struct {
    const char *text;
    bool matches;
} matches[] = {
    {"metadata.name=web", true},
    {"metadata.name!=web", false},
    {"metadata.namespace=shop", true},
    {"metadata.namespace=", false},
    {"metadata.name=web,metadata.namespace=x", false},
    {"spec.nodeName=n1", true},
    {"spec.host=n1", true},
    {"spec.nodeName!=n1", false},
    {"spec.nodeName=", false},
    {"spec.schedulerName=", true},
    {"spec.schedulerName=x", false},
    {"spec.schedulerName!=x", true},
    {"spec.hostNetwork=true", true},
    {"spec.hostNetwork=false", false},
    {"spec.unschedulable=false", true},
    {"spec.unschedulable=true", false},
    {"status.replicas=3", true},
    {"status.successful=0", true},
    {"status.podIPs=", true},
    {"status.podIPs=[{}]", false},
    {"type=abc", true},
    {"type=ab", false},
    {"source=kubelet", true},
    {"status.phase.deeper=", true},
};

static void test_matches_when_fields_differ_then_absent_means_its_default(void **state)
{
    for (size_t i = 0; i < COUNT(matches); i++) {
        struct kr_field_selector s;

        assert_int_equal(kr_field_selector_parse(kr_bytes_str(matches[i].text), *state, &s, NULL),
                         0);
        if (kr_field_selector_matches(&s, KR_LIT("shop"), KR_LIT("web"), kr_bytes_str(object)) !=
            matches[i].matches)
            fail_msg("%s", matches[i].text);
    }
}

static void test_needs_object_when_only_names_are_asked_then_no(void **state)
{
    struct kr_field_selector s;

    kr_field_selector_parse(KR_LIT("metadata.name=a,metadata.namespace!=b"), *state, &s, NULL);
    assert_false(kr_field_selector_needs_object(&s));
    assert_true(kr_field_selector_matches(&s, KR_LIT("c"), KR_LIT("a"), kr_bytes_of(NULL, 0)));
    kr_field_selector_parse(KR_LIT("metadata.name=a,status.phase=b"), *state, &s, NULL);
    assert_true(kr_field_selector_needs_object(&s));
}

static void test_paths_when_a_kind_has_fields_then_profiles_can_keep_them(void **state)
{
    const char *const *paths = kr_field_paths(KR_LIT("batch"), KR_LIT("jobs"));

    (void)state;
    assert_string_equal(paths[0], "status.succeeded");
    assert_null(paths[1]);
    assert_null(kr_field_paths(KR_LIT("apps"), KR_LIT("deployments"))[0]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_parse_when_given_any_text_then_as_apimachinery),
        TEST(test_parse_when_there_are_too_many_terms_then_too_big),
        TEST(test_allowed_when_asked_by_kind_then_as_kube_apiserver),
        TEST(test_matches_when_fields_differ_then_absent_means_its_default),
        TEST(test_needs_object_when_only_names_are_asked_then_no),
        TEST(test_paths_when_a_kind_has_fields_then_profiles_can_keep_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
