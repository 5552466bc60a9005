/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_pack.h"

#include "base/err.h"

#define KEPT_MAX (128u * 1024) /* of a buffer between two objects */
#define PACKED_MAX (2 * KR_PLAIN_MAX)

int agent_pack_init(struct agent_pack *p)
{
    struct kr_profile_paths names = {.metadata_only = true};

    *p = (struct agent_pack){0};
    kr_buf_init(&p->plain, KR_PLAIN_MAX);
    kr_buf_init(&p->steady, KR_PLAIN_MAX);
    kr_buf_init(&p->packed, PACKED_MAX);
    p->names = kr_profile_create(&names, NULL);
    p->dictionaries = kr_dictionaries_create(true, false);
    if (p->dictionaries != NULL)
        p->packer = kr_packer_create(p->dictionaries);
    if (p->names != NULL && p->packer != NULL)
        return 0;
    agent_pack_deinit(p);
    return KR_ENOMEM;
}

void agent_pack_deinit(struct agent_pack *p)
{
    kr_packer_destroy(p->packer);
    kr_dictionaries_destroy(p->dictionaries);
    kr_profile_destroy(p->names);
    kr_buf_deinit(&p->plain);
    kr_buf_deinit(&p->steady);
    kr_buf_deinit(&p->packed);
    *p = (struct agent_pack){0};
}

static void empty(struct kr_buf *b)
{
    if (b->cap > KEPT_MAX)
        kr_buf_deinit(b);
    b->n = 0;
}

static void empty_all(struct agent_pack *p)
{
    empty(&p->plain);
    empty(&p->steady);
    empty(&p->packed);
}

int agent_pack_read(struct agent_pack *p, const struct kr_profile *profile,
                    const struct kr_columns *columns, const struct agent_seen *seen,
                    struct agent_item *out)
{
    struct kr_bytes cells = columns != NULL ? seen->cells : (struct kr_bytes){NULL, 0};
    struct kr_bytes slim;
    int rc;

    if (kr_bytes_find(cells, '\n') != cells.n) /* spread over lines: the hub splits at the first */
        cells.n = 0;
    empty_all(p);
    rc = kr_buf_append(&p->plain, cells);
    if (rc == 0)
        rc = kr_buf_append_str(&p->plain, "\n");
    if (rc == 0)
        rc = kr_slim(profile, seen->object, &p->plain, &out->seen, NULL);
    if (rc == 0 && cells.n != 0)
        rc = kr_cells_steady(columns, cells, &p->steady);
    if (rc == 0 && (out->seen.name.n == 0 || out->seen.uid.n == 0))
        rc = KR_EPROTO;
    if (rc != 0)
        return rc;
    out->plain = kr_buf_bytes(&p->plain);
    slim = kr_bytes_skip(out->plain, cells.n + 1);
    out->key = kr_key_hash(out->seen.ns, out->seen.name);
    out->hash = kr_object_hash(out->seen.uid, slim, kr_buf_bytes(&p->steady));
    return 0;
}

int agent_pack_name(struct agent_pack *p, struct kr_bytes object, struct agent_item *out)
{
    int rc;

    empty_all(p);
    rc = kr_slim(p->names, object, &p->plain, &out->seen, NULL);
    if (rc == 0 && out->seen.name.n == 0)
        rc = KR_EPROTO;
    out->plain = (struct kr_bytes){NULL, 0};
    if (rc == 0)
        out->key = kr_key_hash(out->seen.ns, out->seen.name);
    return rc;
}

int agent_pack_upsert(struct agent_pack *p, const struct agent_item *item, bool packs,
                      struct kr_upsert *out)
{
    int rc = packs ? kr_pack(p->packer, item->plain, &p->packed, &out->dictionary) : 0;

    if (rc != 0)
        return rc;
    if (!packs)
        out->dictionary = 0;
    out->packed = packs ? kr_buf_bytes(&p->packed) : item->plain;
    out->ns = item->seen.ns;
    out->name = item->seen.name;
    out->uid = (struct kr_bytes){NULL, 0}; /* the hub finds it in the object */
    out->version = item->seen.version;
    out->hash = item->hash;
    out->lossy = item->seen.lossy;
    out->size = (uint32_t)item->plain.n;
    return 0;
}

uint32_t agent_pack_dictionary(const struct agent_pack *p)
{
    return kr_dictionaries_newest(p->dictionaries);
}
