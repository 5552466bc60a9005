/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/request_info.h"

#include "base/err.h"
#include "kube/field_name.h"
#include "kube/path.h"
#include "kube/query.h"

/* apis GROUP VERSION (watch|proxy) namespaces NS RESOURCE NAME SUBRESOURCE: no rule looks further.
 */
#define SEGMENTS_KEPT 9

struct cut { /* the path in segments */
    struct kr_bytes seg[SEGMENTS_KEPT];
    size_t n;     /* all of them */
    size_t ended; /* where the last strict segment ends in the raw path */
    bool escaped;
};

struct options { /* the parameters of the query that have a meaning here; first values */
    struct kr_bytes watch;
    struct kr_bytes field_selector;
    struct kr_bytes limit;
    struct kr_bytes timeout_seconds;
    struct kr_bytes timeout;
    struct kr_bytes follow;
};

static bool one_of(struct kr_bytes b, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (kr_bytes_is(b, *words))
            return true;
    }
    return false;
}

static bool is_path_verb(struct kr_bytes b)
{
    static const char *const words[] = {"proxy", "watch", NULL};

    return one_of(b, words);
}

/* Index of the segment behind the version: resource, namespaces or a path verb. 0: not that path.
 */
static size_t resource_base(const struct cut *c)
{
    if (c->n >= 3 && kr_bytes_is(c->seg[0], "api"))
        return 2;
    if (c->n >= 4 && kr_bytes_is(c->seg[0], "apis"))
        return 3;
    return 0;
}

/* Index where resource / name / subresource starts, for what is cut so far. */
static size_t parts_at(const struct cut *c, size_t base)
{
    static const char *const words[] = {"status", "finalize", NULL};

    if (kr_bytes_is(c->seg[base], "namespaces") && c->n > base + 2 &&
        !one_of(c->seg[base + 2], words))
        return base + 2;
    return base;
}

/* Whether the segment cut last is a /proxy subresource. The old /api/v1/proxy/... and watch forms
 * are none: they stay strict to the end. */
static bool proxy_starts(const struct cut *c)
{
    size_t base = resource_base(c);

    return base != 0 && c->n <= SEGMENTS_KEPT && kr_bytes_is(c->seg[c->n - 1], "proxy") &&
           !is_path_verb(c->seg[base]) && c->n == parts_at(c, base) + 3;
}

static int cut_segments(struct cut *c, struct kr_bytes path, struct kr_arena *arena, bool *proxied,
                        struct kr_note *why)
{
    size_t at = 1;

    *c = (struct cut){.n = 0};
    *proxied = false;
    while (at < path.n) {
        struct kr_bytes rest = kr_bytes_skip(path, at);
        struct kr_bytes raw = kr_bytes_of(rest.p, kr_bytes_find(rest, '/'));
        struct kr_bytes seg;
        int rc = kr_path_segment(raw, arena, &seg, why);

        if (rc != 0)
            return rc;
        if (c->n < SEGMENTS_KEPT)
            c->seg[c->n] = seg;
        c->n++;
        c->escaped = c->escaped || seg.p != raw.p;
        at += raw.n;
        c->ended = at;
        if (proxy_starts(c)) {
            *proxied = true;
            return kr_path_opaque(kr_bytes_skip(path, at), why);
        }
        at++; /* one slash at the very end is allowed: upstream trims it */
    }
    return 0;
}

static int read_options(struct options *o, struct kr_bytes query, struct kr_arena *arena)
{
    const struct {
        const char *name;
        struct kr_bytes *value;
    } known[] = {
        {"watch", &o->watch},     {"fieldSelector", &o->field_selector},
        {"limit", &o->limit},     {"timeoutSeconds", &o->timeout_seconds},
        {"timeout", &o->timeout}, {"follow", &o->follow},
    };
    struct kr_bytes name;
    struct kr_bytes value;
    int rc;

    *o = (struct options){.watch = {NULL, 0}};
    while ((rc = kr_query_next(&query, arena, &name, &value)) > 0) {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            if (known[i].value->p == NULL && kr_bytes_is(name, known[i].name))
                *known[i].value = value;
        }
    }
    return rc;
}

