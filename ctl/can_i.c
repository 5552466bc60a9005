/* SPDX-License-Identifier: Apache-2.0 */
/* can-i and explain: what the hub's rules say to a request that is only thought of. */
#include "base/err.h"
#include "ctl/registry.h"
#include "kube/json_scan.h"

#define BODY_MAX (4u << 20)
#define PATH_MAX_ 900 /* what a call takes */
#define CELL 256

static const struct ctl_option options[] = {
    CTL_SOCKET_OPTION,
    {"user", CTL_ONE, "NAME", "who asks, as the hub names them"},
    {"group", CTL_MANY, "NAME", "a group of theirs"},
    {"member-token", CTL_SWITCH, NULL, "a token of the cluster's own service accounts asks"},
    {"cluster", CTL_REQUIRED, "NAME", "which cluster; * for the fleet view"},
    {"namespace", CTL_ONE, "NAME", "which namespace; not given: all, or the cluster scope"},
    {"name", CTL_ONE, "NAME", "which object"},
};

/* "/key=value", percent-encoded. */
static int add(struct kr_buf *path, const char *key, const char *value)
{
    int rc = kr_buf_printf(path, "/%s=", key);

    for (; *value != '\0' && rc == 0; value++) {
        uint8_t c = (uint8_t)*value;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_';

        rc = kr_buf_printf(path, plain ? "%c" : "%%%02X", c);
    }
    return rc;
}

static int add_option(const struct ctl_call *call, struct kr_buf *path, const char *name)
{
    const char *value = ctl_get(call, name);

    return value != NULL ? add(path, name, value) : 0;
}

static int make_path(const struct ctl_call *call, struct kr_buf *path, struct kr_note *why)
{
    static const char *const single[] = {"user", "cluster", "namespace", "name"};
    size_t n;
    const char *const *groups = ctl_get_all(call, "group", &n);
    int rc = kr_buf_append_str(path, "/can-i");

    if (rc == 0)
        rc = add(path, "verb", call->arg);
    if (rc == 0)
        rc = add(path, "resource", call->arg2);
    for (size_t i = 0; i < sizeof single / sizeof single[0] && rc == 0; i++)
        rc = add_option(call, path, single[i]);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add(path, "group", groups[i]);
    if (rc == 0 && ctl_has(call, "member-token"))
        rc = kr_buf_append_str(path, "/member-token=true");
    if (rc == 0)
        rc = kr_buf_append(path, kr_bytes_of("", 1));
    return rc != 0 ? kr_note_set(why, KR_ETOOBIG, "the question is too long") : 0;
}

static int ask(const struct ctl_call *call, struct kr_buf *body, struct kr_note *why)
{
    struct kr_buf path = {.max = PATH_MAX_};
    int rc = 0;

    if ((ctl_get(call, "user") == NULL) != ctl_has(call, "member-token"))
        rc = kr_note_set(why, KR_EINVAL, "give --user or --member-token");
    if (rc == 0)
        rc = make_path(call, &path, why);
    if (rc == 0)
        rc = ctl_registry_call(call, "GET", (const char *)path.p, body, why);
    kr_buf_deinit(&path);
    return rc;
}

/* Texts of rules have spaces. */
static void text_of(struct kr_bytes object, const char *name, char out[CELL])
{
    struct kr_buf text = {.max = CELL};
    struct kr_bytes value;
    size_t n = 0;

    if (kr_scan_find(object, name, &value))
        kr_scan_string(value, &text);
    for (; n < text.n && n + 1 < CELL; n++)
        out[n] = text.p[n] >= ' ' && text.p[n] < 0x7f ? (char)text.p[n] : '?';
    out[n] = '\0';
    kr_buf_deinit(&text);
}

static int run_can_i(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_buf body = {.max = BODY_MAX};
    char reason[CELL];
    int rc = ask(call, &body, why);

    if (rc == 0) {
        bool allowed = ctl_registry_true(kr_buf_bytes(&body), "allowed");

        text_of(kr_buf_bytes(&body), allowed ? "rule" : "reason", reason);
        fprintf(call->out, "%s (%s)\n", allowed ? "yes" : "no", reason);
        if (!allowed)
            rc = kr_note_set(why, KR_EDENIED, "not allowed");
    }
    kr_buf_deinit(&body);
    return rc;
}

static void print_rules(FILE *out, struct kr_bytes body)
{
    struct kr_bytes rules;
    struct kr_bytes rule;
    struct kr_scan it;
    char name[CELL];
    char result[CELL];

    if (!kr_scan_find(body, "rules", &rules) || !kr_scan_array(rules, &it))
        return;
    while (kr_scan_element(&it, &rule)) {
        text_of(rule, "rule", name);
        text_of(rule, "result", result);
        fprintf(out, "  %-32s %s\n", name, result);
    }
}

static int run_explain(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_buf body = {.max = BODY_MAX};
    char reason[CELL];
    int rc = ask(call, &body, why);

    if (rc == 0) {
        bool allowed = ctl_registry_true(kr_buf_bytes(&body), "allowed");

        text_of(kr_buf_bytes(&body), allowed ? "rule" : "reason", reason);
        fprintf(call->out, "%s: %s\n", allowed ? "allowed" : "denied", reason);
        print_rules(call->out, kr_buf_bytes(&body));
    }
    kr_buf_deinit(&body);
    return rc;
}

const struct ctl_command ctl_can_i = {
    .words = "can-i",
    .summary = "say whether the hub's rules allow something, and by which rule",
    .arg = "VERB",
    .arg2 = "RESOURCE",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_can_i,
};

const struct ctl_command ctl_explain = {
    .words = "explain",
    .summary = "say what each rule of the hub says to something",
    .arg = "VERB",
    .arg2 = "RESOURCE",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run_explain,
};
