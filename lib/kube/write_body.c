/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/write_body.h"

#include "base/err.h"
#include "kube/injected.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

struct reader {
    struct kr_bytes text;
    struct kr_bytes version;
    struct kr_write_body *out;
    struct kr_note *why;
    bool applied; /* it reads what `kubectl apply` keeps in an annotation */
};

static int read_applied(struct reader *r, struct kr_bytes value);

/* Finds members by name, each at most once: values[i] belongs to names[i] (.p NULL: absent). */
static int find_once(struct reader *r, struct kr_bytes object, const char *const *names, size_t n,
                     struct kr_bytes *values)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;

    memset(values, 0, n * sizeof *values);
    if (!kr_scan_object(object, &it))
        return 0;
    while (kr_scan_member(&it, &key, &value)) {
        for (size_t i = 0; i < n; i++) {
            if (!kr_scan_key_is(key, names[i]))
                continue;
            if (values[i].p != NULL)
                return kr_note_set(r->why, KR_EPROTO, "%s is there twice", names[i]);
            values[i] = value;
        }
    }
    return 0;
}

/* Whether the JSON string means `want`. */
static bool string_is(struct kr_bytes json, struct kr_bytes want)
{
    struct kr_bytes plain;
    struct kr_buf text = {.max = json.n};
    bool same;

    if (kr_scan_plain(json, &plain))
        return kr_bytes_eq(plain, want);
    same = kr_scan_string(json, &text) == 0 && kr_bytes_eq(kr_buf_bytes(&text), want);
    kr_buf_deinit(&text);
    return same;
}

static int note_version(struct reader *r, struct kr_bytes value)
{
    struct kr_write_body *b = r->out;

    if (!kr_scan_is_string(value) || value.n == 2) /* null and "" mean "any version" */
        return 0;
    b->has_version = true;
    if (!string_is(value, r->version)) {
        b->foreign = kr_bytes_of(value.p + 1, value.n - 2);
        return 0;
    }
    if (b->version_count == KR_BODY_VERSIONS_MAX)
        return kr_note_set(r->why, KR_ETOOBIG, "resourceVersion is there more than %d times",
                           KR_BODY_VERSIONS_MAX);
    b->versions[b->version_count++] =
        (struct kr_span){(size_t)(value.p + 1 - r->text.p), value.n - 2};
    return 0;
}

/* ---- cutting members out of an object ---- */

/* Steps through the members of an object and knows what goes with one that is cut out: the comma
 * before it, or, as long as nothing before it stays, all up to the next member. */
struct member_walk {
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;
    const uint8_t *before; /* behind the value before this one */
    const uint8_t *start;
    const uint8_t *next; /* where the next member starts, or behind the value if there is none */
    bool something_stays;
};

static bool walk_open(struct member_walk *w, struct kr_bytes object)
{
    w->something_stays = false;
    w->value = kr_bytes_of(object.p, 0);
    return kr_scan_object(object, &w->it);
}

static bool walk_next(struct member_walk *w)
{
    struct kr_scan ahead;
    struct kr_bytes key;
    struct kr_bytes value;

    w->before = w->value.p + w->value.n;
    if (!kr_scan_member(&w->it, &w->key, &w->value))
        return false;
    w->start = w->key.p - 1;
    ahead = w->it;
    w->next = kr_scan_member(&ahead, &key, &value) ? key.p - 1 : w->value.p + w->value.n;
    return true;
}

static int cut(struct reader *r, const struct member_walk *w)
{
    struct kr_write_body *b = r->out;
    const uint8_t *from = w->something_stays ? w->before : w->start;
    const uint8_t *to = w->something_stays ? w->value.p + w->value.n : w->next;

    if (b->cut_count == KR_BODY_CUTS_MAX)
        return kr_note_set(r->why, KR_ETOOBIG, "keys of the fleet view are there too often");
    b->cuts[b->cut_count++] = (struct kr_span){(size_t)(from - r->text.p), (size_t)(to - from)};
    return 0;
}

