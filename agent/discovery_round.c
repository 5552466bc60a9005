/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/discovery_round.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

#define SILENCE_MS 70000
#define BODY_MAX (1024u * 1024)
#define GROUP_MAX (4u * 1024 * 1024)
#define ETAG_MAX 1024
#define VERSIONS_ARENA_MAX (256u * 1024)

#define AGGREGATED                                                                                 \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                        \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

static const char *const paths[] = {"/api", "/apis"};

static void ask_document(struct agent_round *r);
static void ask_version(struct agent_round *r);

/* ---- the end of things */

static void drop_body(struct agent_round *r)
{
    if (r->scanning)
        kr_list_scan_deinit(&r->scan);
    r->scanning = false;
    kr_buf_deinit(&r->body);
}

static void drop_versions(struct agent_round *r)
{
    free(r->versions);
    r->versions = NULL;
    kr_arena_deinit(&r->arena);
    r->in_versions = false;
}

static void drop_all(struct agent_round *r)
{
    drop_body(r);
    drop_versions(r);
    kr_buf_deinit(&r->etag);
    if (r->making)
        agent_types_deinit(&r->next);
    r->making = false;
}

static void fail(struct agent_round *r, const char *why)
{
    char text[sizeof r->why.text];

    snprintf(text, sizeof text, "%s", why);
    drop_all(r);
    r->on_end(r->user, false, text);
}

static void next_document(struct agent_round *r)
{
    if (++r->step < 2)
        ask_document(r);
    else
        r->on_end(r->user, true, "");
}

/* What was read takes the place of what was known. */
static void take_document(struct agent_round *r)
{
    struct agent_document *d = &r->documents[r->step];

    agent_types_deinit(&d->types);
    kr_buf_deinit(&d->etag);
    d->types = r->next;
    d->etag = r->etag;
    d->known = true;
    r->etag = (struct kr_buf){.max = ETAG_MAX};
    r->making = false;
    r->changed = true;
    drop_all(r);
    next_document(r);
}

/* ---- what comes */

static int on_group(void *user, struct kr_bytes item)
{
    struct agent_round *r = user;

    return agent_discovery_group(&r->next, item, &r->documents[r->step].types, &r->why);
}

static void on_skipped(void *user, uint64_t n)
{
    (void)user, (void)n; /* a group of megabytes is none */
}

static const struct kr_list_scan_ops scan_ops = {on_group, on_skipped};

static bool contains(struct kr_bytes text, struct kr_bytes word)
{
    for (size_t i = 0; i + word.n <= text.n; i++) {
        if (memcmp(text.p + i, word.p, word.n) == 0)
            return true;
    }
    return false;
}

static void on_head(void *user, const struct kr_head *head)
{
    struct agent_round *r = user;

    r->status = head->status;
    if (head->status != 200)
        return;
    kr_buf_init(&r->body, BODY_MAX);
    if (r->in_versions)
        return;
    r->old_form =
        !contains(kr_head_get(head, KR_LIT("content-type")), KR_LIT("as=APIGroupDiscoveryList"));
    agent_types_init(&r->next);
    r->making = true;
    kr_buf_init(&r->etag, ETAG_MAX);
    if (r->old_form)
        return;
    kr_buf_append(&r->etag, kr_head_get(head, KR_LIT("etag")));
    r->scanning = kr_list_scan_init(&r->scan, &scan_ops, r, GROUP_MAX) == 0;
}

static void on_body(void *user, struct kr_bytes in)
{
    struct agent_round *r = user;

    agent_get_consumed(&r->get, in.n);
    if (r->status != 200)
        return;
    if (r->scanning)
        kr_list_scan_feed(&r->scan, in); /* a failure sticks until kr_list_scan_end */
    else
        kr_buf_append(&r->body, in); /* what does not fit is no document: it will not parse */
}

/* ---- old documents */

