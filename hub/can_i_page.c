/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/can_i_page.h"

#include "base/err.h"
#include "base/json.h"
#include "kube/path.h"

#define GROUPS_MAX 64
#define ARENA_MAX 65536

struct asked {
    struct hub_question q;
    struct kr_request_info info;
    struct kr_bytes groups[GROUPS_MAX];
    struct kr_bytes resource;
};

static int take(struct asked *a, struct kr_bytes key, struct kr_bytes value)
{
    if (kr_bytes_is(key, "verb"))
        a->info.verb = value;
    else if (kr_bytes_is(key, "resource"))
        a->resource = value;
    else if (kr_bytes_is(key, "cluster"))
        a->q.cluster = value;
    else if (kr_bytes_is(key, "namespace"))
        a->info.ns = value;
    else if (kr_bytes_is(key, "name"))
        a->info.name = value;
    else if (kr_bytes_is(key, "user"))
        a->q.who.user = value;
    else if (kr_bytes_is(key, "member-token"))
        a->q.member_token = true;
    else if (kr_bytes_is(key, "group") && a->q.who.group_count < GROUPS_MAX)
        a->groups[a->q.who.group_count++] = value;
    else
        return KR_EINVAL;
    return 0;
}

static int read_question(struct asked *a, struct kr_bytes rest, struct kr_arena *arena)
{
    while (rest.n != 0) {
        size_t end;
        size_t eq;
        struct kr_bytes word;
        struct kr_bytes value;

        rest = kr_bytes_skip(rest, 1); /* the slash */
        end = kr_bytes_find(rest, '/');
        word = kr_bytes_of(rest.p, end);
        eq = kr_bytes_find(word, '=');
        rest = kr_bytes_skip(rest, end);
        if (eq == word.n ||
            kr_percent_decode(kr_bytes_skip(word, eq + 1), false, arena, &value) != 0 ||
            value.n > 512 || take(a, kr_bytes_of(word.p, eq), value) != 0)
            return KR_EINVAL;
    }
    return a->info.verb.n != 0 && a->resource.n != 0 && a->q.cluster.n != 0 ? 0 : KR_EINVAL;
}

/* "deployments.apps/scale", or a path. */
static void fill_info(struct asked *a)
{
    struct kr_request_info *i = &a->info;
    struct kr_bytes r = a->resource;
    size_t slash = kr_bytes_find(r, '/');
    size_t dot;

    i->read_only = kr_bytes_is(i->verb, "get") || kr_bytes_is(i->verb, "list") ||
                   kr_bytes_is(i->verb, "watch") || kr_bytes_is(i->verb, "head");
    if (r.p[0] == '/') {
        i->path = r;
        i->class = kr_bytes_starts(r, KR_LIT("/api")) || kr_bytes_starts(r, KR_LIT("/openapi"))
                       ? KR_REQUEST_DISCOVERY
                       : KR_REQUEST_OTHER;
        return;
    }
    i->class = KR_REQUEST_RESOURCE;
    i->is_resource = true;
    i->subresource = kr_bytes_skip(r, slash < r.n ? slash + 1 : slash);
    r.n = slash;
    dot = kr_bytes_find(r, '.');
    i->resource = kr_bytes_of(r.p, dot);
    i->group = kr_bytes_skip(r, dot < r.n ? dot + 1 : dot);
    i->connects = kr_bytes_is(i->verb, "connect") || kr_bytes_is(i->subresource, "exec") ||
                  kr_bytes_is(i->subresource, "attach") ||
                  kr_bytes_is(i->subresource, "portforward") ||
                  kr_bytes_is(i->subresource, "proxy");
}

/* Asked about what the fleet view shows. */
static bool is_fleet(const struct asked *a)
{
    return kr_bytes_is(a->q.cluster, "*");
}

/* None for the fleet view: it is no cluster that a project might name, and readers see it, too. */
static void write_rules(struct hub_worker *w, const struct asked *a, struct kr_json_out *out)
{
    char rule[HUB_RULE_MAX];
    enum hub_fit fit;

    kr_json_out_array(out, "rules");
    for (size_t i = 0; !is_fleet(a) && hub_projects_try(w->fleet_config, &a->q, i, rule, &fit);
         i++) {
        kr_json_out_object(out, NULL);
        kr_json_out_text(out, "rule", rule);
        kr_json_out_text(out, "result", hub_fit_text(fit));
        kr_json_out_end(out);
    }
    kr_json_out_end(out);
}

static void write_reason(const struct asked *a, enum hub_verdict verdict, struct kr_json_out *out)
{
    struct kr_buf text = {.max = 4096};

    if (verdict == HUB_ALLOWED) {
        kr_json_out_text(out, "reason", "");
    } else if (is_fleet(a)) {
        kr_json_out_text(out, "reason", HUB_NOT_SHOWN);
    } else if (verdict == HUB_UNKNOWN_TO) {
        kr_json_out_text(out, "reason", "no project gives them anything on that cluster");
    } else {
        hub_denial_write(a->q.who.user, &a->info, &text);
        kr_buf_append_str(&text, ": no project allows it");
        kr_json_out_string(out, "reason", kr_buf_bytes(&text));
    }
    kr_buf_deinit(&text);
}

static int answer(struct hub_worker *w, struct asked *a, struct kr_buf *body)
{
    struct kr_json_out out;
    char rule[HUB_RULE_MAX];
    enum hub_verdict verdict = hub_access_ask(w, &a->q, rule);

    kr_json_out_init(&out, body);
    kr_json_out_object(&out, NULL);
    kr_json_out_bool(&out, "allowed", verdict == HUB_ALLOWED);
    kr_json_out_text(&out, "rule", rule);
    write_reason(a, verdict, &out);
    write_rules(w, a, &out);
    kr_json_out_end(&out);
    return out.rc == 0 ? 200 : 500;
}

int hub_can_i_page(struct hub_worker *w, struct kr_bytes path, struct kr_buf *body,
                   const char **type)
{
    const struct kr_bytes prefix = KR_LIT("/can-i/");
    struct asked a = {.resource = {NULL, 0}};
    struct kr_arena arena;
    int status;

    if (!kr_bytes_starts(path, prefix))
        return 0;
    kr_arena_init(&arena, 1024, ARENA_MAX);
    if (read_question(&a, kr_bytes_skip(path, prefix.n - 1), &arena) != 0) {
        kr_buf_append_str(body, "verb=, resource= and cluster= are needed; also namespace=, name=, "
                                "user=, group=, member-token=true\n");
        status = 400;
    } else {
        fill_info(&a);
        a.q.who.groups = a.groups;
        a.q.info = &a.info;
        *type = "application/json";
        status = answer(w, &a, body);
    }
    kr_arena_deinit(&arena);
    return status;
}
