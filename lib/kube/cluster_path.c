/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cluster_path.h"

#include "base/err.h"
#include "kube/path.h"

static int set_name(struct kr_cluster_path *out, struct kr_bytes name, struct kr_note *why)
{
    out->fleet = kr_bytes_is(name, "*");
    if (!out->fleet && !kr_is_dns_label(name))
        return kr_note_set(why, KR_EINVAL,
                           "the cluster name is not a DNS label (lower case, 1 to 63 characters)");
    memcpy(out->text, name.p, name.n);
    out->text[name.n] = '\0';
    out->name = kr_bytes_of(out->text, name.n);
    return 0;
}

/* The target of the cluster from what follows the name: "", "/..." or "?...". */
static int set_rest(struct kr_cluster_path *out, struct kr_bytes rest, struct kr_arena *arena,
                    struct kr_note *why)
{
    uint8_t *p;

    out->rest = rest;
    if (rest.n == 0)
        out->rest = KR_LIT("/");
    if (rest.n == 0 || rest.p[0] == '/')
        return 0;
    p = kr_arena_alloc(arena, rest.n + 1);
    if (p == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for the path");
    p[0] = '/';
    memcpy(p + 1, rest.p, rest.n);
    out->rest = kr_bytes_of(p, rest.n + 1);
    return 0;
}

int kr_cluster_path_split(struct kr_bytes target, struct kr_arena *arena,
                          struct kr_cluster_path *out, struct kr_note *why)
{
    const struct kr_bytes prefix = KR_LIT("/clusters/");
    struct kr_bytes rest;
    struct kr_bytes name;
    size_t n = 0;
    int rc;

    *out = (struct kr_cluster_path){.fleet = false};
    if (!kr_bytes_starts(target, prefix))
        return kr_note_set(why, KR_ENOENT, "the path has no cluster prefix");
    rest = kr_bytes_skip(target, prefix.n);
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    if (n == 0)
        return kr_note_set(why, KR_EINVAL, "the cluster name is missing");
    rc = kr_path_segment(kr_bytes_of(rest.p, n), arena, &name, why);
    if (rc == 0)
        rc = set_name(out, name, why);
    if (rc == 0)
        rc = set_rest(out, kr_bytes_skip(rest, n), arena, why);
    return rc;
}

/* The host without port and without the dot of a fully qualified name. */
static struct kr_bytes host_of(struct kr_bytes authority)
{
    authority.n = kr_bytes_find(authority, ':');
    if (authority.n != 0 && authority.p[authority.n - 1] == '.')
        authority.n--;
    return authority;
}

int kr_cluster_from_authority(struct kr_bytes authority, struct kr_bytes domain,
                              struct kr_cluster_path *out, struct kr_note *why)
{
    struct kr_bytes host = host_of(authority);
    struct kr_bytes tail;
    char label[64];
    size_t n;

    *out = (struct kr_cluster_path){.fleet = false};
    if (domain.n == 0 || host.n < domain.n + 2)
        return kr_note_set(why, KR_ENOENT, "the host names no cluster");
    n = host.n - domain.n - 1;
    tail = kr_bytes_skip(host, n + 1);
    if (host.p[n] != '.' || !kr_bytes_eq_fold(tail, domain))
        return kr_note_set(why, KR_ENOENT, "the host names no cluster");
    if (n >= sizeof label)
        return kr_note_set(why, KR_EINVAL, "the cluster name in the host is too long");
    for (size_t i = 0; i < n; i++) {
        uint8_t c = host.p[i];

        label[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (n == 1 && label[0] == '*')
        return kr_note_set(why, KR_EINVAL, "'*' is no host name");
    return set_name(out, kr_bytes_of(label, n), why);
}