/* Labels or annotations. *all: there is nothing but what is cut out. */
static int cut_from_map(struct reader *r, struct kr_bytes map, bool *all)
{
    struct member_walk w;
    bool found = false;
    int rc = 0;

    *all = false;
    if (!walk_open(&w, map))
        return 0;
    while (rc == 0 && walk_next(&w)) {
        if (!kr_is_injected(w.key)) {
            w.something_stays = true;
            if (!r->applied && kr_scan_key_is(w.key, LAST_APPLIED))
                rc = read_applied(r, w.value);
            continue;
        }
        found = true;
        r->out->slimmed = r->out->slimmed || kr_scan_key_is(w.key, KR_NOTE_SLIMMED);
        rc = cut(r, &w);
    }
    r->out->injected = r->out->injected || found;
    *all = found && !w.something_stays;
    return rc;
}

/* A map of metadata: if all of it came from the fleet view, there was none before: *gone. */
static int read_map(struct reader *r, const struct member_walk *w, bool *gone)
{
    size_t cuts = r->out->cut_count;
    int rc = cut_from_map(r, w->value, gone);

    if (rc != 0 || !*gone)
        return rc;
    r->out->cut_count = cuts;
    return cut(r, w);
}

/* Nothing can be put in its place there. */
static int cut_version(struct reader *r, const struct member_walk *w, bool *gone)
{
    *gone = r->version.n != 0 && string_is(w->value, r->version);
    return *gone ? cut(r, w) : 0;
}

static int read_metadata(struct reader *r, struct kr_bytes metadata)
{
    static const char *const names[] = {"resourceVersion", "labels", "annotations"};
    struct kr_bytes values[COUNT(names)];
    struct member_walk w;
    int rc = find_once(r, metadata, names, COUNT(names), values);

    if (rc != 0 || !walk_open(&w, metadata))
        return rc;
    while (rc == 0 && walk_next(&w)) {
        bool gone = false;

        if (w.value.p == values[0].p && r->applied)
            rc = cut_version(r, &w, &gone);
        else if (w.value.p == values[0].p)
            rc = note_version(r, w.value);
        else if (w.value.p == values[1].p || w.value.p == values[2].p)
            rc = read_map(r, &w, &gone);
        w.something_stays = w.something_stays || !gone;
    }
    return rc;
}

static int read_object(struct reader *r, struct kr_bytes object)
{
    static const char *const names[] = {"metadata"};
    struct kr_bytes metadata;
    int rc = find_once(r, object, names, 1, &metadata);

    return rc == 0 && metadata.p != NULL ? read_metadata(r, metadata) : rc;
}

/* ---- what `kubectl apply` keeps: the object that was applied, as text in an annotation ---- */

/* What is cut out of the decoded text, as spans of the body that it stands in with escapes. */
static int take_cuts(struct reader *r, struct kr_bytes string, const struct kr_write_body *inner)
{
    struct kr_write_body *b = r->out;
    size_t base = (size_t)(string.p - r->text.p);

    for (size_t i = 0; i < inner->cut_count; i++) {
        size_t from;
        size_t to;

        if (!kr_scan_string_place(string, inner->cuts[i].at, &from) ||
            !kr_scan_string_place(string, inner->cuts[i].at + inner->cuts[i].n, &to))
            return kr_note_set(r->why, KR_EPROTO, "%s cannot be read", LAST_APPLIED);
        if (b->cut_count == KR_BODY_CUTS_MAX)
            return kr_note_set(r->why, KR_ETOOBIG, "keys of the fleet view are there too often");
        b->cuts[b->cut_count++] = (struct kr_span){base + from, to - from};
        b->injected = true;
    }
    return 0;
}

/* What is no object, or is ambiguous, is as kubectl did not write it, and stays. */
static int read_applied(struct reader *r, struct kr_bytes value)
{
    struct kr_buf text = {.max = value.n};
    struct kr_write_body inner = {.has_version = false};
    struct reader nested = {.version = r->version, .out = &inner, .applied = true};
    int rc = kr_scan_is_string(value) ? kr_scan_string(value, &text) : 0;

    nested.text = kr_buf_bytes(&text);
    if (rc == 0 && kr_scan_check(nested.text, KR_SCAN_DEPTH_MAX, NULL) == 0 &&
        read_object(&nested, nested.text) == 0)
        rc = take_cuts(r, value, &inner);
    kr_buf_deinit(&text);
    return rc;
}

