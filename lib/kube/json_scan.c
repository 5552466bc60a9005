/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_scan.h"

#include "kube/json_frame.h"

static void skip_space(struct kr_bytes *rest)
{
    const uint8_t *p;

    if (rest->n == 0)
        return;
    p = kr_skip_space(rest->p, rest->p + rest->n);
    *rest = kr_bytes_skip(*rest, (size_t)(p - rest->p));
}

static bool take(struct kr_bytes *rest, uint8_t c)
{
    if (rest->n == 0 || rest->p[0] != c)
        return false;
    *rest = kr_bytes_skip(*rest, 1);
    return true;
}

static bool enter(struct kr_bytes value, uint8_t bracket, struct kr_scan *it)
{
    it->rest = value;
    skip_space(&it->rest);
    if (take(&it->rest, bracket))
        return true;
    it->rest.n = 0;
    return false;
}

bool kr_scan_object(struct kr_bytes value, struct kr_scan *it)
{
    return enter(value, '{', it);
}

bool kr_scan_array(struct kr_bytes value, struct kr_scan *it)
{
    return enter(value, '[', it);
}

/* Nothing comes any more. */
static bool finish(struct kr_scan *it)
{
    it->rest.n = 0;
    return false;
}

static bool next_value(struct kr_scan *it, struct kr_bytes *value)
{
    size_t n;

    skip_space(&it->rest);
    n = it->rest.n != 0 ? kr_frame_value(it->rest) : 0;
    if (n == 0)
        return finish(it);
    *value = kr_bytes_of(it->rest.p, n);
    it->rest = kr_bytes_skip(it->rest, n);
    skip_space(&it->rest);
    take(&it->rest, ',');
    return true;
}

bool kr_scan_member(struct kr_scan *it, struct kr_bytes *key, struct kr_bytes *value)
{
    size_t n;

    skip_space(&it->rest);
    n = kr_frame_string(it->rest);
    if (n == 0)
        return finish(it);
    *key = kr_bytes_of(it->rest.p + 1, n - 2);
    it->rest = kr_bytes_skip(it->rest, n);
    skip_space(&it->rest);
    if (!take(&it->rest, ':'))
        return finish(it);
    return next_value(it, value);
}

bool kr_scan_element(struct kr_scan *it, struct kr_bytes *value)
{
    return next_value(it, value);
}

bool kr_scan_find(struct kr_bytes object, const char *name, struct kr_bytes *value)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes v;
    bool found = false;

    if (!kr_scan_object(object, &it))
        return false;
    while (kr_scan_member(&it, &key, &v)) {
        if (kr_scan_key_is(key, name)) {
            *value = v;
            found = true;
        }
    }
    return found;
}
