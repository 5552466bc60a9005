/* SPDX-License-Identifier: Apache-2.0 */
/* An object is written by one run of copies into room that was reserved before: no step of it can
 * fail, none looks at what it copies. */
#include "hub/fleet_render.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/json.h"
#include "kube/injected.h"

#define FIXED_MAX 640         /* what is put in besides the texts of the caller */
#define ORIGIN_PLAIN_MAX 1536 /* escaped */

/* Writes; the room is there. */
struct pen {
    uint8_t *p;
};

#define PUT_LIT(pen, s)                                                                            \
    do {                                                                                           \
        memcpy((pen)->p, (s), sizeof(s) - 1);                                                      \
        (pen)->p += sizeof(s) - 1;                                                                 \
    } while (0)

static void put(struct pen *pen, const void *p, size_t n)
{
    if (n != 0)
        memcpy(pen->p, p, n);
    pen->p += n;
}

static void put_u64(struct pen *pen, uint64_t v)
{
    uint8_t digits[20];
    size_t n = 0;

    do {
        digits[sizeof digits - ++n] = (uint8_t)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    put(pen, digits + sizeof digits - n, n);
}

int hub_render_u64(struct kr_buf *out, uint64_t v)
{
    int rc = kr_buf_reserve(out, 20);

    if (rc == 0) {
        struct pen pen = {out->p + out->n};

        put_u64(&pen, v);
        out->n = (size_t)(pen.p - out->p);
    }
    return rc;
}

/* What is put in, with the texts of the caller measured once. */
struct inks {
    const struct hub_face *face;
    size_t cluster_n;
    struct kr_bytes origin; /* as it stands between quotes */
};

static void put_labels(struct pen *pen, const struct inks *k)
{
    PUT_LIT(pen, "\"" KR_LABEL_CLUSTER "\":\"");
    put(pen, k->face->cluster, k->cluster_n);
    PUT_LIT(pen, "\"");
}

static void put_annotations(struct pen *pen, const struct inks *k)
{
    PUT_LIT(pen, "\"" KR_NOTE_KCP_CLUSTER "\":\"");
    put(pen, k->face->cluster, k->cluster_n);
    PUT_LIT(pen, "\",\"" KR_NOTE_VERSION "\":\"");
    put(pen, k->origin.p, k->origin.n);
    if (k->face->lossy)
        PUT_LIT(pen, "\",\"" KR_NOTE_SLIMMED "\":\"true");
    if (k->face->stale_since.n != 0) {
        PUT_LIT(pen, "\",\"" KR_NOTE_STALE "\":\"");
        put(pen, k->face->stale_since.p, k->face->stale_since.n);
    }
    PUT_LIT(pen, "\",\"" KR_NOTE_CLUSTER_NAME "\":\"");
    put(pen, k->face->cluster, k->cluster_n);
    PUT_LIT(pen, "\"");
}

/* What is put behind the '{' of metadata: the version, and the maps that are not there. */
static void put_metadata(struct pen *pen, const struct inks *k, const struct hub_spots *spots)
{
    PUT_LIT(pen, "\"resourceVersion\":\"");
    put_u64(pen, k->face->revision);
    PUT_LIT(pen, "\",");
    if (spots->labels.at == 0) {
        PUT_LIT(pen, "\"labels\":{");
        put_labels(pen, k);
        PUT_LIT(pen, "},");
    }
    if (spots->annotations.at == 0) {
        PUT_LIT(pen, "\"annotations\":{");
        put_annotations(pen, k);
        PUT_LIT(pen, "},");
    }
}

typedef void put_members(struct pen *pen, const struct inks *k);

/* Copies up to the spot and fills it; returns where to go on. */
static size_t fill(struct pen *pen, struct kr_bytes slim, size_t from, const struct hub_gap *spot,
                   put_members *members, const struct inks *k)
{
    put(pen, slim.p + from, spot->at - from);
    if (spot->null)
        PUT_LIT(pen, "{");
    members(pen, k);
    if (spot->null) {
        PUT_LIT(pen, "}");
        return spot->at + 4;
    }
    if (!spot->empty)
        PUT_LIT(pen, ",");
    return spot->at;
}

/* From `from` (behind the '{' of metadata) to `to`, with everything put in. */
static void put_rest(struct pen *pen, struct kr_bytes slim, size_t to,
                     const struct hub_spots *spots, const struct inks *k)
{
    bool labels_first = spots->labels.at < spots->annotations.at;
    size_t from = spots->metadata;

    put_metadata(pen, k, spots);
    if (spots->labels.at != 0 && labels_first)
        from = fill(pen, slim, from, &spots->labels, put_labels, k);
    if (spots->annotations.at != 0)
        from = fill(pen, slim, from, &spots->annotations, put_annotations, k);
    if (spots->labels.at != 0 && !labels_first)
        from = fill(pen, slim, from, &spots->labels, put_labels, k);
    put(pen, slim.p + from, to - from);
}

static bool is_plain(struct kr_bytes text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < ' ' || text.p[i] >= 0x7F || text.p[i] == '"' || text.p[i] == '\\')
            return false;
    }
    return true;
}

