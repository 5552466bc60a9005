/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/status.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/json.h"

#define MESSAGE_MAX 4096
#define WARNING_MAX 1024

static const struct {
    const char *name;
    int code;
    const char *reason;
    enum kr_retry retry;
    const char *leg;
    const char *text;
} cases[] = {
#define X(id, code, reason, retry, leg, text) {#id, code, reason, KR_RETRY_##retry, leg, text},
    KR_CASES(X)
#undef X
};

static void write_details(struct kr_json_out *w, const struct kr_status *st)
{
    kr_json_out_object(w, "details");
    if (st->name.n != 0)
        kr_json_out_string(w, "name", st->name);
    if (st->group.n != 0)
        kr_json_out_string(w, "group", st->group);
    if (st->kind.n != 0)
        kr_json_out_string(w, "kind", st->kind);
    if (st->cause_count != 0) {
        kr_json_out_array(w, "causes");
        for (size_t i = 0; i < st->cause_count; i++) {
            kr_json_out_object(w, NULL);
            kr_json_out_text(w, "reason", st->causes[i].reason);
            kr_json_out_string(w, "message", st->causes[i].message);
            if (st->causes[i].field.n != 0)
                kr_json_out_string(w, "field", st->causes[i].field);
            kr_json_out_end(w);
        }
        kr_json_out_end(w);
    }
    if (st->retry_after_s != 0)
        kr_json_out_int(w, "retryAfterSeconds", st->retry_after_s);
    kr_json_out_end(w);
}

int kr_status_write(struct kr_buf *out, const struct kr_status *st)
{
    struct kr_json_out w;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "Status");
    kr_json_out_text(&w, "apiVersion", "v1");
    kr_json_out_object(&w, "metadata");
    kr_json_out_end(&w);
    kr_json_out_text(&w, "status", "Failure");
    kr_json_out_string(&w, "message", st->message);
    kr_json_out_text(&w, "reason", st->reason);
    write_details(&w, st);
    kr_json_out_int(&w, "code", st->code);
    kr_json_out_end(&w);
    return w.rc;
}

/* The text of a place holder at the front of `text`, and its length; NULL: none is there. */
static const struct kr_bytes *place(const char *text, const struct kr_case_facts *f, size_t *n)
{
    if (strncmp(text, "{cluster}", 9) == 0) {
        *n = 9;
        return &f->cluster;
    }
    if (strncmp(text, "{detail}", 8) == 0) {
        *n = 8;
        return &f->detail;
    }
    return NULL;
}

int kr_case_message(enum kr_case which, const struct kr_case_facts *facts, struct kr_buf *out)
{
    const char *text;
    int rc = 0;

    KR_ASSERT(which < KR_CASE_COUNT);
    text = cases[which].text;
    while (*text != '\0' && rc == 0) {
        size_t n = strcspn(text, "{");
        const struct kr_bytes *value;

        if (n != 0) {
            rc = kr_buf_append(out, kr_bytes_of(text, n));
            text += n;
            continue;
        }
        value = place(text, facts, &n);
        rc = value != NULL ? kr_buf_append(out, *value) : kr_buf_append(out, kr_bytes_of(text, 1));
        text += value != NULL ? n : 1;
    }
    return rc;
}

unsigned kr_retry_grow_s(unsigned away_s)
{
    uint64_t micro = 1000000;

    for (unsigned i = 0; i < away_s && micro < 30000000; i++)
        micro = micro * 1061837 / 1000000; /* e^0.06 */
    return micro >= 30000000 ? 30 : (unsigned)(micro / 1000000);
}

static unsigned retry_after(enum kr_retry rule, const struct kr_case_facts *f)
{
    unsigned busy = f->busy_s == 0 ? 1 : f->busy_s;

    switch (rule) {
    case KR_RETRY_ONE:
        return f->request != NULL && f->request->is_resource ? 1 : 0;
    case KR_RETRY_GROW:
        return kr_retry_grow_s(f->away_s);
    case KR_RETRY_BUSY:
        return busy > 32 ? 32 : busy;
    case KR_RETRY_NONE:
        break;
    }
    return 0;
}

