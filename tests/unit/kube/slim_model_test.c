/* SPDX-License-Identifier: Apache-2.0 */
/* A second opinion on slimming: random objects and profiles, the same done on json-c's trees. */
#include "kube/slim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "json_random.h"

#define PATHS 6
#define STEPS 5
#define ANY RANDOM_NAMES /* the step [*] */

/* Names of the objects; zero bytes are not among them since json-c ends keys there. */
static const char *const names[RANDOM_NAMES][2] = {
    {"metadata", "\\u006detadata"},
    {"annotations", "\\u0061nnotations"},
    {"kind", "\\u006bind"},
    {"managedFields", "managed\\u0046ields"},
    {"resourceVersion", "resource\\u0056ersion"},
    {"a.b", "a\\u002eb"},
    {"spec", "sp\\u0065c"},
    {"caf\xc3\xa9", "caf\\u00e9"},
};

struct path {
    unsigned steps[STEPS];
    unsigned count;
    bool keep;
};

struct model {
    struct path paths[PATHS];
    unsigned count;
    bool keeps; /* one keeps, or metadata only */
    bool metadata_only;
    bool lossy; /* something was left out */
};

/* ---- the model: on trees ---- */

/* Which of the paths in `alive` have this name (or ANY) as their step at `depth`. */
static unsigned advance(const struct model *m, unsigned alive, unsigned depth, unsigned name)
{
    unsigned left = 0;

    for (unsigned i = 0; i < m->count; i++) {
        const struct path *p = &m->paths[i];

        if ((alive >> i & 1) != 0 && depth < p->count &&
            (p->steps[depth] == name || p->steps[depth] == ANY))
            left |= 1U << i;
    }
    return left;
}

static bool ends(const struct model *m, unsigned alive, unsigned depth, bool keep)
{
    for (unsigned i = 0; i < m->count; i++) {
        if ((alive >> i & 1) != 0 && m->paths[i].keep == keep && m->paths[i].count == depth + 1)
            return true;
    }
    return false;
}

static unsigned only(const struct model *m, unsigned alive, bool keep)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->paths[i].keep != keep)
            alive &= ~(1U << i);
    }
    return alive;
}

static unsigned name_number(const char *key)
{
    unsigned i = 0;

    while (i < RANDOM_NAMES && strcmp(names[i][0], key) != 0)
        i++;
    return i == ANY ? ANY + 1 : i;
}

static void thin(struct model *m, struct json_object *v, unsigned alive, unsigned depth,
                 bool whole);

static bool leave_out(struct model *m)
{
    m->lossy = true;
    return false;
}

/* Whether a value stays; what is in it is thinned. */
static bool stays(struct model *m, struct json_object *v, unsigned alive, unsigned depth,
                  bool whole, bool element)
{
    const bool inner =
        json_object_is_type(v, json_type_object) || json_object_is_type(v, json_type_array);

    if (ends(m, alive, depth, false))
        return leave_out(m);
    if (whole || ends(m, alive, depth, true)) {
        if (inner)
            thin(m, v, only(m, alive, false), depth + 1, true);
        return true;
    }
    if (only(m, alive, true) == 0)
        return leave_out(m);
    if (inner)
        thin(m, v, alive, depth + 1, false);
    return inner || element || v == NULL || leave_out(m);
}

static void thin(struct model *m, struct json_object *v, unsigned alive, unsigned depth, bool whole)
{
    if (json_object_is_type(v, json_type_array)) {
        for (size_t i = json_object_array_length(v); i-- != 0;) {
            if (!stays(m, json_object_array_get_idx(v, i), advance(m, alive, depth, ANY), depth,
                       whole, true))
                json_object_array_del_idx(v, i, 1);
        }
        return;
    }
    json_object_object_foreach(v, key, member)
    {
        if (!stays(m, member, advance(m, alive, depth, name_number(key)), depth, whole, false))
            json_object_object_del(v, key);
    }
}

static void thin_metadata(struct model *m, struct json_object *v, unsigned alive)
{
    if (!json_object_is_type(v, json_type_object))
        return;
    json_object_object_del(v, "managedFields");
    json_object_object_del(v, "resourceVersion");
    json_object_object_foreach(v, key, member)
    {
        if (strcmp(key, "annotations") == 0 &&
            !stays(m, member, advance(m, alive, 1, name_number(key)), 1, true, false))
            json_object_object_del(v, key);
    }
}

static void thin_object(struct model *m, struct json_object *v)
{
    const unsigned all = (1U << m->count) - 1;

    m->lossy = false;
    json_object_object_del(v, "kind");
    json_object_object_foreach(v, key, member)
    {
        const unsigned alive = advance(m, all, 0, name_number(key));

        if (strcmp(key, "metadata") == 0)
            thin_metadata(m, member, only(m, alive, false));
        else if (!stays(m, member, alive, 0, !m->keeps, false))
            json_object_object_del(v, key);
    }
}

/* ---- random profiles ---- */

static void make_path(struct kr_rand *r, struct path *p)
{
    p->keep = kr_rand_below(r, 2) != 0;
    p->count = 1 + (unsigned)kr_rand_below(r, STEPS);
    for (unsigned i = 0; i < p->count; i++)
        p->steps[i] = (unsigned)kr_rand_below(r, i == 0 ? RANDOM_NAMES : RANDOM_NAMES + 3);
    for (unsigned i = 0; i < p->count; i++)
        p->steps[i] = p->steps[i] > ANY ? ANY : p->steps[i];
    if (p->keep || p->steps[0] != 0)
        return;
    p->steps[1] = 1; /* of metadata only annotations can be dropped */
    p->count = p->count < 2 ? 2 : p->count;
}

