/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/slim_path.h"

#include "base/err.h"

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

static int take_bracket(struct kr_bytes *rest, struct kr_buf *text, struct kr_path_step *out)
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

static int take_name(struct kr_bytes *rest, struct kr_buf *text, struct kr_path_step *out)
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

static int read_steps(struct kr_bytes rest, struct kr_buf *text, struct kr_path *out)
{
    int rc = 0;

    out->count = 0;
    while (rc == 0 && rest.n != 0) {
        struct kr_path_step *step = &out->steps[out->count];

        if (out->count == KR_PATH_STEPS_MAX)
            return KR_ETOOBIG;
        *step = (struct kr_path_step){0};
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
static const char *fault_of(const struct kr_path *path, bool keep)
{
    const struct kr_path_step *first = &path->steps[0];

    if (first->any)
        return "it must begin with a name";
    if (keep || !kr_bytes_is(first->name, "metadata"))
        return NULL;
    if (path->count < 2 || path->steps[1].any || !kr_bytes_is(path->steps[1].name, "annotations"))
        return "of metadata only annotations can be dropped";
    return NULL;
}

int kr_path_read(struct kr_bytes text, bool keep, struct kr_buf *names, struct kr_path *out,
                 struct kr_note *why)
{
    const int shown = (int)(text.n < 128 ? text.n : 128);
    const char *fault = NULL;
    int rc;

    if (text.n > KR_PATH_BYTES_MAX)
        return kr_note_set(why, KR_EINVAL, "path %.*s...: longer than %d bytes", shown,
                           (const char *)text.p, KR_PATH_BYTES_MAX);
    if (!kr_bytes_is_utf8(text))
        return kr_note_set(why, KR_EINVAL, "a path is not valid UTF-8");
    rc = read_steps(text, names, out);
    if (rc == KR_ETOOBIG)
        fault = "more than 16 steps";
    else if (rc != 0)
        fault = "malformed";
    else
        fault = fault_of(out, keep);
    if (fault != NULL)
        return kr_note_set(why, KR_EINVAL, "path %.*s: %s", shown, (const char *)text.p, fault);
    return 0;
}
