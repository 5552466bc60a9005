/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_options.h"

#include "base/err.h"
#include "kube/query.h"

#define SHOWN(b) (int)((b).n < 80 ? (b).n : 80), (const char *)(b).p

/* The parameters as they stand in the query, decoded; the first of each name counts. */
enum parameter {
    LABEL_SELECTOR,
    FIELD_SELECTOR,
    BOOKMARKS,
    SEND_INITIAL,
    VERSION,
    MATCH,
    LIMIT,
    CONTINUE,
    TIMEOUT,
    INCLUDE,
    CLUSTERS,
    PARAMETER_COUNT,
};

static const char *const names[PARAMETER_COUNT] = {
    "labelSelector",
    "fieldSelector",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "resourceVersion",
    "resourceVersionMatch",
    "limit",
    "continue",
    "timeoutSeconds",
    "includeObject",
    "clusters",
};

struct parameters {
    bool there[PARAMETER_COUNT];
    struct kr_bytes value[PARAMETER_COUNT];
};

static int read_parameters(struct kr_bytes query, struct kr_arena *arena, struct parameters *p)
{
    struct kr_bytes name;
    struct kr_bytes value;
    int rc;

    while ((rc = kr_query_next(&query, arena, &name, &value)) == 1) {
        for (size_t i = 0; i < PARAMETER_COUNT; i++) {
            if (!p->there[i] && kr_bytes_is(name, names[i])) {
                p->there[i] = true;
                p->value[i] = value;
            }
        }
    }
    return rc;
}

/* ---- values ---- */

static bool is_number(struct kr_bytes text)
{
    size_t i = text.n != 0 && (text.p[0] == '-' || text.p[0] == '+');

    if (i == text.n)
        return false;
    while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9')
        i++;
    return i == text.n;
}

static int bad_number(const char *function, struct kr_bytes text, struct kr_note *why)
{
    return kr_note_set(why, KR_EINVAL, "strconv.%s: parsing \"%.*s\": %s", function, SHOWN(text),
                       is_number(text) ? "value out of range" : "invalid syntax");
}

static int read_int(const struct parameters *p, enum parameter which, int64_t *out,
                    struct kr_note *why)
{
    if (!p->there[which])
        return 0;
    if (!kr_query_int(p->value[which], out))
        return bad_number("ParseInt", p->value[which], why);
    if (*out < 0) /* as good as none for kube-apiserver */
        *out = 0;
    return 0;
}

static int read_version(const struct parameters *p, struct kr_list_options *out,
                        struct kr_note *why)
{
    struct kr_bytes text = p->value[VERSION];
    struct kr_bytes digits = text;

    if (text.n == 0)
        return 0;
    while (digits.n > 1 && digits.p[0] == '0')
        digits = kr_bytes_skip(digits, 1);
    if (!kr_bytes_to_u64(digits, UINT64_MAX, &out->version)) {
        int rc = bad_number("ParseUint", text, why);

        return kr_note_wrap(why, rc, "resourceVersion: Invalid value: \"%.*s\"", SHOWN(text));
    }
    out->has_version = true;
    out->version_zero = out->version == 0;
    return 0;
}

static int read_include(struct kr_bytes text, struct kr_list_options *out, struct kr_note *why)
{
    if (text.n == 0 || kr_bytes_is(text, "Metadata"))
        out->include = KR_INCLUDE_METADATA;
    else if (kr_bytes_is(text, "None"))
        out->include = KR_INCLUDE_NONE;
    else if (kr_bytes_is(text, "Object"))
        out->include = KR_INCLUDE_OBJECT;
    else
        return kr_note_set(why, KR_EINVAL,
                           "Unable to convert to Table as requested: includeObject: Invalid value: "
                           "\"%.*s\": must be 'Metadata', 'Object', 'None', or empty",
                           SHOWN(text));
    return 0;
}

static int read_clusters(struct kr_bytes text, struct kr_list_options *out, struct kr_note *why)
{
    struct kr_bytes rest = text;

    out->clusters = text;
    while (rest.n != 0) {
        size_t comma = kr_bytes_find(rest, ',');

        if (!kr_is_dns_label(kr_bytes_of(rest.p, comma)))
            return kr_note_set(why, KR_EINVAL,
                               "clusters: Invalid value: \"%.*s\": must be names of clusters, "
                               "joined by commas",
                               SHOWN(text));
        rest = kr_bytes_skip(rest, comma < rest.n ? comma + 1 : comma);
    }
    return 0;
}

/* ---- what may stand together (meta/internalversion/validation) ---- */

#define INVALID "ListOptions.meta.k8s.io \"\" is invalid: "

