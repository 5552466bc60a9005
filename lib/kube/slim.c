/* SPDX-License-Identifier: Apache-2.0 */
/* The output is the input with pieces cut out of it: `from` is where the text that was not yet
 * copied starts. A member that goes takes along the comma before it, or, as long as nothing before
 * it in its object stays, all up to the next member. */
#include "kube/slim.h"

#include "base/err.h"
#include "kube/json_cursor.h"
#include "kube/slim_profile.h"

enum place { PLACE_TOP, PLACE_METADATA, PLACE_BELOW };

struct level {
    uint64_t paths;      /* that fit so far */
    const uint8_t *last; /* behind the last value that stays; NULL: none so far */
    uint8_t close;       /* the bracket that ends it */
    enum place place;
    bool whole; /* all stays but what a path drops */
};

enum verdict {
    LEAVE_OUT,
    COPY,
    DESCEND, /* if it has members or elements */
};

/* What is to be done with one value. */
struct fate {
    uint64_t paths; /* for what is in it */
    enum verdict verdict;
    enum place place; /* of what is in it */
    bool whole;
    bool lossy;            /* leaving it out is a loss */
    struct kr_bytes *told; /* where the caller wants it */
};

/* A member or an element. */
struct item {
    const uint8_t *start;
    const uint8_t *value;
    const uint8_t *behind; /* its value */
};

struct slim {
    struct kr_cursor cursor;
    const struct kr_profile *profile;
    const uint8_t *at; /* where the next member or element starts, or white space before it */
    const uint8_t *end;
    const uint8_t *from;
    struct kr_buf *out;
    struct kr_slim *seen;
    unsigned depth; /* index of the innermost level */
    struct level levels[KR_PATH_STEPS_MAX + 1];
    uint8_t name[KR_PATH_BYTES_MAX]; /* a key with escapes, decoded */
};

static int copy_until(struct slim *s, const uint8_t *to)
{
    return kr_buf_append(s->out, kr_bytes_of(s->from, (size_t)(to - s->from)));
}

/* ---- what becomes of a value ---- */

/* In a place without rules of its own. */
static inline struct fate judge(const struct slim *s, uint64_t paths, bool whole)
{
    const uint64_t ends = s->profile->levels[s->depth].ends;
    const uint64_t keep = s->profile->keep;
    struct fate fate = {.verdict = LEAVE_OUT, .place = PLACE_BELOW, .lossy = true};

    if ((paths & ~keep & ends) != 0)
        return fate;
    fate.whole = whole || (paths & keep & ends) != 0;
    fate.paths = fate.whole ? paths & ~keep : paths;
    if (fate.whole)
        fate.verdict = fate.paths != 0 ? DESCEND : COPY;
    else if ((paths & keep) != 0)
        fate.verdict = DESCEND;
    return fate;
}

static struct fate judge_top(const struct slim *s, const struct kr_profile_name *name,
                             uint64_t paths)
{
    if (name != NULL && name->rule == KR_NAME_LEFT_OUT)
        return (struct fate){.verdict = LEAVE_OUT};
    if (name != NULL && name->rule == KR_NAME_METADATA)
        return (struct fate){.paths = paths & ~s->profile->keep,
                             .verdict = DESCEND,
                             .place = PLACE_METADATA,
                             .whole = true};
    return judge(s, paths, !s->profile->keeps);
}

static struct fate judge_metadata(const struct slim *s, const struct kr_profile_name *name,
                                  uint64_t paths)
{
    switch (name != NULL ? name->rule : KR_NAME_ORDINARY) {
    case KR_NAME_ANNOTATIONS:
        return judge(s, paths, true);
    case KR_NAME_LEFT_OUT:
        return (struct fate){.verdict = LEAVE_OUT};
    case KR_NAME_VERSION:
        return (struct fate){.verdict = LEAVE_OUT, .told = &s->seen->version};
    case KR_NAME_NAME:
        return (struct fate){.verdict = COPY, .told = &s->seen->name};
    case KR_NAME_NAMESPACE:
        return (struct fate){.verdict = COPY, .told = &s->seen->ns};
    case KR_NAME_UID:
        return (struct fate){.verdict = COPY, .told = &s->seen->uid};
    default:
        return (struct fate){.verdict = COPY};
    }
}

/* The name that a key means; its escapes are undone if it has any. One that is longer than all
 * paths has no rule. */