static int mix(struct inks *k, const struct hub_face *face, struct kr_buf *escaped)
{
    *k = (struct inks){face, strlen(face->cluster), face->origin};
    if (is_plain(face->origin))
        return 0;
    if (kr_json_escape(escaped, face->origin) != 0)
        return KR_ENOMEM;
    k->origin = kr_buf_bytes(escaped);
    return 0;
}

static void put_down(const struct pen *pen, struct kr_buf *out)
{
    out->n = (size_t)(pen->p - out->p);
    KR_ASSERT(out->n <= out->cap);
}

static size_t room_for(const struct inks *k, struct kr_bytes slim)
{
    return slim.n + FIXED_MAX + 3 * k->cluster_n + k->origin.n + k->face->stale_since.n;
}

int hub_render_at(struct kr_buf *out, const struct hub_kind *kind, struct kr_bytes slim,
                  const struct hub_spots *spots, const struct hub_face *face)
{
    struct kr_buf escaped = {.max = ORIGIN_PLAIN_MAX};
    struct inks k;
    int rc = mix(&k, face, &escaped);

    if (rc == 0)
        rc = kr_buf_reserve(out, room_for(&k, slim) + kind->top.n);
    if (rc == 0) {
        struct pen pen = {out->p + out->n};

        put(&pen, slim.p, spots->top);
        put(&pen, kind->top.p, kind->top.n);
        put(&pen, slim.p + spots->top, spots->metadata - spots->top);
        put_rest(&pen, slim, slim.n, spots, &k);
        put_down(&pen, out);
    }
    kr_buf_deinit(&escaped);
    return rc;
}

int hub_render_object(struct kr_buf *out, const struct hub_kind *kind, struct kr_bytes slim,
                      const struct hub_face *face)
{
    struct hub_spots spots;
    int rc = hub_spots_find(slim, false, &spots);

    return rc != 0 ? rc : hub_render_at(out, kind, slim, &spots, face);
}

int hub_render_partial(struct kr_buf *out, const char *version, struct kr_bytes slim,
                       const struct hub_spots *spots, const struct hub_face *face)
{
    struct kr_buf escaped = {.max = ORIGIN_PLAIN_MAX};
    struct inks k;
    int rc = mix(&k, face, &escaped);

    if (rc == 0)
        rc = kr_buf_reserve(out, room_for(&k, slim));
    if (rc == 0) {
        struct pen pen = {out->p + out->n};

        PUT_LIT(&pen, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/");
        put(&pen, version, strlen(version));
        PUT_LIT(&pen, "\",\"metadata\":{");
        put_rest(&pen, slim, spots->metadata_end, spots, &k);
        PUT_LIT(&pen, "}");
        put_down(&pen, out);
    }
    kr_buf_deinit(&escaped);
    return rc;
}
