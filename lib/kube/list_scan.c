/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_scan.h"

#include <stdlib.h>

#include "base/err.h"
#include "kube/json_frame.h"

#define KEY_MAX 512 /* of the members that are read here, however they are spelled */
#define HEAD_MAX ((size_t)64 * 1024)
#define COLUMNS_MAX ((size_t)256 * 1024)
#define VERSION_MAX 1024
#define CONTINUE_MAX HEAD_MAX

/* What may come next. */
enum expect {
    THE_LIST,
    A_KEY_OR_END,
    A_KEY,
    IN_KEY,
    A_COLON,
    A_VALUE,
    IN_VALUE,
    A_COMMA_OR_END,
    AN_ELEMENT_OR_END, /* right behind '[' */
    AN_ELEMENT,
    IN_ELEMENT,
    AN_ELEMENTS_COMMA_OR_END,
    NOTHING,
};

/* The members of a list that are read; the rest is passed over. */
enum member { MEMBER_OTHER, MEMBER_KIND, MEMBER_METADATA, MEMBER_COLUMNS, MEMBER_ITEMS };

struct kr_list_scan_state {
    enum expect expect;
    enum member member;
    unsigned seen; /* bit per member */
    int failed;
    const char *fault;
    uint64_t offset; /* of the bytes fed */
    struct kr_frame frame;
    uint64_t size; /* of the value so far */
    bool dropping; /* the value is not kept */
    struct kr_buf part;
    enum kr_frame_way way;
};

static int fail(struct kr_list_scan *s, int code, const char *fault)
{
    s->state->fault = fault;
    return code;
}

int kr_list_scan_init(struct kr_list_scan *s, const struct kr_list_scan_ops *ops, void *user,
                      size_t item_max)
{
    *s = (struct kr_list_scan){.ops = ops, .user = user, .item_max = item_max};
    kr_buf_init(&s->version, VERSION_MAX);
    kr_buf_init(&s->cont, CONTINUE_MAX);
    kr_buf_init(&s->kind, VERSION_MAX);
    kr_buf_init(&s->columns, COLUMNS_MAX);
    s->state = calloc(1, sizeof *s->state);
    if (s->state == NULL)
        return KR_ENOMEM;
    s->state->expect = THE_LIST;
    s->state->way = kr_frame_best();
    return 0;
}

void kr_list_scan_deinit(struct kr_list_scan *s)
{
    kr_buf_deinit(&s->version);
    kr_buf_deinit(&s->cont);
    kr_buf_deinit(&s->kind);
    kr_buf_deinit(&s->columns);
    if (s->state != NULL)
        kr_buf_deinit(&s->state->part);
    free(s->state);
    s->state = NULL;
}

static enum member member_of(struct kr_bytes key)
{
    if (kr_scan_key_is(key, "items") || kr_scan_key_is(key, "rows"))
        return MEMBER_ITEMS;
    if (kr_scan_key_is(key, "kind"))
        return MEMBER_KIND;
    if (kr_scan_key_is(key, "metadata"))
        return MEMBER_METADATA;
    if (kr_scan_key_is(key, "columnDefinitions"))
        return MEMBER_COLUMNS;
    return MEMBER_OTHER;
}

static size_t part_max(const struct kr_list_scan *s)
{
    if (s->state->expect == IN_KEY)
        return KEY_MAX;
    if (s->state->expect == IN_ELEMENT)
        return s->item_max;
    return s->state->member == MEMBER_COLUMNS ? COLUMNS_MAX : HEAD_MAX;
}

/* A value (or key) starts with the next byte. */
static void begin(struct kr_list_scan *s, enum expect expect, bool dropping)
{
    struct kr_list_scan_state *st = s->state;

    st->expect = expect;
    kr_frame_start(&st->frame, st->way);
    st->size = 0;
    st->dropping = dropping;
    st->part.n = 0;
    st->part.max = part_max(s);
}

/* Too large or too deep: it is passed over, or the end of all. */
static int overflow(struct kr_list_scan *s)
{
    struct kr_list_scan_state *st = s->state;

    if (st->expect == IN_VALUE)
        return fail(s, KR_ETOOBIG, "a member beside the elements is too large");
    st->dropping = true;
    kr_buf_deinit(&st->part);
    return 0;
}

/* Takes what belongs to the value off `in`. Once it is whole, *out is it (nothing if it was
 * dropped). */