static bool is_int_or_absent(struct kr_bytes v, int64_t *out)
{
    *out = 0;
    return v.p == NULL || kr_query_int(v, out);
}

/* get without a name: a list or a watch, of one object if the field selector says so. When one of
 * the options does not parse, upstream keeps `watch` only. */
static int set_list_verb(struct kr_request_info *ri, const struct options *o,
                         struct kr_arena *arena)
{
    int64_t seconds;
    struct kr_bytes name;
    bool watch = o->watch.p != NULL && kr_query_bool(o->watch);
    int rc = kr_field_name(o->field_selector, arena, &name);

    if (rc == KR_ENOMEM)
        return rc;
    if (rc == 0 && is_int_or_absent(o->limit, &ri->limit) &&
        is_int_or_absent(o->timeout_seconds, &seconds)) {
        ri->name = name;
    } else {
        ri->limit = 0;
        /* This second reading folds ASCII only (strings.ToLower): the long s is not "false". */
        watch = o->watch.p != NULL && !kr_bytes_is(o->watch, "0") &&
                !kr_bytes_eq_fold(o->watch, KR_LIT("false"));
    }
    ri->verb = watch ? KR_LIT("watch") : KR_LIT("list");
    if (watch)
        ri->limit = 0;
    return 0;
}

static struct kr_bytes method_verb(struct kr_bytes method)
{
    static const char *const verbs[][2] = {
        {"GET", "get"},    {"HEAD", "get"},    {"POST", "create"},
        {"PUT", "update"}, {"PATCH", "patch"}, {"DELETE", "delete"},
    };

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (kr_bytes_is(method, verbs[i][0]))
            return kr_bytes_str(verbs[i][1]);
    }
    return kr_bytes_of("", 0);
}

static int lower_method(struct kr_request_info *ri, struct kr_bytes method, struct kr_arena *arena,
                        struct kr_note *why)
{
    uint8_t *p = kr_arena_alloc(arena, method.n);

    if (p == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for the method");
    for (size_t i = 0; i < method.n; i++) {
        uint8_t c = method.p[i];

        p[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 32) : c;
    }
    ri->verb = kr_bytes_of(p, method.n);
    return 0;
}

static void set_parts(struct kr_request_info *ri, const struct cut *c, size_t at)
{
    ri->parts = c->n - at;
    ri->resource = c->seg[at];
    if (ri->parts >= 2)
        ri->name = c->seg[at + 1];
    if (ri->parts >= 3 && !kr_bytes_is(ri->verb, "proxy"))
        ri->subresource = c->seg[at + 2];
}

static int set_resource(struct kr_request_info *ri, const struct cut *c, size_t base,
                        struct kr_bytes method, struct kr_note *why)
{
    ri->is_resource = true;
    ri->class = KR_REQUEST_RESOURCE;
    ri->version = c->seg[base - 1];
    ri->verb = method_verb(method);
    if (is_path_verb(c->seg[base])) {
        if (c->n < base + 2)
            return kr_note_set(why, KR_EINVAL, "the path names no resource");
        ri->verb = c->seg[base++];
    }
    if (kr_bytes_is(c->seg[base], "namespaces") && c->n > base + 1)
        ri->ns = c->seg[base + 1];
    set_parts(ri, c, parts_at(c, base));
    return 0;
}

static bool connects(const struct kr_request_info *ri)
{
    static const char *const words[] = {"exec", "attach", "portforward", "proxy", NULL};

    return ri->is_resource && (kr_bytes_is(ri->verb, "proxy") || one_of(ri->subresource, words));
}

static bool long_running(const struct kr_request_info *ri)
{
    if (!ri->is_resource)
        return kr_bytes_starts(ri->path, KR_LIT("/debug/pprof/")) ||
               is_path_verb(ri->verb); /* a method of that name: upstream looks at the verb alone */
    return is_path_verb(ri->verb) || ri->connects || kr_bytes_is(ri->subresource, "log");
}

static bool below(struct kr_bytes path, const char *top)
{
    struct kr_bytes t = kr_bytes_str(top);

    return kr_bytes_starts(path, t) && (path.n == t.n || path.p[t.n] == '/');
}

static int set_path(struct kr_request_info *ri, const struct cut *c, struct kr_arena *arena,
                    struct kr_note *why)
{
    if (!c->escaped || ri->proxied)
        return 0;
    if (kr_percent_decode(ri->path, false, arena, &ri->path) != 0)
        return kr_note_set(why, KR_ENOMEM, "no memory for the path");
    return 0;
}

static int set_options(struct kr_request_info *ri, const struct options *o, struct kr_arena *arena)
{
    int rc = 0;

    if (ri->name.n == 0 && kr_bytes_is(ri->verb, "get") && ri->is_resource)
        rc = set_list_verb(ri, o, arena);
    if (ri->name.n == 0 && kr_bytes_is(ri->verb, "delete") && ri->is_resource)
        ri->verb = KR_LIT("deletecollection");
    if (o->timeout.n != 0) {
        ri->has_timeout = kr_query_duration(o->timeout, &ri->timeout_ns);
        ri->bad_timeout = !ri->has_timeout;
    }
    ri->follow =
        kr_bytes_is(ri->subresource, "log") && o->follow.p != NULL && kr_query_bool(o->follow);
    return rc;
}

/* The target's bytes and segments, refused or cut. */
static int check(struct kr_request_info *ri, struct cut *c, struct kr_arena *arena,
                 struct kr_note *why)
{
    int rc = kr_path_split(ri->target, &ri->path, &ri->query, why);

