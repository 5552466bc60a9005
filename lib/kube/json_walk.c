/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_walk.h"

#include "base/err.h"

void kr_walk_start(struct kr_walk *w, struct kr_bytes text)
{
    const uint8_t *p = text.n != 0 ? text.p : (const uint8_t *)"";

    *w = (struct kr_walk){.at = p, .end = p + text.n, .way = kr_frame_best()};
    w->at = kr_skip_space(w->at, w->end);
}

static bool fail(struct kr_walk *w, int code)
{
    if (w->failed == 0)
        w->failed = code;
    return false;
}

static struct kr_bytes rest(const struct kr_walk *w)
{
    return kr_bytes_of(w->at, (size_t)(w->end - w->at));
}

/* Also over the white space behind them. */
static void forth(struct kr_walk *w, size_t n)
{
    w->at = kr_skip_space(w->at + n, w->end);
}

static bool take(struct kr_walk *w, uint8_t c)
{
    if (w->at == w->end || *w->at != c)
        return false;
    forth(w, 1);
    return true;
}

bool kr_walk_enter(struct kr_walk *w, uint8_t bracket)
{
    if (w->failed != 0 || !take(w, bracket))
        return false;
    w->fresh = true;
    return true;
}

/* To where a member or an element starts. */
static bool next(struct kr_walk *w, uint8_t close)
{
    bool fresh = w->fresh;

    if (w->failed != 0)
        return false;
    w->fresh = false;
    if (w->at < w->end && *w->at == close) {
        w->at++; /* the white space behind it does not belong to the value */
        return false;
    }
    return fresh || take(w, ',') || fail(w, KR_EPROTO);
}

bool kr_walk_member(struct kr_walk *w, struct kr_bytes *key)
{
    size_t n;

    w->at = kr_skip_space(w->at, w->end);
    if (!next(w, '}'))
        return false;
    n = kr_frame_string(rest(w));
    if (n == 0)
        return fail(w, KR_EPROTO);
    *key = kr_bytes_of(w->at + 1, n - 2);
    forth(w, n);
    return take(w, ':') || fail(w, KR_EPROTO);
}

bool kr_walk_element(struct kr_walk *w)
{
    w->at = kr_skip_space(w->at, w->end);
    return next(w, ']');
}

struct kr_bytes kr_walk_value(struct kr_walk *w)
{
    const struct kr_bytes none = {NULL, 0};
    struct kr_bytes in = rest(w);
    struct kr_frame f;

    if (w->failed != 0)
        return none;
    if (in.n != 0 && in.p[0] == '"') {
        in.n = kr_frame_string(in);
    } else {
        kr_frame_start(&f, w->way);
        in.n = kr_frame_feed(&f, in);
        if (f.deep)
            fail(w, KR_ETOOBIG);
        if (!f.done)
            in.n = 0;
    }
    if (in.n == 0)
        fail(w, KR_EPROTO);
    w->at += in.n;
    return w->failed == 0 ? in : none;
}

int kr_walk_end(struct kr_walk *w)
{
    w->at = kr_skip_space(w->at, w->end);
    if (w->at != w->end)
        fail(w, KR_EPROTO);
    return w->failed;
}