static int gather(struct kr_list_scan *s, struct kr_bytes *in, struct kr_bytes *out)
{
    struct kr_list_scan_state *st = s->state;
    size_t n = kr_frame_feed(&st->frame, *in);
    struct kr_bytes piece = kr_bytes_of(in->p, n);
    int rc = 0;

    *in = kr_bytes_skip(*in, n);
    st->size += n;
    if (!st->dropping && (st->size > part_max(s) || st->frame.deep))
        rc = overflow(s);
    *out = kr_bytes_of(NULL, 0);
    if (st->dropping || rc != 0)
        return rc;
    if (st->frame.done && st->part.n == 0) {
        *out = piece;
        return 0;
    }
    rc = kr_buf_append(&st->part, piece);
    *out = kr_buf_bytes(&st->part);
    return rc != 0 ? fail(s, rc, "no memory for an element") : 0;
}

static int read_metadata(struct kr_list_scan *s, struct kr_bytes value)
{
    struct kr_bytes v;

    if (kr_scan_find(value, "resourceVersion", &v) && !kr_bytes_is(v, "null") &&
        kr_scan_string(v, &s->version) != 0)
        return fail(s, KR_EPROTO, "metadata.resourceVersion is no string, or too long");
    if (kr_scan_find(value, "continue", &v) && !kr_bytes_is(v, "null") &&
        kr_scan_string(v, &s->cont) != 0)
        return fail(s, KR_EPROTO, "metadata.continue is no string, or too long");
    return 0;
}

static int on_member(struct kr_list_scan *s, struct kr_bytes value)
{
    int rc;

    if (s->state->member == MEMBER_OTHER)
        return 0;
    rc = kr_scan_check(value, KR_SCAN_DEPTH_MAX, NULL);
    if (rc != 0)
        return fail(s, rc, "a member is malformed");
    switch (s->state->member) {
    case MEMBER_KIND:
        if (kr_scan_string(value, &s->kind) != 0)
            return fail(s, KR_EPROTO, "kind is no string, or too long");
        return 0;
    case MEMBER_METADATA:
        return read_metadata(s, value);
    case MEMBER_COLUMNS:
        return kr_bytes_is(value, "null") ? 0 : kr_buf_append(&s->columns, value);
    default:
        return kr_bytes_is(value, "null") ? 0 : fail(s, KR_EPROTO, "items is no array");
    }
}

static int on_element(struct kr_list_scan *s, struct kr_bytes item)
{
    s->items++;
    if (s->state->dropping) {
        s->ops->on_skipped(s->user, s->state->size);
        return 0;
    }
    if (item.n == 0)
        return fail(s, KR_EPROTO, "an element is missing");
    return s->ops->on_item(s->user, item);
}

static int on_key(struct kr_list_scan *s, struct kr_bytes key)
{
    struct kr_list_scan_state *st = s->state;
    unsigned bit;

    st->member = MEMBER_OTHER;
    if (st->dropping)
        return 0;
    if (kr_scan_check(key, 1, NULL) != 0)
        return fail(s, KR_EPROTO, "a key is malformed");
    st->member = member_of(kr_bytes_of(key.p + 1, key.n - 2));
    bit = 1U << st->member;
    if (st->member != MEMBER_OTHER && (st->seen & bit) != 0)
        return fail(s, KR_EPROTO, "a member of the list is there twice");
    st->seen |= bit;
    return 0;
}

/* The next bytes belong to a key, a member or an element. */
static int go_on(struct kr_list_scan *s, struct kr_bytes *in)
{
    struct kr_list_scan_state *st = s->state;
    enum expect expect = st->expect;
    struct kr_bytes whole;
    int rc = gather(s, in, &whole);

    if (rc != 0 || !st->frame.done)
        return rc;
    if (expect == IN_KEY) {
        st->expect = A_COLON;
        rc = on_key(s, whole);
    } else if (expect == IN_VALUE) {
        st->expect = A_COMMA_OR_END;
        rc = st->size == 0 ? fail(s, KR_EPROTO, "a value is missing") : on_member(s, whole);
    } else {
        st->expect = AN_ELEMENTS_COMMA_OR_END;
        rc = on_element(s, whole);
    }
    if (st->part.cap > HEAD_MAX)
        kr_buf_deinit(&st->part);
    return rc;
}

