/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/upsert_check.h"

#include <stdlib.h>

#include "base/err.h"
#include "kube/cells.h"
#include "kube/injected.h"
#include "kube/object_facts.h"

#define NAME_MAX 253
#define CELLS_DEPTH 64
#define LABELS_ARENA (KR_PLAIN_MAX + 65536) /* more than the labels of any object */

struct hub_upsert_check {
    struct kr_unpacker *unpacker;
    struct kr_packer *packer;
    struct kr_buf plain;
    struct kr_buf rebuilt; /* plain, without what was cut out */
    struct kr_buf packed;
    struct kr_arena arena;
    struct kr_label labels[HUB_OBJECT_LABELS_MAX];
};

struct hub_upsert_check *hub_upsert_check_create(const struct kr_dictionaries *dictionaries)
{
    struct hub_upsert_check *k = calloc(1, sizeof *k);

    if (k == NULL)
        return NULL;
    kr_buf_init(&k->plain, KR_PLAIN_MAX);
    kr_buf_init(&k->rebuilt, KR_PLAIN_MAX);
    kr_buf_init(&k->packed, KR_SYNC_MESSAGE_MAX);
    kr_arena_init(&k->arena, 4096, LABELS_ARENA);
    k->unpacker = kr_unpacker_create(dictionaries);
    k->packer = kr_packer_create(dictionaries);
    if (k->unpacker != NULL && k->packer != NULL)
        return k;
    hub_upsert_check_destroy(k);
    return NULL;
}

void hub_upsert_check_destroy(struct hub_upsert_check *k)
{
    if (k == NULL)
        return;
    kr_unpacker_destroy(k->unpacker);
    kr_packer_destroy(k->packer);
    kr_buf_deinit(&k->plain);
    kr_buf_deinit(&k->rebuilt);
    kr_buf_deinit(&k->packed);
    kr_arena_deinit(&k->arena);
    free(k);
}

/* ---- what was told beside the object ---- */

/* What stands in paths, and in JSON without escapes. */
static bool is_plain(struct kr_bytes b, size_t max, const char *without)
{
    if (b.n > max)
        return false;
    for (size_t i = 0; i < b.n; i++) {
        if (b.p[i] <= ' ' || b.p[i] >= 0x7f || strchr(without, b.p[i]) != NULL)
            return false;
    }
    return true;
}

static int check_told(const struct kr_upsert *u, struct kr_note *why)
{
    if (u->name.n == 0 || !is_plain(u->name, NAME_MAX, "/%\"\\") || kr_bytes_is(u->name, ".") ||
        kr_bytes_is(u->name, ".."))
        return kr_note_set(why, KR_EPROTO, "no possible name");
    if (u->ns.n != 0 && !kr_is_dns_label(u->ns))
        return kr_note_set(why, KR_EPROTO, "no possible namespace");
    if (!is_plain(u->version, HUB_TOLD_MAX, "\"\\"))
        return kr_note_set(why, KR_EPROTO, "no possible version");
    if (u->size > KR_PLAIN_MAX)
        return kr_note_set(why, KR_ETOOBIG, "longer than %u bytes", KR_PLAIN_MAX);
    if (u->dictionary > UINT8_MAX)
        return kr_note_set(why, KR_ENOENT, "unknown dictionary");
    return 0;
}

/* ---- the text ---- */

static int unpack(struct hub_upsert_check *k, const struct kr_upsert *u, struct kr_note *why)
{
    int rc;

    k->plain.n = 0;
    rc = kr_buf_reserve(&k->plain, u->size);
    if (rc == 0)
        rc = kr_unpack(k->unpacker, u->packed, u->dictionary, k->plain.p, u->size);
    if (rc != 0)
        return kr_note_set(why, rc, "it does not unpack: %s", kr_err_text(rc));
    k->plain.n = u->size;
    return 0;
}

/* plain: cells (or nothing), a newline, the object. */
static int split(struct kr_bytes plain, struct kr_bytes *cells, struct kr_bytes *object,
                 struct kr_note *why)
{
    size_t newline = kr_bytes_find(plain, '\n');

    if (newline == plain.n)
        return kr_note_set(why, KR_EPROTO, "no newline behind the cells");
    *cells = kr_bytes_of(plain.p, newline);
    *object = kr_bytes_skip(plain, newline + 1);
    return 0;
}

static int check_cells(struct kr_bytes cells, struct kr_note *why)
{
    struct kr_scan it;
    struct kr_bytes cell;
    size_t n = 0;
    int rc;

    if (cells.n == 0)
        return 0;
    if (cells.n > HUB_CELLS_MAX)
        return kr_note_set(why, KR_ETOOBIG, "cells longer than %u bytes", HUB_CELLS_MAX);
    rc = kr_scan_check(cells, CELLS_DEPTH, why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "cells");
    if (!kr_scan_array(cells, &it))
        return kr_note_set(why, KR_EPROTO, "cells are no array");
    while (n <= KR_COLUMNS_MAX && kr_scan_element(&it, &cell))
        n++;
    return n > KR_COLUMNS_MAX ? kr_note_set(why, KR_ETOOBIG, "too many cells") : 0;
}

