/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/bundle.h"

#include "base/err.h"
#include "certs/ca.h"
#include "certs/hmac.h"
#include "certs/store_file.h"

#define BUNDLE_MAX 40960 /* it must fit into a HubState */

/* Enough to see that it has changed: nobody gains by making us believe that it has not. */
static int mark_of(struct kr_bytes pem, uint64_t *out)
{
    uint8_t hash[KR_HMAC_SIZE];
    int rc = kr_sha256(pem, hash);

    memcpy(out, hash, sizeof *out);
    *out >>= 1; /* SQL knows no unsigned numbers */
    return rc;
}

static int find_generation(struct hub_store *s, struct kr_bytes pem, uint64_t now_s,
                           uint64_t *generation, struct kr_note *why)
{
    uint64_t mark = 0;
    uint64_t known = 0;
    int rc = mark_of(pem, &mark);

    if (rc == 0)
        rc = s->ops->number_get(s, "bundle_mark", &known, why);
    if (rc == 0)
        rc = s->ops->number_get(s, "bundle_generation", generation, why);
    if (rc != 0 || (known == mark && *generation != 0))
        return rc;
    *generation = *generation < now_s ? now_s : *generation + 1;
    /* First: a crash between the two only skips a number. */
    rc = s->ops->number_put(s, "bundle_generation", *generation, why);
    return rc == 0 ? s->ops->number_put(s, "bundle_mark", mark, why) : rc;
}

int hub_bundle_load(struct hub_bundle *b, struct hub_registry *r, const struct hub_options *o,
                    int64_t now_wall_ms, struct kr_note *why)
{
    const char *path = o->bundle_file != NULL ? o->bundle_file : o->ca_file;
    struct kr_buf pem = {0};
    uint64_t generation = 0;
    int rc;

    if (r == NULL)
        return 0;
    rc = kr_file_read(&pem, path, BUNDLE_MAX, why);
    if (rc == KR_ETOOBIG && o->bundle_file == NULL)
        return 0; /* too long to be told; nobody asked for it */
    if (rc == 0)
        rc = kr_pem_check_ca(kr_buf_bytes(&pem), why);
    if (rc == 0)
        rc = find_generation(hub_registry_store(r), kr_buf_bytes(&pem),
                             (uint64_t)(now_wall_ms / 1000), &generation, why);
    if (rc != 0) {
        kr_buf_deinit(&pem);
        return kr_note_wrap(why, rc, "bundleFile");
    }
    kr_buf_deinit(&b->pem);
    b->pem = pem;
    b->generation = generation;
    return 0;
}

void hub_bundle_deinit(struct hub_bundle *b)
{
    kr_buf_deinit(&b->pem);
}
