/* SPDX-License-Identifier: Apache-2.0 */
/* One allocation for each object, with all its texts behind the header. */
#include "base/uuid.h"
#include "hub/cache_internal.h"

#define PACKED_MAX (UINT32_C(1) << 30)
/* A resourceVersion grows by a digit now and then: then the object need not move. */
#define VERSION_SPARE 2

/* ---- where the texts are ---- */

static const uint8_t *uid_at(const struct hub_object *o)
{
    return o->data + o->ns_n + 1 + o->name_n;
}

struct kr_bytes hub_object_uid(const struct hub_object *o, char buf[HUB_UID_BUF])
{
    if (!o->uuid)
        return kr_bytes_of(uid_at(o), o->uid_n);
    kr_uuid_write(uid_at(o), buf);
    return kr_bytes_of(buf, KR_UUID_TEXT - 1);
}

struct kr_bytes hub_object_packed(const struct hub_object *o)
{
    return kr_bytes_of(uid_at(o) + o->uid_n, o->packed_n);
}

struct kr_bytes hub_object_version(const struct hub_object *o)
{
    return kr_bytes_of(uid_at(o) + o->uid_n + o->packed_n, o->version_n);
}

bool hub_object_has_uid(const struct hub_object *o, struct kr_bytes uid)
{
    char buf[HUB_UID_BUF];

    return kr_bytes_eq(hub_object_uid(o, buf), uid);
}

static size_t object_size(const struct hub_object *o)
{
    return offsetof(struct hub_object, data) + o->ns_n + 1 + o->name_n + o->uid_n + o->packed_n +
           o->version_cap;
}

size_t hub_object_bytes(const struct hub_object *o)
{
    return hub_footprint(object_size(o));
}

/* ---- making ---- */

int hub_object_measure(const struct hub_incoming *in, size_t *size)
{
    uint8_t uuid[KR_UUID_SIZE];

    if (in->ns.n > UINT8_MAX || in->name.n > UINT8_MAX || in->uid.n > UINT8_MAX ||
        in->version.n > UINT8_MAX - VERSION_SPARE - 16 || in->dictionary > UINT8_MAX)
        return KR_EINVAL;
    if (in->packed.n > PACKED_MAX)
        return KR_ETOOBIG;
    if (kr_bytes_find(in->ns, '\0') != in->ns.n || kr_bytes_find(in->name, '\0') != in->name.n)
        return KR_EINVAL;
    *size = offsetof(struct hub_object, data) + in->ns.n + 1 + in->name.n +
            (kr_uuid_read(in->uid, uuid) ? KR_UUID_SIZE : in->uid.n) + in->packed.n +
            in->version.n + VERSION_SPARE;
    return 0;
}

static uint8_t *put(uint8_t *at, struct kr_bytes text)
{
    if (text.n != 0)
        memcpy(at, text.p, text.n);
    return at + text.n;
}

static void fill(struct hub_object *o, const struct hub_incoming *in)
{
    uint8_t *at = put(o->data, in->ns);

    *at++ = '\0';
    at = put(at, in->name);
    o->uuid = kr_uuid_read(in->uid, at);
    if (o->uuid)
        at += KR_UUID_SIZE;
    else
        at = put(at, in->uid);
    o->uid_n = (uint8_t)(o->uuid ? KR_UUID_SIZE : in->uid.n);
    put(put(at, in->packed), in->version);
}

struct hub_object *hub_object_create(struct hub_cache *c, const struct hub_incoming *in,
                                     uint32_t label_set)
{
    struct hub_object *o;
    size_t size = 0;

    if (hub_object_measure(in, &size) != 0)
        return NULL;
    /* What the allocator would round away is spare room, too. */
    size = hub_footprint(size) - 8;
    o = hub_ledger_alloc(&c->ledger, size);
    if (o == NULL)
        return NULL;
    *o = (struct hub_object){
        .refs = 1,
        .label_set = label_set,
        .hash = in->hash,
        .size = in->size,
        .packed_n = (uint32_t)in->packed.n,
        .dictionary = (uint8_t)in->dictionary,
        .lossy = in->lossy,
        .ns_n = (uint8_t)in->ns.n,
        .name_n = (uint8_t)in->name.n,
        .version_n = (uint8_t)in->version.n,
    };
    fill(o, in);
    o->version_cap = (uint8_t)(size - object_size(o));
    return o;
}

bool hub_object_set_version(struct hub_object *o, struct kr_bytes version)
{
    if (version.n > o->version_cap)
        return false;
    put((uint8_t *)(uintptr_t)hub_object_version(o).p, version);
    o->version_n = (uint8_t)version.n;
    return true;
}

struct hub_object *hub_object_ref(struct hub_object *o)
{
    o->refs++;
    return o;
}

void hub_object_unref(struct hub_cache *c, struct hub_object *o)
{
    if (o == NULL || --o->refs != 0)
        return;
    hub_label_sets_unref(&c->label_sets, o->label_set);
    hub_ledger_free(&c->ledger, o, object_size(o));
}
