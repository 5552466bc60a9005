/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks: the connection's owner, or whom it impersonates.
 * https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation */
#include <stdio.h>
#include <strings.h>

#include "api.h"
#include "base/err.h"

static const char extra_prefix[] = "impersonate-extra-";

static void add_text(struct json_object *array, struct kr_bytes text)
{
    json_object_array_add(array, json_object_new_string_len((const char *)text.p, (int)text.n));
}

static struct json_object *base_user(const struct sim_request *req)
{
    struct json_object *user = json_object_new_object(), *groups = json_object_new_array();
    struct kr_bytes rest = kr_bytes_str(req->groups);

    sim_json_set_str(user, "username", req->user);
    while (rest.n != 0) {
        size_t end = kr_bytes_find(rest, ',');

        add_text(groups, kr_bytes_of(rest.p, end));
        rest = kr_bytes_skip(rest, end < rest.n ? end + 1 : end);
    }
    add_text(groups, KR_LIT("system:authenticated"));
    sim_json_set(user, "groups", groups);
    return user;
}

static void set_extra(struct json_object *user, const struct kr_field *f)
{
    struct kr_bytes raw = kr_bytes_skip(f->name, sizeof extra_prefix - 1);
    struct json_object *extra = sim_json_child(user, "extra"), *values;
    char key[256];

    if (sim_decode(raw, false, key, sizeof key) != 0)
        return;
    values = sim_json_get(extra, key);
    if (values == NULL)
        sim_json_set(extra, key, values = json_object_new_array());
    add_text(values, f->value);
}

/* Whether a field of the request is one of impersonation but not the user. */
static bool is_more(const struct kr_field *f)
{
    return kr_bytes_is(f->name, "impersonate-group") || kr_bytes_is(f->name, "impersonate-uid") ||
           kr_bytes_starts(f->name, kr_bytes_of(extra_prefix, sizeof extra_prefix - 1));
}

static struct json_object *impersonated(const struct kr_head *head, struct kr_bytes name)
{
    struct json_object *user = json_object_new_object(), *groups = json_object_new_array();

    sim_json_set(user, "username", json_object_new_string_len((const char *)name.p, (int)name.n));
    for (size_t i = 0; i < head->n; i++) {
        const struct kr_field *f = &head->fields[i];

        if (kr_bytes_is(f->name, "impersonate-group"))
            add_text(groups, f->value);
        else if (kr_bytes_is(f->name, "impersonate-uid"))
            sim_json_set(user, "uid",
                         json_object_new_string_len((const char *)f->value.p, (int)f->value.n));
        else if (is_more(f))
            set_extra(user, f);
    }
    if (!kr_bytes_is(name, "system:anonymous"))
        add_text(groups, KR_LIT("system:authenticated"));
    sim_json_set(user, "groups", groups);
    return user;
}

int sim_api_identify(struct sim_call *call)
{
    const struct kr_head *head = call->req->head;
    struct kr_bytes name = kr_head_get(head, KR_LIT("impersonate-user"));

    if (call->req->user == NULL) {
        sim_fail(call->out, &(struct sim_failure){.code = 401, .reason = "Unauthorized"},
                 "Unauthorized");
        return KR_EDENIED;
    }
    if (name.n != 0) {
        call->user = impersonated(head, name);
        return 0;
    }
    for (size_t i = 0; i < head->n; i++)
        if (is_more(&head->fields[i])) { /* the API server answers this in plain text */
            call->out->status = 500;
            sim_plain_text(call->out, "Internal Server Error: requested impersonation without "
                                      "impersonating a user\n");
            return KR_EINVAL;
        }
    call->user = base_user(call->req);
    return 0;
}