    if (rc == 0 && !kr_query_count_ok(ri->query))
        rc = kr_note_set(why, KR_EINVAL, "more than %d query parameters", KR_QUERY_PAIRS_MAX);
    if (rc == 0)
        rc = cut_segments(c, ri->path, arena, &ri->proxied, why);
    return rc == 0 ? set_path(ri, c, arena, why) : rc;
}

static int classify(struct kr_request_info *ri, const struct cut *c, struct kr_bytes method,
                    struct kr_arena *arena, struct kr_note *why)
{
    size_t base = resource_base(c);

    if (c->n >= 3 && (kr_bytes_is(c->seg[0], "api") || kr_bytes_is(c->seg[0], "apis")))
        ri->prefix = c->seg[0];
    if (base == 3)
        ri->group = c->seg[1];
    if (base != 0)
        return set_resource(ri, c, base, method, why);
    if (below(ri->path, "/api") || below(ri->path, "/apis") || below(ri->path, "/openapi"))
        ri->class = KR_REQUEST_DISCOVERY;
    return lower_method(ri, method, arena, why);
}

int kr_request_info_parse(struct kr_request_info *ri, struct kr_bytes method,
                          struct kr_bytes target, struct kr_arena *arena, struct kr_note *why)
{
    struct cut c;
    struct options o;
    int rc;

    *ri = (struct kr_request_info){.target = target};
    rc = check(ri, &c, arena, why);
    if (rc == 0)
        rc = classify(ri, &c, method, arena, why);
    if (rc != 0)
        return rc;
    rc = read_options(&o, ri->query, arena);
    if (rc == 0)
        rc = set_options(ri, &o, arena);
    if (rc != 0)
        return kr_note_set(why, rc, "no memory for the query");
    ri->read_only = kr_bytes_is(method, "GET") || kr_bytes_is(method, "HEAD");
    ri->connects = connects(ri);
    ri->long_running = long_running(ri);
    return 0;
}

int64_t kr_request_deadline_ms(const struct kr_request_info *ri)
{
    int64_t ms = 60000;

    if (ri->long_running)
        return 0;
    if (ri->has_timeout && ri->timeout_ns > 0 && ri->timeout_ns < ms * 1000000)
        ms = (ri->timeout_ns + 999999) / 1000000;
    return ms + 5000;
}
