/* SPDX-License-Identifier: Apache-2.0 */
/* CatalogUpdate: the resource types that a cluster serves. */
#include "base/err.h"
#include "wire/proto_read.h"
#include "wire/sync_messages.h"

enum update_field { /* numbers of kuberelay.proto */
                    TYPES = 1,
                    MORE = 2,
};
enum type_field {
    GROUP = 1,
    VERSION = 2,
    RESOURCE = 3,
    KIND = 4,
    SINGULAR = 5,
    SHORT_NAMES = 6,
    CATEGORIES = 7,
    NAMESPACED = 8,
    PREFERRED = 9,
};

#define WORD_MAX 256 /* the API server's names have 63 bytes, its groups 253 */
#define WORDS_MAX 64

static int put_type(const struct kr_resource_type *t, struct kr_buf *out)
{
    size_t start = out->n;
    int rc = kr_proto_put_bytes(out, GROUP, t->group);

    if (rc == 0)
        rc = kr_proto_put_bytes(out, VERSION, t->version);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, RESOURCE, t->resource);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, KIND, t->kind);
    if (rc == 0)
        rc = kr_proto_put_bytes(out, SINGULAR, t->singular);
    for (size_t i = 0; i < t->short_name_count && rc == 0; i++)
        rc = kr_proto_put_element(out, SHORT_NAMES, t->short_names[i]);
    for (size_t i = 0; i < t->category_count && rc == 0; i++)
        rc = kr_proto_put_element(out, CATEGORIES, t->categories[i]);
    if (rc == 0)
        rc = kr_proto_put_varint(out, NAMESPACED, t->namespaced);
    if (rc == 0)
        rc = kr_proto_put_varint(out, PREFERRED, t->preferred);
    return rc == 0 ? kr_proto_wrap(out, TYPES, start) : rc;
}

int kr_catalog_update_encode(const struct kr_catalog_update *m, struct kr_buf *out)
{
    int rc = 0;

    for (size_t i = 0; i < m->n && rc == 0; i++)
        rc = put_type(&m->types[i], out);
    return rc == 0 ? kr_proto_put_varint(out, MORE, m->more) : rc;
}

struct lists { /* where the next element goes */
    struct kr_bytes *short_name;
    struct kr_bytes *category;
};

static int take_type_field(struct kr_resource_type *t, const struct kr_proto_field *f,
                           struct lists *to, struct kr_note *why)
{
    switch (f->number) {
    case GROUP: /* the core group's name is empty */
        return f->bytes.n != 0 ? kr_proto_word(f, WORD_MAX, &t->group, "group", why)
                               : kr_proto_raw(f, &t->group, "group", why);
    case VERSION:
        return kr_proto_word(f, WORD_MAX, &t->version, "version", why);
    case RESOURCE:
        return kr_proto_word(f, WORD_MAX, &t->resource, "resource", why);
    case KIND:
        return kr_proto_word(f, WORD_MAX, &t->kind, "kind", why);
    case SINGULAR:
        return f->bytes.n != 0 ? kr_proto_word(f, WORD_MAX, &t->singular, "singular", why)
                               : kr_proto_raw(f, &t->singular, "singular", why);
    case SHORT_NAMES:
        return kr_proto_word(f, WORD_MAX, to->short_name++, "short_names", why);
    case CATEGORIES:
        return kr_proto_word(f, WORD_MAX, to->category++, "categories", why);
    case NAMESPACED:
        return kr_proto_bool(f, &t->namespaced, "namespaced", why);
    case PREFERRED:
        return kr_proto_bool(f, &t->preferred, "preferred", why);
    default:
        return 0; /* of a newer version */
    }
}

static int take_type(struct kr_bytes in, struct kr_resource_type *t, struct kr_arena *arena,
                     struct kr_note *why)
{
    struct lists to;
    int rc = kr_proto_count(in, SHORT_NAMES, WORDS_MAX, &t->short_name_count, "short names", why);

    if (rc == 0)
        rc = kr_proto_count(in, CATEGORIES, WORDS_MAX, &t->category_count, "categories", why);
    if (rc != 0)
        return rc;
    to.short_name = kr_proto_list(arena, t->short_name_count, sizeof *to.short_name);
    to.category = kr_proto_list(arena, t->category_count, sizeof *to.category);
    if (to.short_name == NULL || to.category == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for a resource type");
    t->short_names = to.short_name;
    t->categories = to.category;
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        rc = take_type_field(t, &f, &to, why);
    }
    if (rc == 0 && (t->version.n == 0 || t->resource.n == 0 || t->kind.n == 0))
        rc = kr_note_set(why, KR_EPROTO, "a resource type without version, resource or kind");
    return rc;
}

static int take_field(struct kr_catalog_update *m, const struct kr_proto_field *f,
                      struct kr_resource_type **next, struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes in;
    int rc;

    if (f->number == MORE)
        return kr_proto_bool(f, &m->more, "more", why);
    if (f->number != TYPES)
        return 0;
    rc = kr_proto_raw(f, &in, "types", why);
    return rc == 0 ? take_type(in, (*next)++, arena, why) : rc;
}

int kr_catalog_update_decode(struct kr_catalog_update *m, struct kr_bytes in,
                             struct kr_arena *arena, struct kr_note *why)
{
    struct kr_resource_type *types = NULL;
    int rc;

    *m = (struct kr_catalog_update){.n = 0};
    rc = kr_proto_count(in, TYPES, KR_CATALOG_TYPES_MAX, &m->n, "resource types", why);
    if (rc == 0) {
        types = kr_proto_list(arena, m->n, sizeof *types);
        rc = types != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "no memory for the catalog");
    }
    if (rc == 0)
        memset(types, 0, m->n * sizeof *types);
    m->types = types;
    while (in.n != 0 && rc == 0) {
        struct kr_proto_field f;

        kr_proto_next(&in, &f); /* cannot fail: counted */
        rc = take_field(m, &f, &types, arena, why);
    }
    if (rc != 0)
        *m = (struct kr_catalog_update){.n = 0};
    return rc;
}