int kr_case_write(enum kr_case which, const struct kr_case_facts *facts,
                  struct kr_case_answer *answer, struct kr_buf *body, struct kr_buf *warning)
{
    struct kr_buf message;
    struct kr_status st;
    int rc;

    KR_ASSERT(which < KR_CASE_COUNT);
    *answer = (struct kr_case_answer){
        .code = cases[which].code,
        .reason = cases[which].reason,
        .retry_after_s = retry_after(cases[which].retry, facts),
        .leg = cases[which].leg,
    };
    kr_buf_init(&message, MESSAGE_MAX);
    rc = kr_case_message(which, facts, &message);
    if (rc == KR_ETOOBIG)
        rc = 0; /* the text is cut */
    st = (struct kr_status){
        .code = answer->code,
        .reason = answer->reason,
        .message = kr_buf_bytes(&message),
        .group = KR_LIT("kuberelay.io"),
        .kind = KR_LIT("clusters"),
        .name = facts->cluster,
        .retry_after_s = answer->retry_after_s,
    };
    if (which == KR_CASE_DENIED && facts->request != NULL && facts->request->is_resource) {
        st.group = facts->request->group; /* what is denied is the object, not the cluster */
        st.kind = facts->request->resource;
        st.name = facts->request->name;
    }
    if (rc == 0 && body != NULL)
        rc = kr_status_write(body, &st);
    if (rc == 0 && warning != NULL)
        rc = kr_warning_write(warning, st.message, answer->leg);
    kr_buf_deinit(&message);
    return rc;
}

int kr_case_object(const struct kr_request_info *ri, struct kr_buf *out)
{
    return kr_buf_printf(out, "%.*s%s%.*s \"%.*s\"", (int)ri->resource.n,
                         (const char *)ri->resource.p, ri->group.n != 0 ? "." : "",
                         (int)ri->group.n, (const char *)ri->group.p, (int)ri->name.n,
                         (const char *)ri->name.p);
}

const char *kr_case_name(enum kr_case which)
{
    KR_ASSERT(which < KR_CASE_COUNT);
    return cases[which].name;
}

int kr_warning_write(struct kr_buf *out, struct kr_bytes text, const char *leg)
{
    int rc = kr_buf_append_str(out, "299 kuberelay \"");

    if (text.n > WARNING_MAX)
        text.n = WARNING_MAX;
    for (size_t i = 0; i < text.n && rc == 0; i++) {
        uint8_t c = text.p[i] >= 0x20 && text.p[i] < 0x7F ? text.p[i] : '?';

        if (c == '"' || c == '\\')
            rc = kr_buf_append_str(out, "\\");
        if (rc == 0)
            rc = kr_buf_append(out, kr_bytes_of(&c, 1));
    }
    if (rc == 0)
        rc = kr_buf_append_str(out, " [");
    if (rc == 0)
        rc = kr_buf_append_str(out, leg);
    return rc == 0 ? kr_buf_append_str(out, "]\"") : rc;
}

enum kr_case kr_case_away(const struct kr_request_info *ri)
{
    if (kr_request_is_watch(ri))
        return KR_CASE_AWAY_WATCH;
    return ri->is_resource || !ri->read_only ? KR_CASE_AWAY : KR_CASE_AWAY_DISCOVERY;
}

enum kr_case kr_case_draining(const struct kr_request_info *ri)
{
    return kr_request_is_watch(ri) ? KR_CASE_DRAINING_WATCH : KR_CASE_DRAINING;
}

enum kr_case kr_case_lost(const struct kr_request_info *ri, bool api_server)
{
    /* A GET that connects (exec, proxy) may have done anything. */
    bool harmless = ri->read_only && !ri->connects;

    if (api_server)
        return harmless ? KR_CASE_API_LOST_READ : KR_CASE_API_LOST_WRITE;
    return harmless ? KR_CASE_LOST_READ : KR_CASE_LOST_WRITE;
}
