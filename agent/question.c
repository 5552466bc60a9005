/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/question.h"

#include <stdlib.h>
#include <string.h>

#define PATH_LIMIT (32u * 1024)
#define PAGE "500"
#define LIST_SILENCE_MS 70000   /* kube-apiserver gives up after 60 s itself */
#define STREAM_SILENCE_MS 30000 /* initial events do not pause */
#define WATCH_SLACK_MS 30000
#define STREAMS_SINCE_MINOR 30 /* 1.27 to 1.29 knew it as alpha; older ones ignore the words */

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
#define PLAIN "application/json"

static int add_timeout(struct kr_buf *path, int64_t s)
{
    return kr_buf_printf(path, "timeoutSeconds=%lld&", (long long)s);
}

static int add_page(struct kr_buf *path, const struct agent_question *q)
{
    int rc = q->whole ? 0 : kr_buf_append_str(path, "limit=" PAGE "&");

    return rc == 0 && q->cont.n != 0 ? agent_path_param(path, "continue", q->cont) : rc;
}

static int add_watch(struct kr_buf *path, const struct agent_question *q)
{
    int rc = kr_buf_append_str(path, "watch=true&allowWatchBookmarks=true&");

    if (rc == 0 && q->kind == AGENT_ASK_STREAM)
        rc = kr_buf_append_str(
            path, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=&");
    else if (rc == 0)
        rc = agent_path_param(path, "resourceVersion", q->version);
    return rc == 0 ? add_timeout(path, q->timeout_s) : rc;
}

static int build(struct kr_buf *path, const struct agent_question *q)
{
    const char *include = q->kind == AGENT_ASK_VERSION ? "None"
                          : q->metadata_only           ? "Metadata"
                                                       : "Object";
    int rc = agent_target_path(q->target, path);

    if (rc == 0 && q->kind == AGENT_ASK_VERSION)
        rc = kr_buf_append_str(path, "limit=1&");
    else if (rc == 0 && q->kind == AGENT_ASK_PAGE)
        rc = add_page(path, q);
    else if (rc == 0)
        rc = add_watch(path, q);
    if (rc == 0 && !q->plain)
        rc = kr_buf_printf(path, "includeObject=%s&", include);
    if (rc == 0)
        path->n--; /* the last '&' or '?' */
    return rc;
}

static int64_t silence_ms(const struct agent_question *q)
{
    switch (q->kind) {
    case AGENT_ASK_STREAM:
        return STREAM_SILENCE_MS;
    case AGENT_ASK_WATCH:
        return q->timeout_s * 1000 + WATCH_SLACK_MS;
    default:
        return LIST_SILENCE_MS;
    }
}

int agent_question_ask(const struct agent_question *q, struct agent_get *get)
{
    struct kr_buf path = {.max = PATH_LIMIT};
    struct agent_get_request rq = {.accept = q->plain ? PLAIN : TABLE, .silence_ms = silence_ms(q)};
    int rc = build(&path, q);

    rq.path = kr_buf_bytes(&path);
    if (rc == 0)
        rc = agent_get_start(get, &rq);
    kr_buf_deinit(&path);
    return rc;
}

bool agent_server_streams(const char *version)
{
    char *end;

    if (strncmp(version, "v1.", 3) != 0)
        return true;
    return strtoul(version + 3, &end, 10) >= STREAMS_SINCE_MINOR || end == version + 3;
}
