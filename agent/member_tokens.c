/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/member_tokens.h"

#include <stdlib.h>

#include "agent/local_get.h"
#include "base/assert.h"
#include "base/err.h"
#include "base/json.h"
#include "base/map.h"
#include "certs/hmac.h"

#define TOKENS_MAX 1000
#define GOOD_FOR_MS 60000
#define ANSWER_MAX (64u * 1024)
#define SILENCE_MS 10000
#define PATH "/apis/authentication.k8s.io/v1/tokenreviews"

struct verdict {
    struct agent_member_tokens *all;
    uint8_t hash[KR_HMAC_SIZE]; /* the key in the map */
    struct agent_get get;
    struct kr_buf answer;
    int status;
    bool known; /* rc and user are true until then */
    int rc;
    struct kr_buf user;
    int64_t until_ms;
    struct kr_list waits; /* agent_member_wait.link */
};

struct agent_member_tokens {
    struct agent_core *c;
    struct kr_map by_hash;
    uint8_t secret[KR_HMAC_SIZE];
};

static void verdict_free(struct verdict *v)
{
    agent_get_deinit(&v->get);
    kr_buf_deinit(&v->answer);
    kr_buf_deinit(&v->user);
    free(v);
}

static void drop(struct verdict *v)
{
    kr_map_erase(&v->all->by_hash, kr_bytes_of(v->hash, sizeof v->hash));
    verdict_free(v);
}

static void tell_all(struct verdict *v)
{
    struct kr_list *node;

    while ((node = kr_list_pop(&v->waits)) != NULL) {
        struct agent_member_wait *w = KR_CONTAINER_OF(node, struct agent_member_wait, link);

        w->on_verdict(w, v->rc, kr_buf_bytes(&v->user));
    }
}

/* ---- the review ---- */

static void on_head(void *user, const struct kr_head *head)
{
    struct verdict *v = user;

    v->status = head->status;
}

static void on_body(void *user, struct kr_bytes in)
{
    struct verdict *v = user;

    if (kr_buf_append(&v->answer, in) != 0)
        v->status = 0;
    agent_get_consumed(&v->get, in.n);
}

/* {"status": {"authenticated": true, "user": {"username": ...}}} */
static int read_review(struct verdict *v)
{
    struct kr_json *doc;
    const struct kr_json *status;
    struct kr_bytes name = {NULL, 0};
    bool good = false;

    if (v->status != 200 && v->status != 201)
        return KR_EUNAVAILABLE;
    if (kr_json_parse(kr_buf_bytes(&v->answer), &doc, NULL) != 0)
        return KR_EPROTO;
    status = kr_json_get(doc, "status");
    if (!kr_json_bool(kr_json_get(status, "authenticated"), &good))
        good = false;
    kr_json_string(kr_json_get(kr_json_get(status, "user"), "username"), &name);
    if (good && (name.n == 0 || kr_buf_append(&v->user, name) != 0))
        good = false;
    kr_json_destroy(doc);
    return good ? 0 : KR_EDENIED;
}

static void on_done(void *user, int rc, const char *why)
{
    struct verdict *v = user;

    v->rc = rc == 0 ? read_review(v) : rc;
    kr_buf_deinit(&v->answer);
    if (v->rc != 0 && v->rc != KR_EDENIED)
        KR_LOG_AT(v->all->c->log, KR_LOG_WARN, "token-review-failed",
                  KR_S("reason", rc != 0 ? why : "unexpected answer"), KR_I("status", v->status));
    v->known = v->rc == 0 || v->rc == KR_EDENIED;
    v->until_ms = v->all->c->sched->now_ms + GOOD_FOR_MS;
    tell_all(v);
    if (!v->known)
        v->until_ms = 0; /* the next one asks again */
}

static const struct agent_get_ops get_ops = {on_head, on_body, on_done, NULL};