static const struct kr_profile_name *find_name(struct slim *s, const struct kr_profile_level *level,
                                               struct kr_bytes key)
{
    struct kr_buf name = {s->name, 0, sizeof s->name, sizeof s->name};
    struct kr_bytes quoted = {key.p - 1, key.n + 2};

    if (!kr_cursor_escapes(&s->cursor, key.p) || kr_bytes_find(key, '\\') == key.n)
        return kr_profile_find(level, key);
    return kr_scan_string(quoted, &name) == 0 ? kr_profile_find(level, kr_buf_bytes(&name)) : NULL;
}

static inline struct fate judge_member(struct slim *s, struct kr_bytes key)
{
    const struct level *level = &s->levels[s->depth];
    const bool in_metadata = level->place == PLACE_METADATA;
    const struct kr_profile_level *names =
        &s->profile->levels[in_metadata ? KR_LEVEL_OF_METADATA : s->depth];
    const struct kr_profile_name *name = find_name(s, names, key);
    const uint64_t paths = level->paths & (names->any | (name != NULL ? name->paths : 0));

    if (in_metadata)
        return judge_metadata(s, name, paths);
    if (level->place == PLACE_TOP)
        return judge_top(s, name, paths);
    return judge(s, paths, level->whole);
}

/* What can be gone through are objects and arrays only. Of the others, an element keeps its place,
 * and null stands for the object that could be there. */
static enum verdict settle(const struct slim *s, const struct fate *fate, uint8_t first)
{
    if (fate->verdict != DESCEND || first == '{' || first == '[')
        return fate->verdict;
    return fate->whole || s->levels[s->depth].close == ']' || first == 'n' ? COPY : LEAVE_OUT;
}

/* ---- the way through the text ---- */

static const uint8_t *trim(const uint8_t *from, const uint8_t *behind)
{
    while (behind > from && kr_is_space(behind[-1]))
        behind--;
    return behind;
}

/* From the start of a member up to its value; false: it is none. */
static inline bool take_key(struct slim *s, struct item *item, struct kr_bytes *key)
{
    const uint8_t *colon = kr_cursor_next(&s->cursor);
    const uint8_t *behind;

    if (colon == NULL || *colon != ':' || *item->start != '"')
        return false;
    behind = trim(item->start, colon);
    if (behind - item->start < 2 || behind[-1] != '"')
        return false;
    *key = kr_bytes_of(item->start + 1, (size_t)(behind - item->start) - 2);
    item->value = kr_skip_space(colon + 1, s->end);
    return item->value < s->end;
}

/* Behind a value, or behind an opening bracket: to the comma or the bracket that closes. NULL:
 * neither follows. */
static inline const uint8_t *follow(struct slim *s, const uint8_t *behind)
{
    const uint8_t *mark = kr_cursor_next(&s->cursor);

    if (mark == NULL || kr_skip_space(behind, mark) != mark)
        return NULL;
    return *mark == ',' || *mark == s->levels[s->depth].close ? mark : NULL;
}

/* Over a value that stays or goes as a whole: what follows it, NULL if it is malformed. */
static inline const uint8_t *pass(struct slim *s, struct item *item)
{
    const uint8_t *mark;

    if (*item->value == '{' || *item->value == '[') {
        const uint8_t *close;

        kr_cursor_next(&s->cursor); /* the bracket itself */
        close = kr_cursor_close(&s->cursor);
        if (close == NULL)
            return NULL;
        item->behind = close + 1;
        return follow(s, item->behind);
    }
    mark = kr_cursor_next(&s->cursor);
    if (mark == NULL || (*mark != ',' && *mark != s->levels[s->depth].close))
        return NULL;
    item->behind = trim(item->value, mark);
    return item->behind != item->value ? mark : NULL;
}

/* Leaves a member or an element out; `mark` follows it. */
static int cut(struct slim *s, const struct item *item, const uint8_t *mark)
{
    const struct level *level = &s->levels[s->depth];
    const uint8_t *to = level->last != NULL ? level->last : item->start;
    int rc = 0;

    if (to > s->from)
        rc = copy_until(s, to);
    if (level->last != NULL)
        s->from = item->behind;
    else
        s->from = *mark == ',' ? kr_skip_space(mark + 1, s->end) : mark;
    return rc;
}

/* Behind the bracket at `close`, which ended the innermost level: up to where something comes. NULL
 * in `at`: that was the outermost one. */