static void write_path(struct kr_rand *r, const struct path *p, char *out, size_t size)
{
    size_t at = 0;

    for (unsigned i = 0; i < p->count; i++) {
        const char *const *name = names[p->steps[i] % RANDOM_NAMES];
        const bool quoted = strchr(name[0], '.') != NULL || kr_rand_below(r, 3) == 0;
        int n;

        if (p->steps[i] == ANY)
            n = snprintf(out + at, size - at, "[*]");
        else if (quoted)
            n = snprintf(out + at, size - at, "[\"%s\"]", name[kr_rand_below(r, 2)]);
        else
            n = snprintf(out + at, size - at, "%s%s", i != 0 ? "." : "", name[0]);
        at += (size_t)n;
    }
}

static struct kr_profile *make_profile(struct kr_rand *r, struct model *m)
{
    struct kr_profile_paths in = {0};
    struct kr_bytes keep[PATHS];
    struct kr_bytes drop[PATHS];
    char text[PATHS][200];
    struct kr_note why;
    struct kr_profile *p;

    m->count = (unsigned)kr_rand_below(r, PATHS + 1);
    m->metadata_only = kr_rand_below(r, 20) == 0;
    m->keeps = m->metadata_only;
    in = (struct kr_profile_paths){.keep = keep, .drop = drop, .metadata_only = m->metadata_only};
    for (unsigned i = 0; i < m->count; i++) {
        make_path(r, &m->paths[i]);
        m->keeps |= m->paths[i].keep;
        write_path(r, &m->paths[i], text[i], sizeof text[i]);
        if (m->paths[i].keep)
            keep[in.keep_count++] = kr_bytes_str(text[i]);
        else
            drop[in.drop_count++] = kr_bytes_str(text[i]);
    }
    p = kr_profile_create(&in, &why);
    if (p == NULL)
        fail_msg("%s", why.text);
    return p;
}

/* ---- both ---- */

static struct json_object *parse(struct json_tokener *t, struct kr_bytes text)
{
    struct json_object *v;

    json_tokener_reset(t);
    v = json_tokener_parse_ex(t, (const char *)text.p, (int)text.n);
    assert_int_equal(json_tokener_get_error(t), json_tokener_success);
    return v;
}

/* Nothing is made up: all that is left stands in the input in the same order. */
static void expect_subsequence(struct kr_bytes part, struct kr_bytes whole)
{
    size_t at = 0;

    for (size_t i = 0; i < whole.n && at < part.n; i++)
        at += whole.p[i] == part.p[at];
    assert_int_equal(at, part.n);
}

static void expect_same(struct json_tokener *t, struct model *m, const struct kr_profile *p,
                        struct kr_bytes in)
{
    struct json_object *want = parse(t, in);
    struct json_object *got;
    struct kr_slim seen;
    struct kr_buf out;
    struct kr_buf again;

    kr_buf_init(&out, 1 << 20);
    kr_buf_init(&again, 1 << 20);
    assert_int_equal(kr_slim(p, in, &out, &seen, NULL), 0);
    got = parse(t, kr_buf_bytes(&out));
    thin_object(m, want);
    if (!json_object_equal(want, got))
        fail_msg("%.*s\nbecame %.*s\n not   %s", (int)in.n, (const char *)in.p, (int)out.n,
                 (const char *)out.p, json_object_to_json_string(want));
    assert_int_equal(seen.lossy, m->lossy);
    expect_subsequence(kr_buf_bytes(&out), in);
    assert_int_equal(kr_slim(p, kr_buf_bytes(&out), &again, &seen, NULL), 0);
    assert_true(kr_bytes_eq(kr_buf_bytes(&again), kr_buf_bytes(&out)) && !seen.lossy);
    json_object_put(want);
    json_object_put(got);
    kr_buf_deinit(&out);
    kr_buf_deinit(&again);
}

/* What is told of metadata is a string, or nothing is slimmed. */
static bool is_fit(struct json_tokener *t, struct kr_bytes in)
{
    struct json_object *v = parse(t, in);
    struct json_object *metadata = NULL;
    struct json_object *version = NULL;
    bool fit = true;

    if (json_object_object_get_ex(v, "metadata", &metadata) &&
        json_object_is_type(metadata, json_type_object) &&
        json_object_object_get_ex(metadata, "resourceVersion", &version))
        fit = version == NULL;
    json_object_put(v);
    return fit;
}

static void test_slim_when_random_then_as_the_model(void **state)
{
    struct json_tokener *t = json_tokener_new_ex(64);
    struct model m;
    struct kr_rand r;
    struct kr_buf text;
    unsigned compared = 0;

    (void)state;
    kr_rand_seed(&r, 13);
    kr_buf_init(&text, 1 << 20);
    for (unsigned round = 0; round < 10000; round++) {
        struct json_random maker = {&r, &text, names, kr_rand_below(&r, 2) != 0};
        struct kr_profile *p;

        text.n = 0;
        json_random_members(&maker, 5);
        if (!is_fit(t, kr_buf_bytes(&text)))
            continue;
        p = make_profile(&r, &m);
        expect_same(t, &m, p, kr_buf_bytes(&text));
        kr_profile_destroy(p);
        compared++;
    }
    assert_true(compared > 5000);
    kr_buf_deinit(&text);
    json_tokener_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slim_when_random_then_as_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
