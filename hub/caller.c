/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/caller.h"

#include <stdlib.h>

#include "base/err.h"

struct block {
    struct hub_caller pub; /* first */
    struct kr_bytes groups[];
};

static struct kr_bytes put(uint8_t **at, struct kr_bytes in)
{
    struct kr_bytes out = {*at, in.n};

    if (in.n != 0)
        memcpy(*at, in.p, in.n);
    (*at)[in.n] = '\0';
    *at += in.n + 1;
    return out;
}

struct hub_caller *hub_caller_create(const struct hub_caller *from)
{
    size_t head = sizeof(struct block) + from->group_count * sizeof(struct kr_bytes);
    size_t n = head + from->user.n + from->uid.n + from->token.n + 3;
    struct block *b;
    uint8_t *at;

    for (size_t i = 0; i < from->group_count; i++)
        n += from->groups[i].n + 1;
    b = malloc(n);
    if (b == NULL)
        return NULL;
    at = (uint8_t *)b + head;
    b->pub = *from;
    b->pub.refs = 1;
    b->pub.user = put(&at, from->user);
    b->pub.uid = put(&at, from->uid);
    b->pub.token = put(&at, from->token);
    for (size_t i = 0; i < from->group_count; i++)
        b->groups[i] = put(&at, from->groups[i]);
    b->pub.groups = b->groups;
    return &b->pub;
}

struct hub_caller *hub_caller_of_identity(const struct kr_identity *id)
{
    struct kr_bytes *groups = calloc(id->group_count + 1, sizeof *groups);
    struct hub_caller from = {
        .by = HUB_BY_CERTIFICATE,
        .user = kr_bytes_str(id->name),
        .groups = groups,
        .group_count = id->group_count,
        .expires_wall_ms = id->not_after_wall_ms,
    };
    struct hub_caller *made;

    if (groups == NULL)
        return NULL;
    for (size_t i = 0; i < id->group_count; i++)
        groups[i] = kr_bytes_str(id->groups[i]);
    made = hub_caller_create(&from);
    free(groups);
    return made;
}

struct hub_caller *hub_caller_ref(struct hub_caller *c)
{
    c->refs++;
    return c;
}

void hub_caller_unref(struct hub_caller *c)
{
    if (c == NULL || --c->refs != 0)
        return;
    /* A token is a secret. */
    if (c->token.n != 0)
        explicit_bzero((uint8_t *)c->token.p, c->token.n);
    free(c);
}

const char *hub_caller_name(const struct hub_caller *c)
{
    return c != NULL ? (const char *)c->user.p : "";
}

bool hub_caller_expired(const struct hub_caller *c, int64_t now_wall_ms)
{
    return c->expires_wall_ms != 0 && now_wall_ms >= c->expires_wall_ms;
}

static int check_name(struct kr_bytes v, const char *what, struct kr_note *why)
{
    if (v.n == 0 || v.n > KR_NAME_MAX || !kr_bytes_is_utf8(v) || v.p[0] == ' ' ||
        v.p[v.n - 1] == ' ')
        return kr_note_set(why, KR_EDENIED, "a %s that cannot be one", what);
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] < ' ' || v.p[i] == 0x7f)
            return kr_note_set(why, KR_EDENIED, "a %s with control bytes", what);
    }
    if (kr_bytes_starts(v, KR_LIT("system:")))
        return kr_note_set(why, KR_EDENIED, "a %s that begins with system:", what);
    return 0;
}

int hub_caller_check(const struct hub_caller *c, struct kr_note *why)
{
    int rc = check_name(c->user, "user", why);

    if (rc == 0 && c->group_count > KR_GROUPS_MAX)
        rc = kr_note_set(why, KR_EDENIED, "more than %d groups", KR_GROUPS_MAX);
    for (size_t i = 0; i < c->group_count && rc == 0; i++)
        rc = check_name(c->groups[i], "group", why);
    return rc;
}