static void version_done(struct agent_round *r, int status)
{
    const struct agent_group_version *gv = &r->versions[r->version_at];
    int rc = status == 200
                 ? agent_discovery_resources(&r->next, kr_buf_bytes(&r->body), gv, &r->why)
                 : KR_EUNAVAILABLE;

    if (rc == KR_EUNAVAILABLE || rc == KR_EPROTO) /* an aggregated API whose server is away */
        rc = agent_discovery_keep(&r->next, &r->documents[r->step].types, gv->group, gv->version);
    drop_body(r);
    if (rc != 0) {
        fail(r, kr_err_text(rc));
        return;
    }
    if (++r->version_at < r->version_count)
        ask_version(r);
    else
        take_document(r);
}

static void old_document_done(struct agent_round *r)
{
    int rc = KR_ENOMEM;

    kr_arena_init(&r->arena, 4096, VERSIONS_ARENA_MAX);
    r->versions = calloc(AGENT_GROUP_VERSIONS_MAX, sizeof *r->versions);
    if (r->versions != NULL)
        rc = agent_discovery_versions(kr_buf_bytes(&r->body), &r->arena, r->versions,
                                      AGENT_GROUP_VERSIONS_MAX, &r->version_count, &r->why);
    drop_body(r);
    r->version_at = 0;
    r->in_versions = true;
    if (rc != 0)
        fail(r, r->why.text[0] != '\0' ? r->why.text : kr_err_text(rc));
    else if (r->version_count == 0)
        take_document(r);
    else
        ask_version(r);
}

/* ---- how it ended */

static void document_done(struct agent_round *r)
{
    char why[64];
    int rc;

    if (r->status == 304 && r->documents[r->step].known) {
        next_document(r);
    } else if (r->status != 200) {
        snprintf(why, sizeof why, "%s: the API server says %d", paths[r->step], r->status);
        fail(r, why);
    } else if (r->old_form) {
        old_document_done(r);
    } else {
        rc = r->scanning ? kr_list_scan_end(&r->scan, &r->why) : KR_ENOMEM;
        if (rc != 0)
            fail(r, r->why.text[0] != '\0' ? r->why.text : kr_err_text(rc));
        else
            take_document(r);
    }
}

static void on_done(void *user, int rc, const char *why)
{
    struct agent_round *r = user;

    if (rc != 0)
        fail(r, why);
    else if (r->in_versions)
        version_done(r, r->status);
    else
        document_done(r);
}

static const struct agent_get_ops get_ops = {on_head, on_body, on_done};

/* ---- asking */

static void ask(struct agent_round *r, const char *path, const char *accept, struct kr_bytes etag)
{
    struct agent_get_request rq = {
        .path = kr_bytes_str(path), .accept = accept, .etag = etag, .silence_ms = SILENCE_MS};

    r->status = 0;
    if (agent_get_start(&r->get, &rq) != 0)
        fail(r, "out of memory");
}

static void ask_document(struct agent_round *r)
{
    const struct agent_document *d = &r->documents[r->step];

    ask(r, paths[r->step], AGGREGATED, kr_buf_bytes(&d->etag));
}

static void ask_version(struct agent_round *r)
{
    const struct agent_group_version *gv = &r->versions[r->version_at];
    char path[600];

    if (gv->group.n > 253 || gv->version.n > 253) {
        fail(r, "a name of a group that is too long");
        return;
    }
    snprintf(path, sizeof path, gv->group.n == 0 ? "/api/%s%s" : "/apis/%s/%s",
             (const char *)gv->group.p, (const char *)gv->version.p);
    ask(r, path, "application/json", (struct kr_bytes){NULL, 0});
}

void agent_round_init(struct agent_round *r, struct agent_core *c,
                      void (*on_end)(void *user, bool ok, const char *why), void *user)
{
    *r = (struct agent_round){.c = c, .on_end = on_end, .user = user};
    agent_get_init(&r->get, c, &get_ops, r);
}

void agent_round_start(struct agent_round *r)
{
    r->step = 0;
    r->changed = false;
    r->why.text[0] = '\0';
    ask_document(r);
}

bool agent_round_active(const struct agent_round *r)
{
    return agent_get_active(&r->get);
}

void agent_round_deinit(struct agent_round *r)
{
    if (r->c == NULL)
        return;
    agent_get_deinit(&r->get);
    drop_all(r);
    for (size_t i = 0; i < 2; i++) {
        agent_types_deinit(&r->documents[i].types);
        kr_buf_deinit(&r->documents[i].etag);
    }
}
