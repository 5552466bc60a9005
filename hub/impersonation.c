/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/impersonation.h"

#include "base/err.h"
#include "kube/path.h"

#define EXTRA_PREFIX "impersonate-extra-"

static int read_extra(struct hub_impersonation *as, const struct kr_field *f,
                      struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes raw = kr_bytes_skip(f->name, sizeof EXTRA_PREFIX - 1);
    struct kr_extra *e = &as->extra[as->extra_count];
    struct kr_bytes *value = kr_arena_alloc(arena, sizeof *value);

    if (as->extra_count == HUB_AS_EXTRA_MAX)
        return kr_note_set(why, KR_EINVAL, "too many Impersonate-Extra- fields");
    if (value == NULL)
        return KR_ENOMEM;
    if (raw.n == 0 || kr_percent_decode(raw, false, arena, &e->key) != 0)
        return kr_note_set(why, KR_EINVAL, "Impersonate-Extra- with a bad key");
    *value = f->value;
    e->values = value;
    e->value_count = 1;
    as->extra_count++;
    return 0;
}

static int read_field(struct hub_impersonation *as, const struct kr_field *f,
                      struct kr_arena *arena, struct kr_note *why)
{
    as->asked = true;
    if (kr_bytes_is(f->name, "impersonate-user")) {
        if (as->user.n != 0)
            return kr_note_set(why, KR_EINVAL, "more than one Impersonate-User");
        as->user = f->value;
    } else if (kr_bytes_is(f->name, "impersonate-uid")) {
        as->uid = f->value;
    } else if (kr_bytes_is(f->name, "impersonate-group")) {
        if (as->group_count == HUB_AS_GROUPS_MAX)
            return kr_note_set(why, KR_EINVAL, "too many Impersonate-Group fields");
        as->groups[as->group_count++] = f->value;
    } else if (kr_bytes_starts(f->name, KR_LIT(EXTRA_PREFIX))) {
        return read_extra(as, f, arena, why);
    } else {
        return kr_note_set(why, KR_EINVAL, "unknown Impersonate- field");
    }
    return 0;
}

int hub_impersonation_read(struct hub_impersonation *as, const struct kr_head *head,
                           struct kr_arena *arena, struct kr_note *why)
{
    int rc = 0;

    *as = (struct hub_impersonation){0};
    for (size_t i = 0; i < head->n && rc == 0; i++) {
        const struct kr_field *f = &head->fields[i];

        if (!kr_bytes_starts(f->name, KR_LIT("impersonate-")))
            continue;
        if (as->groups == NULL) {
            as->groups = kr_arena_alloc(arena, HUB_AS_GROUPS_MAX * sizeof *as->groups);
            as->extra = kr_arena_alloc(arena, HUB_AS_EXTRA_MAX * sizeof *as->extra);
        }
        rc = as->groups != NULL && as->extra != NULL ? read_field(as, f, arena, why) : KR_ENOMEM;
    }
    if (rc == 0 && as->asked && as->user.n == 0)
        rc = kr_note_set(why, KR_EINVAL, "impersonation without Impersonate-User");
    return rc;
}

/* ---- rules ---- */

struct rule {
    struct kr_bytes who_kind;
    struct kr_bytes who;
    struct kr_bytes kind;
    struct kr_bytes what;
};

static bool split(struct kr_bytes in, uint8_t at, struct kr_bytes *left, struct kr_bytes *right)
{
    size_t i = kr_bytes_find(in, at);

    if (i == in.n)
        return false;
    *left = kr_bytes_of(in.p, i);
    *right = kr_bytes_skip(in, i + 1);
    return left->n != 0 && right->n != 0;
}

static bool read_rule(struct kr_bytes text, struct rule *r)
{
    struct kr_bytes who;
    struct kr_bytes what;

    return split(text, '=', &who, &what) && split(who, ':', &r->who_kind, &r->who) &&
           split(what, ':', &r->kind, &r->what) &&
           (kr_bytes_is(r->who_kind, "user") || kr_bytes_is(r->who_kind, "group")) &&
           (kr_bytes_is(r->kind, "user") || kr_bytes_is(r->kind, "group") ||
            kr_bytes_is(r->kind, "uid") || kr_bytes_is(r->kind, "extra"));
}

int hub_impersonation_check(const struct kr_strings *rules, struct kr_note *why)
{
    struct rule r;

    for (size_t i = 0; i < rules->n; i++) {
        if (!read_rule(kr_bytes_str(rules->v[i]), &r))
            return kr_note_set(why, KR_EINVAL,
                               "impersonation: \"%s\" is not (user|group):WHO="
                               "(user|group|uid|extra):WHAT",
                               rules->v[i]);
    }
    return 0;
}

static bool applies(const struct rule *r, const struct hub_caller *client)
{
    if (kr_bytes_is(r->who_kind, "user"))
        return kr_bytes_eq(r->who, client->user);
    for (size_t i = 0; i < client->group_count; i++) {
        if (kr_bytes_eq(r->who, client->groups[i]))
            return true;
    }
    return false;
}

static int need(const struct kr_strings *rules, const struct hub_caller *client, const char *kind,
                struct kr_bytes what, struct kr_note *why)
{
    struct rule r;

    for (size_t i = 0; i < rules->n; i++) {
        if (read_rule(kr_bytes_str(rules->v[i]), &r) && kr_bytes_is(r.kind, kind) &&
            (kr_bytes_is(r.what, "*") || kr_bytes_eq(r.what, what)) && applies(&r, client))
            return 0;
    }
    return kr_note_set(why, KR_EDENIED, "impersonate-%s", kind);
}

int hub_impersonation_allowed(const struct kr_strings *rules, const struct hub_caller *client,
                              const struct hub_impersonation *as, struct kr_note *why)
{
    int rc = need(rules, client, "user", as->user, why);

    for (size_t i = 0; i < as->group_count && rc == 0; i++)
        rc = need(rules, client, "group", as->groups[i], why);
    if (rc == 0 && as->uid.n != 0)
        rc = need(rules, client, "uid", as->uid, why);
    for (size_t i = 0; i < as->extra_count && rc == 0; i++)
        rc = need(rules, client, "extra", as->extra[i].key, why);
    return rc;
}
