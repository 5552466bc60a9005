/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/selector.h"

#include <stdlib.h>

#include "base/err.h"
#include "kube/label_names.h"
#include "kube/query.h"

#define REQUIREMENTS_MAX 64
#define VALUES_MAX 1024
#define SHOWN(b) (int)((b).n < 80 ? (b).n : 80), (const char *)(b).p

enum token {
    TOKEN_END,
    TOKEN_WORD, /* "in" and "notin" as well: what they are depends on where they stand */
    TOKEN_COMMA,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_NOT,
    TOKEN_EQUAL, /* = and == */
    TOKEN_NOT_EQUAL,
    TOKEN_GREATER,
    TOKEN_LESS,
};

struct parser {
    struct kr_bytes text; /* in the arena */
    size_t pos;
    enum token token; /* the next one, not yet taken */
    struct kr_bytes literal;
    struct kr_arena *arena;
    struct kr_note *why;
    struct kr_requirement all[REQUIREMENTS_MAX];
    size_t n;
    struct kr_bytes values[VALUES_MAX]; /* of the requirement at hand */
    size_t value_count;
    size_t values_before; /* of all requirements so far */
};

/* ---- words ---- */

/* 0 at the end, and for a NUL, which ends a word as well. */
static uint8_t read_byte(struct parser *p)
{
    return p->pos < p->text.n ? p->text.p[p->pos++] : 0;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(uint8_t c)
{
    return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static enum token special_token(struct parser *p, uint8_t c)
{
    bool equal_follows = p->pos < p->text.n && p->text.p[p->pos] == '=';

    switch (c) {
    case '=':
    case '!':
        if (!equal_follows)
            return c == '=' ? TOKEN_EQUAL : TOKEN_NOT;
        p->pos++;
        return c == '=' ? TOKEN_EQUAL : TOKEN_NOT_EQUAL;
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case ',':
        return TOKEN_COMMA;
    case '>':
        return TOKEN_GREATER;
    default:
        return TOKEN_LESS;
    }
}

/* Reads the next token; it is `token` and `literal` until the next call. */
static void advance(struct parser *p)
{
    uint8_t c = read_byte(p);
    size_t from;

    while (is_space(c))
        c = read_byte(p);
    p->token = TOKEN_END;
    p->literal = kr_bytes_of(NULL, 0);
    if (c == 0)
        return;
    from = p->pos - 1;
    if (is_special(c)) {
        p->token = special_token(p, c);
    } else {
        p->token = TOKEN_WORD;
        while (p->pos < p->text.n && p->text.p[p->pos] != 0 && !is_special(p->text.p[p->pos]) &&
               !is_space(p->text.p[p->pos]))
            p->pos++;
    }
    p->literal = kr_bytes_of(p->text.p + from, p->pos - from);
    if (p->token == TOKEN_WORD && p->pos < p->text.n && p->text.p[p->pos] == 0)
        p->pos++;
}

static int expected(struct parser *p, const char *what)
{
    return kr_note_set(p->why, KR_EINVAL, "found '%.*s'%s expected: %s", SHOWN(p->literal),
                       kr_bytes_is(kr_bytes_str(what), "'('") ? "" : ",", what);
}

static int unparsed(struct parser *p, const char *what)
{
    int rc = expected(p, what);

    return kr_note_wrap(p->why, rc, "unable to parse requirement");
}

/* ---- values ---- */

static int add_value(struct parser *p, struct kr_bytes value)
{
    if (p->values_before + p->value_count == VALUES_MAX)
        return kr_note_set(p->why, KR_ETOOBIG,
                           "more than %d values in a label selector, a limit of kuberelay",
                           VALUES_MAX);
    p->values[p->value_count++] = value;
    return 0;
}

/* A comma stands here: what it says about empty values is kube-apiserver's (labels/selector.go
 * parseIdentifiersList). */
static int take_comma(struct parser *p, bool *done)
{
    int rc = 0;

    advance(p);
    if (p->value_count == 0)
        rc = add_value(p, kr_bytes_of(NULL, 0));
    if (rc == 0 && (p->token == TOKEN_CLOSE || p->token == TOKEN_COMMA)) {
        *done = p->token == TOKEN_CLOSE;
        rc = add_value(p, kr_bytes_of(NULL, 0));
        if (!*done)
            advance(p);
    }
    return rc;
}

static int take_word(struct parser *p, bool *done)
{
    int rc = add_value(p, p->literal);

    advance(p);
    if (rc == 0 && p->token != TOKEN_COMMA && p->token != TOKEN_CLOSE)
        return unparsed(p, "',' or ')'");
    *done = p->token == TOKEN_CLOSE;
    return rc;
}

/* (a,b): up to and with the ')'. */
static int parse_set(struct parser *p)
{
    bool done = false;
    int rc = 0;

    if (p->token != TOKEN_OPEN)
        return unparsed(p, "'('");
    advance(p);
    if (p->token == TOKEN_CLOSE) {
        rc = add_value(p, kr_bytes_of(NULL, 0));
        done = true;
    } else if (p->token != TOKEN_WORD && p->token != TOKEN_COMMA) {
        return unparsed(p, "',', ')' or identifier");
    }
    while (rc == 0 && !done) {
        if (p->token == TOKEN_WORD)
            rc = take_word(p, &done);
        else if (p->token == TOKEN_COMMA)
            rc = take_comma(p, &done);
        else
            rc = unparsed(p, "',', or identifier");
    }
    if (rc == 0)
        advance(p);
    return rc;
}

static int parse_exact(struct parser *p)
{
    struct kr_bytes value = p->literal;

    if (p->token == TOKEN_END || p->token == TOKEN_COMMA)
        return add_value(p, kr_bytes_of(NULL, 0));
    if (p->token != TOKEN_WORD)
        return unparsed(p, "identifier");
    advance(p);
    return add_value(p, value);
}

static int compare_values(const void *a, const void *b)
{
    const struct kr_bytes *x = a;
    const struct kr_bytes *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = n != 0 ? memcmp(x->p, y->p, n) : 0;

    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static void sort_values(struct parser *p)
{
    size_t kept = 0;

    qsort(p->values, p->value_count, sizeof p->values[0], compare_values);
    for (size_t i = 0; i < p->value_count; i++) {
        if (kept == 0 || !kr_bytes_eq(p->values[kept - 1], p->values[i]))
            p->values[kept++] = p->values[i];
    }
    p->value_count = kept;
}

static int check_values(struct parser *p, struct kr_requirement *r)
{
    for (size_t i = 0; i < p->value_count; i++) {
        struct kr_bytes v = p->values[i];
        int rc;

        if ((r->op == KR_OP_GT || r->op == KR_OP_LT) && !kr_query_int(v, &r->bound))
            return kr_note_set(p->why, KR_EINVAL,
                               "unable to parse requirement: values[%zu]: Invalid value: \"%.*s\": "
                               "for 'Gt', 'Lt' operators, the value must be an integer",
                               i, SHOWN(v));
        rc = kr_label_value_check(v, p->why);
        if (rc != 0)
            return kr_note_wrap(p->why, rc,
                                "unable to parse requirement: values[%zu][%.*s]: Invalid value: "
                                "\"%.*s\"",
                                i, SHOWN(r->key), SHOWN(v));
    }
    return 0;
}

static int keep_values(struct parser *p, struct kr_requirement *r)
{
    struct kr_bytes *values;

    sort_values(p);
    if (check_values(p, r) != 0)
        return KR_EINVAL;
    values = kr_arena_alloc(p->arena, p->value_count * sizeof *values);
    if (values == NULL)
        return KR_ENOMEM;
    memcpy(values, p->values, p->value_count * sizeof *values);
    r->values = values;
    r->value_count = p->value_count;
    p->values_before += p->value_count;
    return 0;
}

/* ---- requirements ---- */

static int parse_operator(struct parser *p, enum kr_operator *op)
{
    switch (p->token) {
    case TOKEN_EQUAL:
        *op = KR_OP_IN;
        return 0;
    case TOKEN_NOT_EQUAL:
        *op = KR_OP_NOT_IN;
        return 0;
    case TOKEN_GREATER:
        *op = KR_OP_GT;
        return 0;
    case TOKEN_LESS:
        *op = KR_OP_LT;
        return 0;
    default:
        *op = kr_bytes_is(p->literal, "in") ? KR_OP_IN : KR_OP_NOT_IN;
        if (*op == KR_OP_IN || kr_bytes_is(p->literal, "notin"))
            return 0;
        return unparsed(p, "in, notin, =, ==, !=, gt, lt");
    }
}

static int parse_key(struct parser *p, struct kr_requirement *r)
{
    int rc;

    r->op = KR_OP_EXISTS;
    if (p->token == TOKEN_NOT) {
        r->op = KR_OP_NOT_EXISTS;
        advance(p);
    }
    if (p->token != TOKEN_WORD)
        return unparsed(p, "identifier");
    r->key = p->literal;
    rc = kr_label_key_check(r->key, p->why);
    if (rc != 0)
        return kr_note_wrap(p->why, rc,
                            "unable to parse requirement: <nil>: Invalid value: \"%.*s\"",
                            SHOWN(r->key));
    advance(p);
    return 0;
}

static int parse_requirement(struct parser *p)
{
    struct kr_requirement *r = &p->all[p->n];
    bool set;
    int rc;

    if (p->n == REQUIREMENTS_MAX)
        return kr_note_set(p->why, KR_ETOOBIG,
                           "more than %d requirements in a label selector, a limit of kuberelay",
                           REQUIREMENTS_MAX);
    *r = (struct kr_requirement){.op = KR_OP_EXISTS};
    rc = parse_key(p, r);
    p->n++;
    if (rc != 0 || r->op == KR_OP_NOT_EXISTS || p->token == TOKEN_END || p->token == TOKEN_COMMA)
        return rc;
    rc = parse_operator(p, &r->op);
    if (rc != 0)
        return rc;
    set = p->token == TOKEN_WORD;
    advance(p);
    p->value_count = 0;
    rc = set ? parse_set(p) : parse_exact(p);
    return rc != 0 ? rc : keep_values(p, r);
}

static int parse_all(struct parser *p)
{
    advance(p);
    while (p->token != TOKEN_END) {
        int rc;

        if (p->token != TOKEN_WORD && p->token != TOKEN_NOT)
            return expected(p, "!, identifier, or 'end of string'");
        rc = parse_requirement(p);
        if (rc != 0)
            return rc;
        if (p->token == TOKEN_END)
            return 0;
        if (p->token != TOKEN_COMMA)
            return expected(p, "',' or 'end of string'");
        advance(p);
        if (p->token != TOKEN_WORD && p->token != TOKEN_NOT)
            return expected(p, "identifier after ','");
    }
    return 0;
}

int kr_label_selector_parse(struct kr_bytes text, struct kr_arena *arena,
                            struct kr_label_selector *out, struct kr_note *why)
{
    struct parser p = {.arena = arena, .why = why};
    struct kr_requirement *all;
    int rc;

    *out = (struct kr_label_selector){0};
    p.text = kr_arena_copy(arena, text);
    if (p.text.p == NULL)
        return KR_ENOMEM;
    rc = parse_all(&p);
    if (rc != 0 || p.n == 0)
        return rc;
    all = kr_arena_alloc(arena, p.n * sizeof *all);
    if (all == NULL)
        return KR_ENOMEM;
    memcpy(all, p.all, p.n * sizeof *all);
    *out = (struct kr_label_selector){.all = all, .n = p.n};
    return 0;
}
