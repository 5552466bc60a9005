/* SPDX-License-Identifier: Apache-2.0 */
/* The output is the input with pieces cut out of it: `from` is where the text that was not yet
 * copied starts. A member that goes takes along the comma before it, or, as long as nothing before
 * it in its object stays, all up to the next member. */
#include "kube/slim.h"

#include "base/err.h"
#include "kube/json_frame.h"
#include "kube/slim_profile.h"

enum place { PLACE_TOP, PLACE_METADATA, PLACE_BELOW };

struct level {
    uint64_t paths;      /* that fit so far */
    const uint8_t *last; /* behind the last value that stays; NULL: none so far */
    enum place place;
    bool whole; /* all stays but what a path drops */
    bool array;
};

enum verdict {
    LEAVE_OUT,
    COPY,
    DESCEND, /* if it has members or elements */
};

/* What is to be done with one value. */
struct fate {
    enum verdict verdict;
    enum place place; /* of what is in it */
    bool whole;
    bool lossy; /* leaving it out is a loss */
    uint64_t paths;
};

struct slim {
    const struct kr_profile *profile;
    const uint8_t *p;
    const uint8_t *end;
    const uint8_t *from;
    struct kr_buf *out;
    struct kr_slim *seen;
    unsigned depth; /* index of the innermost level */
    struct level levels[KR_PATH_STEPS_MAX + 1];
    uint8_t name[KR_PATH_BYTES_MAX + 1]; /* a key with escapes, decoded */
};

static void skip_space(struct slim *s)
{
    s->p = kr_skip_space(s->p, s->end);
}

