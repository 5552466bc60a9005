/* SPDX-License-Identifier: Apache-2.0 */
/* Input, a line each: paths of a profile ("+keep" and "-drop", spaces between them), an object, and
 * what somebody wants to be there instead of what the profile leaves of it. If that is not refused:
 *   - the patch applies to the whole object, with json-c's trees;
 *   - what the profile leaves of the result is what was wanted, but for empty things;
 *   - what it left out is still there, wherever nothing was said about it. */
#include <stdlib.h>

#include "../../unit/kube/json_apply.h"
#include "base/assert.h"
#include "kube/json_diff.h"

#define INPUT_MAX 4000

struct input {
    struct kr_bytes paths[64];
    struct kr_bytes keep[32];
    struct kr_bytes drop[32];
    struct kr_profile_paths profile;
    struct kr_bytes live;
    struct kr_bytes wanted;
};

static struct kr_bytes take_part(struct kr_bytes *rest, uint8_t end)
{
    size_t n = kr_bytes_find(*rest, end);
    struct kr_bytes part = kr_bytes_of(rest->p, n);

    *rest = kr_bytes_skip(*rest, n < rest->n ? n + 1 : n);
    return part;
}

/* json-c's trees have names without NUL, and know no halves of surrogate pairs. */
static bool is_usable(struct kr_bytes text)
{
    return text.n != 0 && kr_scan_check(text, 24, NULL) == 0 &&
           kr_scan_object(text, &(struct kr_scan){{0}}) &&
           memmem(text.p, text.n, "\\u0000", 6) == NULL &&
           memmem(text.p, text.n, "\\ud", 3) == NULL && memmem(text.p, text.n, "\\uD", 3) == NULL;
}

static bool read_input(const uint8_t *data, size_t n, struct input *in)
{
    struct kr_bytes rest = kr_bytes_of(data, n);
    struct kr_bytes paths = take_part(&rest, '\n');

    memset(in, 0, sizeof *in);
    in->profile.keep = in->keep;
    in->profile.drop = in->drop;
    while (paths.n != 0) {
        struct kr_bytes path = take_part(&paths, ' ');

        if (path.n < 2)
            continue;
        if (path.p[0] == '+' && in->profile.keep_count < 32)
            in->keep[in->profile.keep_count++] = kr_bytes_skip(path, 1);
        else if (in->profile.drop_count < 32)
            in->drop[in->profile.drop_count++] = kr_bytes_skip(path, 1);
    }
    in->live = take_part(&rest, '\n');
    in->wanted = take_part(&rest, '\n');
    return is_usable(in->live) && is_usable(in->wanted);
}

static bool slim(const struct kr_profile *p, struct kr_bytes object, struct kr_buf *out)
{
    struct kr_slim seen;

    return kr_slim(p, object, out, &seen, NULL) == 0;
}

/* Whether there is something in it but null and empty things. */
static bool has_content(struct json_object *o)
{
    bool found = false;

    if (json_object_is_type(o, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(o); i++)
            found = found || has_content(json_object_array_get_idx(o, i));
        return found;
    }
    if (!json_object_is_type(o, json_type_object))
        return o != NULL;
    json_object_object_foreach(o, key, value)
    {
        (void)key;
        found = found || has_content(value);
    }
    return found;
}

/* Takes out members without content, all the way down. */
static void prune(struct json_object *o)
{
    if (json_object_is_type(o, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(o); i++)
            prune(json_object_array_get_idx(o, i));
        return;
    }
    if (!json_object_is_type(o, json_type_object))
        return;
    json_object_object_foreach(o, key, value)
    {
        if (has_content(value))
            prune(value);
        else
            json_object_object_del(o, key);
    }
}