static int forbidden(struct kr_list_options *out, struct kr_note *why, const char *field,
                     const char *detail)
{
    out->invalid = true;
    return kr_note_set(why, KR_EINVAL, INVALID "%s: Forbidden: %s", field, detail);
}

static int unsupported_match(struct kr_bytes match, struct kr_list_options *out,
                             struct kr_note *why)
{
    out->invalid = true;
    return kr_note_set(why, KR_EINVAL,
                       INVALID "resourceVersionMatch: Unsupported value: \"%.*s\": supported "
                               "values: %s",
                       SHOWN(match),
                       out->watch ? "\"NotOlderThan\"" : "\"Exact\", \"NotOlderThan\", \"\"");
}

static int check_watch(const struct parameters *p, struct kr_list_options *out, struct kr_note *why)
{
    struct kr_bytes match = p->value[MATCH];

    if (out->has_send_initial && !kr_bytes_is(match, "NotOlderThan"))
        return forbidden(out, why, names[MATCH],
                         "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (match.n == 0)
        return 0;
    if (!out->has_send_initial)
        return forbidden(out, why, names[MATCH],
                         "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                         "provided");
    if (out->cont.n != 0)
        return forbidden(out, why, names[MATCH],
                         "resourceVersionMatch is forbidden when continue is provided");
    return 0;
}

static int check_list(const struct parameters *p, struct kr_list_options *out, struct kr_note *why)
{
    struct kr_bytes match = p->value[MATCH];

    if (match.n != 0 && !out->has_version)
        return forbidden(out, why, names[MATCH],
                         "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (match.n != 0 && out->cont.n != 0)
        return forbidden(out, why, names[MATCH],
                         "resourceVersionMatch is forbidden when continue is provided");
    if (match.n != 0 && !kr_bytes_is(match, "Exact") && !kr_bytes_is(match, "NotOlderThan"))
        return unsupported_match(match, out, why);
    if (out->match == KR_MATCH_EXACT && kr_bytes_is(p->value[VERSION], "0"))
        return forbidden(out, why, names[MATCH],
                         "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    if (out->has_send_initial)
        return forbidden(out, why, names[SEND_INITIAL], "sendInitialEvents is forbidden for list");
    if (out->cont.n != 0 && out->has_version && !out->version_zero)
        return kr_note_set(why, KR_EINVAL,
                           "specifying resource version is not allowed when using continue");
    return 0;
}

/* ---- all of it ---- */

static int read_values(const struct parameters *p, struct kr_list_options *out, struct kr_note *why)
{
    int rc = read_int(p, LIMIT, &out->limit, why);

    if (rc == 0)
        rc = read_int(p, TIMEOUT, &out->timeout_s, why);
    if (rc == 0)
        rc = read_version(p, out, why);
    if (rc == 0)
        rc = read_include(p->value[INCLUDE], out, why);
    if (rc == 0)
        rc = read_clusters(p->value[CLUSTERS], out, why);
    out->bookmarks = p->there[BOOKMARKS] && kr_query_bool(p->value[BOOKMARKS]);
    out->has_send_initial = p->there[SEND_INITIAL];
    out->send_initial = out->has_send_initial && kr_query_bool(p->value[SEND_INITIAL]);
    out->cont = p->value[CONTINUE];
    if (kr_bytes_is(p->value[MATCH], "Exact"))
        out->match = KR_MATCH_EXACT;
    else if (kr_bytes_is(p->value[MATCH], "NotOlderThan"))
        out->match = KR_MATCH_NOT_OLDER_THAN;
    return rc;
}

static int read_selectors(const struct parameters *p, struct kr_arena *arena,
                          struct kr_list_options *out, struct kr_note *why)
{
    int rc = 0;

    out->label_text = p->value[LABEL_SELECTOR];
    out->field_text = p->value[FIELD_SELECTOR];
    if (out->label_text.n != 0)
        rc = kr_label_selector_parse(out->label_text, arena, &out->labels, why);
    if (rc == 0 && out->field_text.n != 0)
        rc = kr_field_selector_parse(out->field_text, arena, &out->fields, why);
    if (rc == KR_ETOOBIG) /* a limit of ours */
        rc = KR_EINVAL;
    return rc;
}

int kr_list_options_read(struct kr_bytes query, bool is_watch, struct kr_arena *arena,
                         struct kr_list_options *out, struct kr_note *why)
{
    struct parameters p = {0};
    int rc = read_parameters(query, arena, &p);

    *out = (struct kr_list_options){.watch = is_watch};
    if (rc == 0)
        rc = read_selectors(&p, arena, out, why);
    if (rc == 0)
        rc = read_values(&p, out, why);
    if (rc != 0)
        return rc;
    return is_watch ? check_watch(&p, out, why) : check_list(&p, out, why);
}
