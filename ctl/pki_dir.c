/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/pki_dir.h"

#include <limits.h>
#include <unistd.h>

#include "base/err.h"
#include "certs/store_file.h"

#define PEM_FILE_MAX 65536

static int make_path(char out[PATH_MAX], const char *left, const char *glue, const char *right,
                     struct kr_note *why)
{
    if (snprintf(out, PATH_MAX, "%s%s%s", left, glue, right) >= PATH_MAX)
        return kr_note_set(why, KR_EINVAL, "the path %.80s... is too long", left);
    return 0;
}

int ctl_write_pair(const struct ctl_call *call, const char *prefix, const struct kr_pem_pair *pair,
                   struct kr_note *why)
{
    char cert[PATH_MAX];
    char key[PATH_MAX];
    int rc = make_path(cert, prefix, ".crt", "", why);

    if (rc == 0)
        rc = make_path(key, prefix, ".key", "", why);
    if (rc == 0)
        rc = kr_file_create_pair(key, kr_buf_bytes(&pair->key), cert, kr_buf_bytes(&pair->cert),
                                 why);
    if (rc == 0)
        fprintf(call->out, "%s\n%s\n", cert, key);
    return rc;
}

int ctl_load_ca(const struct ctl_call *call, const char *name, struct kr_ca **out,
                struct kr_note *why)
{
    const char *dir = ctl_get(call, "dir");
    struct kr_buf cert = {0};
    struct kr_buf key = {0};
    char glue[64];
    char path[PATH_MAX];
    int rc;

    *out = NULL;
    snprintf(glue, sizeof glue, "/%s", name);
    rc = make_path(path, dir, glue, ".crt", why);
    if (rc == 0)
        rc = kr_file_read(&cert, path, PEM_FILE_MAX, why);
    if (rc == 0)
        rc = make_path(path, dir, glue, ".key", why);
    if (rc == 0)
        rc = kr_file_read_private(&key, path, PEM_FILE_MAX, why);
    if (rc == 0) {
        rc = kr_ca_load(out, kr_buf_bytes(&cert), kr_buf_bytes(&key),
                        ctl_knows(call, "trust-domain") ? ctl_get(call, "trust-domain") : NULL,
                        call->now_wall_ms, why);
        if (rc != 0)
            kr_note_wrap(why, rc, "%.100s", dir);
    }
    kr_buf_deinit(&cert);
    kr_buf_cleanse(&key);
    return rc;
}

bool ctl_has_ca(const struct ctl_call *call, const char *name)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s.key", ctl_get(call, "dir"), name) <
               (int)sizeof path &&
           access(path, F_OK) == 0;
}

/* While hubs change over to the next root (ctl/ca_rotate.c) it signs for all: what the old root
 * signs now would be worth nothing soon. */
static const char *signer_of(const struct ctl_call *call)
{
    struct kr_buf text = {0};
    char path[PATH_MAX];
    bool serving = false;

    if (make_path(path, ctl_get(call, "dir"), "/", "rotation", NULL) == 0 &&
        kr_file_read(&text, path, 64, NULL) == 0)
        serving = kr_bytes_is(kr_buf_bytes(&text), "serving\n");
    kr_buf_deinit(&text);
    return serving ? "next" : "ca";
}

static int read_lifetime(const struct ctl_call *call, int64_t *out_s, struct kr_note *why)
{
    uint64_t days;
    uint64_t hours;
    int rc;

    if (ctl_has(call, "days") && ctl_has(call, "hours"))
        return kr_note_set(why, KR_EINVAL, "give --days or --hours, not both");
    rc = ctl_get_number(call, "days", 1, 825, 0, &days, why);
    if (rc == 0)
        rc = ctl_get_number(call, "hours", 1, UINT64_C(825) * 24, 0, &hours, why);
    if (rc == 0)
        *out_s = (int64_t)days * KR_CA_DAY_S + (int64_t)hours * KR_CA_HOUR_S;
    return rc;
}

int ctl_issue(const struct ctl_call *call, struct kr_leaf *leaf, const char *stem,
              struct kr_note *why)
{
    const char *out = ctl_get(call, "out");
    struct kr_pem_pair pair = {0};
    struct kr_ca *ca = NULL;
    char prefix[PATH_MAX];
    int rc;

    rc = read_lifetime(call, &leaf->lifetime_s, why);
    if (rc == 0)
        rc = out != NULL ? make_path(prefix, out, "", "", why)
                         : make_path(prefix, ctl_get(call, "dir"), "/", stem, why);
    if (rc == 0)
        rc = ctl_load_ca(call, signer_of(call), &ca, why);
    if (rc == 0)
        rc = kr_ca_issue(ca, leaf, call->now_wall_ms, &pair, why);
    if (rc == 0)
        rc = ctl_write_pair(call, prefix, &pair, why);
    kr_pem_pair_deinit(&pair);
    kr_ca_destroy(ca);
    return rc;
}