static struct json_object *pruned(struct kr_bytes text)
{
    static const char *const beside[] = {"name",
                                         "namespace",
                                         "uid",
                                         "creationTimestamp",
                                         "generation",
                                         "selfLink",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds"};
    struct json_object *o = tree_of(text);
    struct json_object *metadata;

    KR_ASSERT(o != NULL);
    if (json_object_object_get_ex(o, "metadata", &metadata) &&
        json_object_is_type(metadata, json_type_object)) {
        for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
            json_object_object_del(metadata, beside[i]);
    }
    prune(o);
    return o;
}

/* What was left out and not spoken of is as it was. */
static void check_hidden(const struct kr_reach *reach, const struct kr_place *place,
                         struct json_object *live, struct json_object *wanted,
                         struct json_object *result)
{
    json_object_object_foreach(live, key, value)
    {
        struct kr_place below = kr_place_member(reach, place, kr_bytes_str(key));
        struct json_object *asked = NULL;
        struct json_object *got = NULL;
        bool spoken = json_object_object_get_ex(wanted, key, &asked);
        bool there = json_object_object_get_ex(result, key, &got);

        if (below.left_out && !spoken && strcmp(key, "apiVersion") != 0 && strcmp(key, "kind") != 0)
            KR_ASSERT(there && json_object_equal(value, got));
        else if (json_object_is_type(value, json_type_object) &&
                 json_object_is_type(asked, json_type_object) &&
                 json_object_is_type(got, json_type_object) && !below.left_out)
            check_hidden(reach, &below, value, asked, got);
    }
}

static struct kr_bytes text_of(struct json_object *o)
{
    return kr_bytes_str(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
}

static void check_result(const struct input *in, const struct kr_profile *p,
                         const struct kr_reach *reach, struct json_object *result)
{
    struct kr_buf left = {.max = 1 << 20};
    struct kr_buf asked = {.max = 1 << 20};
    struct kr_place top = kr_place_top(reach);
    struct json_object *live = tree_of(in->live);
    struct json_object *wanted = tree_of(in->wanted);

    /* Of two members of one name the later one counts, for an API server and json-c. */
    if (slim(p, text_of(result), &left) && slim(p, text_of(wanted), &asked)) {
        struct json_object *a = pruned(kr_buf_bytes(&left));
        struct json_object *b = pruned(kr_buf_bytes(&asked));

        KR_ASSERT(json_object_equal(a, b));
        json_object_put(a);
        json_object_put(b);
    }
    check_hidden(reach, &top, live, wanted, result);
    json_object_put(live);
    json_object_put(wanted);
    kr_buf_deinit(&left);
    kr_buf_deinit(&asked);
}

/* The whole object as a tree that a version can be put in; NULL: it has no metadata. */
static struct json_object *live_tree(const struct input *in)
{
    struct json_object *live = tree_of(in->live);
    struct json_object *metadata;

    KR_ASSERT(live != NULL);
    if (!json_object_object_get_ex(live, "metadata", &metadata) ||
        !json_object_is_type(metadata, json_type_object)) {
        json_object_put(live);
        return NULL;
    }
    json_object_object_add(metadata, "resourceVersion", json_object_new_string("7"));
    return live;
}

static void check_patch(const struct input *in, const struct kr_profile *p,
                        const struct kr_reach *reach, struct kr_bytes patch)
{
    struct json_object *live = live_tree(in);
    struct json_object *operations = tree_of(patch);

    KR_ASSERT(kr_scan_check(patch, 64, NULL) == 0 && operations != NULL);
    if (live != NULL) {
        KR_ASSERT(apply_patch(live, operations) < 0);
        check_result(in, p, reach, live);
    }
    json_object_put(live);
    json_object_put(operations);
}

static void diff(const struct input *in, const struct kr_profile *p, const struct kr_reach *reach)
{
    struct kr_buf served = {.max = 1 << 20};
    struct kr_buf patch = {.max = 1 << 20};
    uint32_t version;

    if (slim(p, in->live, &served) &&
        kr_json_diff(reach, kr_buf_bytes(&served), in->wanted, &patch, &version, NULL) == 0) {
        KR_ASSERT(memcmp(patch.p + version - 1, "\"\"}", 3) == 0);
        check_patch(in, p, reach, kr_buf_bytes(&patch));
    }
    patch.n = 0;
    if (kr_json_diff(NULL, kr_buf_bytes(&served), in->wanted, &patch, &version, NULL) == 0)
        KR_ASSERT(kr_scan_check(kr_buf_bytes(&patch), 64, NULL) == 0);
    kr_buf_deinit(&served);
    kr_buf_deinit(&patch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct input in;
    struct kr_profile *p;
    struct kr_reach *reach;

    if (n > INPUT_MAX || !read_input(data, n, &in))
        return 0;
    p = kr_profile_create(&in.profile, NULL);
    reach = kr_reach_create(&in.profile, NULL);
    KR_ASSERT((p == NULL) == (reach == NULL));
    if (p != NULL)
        diff(&in, p, reach);
    kr_profile_destroy(p);
    kr_reach_destroy(reach);
    return 0;
}
