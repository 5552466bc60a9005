/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/spiffe_id.h"

#include <stdio.h>

#include "base/err.h"

static const char scheme[] = "spiffe://";

#define SEGMENTS_MAX 4

static bool is_lower_alnum(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_segment_char(uint8_t c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

const char *kr_role_text(enum kr_role role)
{
    switch (role) {
    case KR_ROLE_HUB:
        return "hub";
    case KR_ROLE_AGENT:
        return "agent";
    case KR_ROLE_USER:
        return "user";
    }
    return "unknown";
}

bool kr_spiffe_is_domain(struct kr_bytes b)
{
    if (b.n == 0 || b.n > KR_SPIFFE_ID_MAX - (sizeof scheme - 1))
        return false;
    if (!is_lower_alnum(b.p[0]) || !is_lower_alnum(b.p[b.n - 1]))
        return false;
    for (size_t i = 0; i < b.n; i++) {
        uint8_t c = b.p[i];

        if (!is_lower_alnum(c) && c != '.' && c != '-' && c != '_')
            return false;
        if (c == '.' && b.p[i - 1] == '.') /* i > 0: the first byte is a letter or a digit */
            return false;
    }
    return true;
}

bool kr_spiffe_is_segment(struct kr_bytes b)
{
    if (b.n == 0 || b.n > KR_SPIFFE_ID_MAX || kr_bytes_is(b, ".") || kr_bytes_is(b, ".."))
        return false;
    for (size_t i = 0; i < b.n; i++) {
        if (!is_segment_char(b.p[i]))
            return false;
    }
    return true;
}

static void copy(char out[KR_SPIFFE_ID_MAX + 1], struct kr_bytes b)
{
    memcpy(out, b.p, b.n);
    out[b.n] = 0;
}

/* Leaves in *rest what follows "spiffe://". Says what is wrong with any byte that can never be
 * right, so that later sentences need not think of NUL, percent signs and the like. */
static int enter(struct kr_bytes *rest, struct kr_bytes uri, struct kr_note *why)
{
    if (uri.n > KR_SPIFFE_ID_MAX)
        return kr_note_set(why, KR_EPROTO, "the identity has %zu bytes, more than %d", uri.n,
                           KR_SPIFFE_ID_MAX);
    if (!kr_bytes_starts(uri, KR_LIT("spiffe://")))
        return kr_note_set(why, KR_EPROTO, "the identity does not begin with spiffe://");
    *rest = kr_bytes_skip(uri, sizeof scheme - 1);
    for (size_t i = 0; i < rest->n; i++) {
        uint8_t c = rest->p[i];

        if (is_segment_char(c) || c == '/')
            continue;
        if (c > ' ' && c < 0x7f)
            return kr_note_set(why, KR_EPROTO,
                               "the identity holds '%c', which no SPIFFE name may hold", c);
        return kr_note_set(why, KR_EPROTO,
                           "the identity holds byte 0x%02x, which no SPIFFE name may hold", c);
    }
    return 0;
}

static int cut_domain(char out[KR_SPIFFE_ID_MAX + 1], struct kr_bytes *rest, struct kr_note *why)
{
    size_t n = kr_bytes_find(*rest, '/');
    struct kr_bytes domain = {rest->p, n};

    if (!kr_spiffe_is_domain(domain))
        return kr_note_set(why, KR_EPROTO, "\"%.*s\" is no trust domain", (int)n,
                           (const char *)domain.p);
    copy(out, domain);
    *rest = kr_bytes_skip(*rest, n);
    return 0;
}

/* Cuts "/a/b/c"; returns how many segments or a negative code. */
static int cut_path(struct kr_bytes out[SEGMENTS_MAX], struct kr_bytes path, struct kr_note *why)
{
    int count = 0;

    while (path.n != 0) {
        size_t n;

        path = kr_bytes_skip(path, 1); /* the slash */
        n = kr_bytes_find(path, '/');
        if (n == 0)
            return kr_note_set(why, KR_EPROTO, "the identity has an empty segment or ends in '/'");
        if (!kr_spiffe_is_segment((struct kr_bytes){path.p, n}))
            return kr_note_set(why, KR_EPROTO, "the identity has the segment \"%.*s\"", (int)n,
                               (const char *)path.p);
        if (count == SEGMENTS_MAX)
            return kr_note_set(why, KR_EPROTO, "the identity has more than %d segments",
                               SEGMENTS_MAX);
        out[count++] = (struct kr_bytes){path.p, n};
        path = kr_bytes_skip(path, n);
    }
    return count;
}

static int read_role(struct kr_spiffe_id *id, const struct kr_bytes seg[SEGMENTS_MAX], int count,
                     struct kr_note *why)
{
    if (count == 2 && kr_bytes_is(seg[0], "hub")) {
        id->role = KR_ROLE_HUB;
    } else if (count == 2 && kr_bytes_is(seg[0], "user")) {
        id->role = KR_ROLE_USER;
    } else if (count == 4 && kr_bytes_is(seg[0], "cluster") && kr_bytes_is(seg[2], "agent")) {
        id->role = KR_ROLE_AGENT;
        if (!kr_is_dns_label(seg[1]))
            return kr_note_set(why, KR_EPROTO,
                               "\"%.*s\" is no cluster name (lower-case letters, digits and '-', "
                               "at most 63)",
                               (int)seg[1].n, (const char *)seg[1].p);
        copy(id->instance, seg[3]);
    } else {
        return kr_note_set(why, KR_EPROTO,
                           "the identity's path is none of /hub/REPLICA, "
                           "/cluster/NAME/agent/INSTANCE, /user/NAME");
    }
    copy(id->name, seg[1]);
    return 0;
}

int kr_spiffe_id_parse(struct kr_spiffe_id *out, struct kr_bytes uri, struct kr_note *why)
{
    struct kr_spiffe_id id = {0};
    struct kr_bytes seg[SEGMENTS_MAX];
    struct kr_bytes rest = {NULL, 0};
    int rc;

    memset(out, 0, sizeof *out);
    rc = enter(&rest, uri, why);
    if (rc == 0)
        rc = cut_domain(id.domain, &rest, why);
    if (rc == 0)
        rc = cut_path(seg, rest, why);
    if (rc >= 0)
        rc = read_role(&id, seg, rc, why);
    if (rc == 0)
        *out = id;
    return rc;
}

int kr_spiffe_domain_parse(char out[KR_SPIFFE_ID_MAX + 1], struct kr_bytes uri, struct kr_note *why)
{
    struct kr_bytes rest = {NULL, 0};
    int rc;

    out[0] = 0;
    rc = enter(&rest, uri, why);
    if (rc == 0)
        rc = cut_domain(out, &rest, why);
    if (rc == 0 && rest.n != 0) {
        out[0] = 0;
        rc = kr_note_set(why, KR_EPROTO, "a trust domain has no path");
    }
    return rc;
}

static int write_id(const struct kr_spiffe_id *id, char out[KR_SPIFFE_ID_MAX + 1])
{
    size_t room = KR_SPIFFE_ID_MAX + 1;

    if (id->role == KR_ROLE_AGENT)
        return snprintf(out, room, "%s%s/cluster/%s/agent/%s", scheme, id->domain, id->name,
                        id->instance);
    return snprintf(out, room, "%s%s/%s/%s", scheme, id->domain, kr_role_text(id->role), id->name);
}

int kr_spiffe_id_format(const struct kr_spiffe_id *id, char out[KR_SPIFFE_ID_MAX + 1],
                        struct kr_note *why)
{
    struct kr_spiffe_id again;
    int n;

    n = write_id(id, out);
    if (n < 0 || n > KR_SPIFFE_ID_MAX) {
        out[0] = 0;
        return kr_note_set(why, KR_EINVAL, "the identity has more than %d bytes", KR_SPIFFE_ID_MAX);
    }
    /* Reading it back is the check of every part: one grammar, in one place. */
    if (kr_spiffe_id_parse(&again, kr_bytes_of(out, (size_t)n), why) != 0 ||
        again.role != id->role || strcmp(again.name, id->name) != 0) {
        out[0] = 0;
        return KR_EINVAL;
    }
    return 0;
}
