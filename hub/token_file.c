/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/token_file.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "certs/hmac.h"
#include "certs/store_file.h"

#define FILE_MAX (4u << 20)
#define TOKENS_MAX 10000
#define COLUMNS 4
#define GROUPS_MAX 256

struct entry {
    uint8_t hash[KR_HMAC_SIZE]; /* the key in the map */
    struct hub_caller *caller;
};

struct hub_token_file {
    struct kr_map by_hash;
};

struct line {
    const char *name;
    size_t number;
    struct kr_note *why;
};

static int fault(const struct line *l, const char *what)
{
    return kr_note_set(l->why, KR_EINVAL, "%.80s:%zu: %s", l->name, l->number, what);
}

static struct kr_bytes trim(struct kr_bytes v)
{
    while (v.n != 0 && (v.p[0] == ' ' || v.p[0] == '\t'))
        v = kr_bytes_skip(v, 1);
    while (v.n != 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t' || v.p[v.n - 1] == '\r'))
        v.n--;
    return v;
}

/* One column; in quotes it may hold commas. No quotes in quotes: names have none. */
static int take_column(struct kr_bytes *rest, struct kr_bytes *out)
{
    struct kr_bytes in = trim(*rest);
    size_t at;

    if (in.n == 0 || in.p[0] != '"') {
        at = kr_bytes_find(in, ',');
        *out = trim(kr_bytes_of(in.p, at));
        *rest = kr_bytes_skip(in, at < in.n ? at + 1 : at);
        return kr_bytes_find(*out, '"') == out->n ? 0 : KR_EINVAL;
    }
    in = kr_bytes_skip(in, 1);
    at = kr_bytes_find(in, '"');
    if (at == in.n)
        return KR_EINVAL;
    *out = kr_bytes_of(in.p, at);
    in = trim(kr_bytes_skip(in, at + 1));
    if (in.n != 0 && in.p[0] != ',')
        return KR_EINVAL;
    *rest = kr_bytes_skip(in, in.n != 0 ? 1 : 0);
    return 0;
}

static int split_groups(const struct line *l, struct kr_bytes in, struct kr_bytes *groups,
                        size_t *n)
{
    *n = 0;
    while (in.n != 0) {
        size_t at = kr_bytes_find(in, ',');

        if (*n == GROUPS_MAX)
            return fault(l, "too many groups");
        groups[(*n)++] = trim(kr_bytes_of(in.p, at));
        in = kr_bytes_skip(in, at < in.n ? at + 1 : at);
    }
    return 0;
}

static int put(struct hub_token_file *f, const struct line *l, struct kr_bytes token,
               const struct hub_caller *from)
{
    struct entry *e = calloc(1, sizeof *e);
    int rc = KR_ENOMEM;

    if (e != NULL)
        e->caller = hub_caller_create(from);
    if (e != NULL && e->caller != NULL)
        rc = kr_sha256(token, e->hash);
    if (rc == 0)
        rc = kr_map_put(&f->by_hash, kr_bytes_of(e->hash, sizeof e->hash), e);
    if (rc == 0)
        return 0;
    if (e != NULL)
        hub_caller_unref(e->caller);
    free(e);
    return fault(l, rc == KR_EEXIST ? "the token is there already" : kr_err_text(rc));
}

static int read_line(struct hub_token_file *f, const struct line *l, struct kr_bytes text)
{
    struct kr_bytes columns[COLUMNS] = {{NULL, 0}};
    struct kr_bytes groups[GROUPS_MAX];
    struct hub_caller from = {.by = HUB_BY_TOKEN_FILE, .groups = groups};
    struct kr_note cause = {""};
    size_t n = 0;
    int rc;

    for (text = trim(text); text.n != 0; n++) {
        if (n == COLUMNS || take_column(&text, &columns[n]) != 0)
            return fault(l, "token,user,uid,\"groups\" is expected");
    }
    if (n < 3 || columns[0].n == 0)
        return fault(l, "token, user and uid are needed");
    from.user = columns[1];
    from.uid = columns[2];
    rc = split_groups(l, columns[3], groups, &from.group_count);
    if (rc == 0 && hub_caller_check(&from, &cause) != 0)
        rc = fault(l, cause.text);
    return rc == 0 ? put(f, l, columns[0], &from) : rc;
}

static int read_lines(struct hub_token_file *f, struct line *l, struct kr_bytes text)
{
    int rc = 0;

    while (text.n != 0 && rc == 0) {
        size_t at = kr_bytes_find(text, '\n');
        struct kr_bytes line = trim(kr_bytes_of(text.p, at));

        l->number++;
        text = kr_bytes_skip(text, at < text.n ? at + 1 : at);
        if (line.n != 0 && line.p[0] != '#')
            rc = read_line(f, l, line);
    }
    return rc;
}

int hub_token_file_parse(struct hub_token_file **out, const char *name, struct kr_bytes text,
                         struct kr_note *why)
{
    struct line l = {.name = name, .why = why};
    struct hub_token_file *f = calloc(1, sizeof *f);
    int rc;

    *out = NULL;
    if (f == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    kr_map_init(&f->by_hash, TOKENS_MAX);
    rc = read_lines(f, &l, text);
    if (rc != 0)
        hub_token_file_destroy(f);
    else
        *out = f;
    return rc;
}

int hub_token_file_load(struct hub_token_file **out, const char *file, struct kr_note *why)
{
    struct kr_buf text = {.max = FILE_MAX};
    int rc = kr_file_read(&text, file, FILE_MAX, why);

    *out = NULL;
    if (rc == 0)
        rc = hub_token_file_parse(out, file, kr_buf_bytes(&text), why);
    kr_buf_cleanse(&text);
    return rc;
}

void hub_token_file_destroy(struct hub_token_file *f)
{
    struct entry *e;
    size_t pos = 0;

    if (f == NULL)
        return;
    while ((e = kr_map_next(&f->by_hash, &pos, NULL)) != NULL) {
        hub_caller_unref(e->caller);
        free(e);
    }
    kr_map_deinit(&f->by_hash);
    free(f);
}

struct hub_caller *hub_token_file_find(const struct hub_token_file *f, struct kr_bytes token)
{
    uint8_t hash[KR_HMAC_SIZE];
    struct entry *e;

    if (kr_sha256(token, hash) != 0)
        return NULL;
    e = kr_map_get(&f->by_hash, kr_bytes_of(hash, sizeof hash));
    return e != NULL ? e->caller : NULL;
}

size_t hub_token_file_count(const struct hub_token_file *f)
{
    return f->by_hash.count;
}

static bool same_caller(const struct hub_caller *a, const struct hub_caller *b)
{
    bool same = kr_bytes_eq(a->user, b->user) && a->group_count == b->group_count;

    for (size_t i = 0; same && i < a->group_count; i++)
        same = kr_bytes_eq(a->groups[i], b->groups[i]);
    return same;
}

void hub_token_file_revoke(struct hub_token_file *old, const struct hub_token_file *now)
{
    struct kr_bytes hash;
    struct entry *e;
    size_t pos = 0;

    while (old != NULL && (e = kr_map_next(&old->by_hash, &pos, &hash)) != NULL) {
        const struct entry *n = kr_map_get(&now->by_hash, hash);

        e->caller->revoked = n == NULL || !same_caller(n->caller, e->caller);
    }
}
