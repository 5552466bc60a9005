/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/claims.h"

#include "base/err.h"
#include "certs/identity.h"

/* These texts end up in header fields and rules. */
static bool is_name(struct kr_bytes v)
{
    if (v.n == 0 || v.n > KR_NAME_MAX || !kr_bytes_is_utf8(v) || v.p[0] == ' ' ||
        v.p[v.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < ' ' || v.p[i] == 0x7f)
            return false;
    }
    return true;
}

static int prefixed(const char *prefix, struct kr_bytes name, struct kr_arena *arena,
                    struct kr_bytes *out)
{
    size_t n = strlen(prefix);
    uint8_t *p = kr_arena_alloc(arena, n + name.n + 1);

    if (p == NULL)
        return KR_ENOMEM;
    if (n != 0)
        memcpy(p, prefix, n);
    memcpy(p + n, name.p, name.n);
    p[n + name.n] = '\0';
    *out = kr_bytes_of(p, n + name.n);
    return 0;
}

static bool is_verified(const struct kr_json *claims, const char *claim)
{
    const struct kr_json *v = kr_json_get(claims, "email_verified");
    bool yes = false;

    return strcmp(claim, "email") != 0 || v == NULL || (kr_json_bool(v, &yes) && yes);
}

static int add_group(struct kr_claim_user *out, const struct kr_json *v, const char *prefix,
                     struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes name;

    if (!kr_json_string(v, &name) || !is_name(name))
        return kr_note_set(why, KR_EDENIED, "a group of the token cannot be one");
    return prefixed(prefix, name, arena, &out->groups[out->group_count++]);
}

static int read_groups(struct kr_claim_user *out, const struct kr_json *v, const char *prefix,
                       struct kr_arena *arena, struct kr_note *why)
{
    size_t n = kr_json_is_array(v) ? kr_json_len(v) : 1;
    int rc = 0;

    if (v == NULL)
        return 0;
    if (n > KR_CLAIM_GROUPS_MAX)
        return kr_note_set(why, KR_EDENIED, "the token has more than %d groups",
                           KR_CLAIM_GROUPS_MAX);
    out->groups = kr_arena_alloc(arena, (n + 1) * sizeof *out->groups);
    if (out->groups == NULL)
        return KR_ENOMEM;
    if (!kr_json_is_array(v))
        return add_group(out, v, prefix, arena, why);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_group(out, kr_json_at(v, i), prefix, arena, why);
    return rc;
}

int kr_claims_user(struct kr_claim_user *out, const struct kr_json *claims,
                   const struct kr_claim_rules *rules, struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes name;
    int rc;

    *out = (struct kr_claim_user){.groups = NULL};
    if (!kr_json_string(kr_json_get(claims, rules->username_claim), &name) || !is_name(name))
        return kr_note_set(why, KR_EDENIED, "the token names no user by its claim %.60s",
                           rules->username_claim);
    if (!is_verified(claims, rules->username_claim))
        return kr_note_set(why, KR_EDENIED, "the token's email is not verified");
    rc = prefixed(rules->username_prefix, name, arena, &out->user);
    if (rc == 0 && rules->groups_claim != NULL)
        rc = read_groups(out, kr_json_get(claims, rules->groups_claim), rules->groups_prefix, arena,
                         why);
    return rc == KR_ENOMEM ? kr_note_set(why, rc, "out of memory") : rc;
}