static int read_delete_options(struct reader *r)
{
    static const char *const outer[] = {"preconditions"};
    static const char *const inner[] = {"resourceVersion"};
    struct kr_bytes preconditions;
    struct kr_bytes version = {NULL, 0};
    int rc = find_once(r, r->text, outer, 1, &preconditions);

    if (rc == 0 && preconditions.p != NULL)
        rc = find_once(r, preconditions, inner, 1, &version);
    return rc == 0 && version.p != NULL ? note_version(r, version) : rc;
}

/* ---- JSON Patch (RFC 6902) ---- */

static int read_operation(struct reader *r, struct kr_bytes operation)
{
    static const char *const names[] = {"path", "value"};
    struct kr_bytes values[COUNT(names)];
    int rc = find_once(r, operation, names, COUNT(names), values);

    if (rc != 0 || values[0].p == NULL || values[1].p == NULL)
        return rc;
    if (string_is(values[0], KR_LIT("/metadata/resourceVersion")))
        return note_version(r, values[1]);
    if (string_is(values[0], KR_LIT("/metadata")))
        return read_metadata(r, values[1]);
    return string_is(values[0], KR_LIT("")) ? read_object(r, values[1]) : 0;
}

static int read_json_patch(struct reader *r)
{
    struct kr_scan it;
    struct kr_bytes operation;
    int rc = 0;

    if (!kr_scan_array(r->text, &it))
        return 0;
    while (rc == 0 && kr_scan_element(&it, &operation))
        rc = read_operation(r, operation);
    return rc;
}

int kr_write_body_read(enum kr_body_kind kind, struct kr_bytes text, struct kr_bytes version,
                       struct kr_write_body *out, struct kr_note *why)
{
    struct reader r = {.text = text, .version = version, .out = out, .why = why};

    *out = (struct kr_write_body){.has_version = false};
    switch (kind) {
    case KR_BODY_DELETE_OPTIONS:
        return read_delete_options(&r);
    case KR_BODY_JSON_PATCH:
        return read_json_patch(&r);
    default:
        return read_object(&r, text);
    }
}

int kr_write_body_edit(const struct kr_write_body *b, struct kr_bytes text, struct kr_buf *out,
                       uint32_t offsets[KR_BODY_VERSIONS_MAX])
{
    size_t start = out->n;
    size_t version = 0;
    size_t cut_at = 0;
    size_t from = 0;
    int rc = 0;

    while (rc == 0 && (version < b->version_count || cut_at < b->cut_count)) {
        bool is_version = cut_at == b->cut_count || (version < b->version_count &&
                                                     b->versions[version].at < b->cuts[cut_at].at);
        struct kr_span s = is_version ? b->versions[version] : b->cuts[cut_at];

        rc = kr_buf_append(out, kr_bytes_of(text.p + from, s.at - from));
        from = s.at + s.n;
        if (is_version)
            offsets[version++] = (uint32_t)(out->n - start);
        else
            cut_at++;
    }
    return rc == 0 ? kr_buf_append(out, kr_bytes_skip(text, from)) : rc;
}

bool kr_write_body_version_is_plain(struct kr_bytes version)
{
    for (size_t i = 0; i < version.n; i++) {
        if (version.p[i] <= ' ' || version.p[i] >= 0x7F || version.p[i] == '"' ||
            version.p[i] == '\\')
            return false;
    }
    return version.n != 0;
}

int kr_write_body_fill(struct kr_bytes text, const uint32_t *offsets, size_t n,
                       struct kr_bytes version, struct kr_buf *out)
{
    size_t before = out->n;
    size_t from = 0;
    int rc = kr_write_body_version_is_plain(version) ? 0 : KR_EPROTO;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        size_t at = offsets[i];

        if (at <= from || at >= text.n || text.p[at - 1] != '"' || text.p[at] != '"') {
            rc = KR_EPROTO;
            break;
        }
        rc = kr_buf_append(out, kr_bytes_of(text.p + from, at - from));
        if (rc == 0)
            rc = kr_buf_append(out, version);
        from = at;
    }
    if (rc == 0)
        rc = kr_buf_append(out, kr_bytes_skip(text, from));
    if (rc != 0)
        out->n = before;
    return rc;
}
