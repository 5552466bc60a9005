/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "status.h"

#define FAULTS_MAX 64

static const struct {
    const char *name;
    enum sim_fault_action action;
} actions[] = {
    {"hang", SIM_FAULT_HANG},     {"delay", SIM_FAULT_DELAY},
    {"status", SIM_FAULT_STATUS}, {"truncate", SIM_FAULT_TRUNCATE},
    {"reset", SIM_FAULT_RESET},   {"close", SIM_FAULT_CLOSE},
    {"goaway", SIM_FAULT_GOAWAY}, {"error-event", SIM_FAULT_ERROR_EVENT},
    {"end", SIM_FAULT_END},
};
#define ACTIONS (sizeof actions / sizeof *actions)

static enum sim_fault_action action_of(const char *name)
{
    for (size_t i = 0; i < ACTIONS; i++)
        if (strcmp(actions[i].name, name) == 0)
            return actions[i].action;
    return SIM_FAULT_NONE;
}

static const char *action_name(enum sim_fault_action a)
{
    for (size_t i = 0; i < ACTIONS; i++)
        if (actions[i].action == a)
            return actions[i].name;
    return "none";
}

int sim_fault_add(struct sim_cluster *c, struct json_object *v, const char **why)
{
    struct sim_fault *f;
    size_t n = 0;

    KR_LIST_FOREACH(node, &c->faults)
    {
        n++;
    }
    *why = "unknown action";
    if (action_of(sim_json_str(v, "action")) == SIM_FAULT_NONE)
        return KR_EINVAL;
    *why = "too many faults";
    if (n >= FAULTS_MAX || (f = calloc(1, sizeof *f)) == NULL)
        return KR_EFULL;
    f->action = action_of(sim_json_str(v, "action"));
    snprintf(f->path, sizeof f->path, "%s", sim_json_str(v, "path"));
    snprintf(f->method, sizeof f->method, "%s", sim_json_str(v, "method"));
    snprintf(f->reason, sizeof f->reason, "%s", sim_json_str(v, "reason"));
    snprintf(f->message, sizeof f->message, "%s", sim_json_str(v, "message"));
    f->ms = sim_json_int(v, "ms", 1000);
    f->bytes = sim_json_int(v, "bytes", 0);
    f->status = (int)sim_json_int(v, "status", f->action == SIM_FAULT_ERROR_EVENT ? 410 : 503);
    f->retry_after = (int)sim_json_int(v, "retryAfter", 0);
    f->times = (uint64_t)sim_json_int(v, "times", 1);
    f->forever = f->times == 0;
    kr_list_append(&c->faults, &f->link);
    return 0;
}

void sim_faults_clear(struct sim_cluster *c)
{
    KR_LIST_FOREACH_SAFE(node, &c->faults)
    {
        kr_list_remove(node);
        free(KR_CONTAINER_OF(node, struct sim_fault, link));
    }
}

void sim_faults_list(const struct sim_cluster *c, struct kr_buf *out)
{
    bool first = true;

    kr_buf_append_str(out, "{\"faults\":[");
    KR_LIST_FOREACH(node, &c->faults)
    {
        const struct sim_fault *f = KR_CONTAINER_OF(node, struct sim_fault, link);

        kr_buf_append_str(out, first ? "{\"path\":" : ",{\"path\":");
        sim_json_quote(out, kr_bytes_str(f->path));
        kr_buf_printf(out, ",\"action\":\"%s\",\"left\":%lld,\"used\":%llu}",
                      action_name(f->action), f->forever ? -1LL : (long long)f->times,
                      (unsigned long long)f->used);
        first = false;
    }
    kr_buf_append_str(out, "]}\n");
}

struct sim_fault sim_fault_take(struct sim_cluster *c, const struct sim_request *req)
{
    KR_LIST_FOREACH(node, &c->faults)
    {
        struct sim_fault *f = KR_CONTAINER_OF(node, struct sim_fault, link);

        if ((!f->forever && f->times == 0) || kr_bytes_starts(req->target, KR_LIT("/kubesim/")) ||
            !kr_bytes_starts(req->target, kr_bytes_str(f->path)) ||
            (f->method[0] != '\0' && !kr_bytes_is(req->method, f->method)))
            continue;
        f->times -= !f->forever;
        f->used++;
        return *f;
    }
    return (struct sim_fault){.action = SIM_FAULT_NONE};
}

/* ---- a body that is cut */

