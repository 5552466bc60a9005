/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object_facts.h"

#include <stddef.h>

#include "base/err.h"

enum form {
    PLAIN,    /* a string without escapes */
    ANYTHING, /* the value as it stands */
};

struct field {
    const char *name;
    size_t offset; /* of the struct kr_bytes in the facts */
    enum form form;
};

#define FIELD(name, member, form)                                                                  \
    {                                                                                              \
        name, offsetof(struct kr_object_facts, member), form                                       \
    }

static const struct field of_object[] = {
    FIELD("apiVersion", api_version, PLAIN),
    FIELD("kind", kind, PLAIN),
};

static const struct field of_metadata[] = {
    FIELD("name", name, PLAIN),
    FIELD("namespace", ns, PLAIN),
    FIELD("uid", uid, PLAIN),
    FIELD("resourceVersion", version, PLAIN),
    FIELD("creationTimestamp", created, ANYTHING),
    FIELD("labels", labels, ANYTHING),
    FIELD("annotations", annotations, ANYTHING),
    FIELD("ownerReferences", owners, ANYTHING),
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Index of the field that a key means, or `count`. */
static size_t find_field(const struct field *fields, size_t count, struct kr_bytes key)
{
    size_t i = 0;

    while (i < count && !kr_scan_key_is(key, fields[i].name))
        i++;
    return i;
}

static bool has_escapes(struct kr_bytes key)
{
    return kr_bytes_find(key, '\\') != key.n;
}

/* A member that is read here: once, and plainly spelled. */
static int admit(unsigned *seen, size_t i, struct kr_bytes key, struct kr_note *why)
{
    unsigned bit = 1U << i;

    if (has_escapes(key))
        return kr_note_set(why, KR_EPROTO, "object: the key %.*s is written with escapes",
                           (int)(key.n < 64 ? key.n : 64), (const char *)key.p);
    if ((*seen & bit) != 0)
        return kr_note_set(why, KR_EPROTO, "object: %.*s is there twice", (int)key.n,
                           (const char *)key.p);
    *seen |= bit;
    return 0;
}

static int put(const struct field *f, struct kr_bytes value, struct kr_object_facts *out,
               struct kr_note *why)
{
    struct kr_bytes *to = (struct kr_bytes *)(void *)((char *)out + f->offset);

    if (f->form == PLAIN)
        return kr_scan_plain(value, to)
                   ? 0
                   : kr_note_set(why, KR_EPROTO, "object: %s is no plain string", f->name);
    *to = kr_bytes_is(value, "null") ? kr_bytes_of(NULL, 0) : value;
    return 0;
}

/* `value` is an object. */
static struct kr_opening opening(struct kr_bytes text, struct kr_bytes value)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes member;

    kr_scan_object(value, &it);
    return (struct kr_opening){(size_t)(value.p - text.p) + 1, !kr_scan_member(&it, &key, &member)};
}

static int read_map(struct kr_bytes text, const char *name, struct kr_bytes map,
                    struct kr_opening *out, struct kr_note *why)
{
    if (map.n == 0)
        return 0;
    if (map.p[0] != '{')
        return kr_note_set(why, KR_EPROTO, "object: metadata.%s is no object", name);
    *out = opening(text, map);
    return 0;
}

static int read_metadata(struct kr_bytes text, struct kr_bytes metadata,
                         struct kr_object_facts *out, struct kr_note *why)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;
    unsigned seen = 0;
    int rc = 0;

    if (kr_bytes_is(metadata, "null"))
        return 0;
    if (!kr_scan_object(metadata, &it))
        return kr_note_set(why, KR_EPROTO, "object: metadata is no object");
    out->in_metadata = opening(text, metadata);
    while (rc == 0 && kr_scan_member(&it, &key, &value)) {
        size_t i = find_field(of_metadata, COUNT(of_metadata), key);

        if (i == COUNT(of_metadata))
            continue;
        rc = admit(&seen, i, key, why);
        if (rc == 0)
            rc = put(&of_metadata[i], value, out, why);
    }
    if (rc == 0 && out->created.n != 0 && !kr_scan_plain(out->created, &out->created))
        rc = kr_note_set(why, KR_EPROTO, "object: creationTimestamp is no plain string");
    if (rc == 0)
        rc = read_map(text, "labels", out->labels, &out->in_labels, why);
    if (rc == 0)
        rc = read_map(text, "annotations", out->annotations, &out->in_annotations, why);
    return rc;
}

static int read_object(struct kr_bytes text, struct kr_object_facts *out, struct kr_note *why)
{
    const size_t metadata = COUNT(of_object); /* its bit among those of the object */
    struct kr_bytes top;
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;
    unsigned seen = 0;
    int rc = 0;

    top = text;
    while (top.p[0] != '{')
        top = kr_bytes_skip(top, 1); /* white space: it was checked */
    out->top = opening(text, top);
    kr_scan_object(top, &it);
    while (rc == 0 && kr_scan_member(&it, &key, &value)) {
        size_t i = find_field(of_object, COUNT(of_object), key);

        if (i == COUNT(of_object) && !kr_scan_key_is(key, "metadata"))
            continue;
        rc = admit(&seen, i, key, why);
        if (rc == 0)
            rc = i == metadata ? read_metadata(text, value, out, why)
                               : put(&of_object[i], value, out, why);
    }
    return rc;
}

int kr_object_facts(struct kr_bytes object, struct kr_object_facts *out, struct kr_note *why)
{
    int rc = kr_scan_check(object, KR_SCAN_DEPTH_MAX, why);
    struct kr_scan it;

    *out = (struct kr_object_facts){0};
    if (rc != 0)
        return rc;
    if (!kr_scan_object(object, &it))
        return kr_note_set(why, KR_EPROTO, "object: it is none");
    rc = read_object(object, out, why);
    if (rc != 0)
        *out = (struct kr_object_facts){0};
    return rc;
}
