/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/slim_profile.h"

#include <stdlib.h>

#include "base/err.h"

struct step {
    bool any;
    struct kr_bytes name; /* lies in the profile's text */
};

struct path {
    struct step steps[KR_PATH_STEPS_MAX];
    size_t count;
};

/* A name without quotes goes up to one of these. */
static bool is_special(uint8_t c)
{
    return c <= ' ' || c == '.' || c == '[' || c == ']' || c == '"' || c == '*' || c == '\\' ||
           c == 0x7F;
}

/* The length of the JSON string at the front of `rest`; 0: none. */
static size_t quoted_length(struct kr_bytes rest)
{
    size_t at = 1;

    if (rest.n < 2 || rest.p[0] != '"')
        return 0;
    while (at < rest.n && rest.p[at] != '"')
        at += rest.p[at] == '\\' ? 2 : 1;
    return at < rest.n ? at + 1 : 0;
}

static bool take(struct kr_bytes *rest, struct kr_bytes what)
{
    if (!kr_bytes_starts(*rest, what))
        return false;
    *rest = kr_bytes_skip(*rest, what.n);
    return true;
}

/* Appends to the text and gives the place. The text has room for all paths: it never moves. */
static int put_name(struct kr_buf *text, struct kr_bytes in, bool quoted, struct kr_bytes *out)
{
    size_t from = text->n;
    int rc = quoted ? kr_scan_string(in, text) : kr_buf_append(text, in);

    if (rc == 0)
        *out = kr_bytes_of(text->p + from, text->n - from);
    return rc;
}

static int take_bracket(struct kr_bytes *rest, struct kr_buf *text, struct step *out)
{
    struct kr_bytes name;

    if (take(rest, KR_LIT("*]"))) {
        out->any = true;
        return 0;
    }
    name = kr_bytes_of(rest->p, quoted_length(*rest));
    if (name.n == 0 || kr_scan_check(name, 1, NULL) != 0)
        return KR_EINVAL;
    *rest = kr_bytes_skip(*rest, name.n);
    if (!take(rest, KR_LIT("]")))
        return KR_EINVAL;
    return put_name(text, name, true, &out->name);
}

static int take_name(struct kr_bytes *rest, struct kr_buf *text, struct step *out)
{
    struct kr_bytes name = *rest;
    size_t n = 0;

    while (n < rest->n && !is_special(rest->p[n]))
        n++;
    name.n = n;
    if (n == 0)
        return KR_EINVAL;
    *rest = kr_bytes_skip(*rest, n);
    return put_name(text, name, false, &out->name);
}

static int read_steps(struct kr_bytes rest, struct kr_buf *text, struct path *out)
{
    int rc = 0;

    out->count = 0;
    while (rc == 0 && rest.n != 0) {
        struct step *step = &out->steps[out->count];

        if (out->count == KR_PATH_STEPS_MAX)
            return KR_ETOOBIG;
        *step = (struct step){0};
        if (take(&rest, KR_LIT("[")))
            rc = take_bracket(&rest, text, step);
        else if (out->count == 0 || take(&rest, KR_LIT(".")))
            rc = take_name(&rest, text, step);
        else
            rc = KR_EINVAL;
        out->count++;
    }
    return out->count == 0 ? KR_EINVAL : rc;
}

/* What is always kept cannot be dropped, and what is always left out cannot be kept. */
static const char *fault_of(const struct path *path, bool keep)
{
    const struct step *first = &path->steps[0];

    if (first->any)
        return "it must begin with a name";
    if (keep || !kr_bytes_is(first->name, "metadata"))
        return NULL;
    if (path->count < 2 || path->steps[1].any || !kr_bytes_is(path->steps[1].name, "annotations"))
        return "of metadata only annotations can be dropped";
    return NULL;
}

static int read_path(struct kr_bytes in, bool keep, struct kr_buf *text, struct path *out,
                     struct kr_note *why)
{
    const int shown = (int)(in.n < 128 ? in.n : 128);
    const char *fault = NULL;
    int rc;