static int ascend(struct slim *s, const uint8_t *close)
{
    const uint8_t *mark = close;

    while (*mark != ',') {
        const uint8_t *behind = mark + 1;

        if (s->depth == 0) {
            s->at = NULL;
            if (kr_skip_space(behind, s->end) != s->end)
                return KR_EPROTO;
            return copy_until(s, behind);
        }
        s->levels[--s->depth].last = behind;
        mark = follow(s, behind);
        if (mark == NULL)
            return KR_EPROTO;
    }
    s->at = mark + 1;
    return 0;
}

static bool is_empty(const struct slim *s, const uint8_t *value)
{
    const uint8_t *first = kr_skip_space(value + 1, s->end);

    return first < s->end && *first == s->levels[s->depth].close;
}

/* Into an object or array. */
static int descend(struct slim *s, const struct item *item, const struct fate *fate)
{
    kr_cursor_next(&s->cursor); /* the bracket itself */
    s->levels[++s->depth] = (struct level){.paths = fate->paths,
                                           .place = fate->place,
                                           .whole = fate->whole,
                                           .close = *item->value == '[' ? ']' : '}'};
    s->at = item->value + 1;
    return is_empty(s, item->value) ? ascend(s, kr_cursor_next(&s->cursor)) : 0;
}

static bool tell(const struct fate *fate, struct kr_bytes value)
{
    return fate->told == NULL || kr_bytes_is(value, "null") || kr_scan_plain(value, fate->told);
}

/* The next member or element of the innermost level. */
static int next(struct slim *s)
{
    struct level *level = &s->levels[s->depth];
    struct item item = {.start = kr_skip_space(s->at, s->end)};
    struct kr_bytes key;
    struct fate fate;
    enum verdict verdict;
    const uint8_t *mark;
    int rc = 0;

    if (item.start == s->end)
        return KR_EPROTO;
    if (level->close == ']') {
        item.value = item.start;
        fate = judge(s, level->paths & s->profile->levels[s->depth].any, level->whole);
    } else {
        if (!take_key(s, &item, &key))
            return KR_EPROTO;
        fate = judge_member(s, key);
    }
    verdict = settle(s, &fate, *item.value);
    if (verdict == DESCEND)
        return descend(s, &item, &fate);
    mark = pass(s, &item);
    if (mark == NULL || !tell(&fate, kr_bytes_of(item.value, (size_t)(item.behind - item.value))))
        return KR_EPROTO;
    if (verdict == COPY) {
        level->last = item.behind;
    } else {
        s->seen->lossy |= fate.lossy;
        rc = cut(s, &item, mark);
    }
    s->at = mark + 1;
    return rc != 0 || *mark == ',' ? rc : ascend(s, mark);
}

static int walk(struct slim *s, struct kr_bytes object)
{
    const uint8_t *start = kr_skip_space(object.p, s->end);
    int rc;

    if (start == s->end || *start != '{')
        return KR_EPROTO;
    kr_cursor_start(&s->cursor, kr_bytes_of(start, (size_t)(s->end - start)), kr_frame_best());
    kr_cursor_next(&s->cursor); /* the bracket itself */
    s->from = start;
    s->at = start + 1;
    rc = is_empty(s, start) ? ascend(s, kr_cursor_next(&s->cursor)) : 0;
    while (rc == 0 && s->at != NULL)
        rc = next(s);
    return rc;
}

int kr_slim(const struct kr_profile *p, struct kr_bytes object, struct kr_buf *out,
            struct kr_slim *seen, struct kr_note *why)
{
    struct slim s; /* name and most levels are written before they are read */
    const size_t before = out->n;
    int rc;

    *seen = (struct kr_slim){0};
    if (object.n == 0)
        return kr_note_set(why, KR_EPROTO, "object: no text");
    s.profile = p;
    s.at = object.p;
    s.end = object.p + object.n;
    s.out = out;
    s.seen = seen;
    s.depth = 0;
    s.levels[0] = (struct level){.paths = p->all, .place = PLACE_TOP, .close = '}'};
    rc = walk(&s, object);
    if (rc == KR_EPROTO)
        kr_note_text(why, "object: malformed near byte %zu",
                     s.at != NULL ? (size_t)(s.at - object.p) : object.n);
    else if (rc != 0)
        kr_note_text(why, "object: %s", kr_err_text(rc));
    else
        rc = kr_scan_check(kr_bytes_skip(kr_buf_bytes(out), before), KR_SCAN_DEPTH_MAX, why);
    if (rc != 0)
        out->n = before;
    return rc;
}
