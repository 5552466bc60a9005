/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/request_parts.h"
#include "base/assert.h"
#include "base/err.h"
#include "certs/store_file.h"

static int add_allowed(struct agent_request *r, struct kr_head *to)
{
    const struct kr_head *from = &r->fw.in->head;
    unsigned flags = agent_request_flags(r);
    int rc = 0;

    for (size_t i = 0; i < from->n && rc == 0; i++) {
        const struct kr_field *f = &from->fields[i];

        if (r->rebased && kr_bytes_is(f->name, "content-length"))
            continue;
        /* The hub set these two itself; from a client they never pass the hub. */
        if (kr_header_request_rule(f->name, flags) == KR_HEADER_PASS ||
            kr_bytes_is(f->name, "audit-id") || kr_bytes_is(f->name, "x-forwarded-for"))
            rc = kr_head_add_ref(to, f->name, f->value);
    }
    if (rc == 0 && r->rebased)
        rc = kr_head_add_u64(to, "content-length", r->fw.up.size);
    return rc;
}

/* Prefix and name in one header, e.g. "kuberelay:alice". */
static int add_prefixed(struct agent_request *r, struct kr_head *to, const char *header,
                        struct kr_bytes name)
{
    struct kr_bytes prefix = kr_bytes_str(r->c->options->user_prefix);
    size_t n = prefix.n + name.n;
    uint8_t *p = kr_arena_alloc(&to->arena, n + 1);

    if (p == NULL)
        return KR_ENOMEM;
    if (prefix.n != 0)
        memcpy(p, prefix.p, prefix.n);
    memcpy(p + prefix.n, name.p, name.n);
    /* HTTP/1.1 takes spaces around a value away: " system:masters" would arrive without. */
    if (n == 0 || p[0] == ' ' || p[n - 1] == ' ' ||
        kr_bytes_starts(kr_bytes_of(p, n), KR_LIT("system:")))
        return KR_EDENIED;
    return kr_head_add_ref(to, kr_bytes_str(header), kr_bytes_of(p, n));
}

/* A system: user that the agent's own configuration names; no hub can add to that. */
static bool is_system_user(const struct agent_request *r)
{
    const struct kr_strings *names = &r->c->options->system_users;

    if (!kr_bytes_starts(r->who.user, KR_LIT("system:")))
        return false;
    for (size_t i = 0; i < names->n; i++) {
        struct kr_bytes name = kr_bytes_str(names->v[i]);

        if (kr_bytes_eq(name, r->who.user) ||
            (name.n > 1 && name.p[name.n - 1] == '*' &&
             kr_bytes_starts(r->who.user, kr_bytes_of(name.p, name.n - 1))))
            return true;
    }
    return false;
}

/* A group may have another name here, which the policy file gives. */
static int add_group(struct agent_request *r, struct kr_head *to, struct kr_bytes group)
{
    bool mapped;
    struct kr_bytes name = agent_policy_group(r->c->policy, group, &mapped);

    return mapped ? kr_head_add_ref(to, KR_LIT("impersonate-group"), name)
                  : add_prefixed(r, to, "impersonate-group", name);
}

static int add_user(struct agent_request *r, struct kr_head *to)
{
    if (is_system_user(r))
        return kr_head_add_ref(to, KR_LIT("impersonate-user"), r->who.user);
    return add_prefixed(r, to, "impersonate-user", r->who.user);
}

/* Impersonate-Extra-KEY: KEY may hold bytes that a field name may not; kube-apiserver decodes it
 * (endpoints/filters/impersonation). */
static int add_extra(struct kr_head *to, const struct kr_extra *extra)
{
    struct kr_buf name = {.max = 4 * KR_TEXT_MAX};
    int rc = kr_buf_append_str(&name, "impersonate-extra-");

    for (size_t i = 0; i < extra->key.n && rc == 0; i++) {
        uint8_t c = extra->key.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';

        rc = kr_buf_printf(&name, plain ? "%c" : "%%%02x", c);
    }
    for (size_t i = 0; i < extra->value_count && rc == 0; i++)
        rc = kr_head_add(to, kr_buf_bytes(&name), extra->values[i]);
    kr_buf_deinit(&name);
    return rc;
}

int agent_request_identity(struct agent_request *r, struct kr_head *to)
{
    int rc;

    if (r->c->policy->identity == AGENT_FIXED)
        return 0; /* all run as the agent's own account: its RBAC is what they may */
    rc = add_user(r, to);
    if (rc == 0)
        KR_ASSERT(to->fields[to->n - 1].value.n != 0);
    for (size_t i = 0; i < r->who.group_count && rc == 0; i++)
        rc = add_group(r, to, r->who.groups[i]);
    if (rc == 0 && r->who.uid.n != 0)
        rc = kr_head_add(to, KR_LIT("impersonate-uid"), r->who.uid);
    for (size_t i = 0; i < r->who.extra_count && rc == 0; i++)
        rc = add_extra(to, &r->who.extra[i]);
    return rc;
}

/* The API server's own judgement of this token decides what it may: nobody is impersonated. */
static int add_member_token(struct agent_request *r, struct kr_head *to)
{
    struct kr_buf text = {.max = KR_TOKEN_MAX + 16};
    int rc = kr_buf_append_str(&text, "Bearer ");

    if (rc == 0)
        rc = kr_buf_append(&text, r->who.member_token);
    if (rc == 0)
        rc = kr_head_add(to, KR_LIT("authorization"), kr_buf_bytes(&text));
    if (rc == 0)
        to->fields[to->n - 1].no_index = true;
    kr_buf_cleanse(&text);
    return rc;
}

/* Last, so that nothing before can displace it. kube-apiserver takes an empty Impersonate-User for
 * "nobody": the request would run as the agent itself. */
static int add_identity(struct agent_request *r, struct kr_head *to)
{
    struct kr_bytes auth;
    int rc;

    if (r->who.member_token.n != 0)
        return add_member_token(r, to);
    auth = agent_apiserver_authorization(r->c->api, &r->token_generation);
    rc = auth.n != 0 ? kr_head_add(to, KR_LIT("authorization"), auth) : 0;

    return rc == 0 ? agent_request_identity(r, to) : rc;
}

int agent_request_head(struct agent_request *r, struct kr_head *to)
{
    struct kr_bytes prefix = agent_apiserver_prefix(r->c->api);
    int rc;

    to->method = r->upgrade ? r->who.method : r->fw.in->head.method;
    if (r->upgrade)
        to->protocol = r->who.upgrade_token;
    to->scheme = KR_LIT("https");
    to->authority = agent_apiserver_authority(r->c->api);
    to->path = r->info.target;
    if (prefix.n != 0) {
        uint8_t *p = kr_arena_alloc(&to->arena, prefix.n + to->path.n);

        if (p == NULL)
            return KR_ENOMEM;
        memcpy(p, prefix.p, prefix.n);
        memcpy(p + prefix.n, to->path.p, to->path.n);
        to->path.p = p;
        to->path.n += prefix.n;
    }
    rc = add_allowed(r, to);
    return rc != 0 ? rc : add_identity(r, to);
}