    if (in.n > KR_PATH_BYTES_MAX)
        return kr_note_set(why, KR_EINVAL, "path %.*s...: longer than %d bytes", shown,
                           (const char *)in.p, KR_PATH_BYTES_MAX);
    if (!kr_bytes_is_utf8(in))
        return kr_note_set(why, KR_EINVAL, "a path is not valid UTF-8");
    rc = read_steps(in, text, out);
    if (rc == KR_ETOOBIG)
        fault = "more than 16 steps";
    else if (rc != 0)
        fault = "malformed";
    else
        fault = fault_of(out, keep);
    if (fault != NULL)
        return kr_note_set(why, KR_EINVAL, "path %.*s: %s", shown, (const char *)in.p, fault);
    return 0;
}

static struct kr_profile_name *find_name(struct kr_profile *p, size_t from, struct kr_bytes name)
{
    for (size_t i = from; i < p->name_count; i++) {
        if (kr_bytes_eq(p->names[i].name, name))
            return &p->names[i];
    }
    p->names[p->name_count] = (struct kr_profile_name){.name = name};
    return &p->names[p->name_count++];
}

static void build_level(struct kr_profile *p, size_t at, const struct path *paths, size_t count)
{
    struct kr_profile_level *level = &p->levels[at];
    size_t from = p->name_count;

    for (size_t i = 0; i < count; i++) {
        uint64_t bit = (uint64_t)1 << i;

        if (paths[i].count <= at)
            continue;
        if (paths[i].steps[at].any)
            level->any |= bit;
        else
            find_name(p, from, paths[i].steps[at].name)->paths |= bit;
        if (paths[i].count == at + 1)
            level->ends |= bit;
    }
    level->names = p->names + from;
    level->name_count = p->name_count - from;
}

static size_t text_size(const struct kr_bytes *paths, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += paths[i].n;
    return n;
}

static int read_paths(struct kr_profile *p, const struct kr_profile_paths *in, struct path *paths,
                      struct kr_note *why)
{
    size_t count = 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < in->keep_count; i++, count++) {
        rc = read_path(in->keep[i], true, &p->text, &paths[count], why);
        p->keep |= (uint64_t)1 << count;
        p->all |= (uint64_t)1 << count;
    }
    for (size_t i = 0; rc == 0 && i < in->drop_count; i++, count++) {
        rc = read_path(in->drop[i], false, &p->text, &paths[count], why);
        p->all |= (uint64_t)1 << count;
    }
    for (size_t at = 0; rc == 0 && at < KR_PATH_STEPS_MAX; at++)
        build_level(p, at, paths, count);
    return rc;
}

struct kr_profile *kr_profile_create(const struct kr_profile_paths *in, struct kr_note *why)
{
    const size_t count = in->keep_count + in->drop_count;
    struct kr_profile *p = NULL;
    struct path *paths = NULL;
    size_t size;

    if (in->keep_count > KR_PATHS_MAX || in->drop_count > KR_PATHS_MAX || count > KR_PATHS_MAX) {
        kr_note_text(why, "more than %d paths", KR_PATHS_MAX);
        return NULL;
    }
    p = calloc(1, sizeof *p + count * KR_PATH_STEPS_MAX * sizeof p->names[0]);
    paths = calloc(count + 1, sizeof *paths);
    size = text_size(in->keep, in->keep_count) + text_size(in->drop, in->drop_count) + 1;
    if (p != NULL)
        kr_buf_init(&p->text, size);
    if (p == NULL || paths == NULL || kr_buf_reserve(&p->text, size) != 0) {
        kr_note_text(why, "out of memory");
    } else if (read_paths(p, in, paths, why) == 0) {
        p->keeps = in->keep_count != 0 || in->metadata_only;
        free(paths);
        return p;
    }
    free(paths);
    kr_profile_destroy(p);
    return NULL;
}

void kr_profile_destroy(struct kr_profile *p)
{
    if (p == NULL)
        return;
    kr_buf_deinit(&p->text);
    free(p);
}

uint64_t kr_profile_match(const struct kr_profile_level *level, struct kr_bytes name)
{
    for (size_t i = 0; i < level->name_count; i++) {
        if (kr_bytes_eq(level->names[i].name, name))
            return level->names[i].paths | level->any;
    }
    return level->any;
}