/* A byte that is none of white space stands where a member of the list starts. */
static int start_value(struct kr_list_scan *s, struct kr_bytes *in)
{
    struct kr_list_scan_state *st = s->state;

    if (st->member == MEMBER_ITEMS && in->p[0] == '[') {
        *in = kr_bytes_skip(*in, 1);
        st->expect = AN_ELEMENT_OR_END;
        return 0;
    }
    begin(s, IN_VALUE, st->member == MEMBER_OTHER);
    return 0;
}

/* One of the two bytes that may stand here; others are an error. */
static int punctuation(struct kr_list_scan *s, struct kr_bytes *in, uint8_t comma, enum expect next,
                       uint8_t end, enum expect behind)
{
    uint8_t c = in->p[0];

    *in = kr_bytes_skip(*in, 1);
    if (c == comma)
        s->state->expect = next;
    else if (c == end)
        s->state->expect = behind;
    else
        return fail(s, KR_EPROTO, "malformed");
    return 0;
}

/* Takes at least one byte or changes what is expected. */
static int step(struct kr_list_scan *s, struct kr_bytes *in)
{
    uint8_t c = in->p[0];

    switch (s->state->expect) {
    case THE_LIST:
        return punctuation(s, in, '{', A_KEY_OR_END, '{', A_KEY_OR_END);
    case A_KEY_OR_END:
        if (c == '}')
            return punctuation(s, in, '}', NOTHING, '}', NOTHING);
        begin(s, IN_KEY, false);
        return c == '"' ? 0 : fail(s, KR_EPROTO, "malformed");
    case A_KEY:
        begin(s, IN_KEY, false);
        return c == '"' ? 0 : fail(s, KR_EPROTO, "malformed");
    case A_COLON:
        return punctuation(s, in, ':', A_VALUE, ':', A_VALUE);
    case A_VALUE:
        return start_value(s, in);
    case A_COMMA_OR_END:
        return punctuation(s, in, ',', A_KEY, '}', NOTHING);
    case AN_ELEMENT_OR_END:
        if (c == ']')
            return punctuation(s, in, ']', A_COMMA_OR_END, ']', A_COMMA_OR_END);
        begin(s, IN_ELEMENT, false);
        return 0;
    case AN_ELEMENT:
        begin(s, IN_ELEMENT, false);
        return 0;
    case AN_ELEMENTS_COMMA_OR_END:
        return punctuation(s, in, ',', AN_ELEMENT, ']', A_COMMA_OR_END);
    default:
        return fail(s, KR_EPROTO, "something follows the list");
    }
}

static bool inside(enum expect e)
{
    return e == IN_KEY || e == IN_VALUE || e == IN_ELEMENT;
}

int kr_list_scan_feed(struct kr_list_scan *s, struct kr_bytes in)
{
    struct kr_list_scan_state *st = s->state;
    const uint8_t *start = in.p;

    while (st->failed == 0 && in.n != 0) {
        if (inside(st->expect))
            st->failed = go_on(s, &in);
        else if (kr_is_space(in.p[0]))
            in = kr_bytes_skip(in, 1);
        else
            st->failed = step(s, &in);
    }
    if (start != NULL)
        st->offset += (uint64_t)(in.p - start);
    return st->failed;
}

int kr_list_scan_end(struct kr_list_scan *s, struct kr_note *why)
{
    struct kr_list_scan_state *st = s->state;

    if (st->failed == 0 && st->expect != NOTHING)
        st->failed = fail(s, KR_EPROTO, "cut short");
    else if (st->failed == 0 && (st->seen & 1U << MEMBER_ITEMS) == 0)
        st->failed = fail(s, KR_EPROTO, "has neither items nor rows");
    if (st->failed != 0)
        return kr_note_set(why, st->failed, "list: %s (byte %llu)",
                           st->fault != NULL ? st->fault : kr_err_text(st->failed),
                           (unsigned long long)st->offset);
    return 0;
}

int kr_row_read(struct kr_bytes row, struct kr_bytes *cells, struct kr_bytes *object)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;

    *cells = *object = kr_bytes_of(NULL, 0);
    if (!kr_scan_object(row, &it))
        return KR_EPROTO;
    while (kr_scan_member(&it, &key, &value)) {
        if (kr_scan_key_is(key, "cells"))
            *cells = value;
        else if (kr_scan_key_is(key, "object"))
            *object = value;
    }
    if (kr_bytes_is(*object, "null"))
        object->n = 0;
    if (kr_bytes_is(*cells, "null"))
        cells->n = 0;
    return cells->n != 0 ? kr_scan_check(*cells, KR_SCAN_DEPTH_MAX, NULL) : 0;
}