/* `"labels": null` would stand there a second time once the hub adds its own. */
static int check_maps(struct kr_bytes object, const struct kr_object_facts *f, struct kr_note *why)
{
    struct kr_scan it;
    struct kr_bytes key;
    struct kr_bytes value;

    if ((f->labels.n != 0 && f->annotations.n != 0) || f->in_metadata.at == 0 ||
        !kr_scan_object(kr_bytes_skip(object, f->in_metadata.at - 1), &it))
        return 0;
    while (kr_scan_member(&it, &key, &value)) {
        if (kr_bytes_is(value, "null") &&
            (kr_scan_key_is(key, "labels") || kr_scan_key_is(key, "annotations")))
            return kr_note_set(why, KR_EPROTO, "labels or annotations are null");
    }
    return 0;
}

static int check_object(struct kr_bytes object, const struct kr_upsert *u,
                        struct kr_object_facts *f, struct kr_note *why)
{
    int rc = kr_object_facts(object, f, why);

    if (rc != 0)
        return rc;
    if (f->api_version.p != NULL || f->kind.p != NULL || f->version.p != NULL)
        return kr_note_set(why, KR_EPROTO, "apiVersion, kind or resourceVersion are in it");
    if (!kr_bytes_eq(f->name, u->name))
        return kr_note_set(why, KR_EPROTO, "its name is not the one that was told");
    if (!kr_bytes_eq(f->ns, u->ns))
        return kr_note_set(why, KR_EPROTO, "its namespace is not the one that was told");
    if (u->uid.n != 0 && !kr_bytes_eq(f->uid, u->uid))
        return kr_note_set(why, KR_EPROTO, "its uid is not the one that was told");
    if (!is_plain(f->uid, HUB_TOLD_MAX, "\"\\"))
        return kr_note_set(why, KR_EPROTO, "no possible uid");
    return check_maps(object, f, why);
}

/* ---- cutting ---- */

static int cut(struct hub_upsert_check *k, const struct kr_upsert *u, struct kr_object_facts *f,
               struct hub_incoming *out, struct kr_note *why)
{
    struct kr_bytes cells;
    struct kr_bytes object;
    int rc;

    k->rebuilt.n = 0;
    k->packed.n = 0;
    rc = kr_cut_injected(kr_buf_bytes(&k->plain), f->labels, f->annotations, &k->rebuilt);
    if (rc == 0)
        rc = kr_pack(k->packer, kr_buf_bytes(&k->rebuilt), &k->packed, &out->dictionary);
    if (rc != 0)
        return kr_note_set(why, rc, "it cannot be packed anew: %s", kr_err_text(rc));
    out->packed = kr_buf_bytes(&k->packed);
    out->size = (uint32_t)k->rebuilt.n;
    rc = split(kr_buf_bytes(&k->rebuilt), &cells, &object, why);
    return rc != 0 ? rc : check_object(object, u, f, why);
}

/* ---- all of it ---- */

static int read_labels(struct hub_upsert_check *k, const struct kr_object_facts *f,
                       struct hub_incoming *out, struct kr_note *why)
{
    int rc;

    out->labels = k->labels;
    out->label_count = 0;
    if (f->labels.n == 0)
        return 0;
    kr_arena_deinit(&k->arena);
    rc = kr_labels_read(f->labels, &k->arena, k->labels, HUB_OBJECT_LABELS_MAX, &out->label_count,
                        why);
    return rc != 0 ? kr_note_wrap(why, rc, "labels") : 0;
}

int hub_upsert_check(struct hub_upsert_check *k, const struct kr_upsert *u,
                     struct hub_incoming *out, struct kr_note *why)
{
    struct kr_object_facts f;
    struct kr_bytes cells;
    struct kr_bytes object;
    int rc = check_told(u, why);

    *out = (struct hub_incoming){
        .ns = u->ns,
        .name = u->name,
        .version = u->version,
        .hash = u->hash,
        .dictionary = u->dictionary,
        .size = u->size,
        .lossy = u->lossy,
        .packed = u->packed,
    };
    if (rc == 0)
        rc = unpack(k, u, why);
    if (rc == 0)
        rc = split(kr_buf_bytes(&k->plain), &cells, &object, why);
    if (rc == 0)
        rc = check_cells(cells, why);
    if (rc == 0)
        rc = check_object(object, u, &f, why);
    if (rc == 0 && (kr_has_injected(f.labels) || kr_has_injected(f.annotations)))
        rc = cut(k, u, &f, out, why);
    if (rc == 0)
        out->uid = f.uid;
    return rc != 0 ? rc : read_labels(k, &f, out, why);
}
