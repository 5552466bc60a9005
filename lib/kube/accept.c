/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "kube/list_options.h"

#define CLAUSES_MAX 64

/* One clause of an Accept field: "application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5". */
struct clause {
    struct kr_bytes type;
    struct kr_bytes subtype;
    struct kr_bytes as;
    struct kr_bytes group;
    struct kr_bytes version;
    struct kr_bytes stream;
    unsigned q; /* thousandths */
};

/* The part before the next `c`, taken off the front. */
static struct kr_bytes next_part(struct kr_bytes *rest, uint8_t c)
{
    size_t at = kr_bytes_find(*rest, c);
    struct kr_bytes part = kr_bytes_of(rest->p, at);

    *rest = kr_bytes_skip(*rest, at < rest->n ? at + 1 : at);
    return kr_bytes_trim(part);
}

/* "0.5" in thousandths; what is no number counts as 1, as for goautoneg. */
static unsigned read_quality(struct kr_bytes text)
{
    unsigned v = 0;
    unsigned scale = 1000;

    if (text.n == 0 || (text.p[0] != '0' && text.p[0] != '1'))
        return 1000;
    v = text.p[0] == '1' ? 1000 : 0;
    if (text.n > 1 && text.p[1] != '.')
        return 1000;
    for (size_t i = 2; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return 1000;
        scale /= 10;
        v += (unsigned)(text.p[i] - '0') * scale;
    }
    return v < 1000 ? v : 1000;
}

static void read_clause(struct kr_bytes text, struct clause *out)
{
    struct kr_bytes media = next_part(&text, ';');
    size_t slash = kr_bytes_find(media, '/');

    *out = (struct clause){.type = kr_bytes_trim(kr_bytes_of(media.p, slash)), .q = 1000};
    if (slash < media.n)
        out->subtype = kr_bytes_trim(kr_bytes_skip(media, slash + 1));
    else if (kr_bytes_is(out->type, "*"))
        out->subtype = out->type;
    while (text.n != 0) {
        struct kr_bytes part = next_part(&text, ';');
        size_t eq = kr_bytes_find(part, '=');
        struct kr_bytes name = kr_bytes_trim(kr_bytes_of(part.p, eq));
        struct kr_bytes value = kr_bytes_trim(kr_bytes_skip(part, eq < part.n ? eq + 1 : eq));

        if (kr_bytes_is(name, "q"))
            out->q = read_quality(value);
        else if (kr_bytes_is(name, "as"))
            out->as = value;
        else if (kr_bytes_is(name, "g"))
            out->group = value;
        else if (kr_bytes_is(name, "v"))
            out->version = value;
        else if (kr_bytes_is(name, "stream"))
            out->stream = value;
    }
}

static unsigned specificity(const struct clause *c)
{
    return (unsigned)!kr_bytes_is(c->type, "*") * 2 + (unsigned)!kr_bytes_is(c->subtype, "*");
}

static bool is_better(const struct clause *a, const struct clause *b)
{
    return a->q != b->q ? a->q > b->q : specificity(a) > specificity(b);
}

/* Best first; among equals in the order of the field. What is beyond the maximum is not read. */
static size_t read_clauses(struct kr_bytes accept, struct clause *out)
{
    size_t n = 0;

    while (accept.n != 0 && n < CLAUSES_MAX) {
        struct clause c;
        size_t at = n;

        read_clause(next_part(&accept, ','), &c);
        if (c.q == 0)
            continue;
        for (; at > 0 && is_better(&c, &out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = c;
        n++;
    }
    return n;
}

static bool is_json(const struct clause *c)
{
    bool any = kr_bytes_is(c->type, "*") && kr_bytes_is(c->subtype, "*");
    bool application = kr_bytes_eq_fold(c->type, KR_LIT("application"));

    return (any || (application && (kr_bytes_is(c->subtype, "*") ||
                                    kr_bytes_eq_fold(c->subtype, KR_LIT("json"))))) &&
           (c->stream.n == 0 || kr_bytes_is(c->stream, "watch"));
}

static bool form_of(const struct clause *c, enum kr_form *out)
{
    bool v1 = kr_bytes_is(c->version, "v1");

    *out = KR_FORM_JSON;
    if (c->as.n == 0)
        return true;
    if (!kr_bytes_is(c->group, "meta.k8s.io") || (!v1 && !kr_bytes_is(c->version, "v1beta1")))
        return false;
    if (kr_bytes_is(c->as, "Table"))
        *out = v1 ? KR_FORM_TABLE_V1 : KR_FORM_TABLE_V1BETA1;
    else if (kr_bytes_is(c->as, "PartialObjectMetadata") ||
             kr_bytes_is(c->as, "PartialObjectMetadataList"))
        *out = v1 ? KR_FORM_METADATA_V1 : KR_FORM_METADATA_V1BETA1;
    else
        return false;
    return true;
}

int kr_accept_form(struct kr_bytes accept, enum kr_form *out)
{
    struct clause clauses[CLAUSES_MAX];
    size_t n;

    *out = KR_FORM_JSON;
    accept = kr_bytes_trim(accept);
    if (accept.n == 0)
        return 0;
    n = read_clauses(accept, clauses);
    for (size_t i = 0; i < n; i++) {
        if (is_json(&clauses[i]) && form_of(&clauses[i], out))
            return 0;
    }
    return KR_EUNSUPPORTED;
}

static int discovery_of(const struct clause *c)
{
    if (c->as.n == 0)
        return 0;
    if (!kr_bytes_is(c->as, "APIGroupDiscoveryList") ||
        !kr_bytes_is(c->group, "apidiscovery.k8s.io"))
        return -1;
    if (kr_bytes_is(c->version, "v2"))
        return 1;
    return kr_bytes_is(c->version, "v2beta1") ? 2 : -1;
}

int kr_accept_discovery(struct kr_bytes accept)
{
    struct clause clauses[CLAUSES_MAX];
    size_t n;

    accept = kr_bytes_trim(accept);
    if (accept.n == 0)
        return 0;
    n = read_clauses(accept, clauses);
    for (size_t i = 0; i < n; i++) {
        int form = discovery_of(&clauses[i]);

        if (is_json(&clauses[i]) && form >= 0)
            return form;
    }
    return KR_EUNSUPPORTED;
}

bool kr_accept_gzip(struct kr_bytes accept_encoding)
{
    while (accept_encoding.n != 0) {
        struct kr_bytes coding = next_part(&accept_encoding, ',');
        struct kr_bytes name = next_part(&coding, ';');
        size_t eq = kr_bytes_find(coding, '=');

        if (kr_bytes_eq_fold(name, KR_LIT("gzip")))
            return coding.n == 0 || read_quality(kr_bytes_trim(
                                        kr_bytes_skip(coding, eq < coding.n ? eq + 1 : eq))) != 0;
    }
    return false;
}