static int ask(struct verdict *v, struct kr_bytes token)
{
    struct agent_get_request rq = {
        .path = KR_LIT(PATH), .accept = "application/json", .silence_ms = SILENCE_MS};
    struct kr_buf body = {.max = 4 * KR_TOKEN_MAX};
    struct kr_json_out w;
    int rc;

    kr_json_out_init(&w, &body);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "apiVersion", "authentication.k8s.io/v1");
    kr_json_out_text(&w, "kind", "TokenReview");
    kr_json_out_object(&w, "spec");
    kr_json_out_string(&w, "token", token);
    kr_json_out_end(&w);
    kr_json_out_end(&w);
    rq.body = kr_buf_bytes(&body);
    v->status = 0;
    kr_buf_deinit(&v->user);
    kr_buf_init(&v->answer, ANSWER_MAX);
    kr_buf_init(&v->user, KR_TEXT_MAX);
    rc = w.rc == 0 ? agent_get_start(&v->get, &rq) : w.rc;
    if (body.n != 0)
        explicit_bzero(body.p, body.n);
    kr_buf_deinit(&body);
    return rc;
}

/* ---- all of them ---- */

struct agent_member_tokens *agent_member_tokens_create(struct agent_core *c)
{
    struct agent_member_tokens *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->c = c;
    kr_map_init(&m->by_hash, TOKENS_MAX);
    kr_rand_secret(m->secret, sizeof m->secret);
    return m;
}

void agent_member_tokens_destroy(struct agent_member_tokens *m)
{
    struct verdict *v;
    size_t pos = 0;

    if (m == NULL)
        return;
    while ((v = kr_map_next(&m->by_hash, &pos, NULL)) != NULL)
        verdict_free(v);
    kr_map_deinit(&m->by_hash);
    free(m);
}

static void make_room(struct agent_member_tokens *m)
{
    struct verdict *v;
    size_t pos = 0;

    if (m->by_hash.count < TOKENS_MAX)
        return;
    while ((v = kr_map_next(&m->by_hash, &pos, NULL)) != NULL) {
        if (!agent_get_active(&v->get) && kr_list_empty(&v->waits) &&
            v->until_ms <= m->c->sched->now_ms)
            drop(v);
    }
}

static struct verdict *add(struct agent_member_tokens *m, const uint8_t hash[KR_HMAC_SIZE])
{
    struct verdict *v;

    make_room(m);
    v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->all = m;
    memcpy(v->hash, hash, KR_HMAC_SIZE);
    kr_list_init(&v->waits);
    agent_get_init(&v->get, m->c, &get_ops, v);
    if (kr_map_put(&m->by_hash, kr_bytes_of(v->hash, sizeof v->hash), v) == 0)
        return v;
    verdict_free(v);
    return NULL;
}

void agent_member_tokens_judge(struct agent_member_tokens *m, struct kr_bytes token,
                               struct agent_member_wait *w)
{
    const struct kr_bytes nobody = {NULL, 0};
    uint8_t hash[KR_HMAC_SIZE];
    struct verdict *v = NULL;

    if (kr_hmac(m->secret, token, hash) == 0) {
        v = kr_map_get(&m->by_hash, kr_bytes_of(hash, sizeof hash));
        if (v == NULL)
            v = add(m, hash);
    }
    if (v == NULL) {
        w->on_verdict(w, KR_EFULL, nobody);
        return;
    }
    if (v->known && m->c->sched->now_ms < v->until_ms) {
        w->on_verdict(w, v->rc, kr_buf_bytes(&v->user));
        return;
    }
    v->known = false;
    if (!agent_get_active(&v->get) && ask(v, token) != 0) {
        w->on_verdict(w, KR_ENOMEM, nobody);
        return;
    }
    if (v->known) /* it was answered at once */
        w->on_verdict(w, v->rc, kr_buf_bytes(&v->user));
    else
        kr_list_append(&v->waits, &w->link);
}