static bool take(struct slim *s, uint8_t c)
{
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static struct kr_bytes rest(const struct slim *s)
{
    return kr_bytes_of(s->p, (size_t)(s->end - s->p));
}

static int copy_until(struct slim *s, const uint8_t *to)
{
    return kr_buf_append(s->out, kr_bytes_of(s->from, (size_t)(to - s->from)));
}

/* The key without its escapes; one that is longer than all that a path can name becomes empty. */
static struct kr_bytes decode(struct slim *s, struct kr_bytes key)
{
    struct kr_buf name = {s->name, 0, sizeof s->name, sizeof s->name};
    struct kr_bytes quoted = {key.p - 1, key.n + 2};

    if (kr_bytes_find(key, '\\') == key.n)
        return key;
    if (kr_scan_string(quoted, &name) != 0)
        return kr_bytes_of(NULL, 0);
    return kr_buf_bytes(&name);
}

/* A value in a place without rules of its own. */
static struct fate judge(const struct slim *s, uint64_t paths, bool whole)
{
    const struct kr_profile_level *level = &s->profile->levels[s->depth];
    const uint64_t keep = s->profile->keep;
    struct fate fate = {.verdict = LEAVE_OUT, .place = PLACE_BELOW, .lossy = true};

    if ((paths & ~keep & level->ends) != 0)
        return fate;
    fate.whole = whole || (paths & keep & level->ends) != 0;
    fate.paths = fate.whole ? paths & ~keep : paths;
    if (fate.whole)
        fate.verdict = fate.paths != 0 ? DESCEND : COPY;
    else if ((paths & keep) != 0)
        fate.verdict = DESCEND;
    return fate;
}

static struct fate judge_top(const struct slim *s, struct kr_bytes name, uint64_t paths)
{
    if (kr_bytes_is(name, "metadata"))
        return (struct fate){.verdict = DESCEND,
                             .place = PLACE_METADATA,
                             .whole = true,
                             .paths = paths & ~s->profile->keep};
    if (kr_bytes_is(name, "apiVersion") || kr_bytes_is(name, "kind"))
        return (struct fate){.verdict = LEAVE_OUT};
    return judge(s, paths, !s->profile->keeps);
}

/* What a caller wants to know of metadata; NULL: nothing. */
static struct kr_bytes *wanted(struct kr_slim *seen, struct kr_bytes name)
{
    if (kr_bytes_is(name, "name"))
        return &seen->name;
    if (kr_bytes_is(name, "namespace"))
        return &seen->ns;
    if (kr_bytes_is(name, "uid"))
        return &seen->uid;
    if (kr_bytes_is(name, "resourceVersion"))
        return &seen->version;
    return NULL;
}

static struct fate judge_metadata(const struct slim *s, struct kr_bytes name, uint64_t paths)
{
    if (kr_bytes_is(name, "resourceVersion") || kr_bytes_is(name, "managedFields"))
        return (struct fate){.verdict = LEAVE_OUT};
    if (kr_bytes_is(name, "annotations"))
        return judge(s, paths, true);
    return (struct fate){.verdict = COPY};
}

static struct fate judge_member(const struct slim *s, struct kr_bytes name)
{
    const struct level *level = &s->levels[s->depth];
    uint64_t paths = level->paths & kr_profile_match(&s->profile->levels[s->depth], name);

    switch (level->place) {
    case PLACE_TOP:
        return judge_top(s, name, paths);
    case PLACE_METADATA:
        return judge_metadata(s, name, paths);
    case PLACE_BELOW:
        break;
    }
    return judge(s, paths, level->whole);
}

static struct fate judge_element(const struct slim *s)
{
    const struct level *level = &s->levels[s->depth];

    return judge(s, level->paths & s->profile->levels[s->depth].any, level->whole);
}

static void descend(struct slim *s, struct fate fate)
{
    bool array = *s->p == '[';

    s->p++;
    s->depth++;
    s->levels[s->depth] = (struct level){
        .paths = fate.paths, .place = fate.place, .whole = fate.whole, .array = array};
}

/* Takes the key and what is behind it, up to its value. False: malformed. */
static bool take_key(struct slim *s, struct kr_bytes *key)
{
    size_t n = kr_frame_string(rest(s));

    if (n == 0)
        return false;
    *key = kr_bytes_of(s->p + 1, n - 2);
    s->p += n;
    skip_space(s);
    if (!take(s, ':'))
        return false;
    skip_space(s);
    return true;
}

/* What stands of an object or array that nothing goes through, or of a value that is neither. */
static enum verdict settle(const struct slim *s, struct fate fate)
{
    const uint8_t c = s->p < s->end ? *s->p : 0;

    if (fate.verdict != DESCEND || c == '{' || c == '[')
        return fate.verdict;
    /* An element keeps its place, and null stands for the object that could be there. */
    return fate.whole || s->levels[s->depth].array || c == 'n' ? COPY : LEAVE_OUT;
}

/* Behind a value: the comma and the space around it. False: malformed. */
static bool take_comma(struct slim *s)
{
    const uint8_t close = s->levels[s->depth].array ? ']' : '}';

    skip_space(s);
    if (take(s, ',')) {
        skip_space(s);
        return s->p < s->end && *s->p != close;
    }
    return s->p < s->end && *s->p == close;
}

static bool note_value(struct slim *s, struct kr_bytes name, struct kr_bytes value)
{
    struct kr_bytes *to = wanted(s->seen, name);

    return to == NULL || kr_bytes_is(value, "null") || kr_scan_plain(value, to);
}

/* A member or an element that stays whole or goes whole; `start` is where it starts, s->p is at its
 * value. */
static int pass_over(struct slim *s, const uint8_t *start, struct kr_bytes name, struct fate fate,
                     enum verdict verdict)
{
    struct level *level = &s->levels[s->depth];
    const size_t n = kr_frame_value(rest(s));
    const uint8_t *behind = s->p + n;
    const uint8_t *to = level->last != NULL ? level->last : start;
    int rc = 0;

    if (n == 0 || (level->place == PLACE_METADATA && !note_value(s, name, kr_bytes_of(s->p, n))))
        return KR_EPROTO;
    s->p = behind;
    if (!take_comma(s))
        return KR_EPROTO;
    if (verdict == COPY) {
        level->last = behind;
        return 0;
    }
    if (fate.lossy)
        s->seen->lossy = true;
    if (to > s->from)
        rc = copy_until(s, to);
    s->from = level->last != NULL ? behind : s->p;
    return rc;
}

/* The next member or element of the innermost level. */
static int next(struct slim *s)
{
    const uint8_t *start = s->p;
    struct kr_bytes name = {0};
    struct fate fate;
    enum verdict verdict;

    if (s->levels[s->depth].array) {
        fate = judge_element(s);
    } else {
        if (!take_key(s, &name))
            return KR_EPROTO;
        name = decode(s, name);
        fate = judge_member(s, name);
    }
    verdict = settle(s, fate);
    if (verdict != DESCEND)
        return pass_over(s, start, name, fate, verdict);
    descend(s, fate);
    skip_space(s);
    return 0;
}

static int walk(struct slim *s)
{
    skip_space(s);
    if (!take(s, '{'))
        return KR_EPROTO;
    s->from = s->p - 1;
    skip_space(s);
    for (;;) {
        int rc = 0;

        if (!take(s, s->levels[s->depth].array ? ']' : '}'))
            rc = next(s);
        else if (s->depth == 0)
            return copy_until(s, s->p);
        else {
            s->levels[--s->depth].last = s->p;
            rc = take_comma(s) ? 0 : KR_EPROTO;
        }
        if (rc != 0)
            return rc;
    }
}

int kr_slim(const struct kr_profile *p, struct kr_bytes object, struct kr_buf *out,
            struct kr_slim *seen, struct kr_note *why)
{
    struct slim s;
    const size_t before = out->n;
    int rc;

    if (object.n == 0)
        return kr_note_set(why, KR_EPROTO, "object: no text");
    *seen = (struct kr_slim){0};
    s.profile = p;
    s.p = object.p;
    s.end = object.p + object.n;
    s.out = out;
    s.seen = seen;
    s.depth = 0;
    s.levels[0] = (struct level){.paths = p->all, .place = PLACE_TOP};
    rc = walk(&s);
    if (rc == 0) {
        skip_space(&s);
        rc = s.p == s.end ? 0 : KR_EPROTO;
    }
    if (rc == 0)
        return 0;
    out->n = before;
    if (rc == KR_EPROTO)
        return kr_note_set(why, rc, "object: malformed at byte %zu", (size_t)(s.p - object.p));
    return kr_note_set(why, rc, "object: %s", kr_err_text(rc));
}
