/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_token.h"

#include "base/base64.h"
#include "base/err.h"
#include "base/json.h"

#define VERSION "kuberelay/1"
#define PLAIN_MAX 8192
#define TEXT_MAX 16384

static int mac(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes bound, struct kr_bytes json,
               uint8_t out[KR_HMAC_SIZE])
{
    struct kr_buf all = {.max = SIZE_MAX};
    int rc = kr_buf_append(&all, json);

    if (rc == 0)
        rc = kr_buf_append(&all, kr_bytes_of("", 1));
    if (rc == 0)
        rc = kr_buf_append(&all, bound);
    if (rc == 0)
        rc = kr_hmac(key, kr_buf_bytes(&all), out);
    kr_buf_deinit(&all);
    return rc;
}

static int write_json(const struct hub_token *t, struct kr_buf *out)
{
    struct kr_json_out w;

    kr_json_out_init(&w, out);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "v", VERSION);
    kr_json_out_int(&w, "rev", (int64_t)t->revision);
    kr_json_out_string(&w, "ns", t->ns);
    kr_json_out_string(&w, "name", t->name);
    kr_json_out_string(&w, "cluster", t->cluster);
    if (t->left != HUB_LEFT_UNKNOWN)
        kr_json_out_int(&w, "left", t->left);
    kr_json_out_end(&w);
    return w.rc;
}

/* To the alphabet of URLs and back (RFC 4648 section 5). */
static void swap_alphabet(uint8_t *p, size_t n, const char *from, const char *to)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == (uint8_t)from[0])
            p[i] = (uint8_t)to[0];
        else if (p[i] == (uint8_t)from[1])
            p[i] = (uint8_t)to[1];
    }
}

int hub_token_write(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes bound,
                    const struct hub_token *t, struct kr_buf *out)
{
    struct kr_buf plain = {.max = PLAIN_MAX};
    uint8_t sum[KR_HMAC_SIZE] = {0};
    size_t before = out->n;
    int rc = kr_buf_append(&plain, kr_bytes_of(sum, sizeof sum));

    if (rc == 0)
        rc = write_json(t, &plain);
    if (rc == 0)
        rc = mac(key, bound, kr_bytes_skip(kr_buf_bytes(&plain), sizeof sum), plain.p);
    if (rc == 0)
        rc = kr_base64_encode(out, kr_buf_bytes(&plain), false);
    if (rc == 0)
        swap_alphabet(out->p + before, out->n - before, "+/", "-_");
    kr_buf_deinit(&plain);
    return rc;
}

static int decode(struct kr_bytes text, struct kr_buf *plain)
{
    struct kr_buf swapped = {.max = TEXT_MAX};
    int rc = kr_buf_append(&swapped, text);

    if (rc == 0) {
        swap_alphabet(swapped.p, swapped.n, "-_", "+/");
        rc = kr_base64_decode(plain, kr_buf_bytes(&swapped));
    }
    kr_buf_deinit(&swapped);
    return rc;
}

/* What is read was written by ourselves: it is under our MAC. */
static int read_json(struct kr_bytes json, struct kr_arena *arena, struct hub_token *out)
{
    struct kr_json *doc = NULL;
    struct kr_bytes version = {NULL, 0};
    int64_t revision = 0;
    int rc = kr_json_parse(json, &doc, NULL);

    *out = (struct hub_token){.left = HUB_LEFT_UNKNOWN};
    if (rc == 0 &&
        (!kr_json_string(kr_json_get(doc, "v"), &version) || !kr_bytes_is(version, VERSION) ||
         !kr_json_int(kr_json_get(doc, "rev"), &revision) ||
         !kr_json_string(kr_json_get(doc, "ns"), &out->ns) ||
         !kr_json_string(kr_json_get(doc, "name"), &out->name) ||
         !kr_json_string(kr_json_get(doc, "cluster"), &out->cluster)))
        rc = KR_EDENIED;
    if (rc == 0) {
        out->revision = (uint64_t)revision;
        kr_json_int(kr_json_get(doc, "left"), &out->left);
        out->ns = kr_arena_copy(arena, out->ns);
        out->name = kr_arena_copy(arena, out->name);
        out->cluster = kr_arena_copy(arena, out->cluster);
        if (out->ns.p == NULL || out->name.p == NULL || out->cluster.p == NULL)
            rc = KR_ENOMEM;
    }
    kr_json_destroy(doc);
    return rc;
}

int hub_token_read(const uint8_t key[KR_HMAC_SIZE], struct kr_bytes bound, struct kr_bytes text,
                   struct kr_arena *arena, struct hub_token *out)
{
    struct kr_buf plain = {.max = PLAIN_MAX};
    uint8_t sum[KR_HMAC_SIZE];
    int rc = decode(text, &plain);
    struct kr_bytes json;

    if (rc == 0 && plain.n <= sizeof sum)
        rc = KR_EDENIED;
    if (rc == 0) {
        json = kr_bytes_skip(kr_buf_bytes(&plain), sizeof sum);
        rc = mac(key, bound, json, sum);
        if (rc == 0 && !kr_hmac_equal(sum, plain.p))
            rc = KR_EDENIED;
        if (rc == 0)
            rc = read_json(json, arena, out);
    }
    kr_buf_deinit(&plain);
    return rc == 0 || rc == KR_ENOMEM ? rc : KR_EDENIED;
}
