/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/token.h"

#include "base/err.h"
#include "certs/store_file.h"

#define FRESH_MS 60000
#define REREAD_MS 100 /* a credential that stays refused must not mean a file read per request */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static struct kr_bytes trim(struct kr_bytes b)
{
    while (b.n != 0 && is_space(b.p[0]))
        b = kr_bytes_skip(b, 1);
    while (b.n != 0 && is_space(b.p[b.n - 1]))
        b.n--;
    return b;
}

/* A token with bytes that no header may have would break every request. */
static bool usable(struct kr_bytes b)
{
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] <= 0x20 || b.p[i] >= 0x7F)
            return false;
    }
    return b.n != 0;
}

static int set(struct agent_token *t, struct kr_bytes token)
{
    struct kr_buf header = {.max = 64 * 1024};
    int rc = usable(token) ? 0 : KR_EINVAL;

    if (rc == 0)
        rc = kr_buf_append_str(&header, "Bearer ");
    if (rc == 0)
        rc = kr_buf_append(&header, token);
    if (rc != 0) {
        kr_buf_deinit(&header);
        return rc;
    }
    if (kr_bytes_eq(kr_buf_bytes(&header), kr_buf_bytes(&t->header))) {
        explicit_bzero(header.p, header.n);
        kr_buf_deinit(&header);
        return 0;
    }
    agent_token_deinit(t);
    t->header = header;
    t->generation++;
    return 0;
}

static int read_file(struct agent_token *t, struct kr_note *why)
{
    struct kr_buf text = {.max = AGENT_FILE_MAX};
    int rc = kr_file_read(&text, t->file, AGENT_FILE_MAX, why);

    if (rc == 0) {
        rc = set(t, trim(kr_buf_bytes(&text)));
        if (rc != 0)
            kr_note_set(why, rc, "%s: holds no token", t->file);
    }
    if (text.p != NULL)
        explicit_bzero(text.p, text.n);
    kr_buf_deinit(&text);
    return rc;
}

int agent_token_init(struct agent_token *t, const char *fixed, const char *file, int64_t now_ms,
                     struct kr_note *why)
{
    *t = (struct agent_token){.file = file, .read_ms = now_ms};
    if (file != NULL)
        return read_file(t, why);
    if (fixed != NULL && set(t, kr_bytes_str(fixed)) != 0)
        return kr_note_set(why, KR_EINVAL, "the token has bytes that a header cannot carry");
    return 0;
}

void agent_token_deinit(struct agent_token *t)
{
    if (t->header.p != NULL)
        explicit_bzero(t->header.p, t->header.n);
    kr_buf_deinit(&t->header);
}

static void reread(struct agent_token *t, int64_t now_ms)
{
    t->read_ms = now_ms;
    if (t->file != NULL)
        read_file(t, NULL); /* on failure the old one stays */
}

bool agent_token_refused(struct agent_token *t, uint32_t generation, int64_t now_ms)
{
    if (t->generation == generation && now_ms - t->read_ms >= REREAD_MS)
        reread(t, now_ms);
    return t->generation != generation;
}

struct kr_bytes agent_token_header(struct agent_token *t, int64_t now_ms)
{
    if (now_ms - t->read_ms >= FRESH_MS)
        reread(t, now_ms);
    return kr_buf_bytes(&t->header);
}
