/* SPDX-License-Identifier: Apache-2.0 */
/* The part of faults.h that remembers requests, so that a test can see what reached the cluster. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "faults.h"

#define SEEN_MAX 200

struct seen {
    struct kr_list link; /* sim_cluster.seen */
    char *text;          /* one JSON object */
};

static void seen_free(struct sim_cluster *c, struct kr_list *node)
{
    struct seen *s = KR_CONTAINER_OF(node, struct seen, link);

    kr_list_remove(node);
    free(s->text);
    free(s);
    c->seen_n--;
}

static struct json_object *text_of(struct kr_bytes b)
{
    return json_object_new_string_len((const char *)b.p, (int)b.n);
}

static struct json_object *headers_of(const struct kr_head *head)
{
    struct json_object *all = json_object_new_array();

    for (size_t i = 0; i < head->n; i++) {
        struct json_object *pair = json_object_new_array();

        json_object_array_add(pair, text_of(head->fields[i].name));
        json_object_array_add(pair, kr_bytes_is(head->fields[i].name, "authorization")
                                        ? json_object_new_string("(not kept)")
                                        : text_of(head->fields[i].value));
        json_object_array_add(all, pair);
    }
    return all;
}

void sim_seen_add(struct sim_cluster *c, const struct sim_request *req, struct json_object *user)
{
    struct json_object *v;
    struct seen *s;

    if (kr_bytes_starts(req->target, KR_LIT("/kubesim/")) || (s = calloc(1, sizeof *s)) == NULL)
        return;
    v = json_object_new_object();
    sim_json_set(v, "method", text_of(req->method));
    sim_json_set(v, "target", text_of(req->target));
    sim_json_set_str(v, "connection", req->user);
    sim_json_set(v, "user", json_object_get(user));
    sim_json_set(v, "headers", headers_of(req->head));
    sim_json_set_int(v, "bodyBytes", (int64_t)req->body.n);
    s->text = strdup(
        json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(v);
    kr_list_append(&c->seen, &s->link);
    if (++c->seen_n > SEEN_MAX)
        seen_free(c, c->seen.next);
}

void sim_seen_list(const struct sim_cluster *c, struct kr_buf *out)
{
    bool first = true;

    kr_buf_append_str(out, "{\"requests\":[");
    KR_LIST_FOREACH(node, &c->seen)
    {
        const struct seen *s = KR_CONTAINER_OF(node, struct seen, link);

        if (s->text == NULL)
            continue;
        kr_buf_printf(out, "%s\n%s", first ? "" : ",", s->text);
        first = false;
    }
    kr_buf_append_str(out, "]}\n");
}

void sim_seen_clear(struct sim_cluster *c)
{
    KR_LIST_FOREACH_SAFE(node, &c->seen)
    {
        seen_free(c, node);
    }
}
