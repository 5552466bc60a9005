/* SPDX-License-Identifier: Apache-2.0 */
/* Pod logs: lines made from the pod's name and their number. Beside kubectl's own parameters
 * (follow, tailLines, limitBytes, timestamps, sinceSeconds, previous) a test may ask for
 *   kubesim-lines=N      how many lines there are (default 20)
 *   kubesim-bytes=N      lines until so many bytes have come
 *   kubesim-interval=MS  time between two lines of follow (default 1000) */
#include <stdio.h>
#include <stdlib.h>

#include "api.h"
#include "base/assert.h"
#include "cells.h"

#define CHUNK (64u * 1024)
#define DEFAULT_LINES 20

struct log {
    struct sim_source source;
    struct sim_cluster *c;
    char name[256];
    char container[64];
    int64_t next; /* number of the next line */
    int64_t last; /* exclusive */
    int64_t left; /* bytes; -1: no limit */
    bool timestamps;
    bool follow;
    bool due; /* the next line of follow has its time */
    int64_t interval_ms;
    struct kr_timer timer;
};

static void print_line(struct log *l, struct kr_buf *out)
{
    static const char *const levels[] = {"info", "info", "debug", "info", "warn"};
    size_t start = out->n;
    char when[32];

    sim_time(l->c->sched->now_wall_ms, when);
    if (l->timestamps)
        (void)kr_buf_printf(out, "%.19s.000000000Z ", when);
    (void)kr_buf_printf(out, "level=%s line=%lld pod=%s container=%s msg=\"a simulated line\"\n",
                        levels[(size_t)l->next % 5], (long long)l->next, l->name, l->container);
    l->next++;
    if (l->left >= 0 && (int64_t)(out->n - start) > l->left)
        out->n = start + (size_t)l->left;
    if (l->left >= 0)
        l->left -= (int64_t)(out->n - start);
}

static enum sim_fill log_fill(struct sim_source *s, struct kr_buf *out)
{
    struct log *l = KR_CONTAINER_OF(s, struct log, source);
    size_t start = out->n;

    while (l->next < l->last && l->left != 0 && out->n - start < CHUNK)
        print_line(l, out);
    if (l->left == 0)
        return SIM_FILL_END;
    if (l->next < l->last)
        return SIM_FILL_MORE;
    if (!l->follow)
        return SIM_FILL_END;
    if (l->due)
        print_line(l, out);
    l->due = false;
    l->last = l->next;
    if (!kr_timer_running(&l->timer))
        (void)kr_timer_start(l->c->sched, &l->timer, l->interval_ms);
    return SIM_FILL_WAIT;
}

static void on_timer(struct kr_timer *t)
{
    struct log *l = KR_CONTAINER_OF(t, struct log, timer);

    l->due = true;
    sim_source_wake(&l->source);
}

static void log_destroy(struct sim_source *s)
{
    struct log *l = KR_CONTAINER_OF(s, struct log, source);

    kr_timer_stop(l->c->sched, &l->timer);
    free(l);
}

static const struct sim_source_ops log_ops = {log_fill, log_destroy};

/* Whether the pod has that container; the first one's name if none was asked for. */
static bool find_container(struct json_object *pod, const char *wanted, char out[64])
{
    struct json_object *all = sim_json_at(pod, "spec.containers");

    for (size_t i = 0; i < sim_json_len(all); i++) {
        const char *name = sim_json_str(json_object_array_get_idx(all, i), "name");

        if (wanted[0] != '\0' && strcmp(name, wanted) != 0)
            continue;
        snprintf(out, 64, "%s", name);
        return true;
    }
    return false;
}

static struct log *log_new(struct sim_call *call)
{
    struct log *l = calloc(1, sizeof *l);
    int64_t tail = sim_param_int(&call->q, "tailLines", -1);

    if (l == NULL)
        return NULL;
    l->source.ops = &log_ops;
    l->c = call->c;
    snprintf(l->name, sizeof l->name, "%s", call->route.name);
    kr_timer_init(&l->timer, on_timer);
    l->last = sim_param_int(&call->q, "kubesim-lines", DEFAULT_LINES);
    l->left = sim_param_int(&call->q, "kubesim-bytes", sim_param_int(&call->q, "limitBytes", -1));
    if (sim_param(&call->q, "kubesim-bytes") != NULL)
        l->last = INT64_MAX;
    else if (tail >= 0 && tail < l->last)
        l->next = l->last - tail;
    l->follow = sim_param_true(&call->q, "follow");
    l->timestamps = sim_param_true(&call->q, "timestamps");
    l->interval_ms = sim_param_int(&call->q, "kubesim-interval", 1000);
    return l;
}

void sim_api_log(struct sim_call *call)
{
    struct sim_obj *o = sim_store_get(call->c, call->route.kind, call->route.key);
    const char *wanted = sim_param_or(&call->q, "container", "");
    struct json_object *pod;
    struct log *l;
    bool found;

    if (o == NULL) {
        sim_fail_not_found(call->out, sim_call_kind(call), call->route.name);
        return;
    }
    pod = sim_rev_tree(call->c, call->route.kind, &o->rev);
    if (sim_json_str(pod, "spec.nodeName")[0] == '\0') { /* it never ran */
        call->out->status = 204;
        json_object_put(pod);
        return;
    }
    l = log_new(call);
    found = l != NULL && find_container(pod, wanted, l->container);
    json_object_put(pod);
    if (!found) {
        if (l != NULL)
            log_destroy(&l->source);
        sim_fail_bad_request(call->out, "container %s is not valid for pod %s", wanted,
                             call->route.name);
        return;
    }
    call->out->content_type = "text/plain";
    call->out->source = &l->source;
}