struct cut { /* passes a body on up to a point */
    struct sim_source source;
    struct sim_source *inner; /* NULL: there is only `first` */
    struct kr_buf first;
    struct kr_buf held; /* a line that is not complete yet */
    int64_t left;       /* bytes until the cut */
    bool by_line;
    char *tail;  /* what comes at the cut; NULL: nothing */
    bool broken; /* the cut is no clean end */
    bool inner_over;
};

static void cut_wake(void *owner)
{
    sim_source_wake(owner);
}

static enum sim_fill cut_end(struct cut *c, struct kr_buf *out)
{
    if (c->tail != NULL)
        (void)kr_buf_append_str(out, c->tail);
    return c->broken ? SIM_FILL_BREAK : SIM_FILL_END;
}

/* Bytes first, lines later: by_line only moves the cut to the end of the line it falls into. */
static size_t cut_length(const struct cut *c)
{
    size_t n = c->left > 0 ? (size_t)c->left : 0;
    const uint8_t *end;

    if (n > c->held.n)
        return c->held.n;
    if (!c->by_line || n == 0)
        return n;
    end = memchr(c->held.p + n - 1, '\n', c->held.n - (n - 1));
    return end != NULL ? (size_t)(end - c->held.p) + 1 : c->held.n;
}

static enum sim_fill cut_fill(struct sim_source *s, struct kr_buf *out)
{
    struct cut *c = KR_CONTAINER_OF(s, struct cut, source);
    enum sim_fill state = SIM_FILL_END;
    size_t n;

    if (c->first.n != 0) {
        (void)kr_buf_append(&c->held, kr_buf_bytes(&c->first));
        c->first.n = 0;
    }
    if (c->inner != NULL && c->held.n == 0 && !c->inner_over)
        state = c->inner->ops->fill(c->inner, &c->held);
    else if (c->inner != NULL && !c->inner_over)
        state = SIM_FILL_MORE;
    c->inner_over = state == SIM_FILL_END || state == SIM_FILL_BREAK;
    n = cut_length(c);
    (void)kr_buf_append(out, kr_bytes_of(c->held.p, n));
    c->left -= (int64_t)n;
    kr_buf_drop(&c->held, n);
    if (c->left <= 0)
        return cut_end(c, out);
    return state;
}

static void cut_destroy(struct sim_source *s)
{
    struct cut *c = KR_CONTAINER_OF(s, struct cut, source);

    sim_source_destroy(c->inner);
    kr_buf_deinit(&c->first);
    kr_buf_deinit(&c->held);
    free(c->tail);
    free(c);
}

static const struct sim_source_ops cut_ops = {cut_fill, cut_destroy};

static char *error_event(const struct sim_fault *f)
{
    struct json_object *v =
        sim_status_tree(&(struct sim_failure){.code = f->status,
                                              .reason = f->reason[0] != '\0' ? f->reason
                                                        : f->status == 410   ? "Expired"
                                                                             : "InternalError",
                                              .retry_after = f->retry_after},
                        f->message[0] != '\0' ? f->message : "too old resource version: 1 (2)");
    char *text = NULL;

    if (asprintf(&text, "{\"type\":\"ERROR\",\"object\":%s}\n",
                 json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN)) < 0)
        text = NULL;
    json_object_put(v);
    return text;
}

static void wrap(const struct sim_fault *f, struct sim_response *out)
{
    struct cut *c = calloc(1, sizeof *c);

    if (c == NULL)
        return;
    c->source.ops = &cut_ops;
    c->inner = out->source;
    c->first = out->body;
    kr_buf_init(&out->body, SIM_OUT_MAX);
    kr_buf_init(&c->held, SIM_OUT_MAX);
    c->left = f->bytes;
    c->by_line = f->action != SIM_FAULT_TRUNCATE;
    c->broken = f->action == SIM_FAULT_TRUNCATE;
    if (f->action == SIM_FAULT_ERROR_EVENT)
        c->tail = error_event(f);
    if (c->inner != NULL) {
        c->inner->wake = cut_wake;
        c->inner->wake_owner = &c->source;
    }
    out->source = &c->source;
}

void sim_fault_apply(const struct sim_fault *f, struct sim_response *out)
{
    if (f->action == SIM_FAULT_STATUS) {
        sim_source_destroy(out->source);
        out->source = NULL;
        sim_fail(out,
                 &(struct sim_failure){.code = f->status,
                                       .reason = f->reason[0] != '\0' ? f->reason : NULL,
                                       .retry_after = f->retry_after},
                 "%s", f->message[0] != '\0' ? f->message : "a fault that was asked for");
    } else if (f->action == SIM_FAULT_TRUNCATE || f->action == SIM_FAULT_ERROR_EVENT ||
               f->action == SIM_FAULT_END) {
        wrap(f, out);
    }
}
