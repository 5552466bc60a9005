/* SPDX-License-Identifier: Apache-2.0 */
/* What is revoked stands in DIR/revoked, a line for each certificate: serial number, seconds since
 * 1970. `ca crl` makes signed lists of it, one of every issuer that is there, since a hub refuses
 * the certificates of an issuer that it has no list of. */
#include "base/buf.h"
#include "base/err.h"
#include "certs/crl.h"
#include "certs/store_file.h"
#include "ctl/pki_dir.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define PEM_FILE_MAX 65536
#define LIST_MAX (16u << 20)
#define SERIAL_MAX 40
#define DAYS 7

/* Who has issued what is about; the last two while a root is replaced (ctl/ca_rotate.c). */
static const char *const issuers[] = {"ca", "agent-ca", "next", "next-agent-ca"};
#define ISSUERS (sizeof issuers / sizeof issuers[0])

static const struct ctl_option revoke_options[] = {
    {"dir", CTL_REQUIRED, "DIR", "the directory with ca.crt and ca.key"},
};

static int path_in(char out[PATH_MAX], const char *dir, const char *name, struct kr_note *why)
{
    if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        return kr_note_set(why, KR_EINVAL, "the path %.80s... is too long", dir);
    return 0;
}

static int read_list(const char *dir, struct kr_buf *out, struct kr_note *why)
{
    char path[PATH_MAX];
    int rc = path_in(path, dir, "revoked", why);

    kr_buf_init(out, LIST_MAX);
    if (rc == 0 && access(path, F_OK) == 0)
        rc = kr_file_read(out, path, LIST_MAX, why);
    return rc;
}

static int find_serial_of(const struct ctl_call *call, const char *issuer, struct kr_bytes cert,
                          char serial[41], struct kr_note *why)
{
    struct kr_ca *ca = NULL;
    int rc = ctl_load_ca(call, issuer, &ca, why);

    if (rc == 0)
        rc = kr_crl_serial_of(ca, cert, serial, why);
    kr_ca_destroy(ca);
    return rc;
}

static int find_serial(const struct ctl_call *call, struct kr_bytes cert, char serial[41],
                       struct kr_note *why)
{
    int rc = find_serial_of(call, issuers[0], cert, serial, why);

    for (size_t i = 1; i < ISSUERS && rc == KR_EDENIED; i++) {
        if (ctl_has_ca(call, issuers[i]))
            rc = find_serial_of(call, issuers[i], cert, serial, why);
    }
    return rc;
}

static int note_revoked(const struct ctl_call *call, struct kr_note *why)
{
    const char *dir = ctl_get(call, "dir");
    struct kr_buf cert = {0};
    struct kr_buf list = {0};
    char path[PATH_MAX];
    char serial[41] = "";
    int rc = kr_file_read(&cert, call->arg, PEM_FILE_MAX, why);

    if (rc == 0)
        rc = find_serial(call, kr_buf_bytes(&cert), serial, why);
    if (rc == 0)
        rc = read_list(dir, &list, why);
    if (rc == 0 && (list.n == 0 || memmem(list.p, list.n, serial, strlen(serial)) == NULL)) {
        list.max = LIST_MAX;
        rc = kr_buf_printf(&list, "%s %" PRId64 "\n", serial, call->now_wall_ms / 1000);
        if (rc == 0)
            rc = path_in(path, dir, "revoked", why);
        if (rc == 0)
            rc = kr_file_replace(path, kr_buf_bytes(&list), why);
    }
    if (rc == 0)
        fprintf(call->out, "%s\n", serial);
    if (rc == 0)
        fprintf(call->err, "note: it takes effect with the next `ca crl`\n");
    kr_buf_deinit(&cert);
    kr_buf_deinit(&list);
    return rc;
}

static const struct ctl_option crl_options[] = {
    {"dir", CTL_REQUIRED, "DIR", "the directory with ca.crt and ca.key"},
    {"days", CTL_ONE, "N", "until there must be a new one, 1 to 365 (7)"},
    {"out", CTL_ONE, "FILE", "where to write it (DIR/crl.pem); it is replaced"},
};

/* Cuts `list` into its lines, in place. */
static int take_lines(struct kr_buf *list, struct kr_revoked **out, size_t *n, struct kr_note *why)
{
    char *p = (char *)list->p;
    char *end = p + list->n;
    size_t room = 0;

    *n = 0;
    for (size_t i = 0; i < list->n; i++)
        room += list->p[i] == '\n';
    *out = calloc(room + 1, sizeof **out);
    if (*out == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    while (p < end) {
        char *line_end = memchr(p, '\n', (size_t)(end - p));
        size_t hex = strspn(p, "0123456789abcdef");
        uint64_t when;

        if (line_end == NULL || hex == 0 || hex > SERIAL_MAX || p[hex] != ' ' ||
            !kr_bytes_to_u64(kr_bytes_of(p + hex + 1, (size_t)(line_end - p) - hex - 1),
                             INT64_MAX / 1000, &when) ||
            *n == KR_CRL_MAX)
            return kr_note_set(why, KR_EPROTO, "line %zu of the file `revoked` is malformed",
                               *n + 1);
        p[hex] = '\0';
        (*out)[(*n)++] = (struct kr_revoked){p, (int64_t)when * 1000};
        p = line_end + 1;
    }
    return 0;
}

static int make(const struct ctl_call *call, const char *name, const struct kr_revoked *entries,
                size_t n, uint64_t days, struct kr_buf *pem, struct kr_note *why)
{
    struct kr_ca *ca = NULL;
    int rc = ctl_load_ca(call, name, &ca, why);

    if (rc == 0)
        rc = kr_crl_make(ca, entries, n, (int64_t)days, call->now_wall_ms, pem, why);
    kr_ca_destroy(ca);
    return rc;
}

static int write_lists(const struct ctl_call *call, uint64_t days, const char *out,
                       struct kr_note *why)
{
    struct kr_buf pem = {.max = ISSUERS * LIST_MAX};
    struct kr_revoked *entries = NULL;
    struct kr_buf list = {0};
    size_t n = 0;
    int rc = read_list(ctl_get(call, "dir"), &list, why);

    if (rc == 0)
        rc = take_lines(&list, &entries, &n, why);
    for (size_t i = 0; i < ISSUERS && rc == 0; i++) {
        if (i == 0 || ctl_has_ca(call, issuers[i]))
            rc = make(call, issuers[i], entries, n, days, &pem, why);
    }
    if (rc == 0)
        rc = kr_file_replace(out, kr_buf_bytes(&pem), why);
    if (rc == 0)
        fprintf(call->out, "%s\n", out);
    free(entries);
    kr_buf_deinit(&list);
    kr_buf_deinit(&pem);
    return rc;
}

int ctl_renew_crl(const struct ctl_call *call, struct kr_note *why)
{
    char path[PATH_MAX];
    int rc = path_in(path, ctl_get(call, "dir"), "crl.pem", why);

    return rc == 0 && access(path, F_OK) == 0 ? write_lists(call, DAYS, path, why) : rc;
}

static int crl(const struct ctl_call *call, struct kr_note *why)
{
    const char *out = ctl_get(call, "out");
    char path[PATH_MAX];
    uint64_t days = 0;
    int rc = ctl_get_number(call, "days", 1, 365, DAYS, &days, why);

    if (rc == 0)
        rc = path_in(path, ctl_get(call, "dir"), "crl.pem", why);
    return rc == 0 ? write_lists(call, days, out != NULL ? out : path, why) : rc;
}

const struct ctl_command ctl_ca_revoke = {
    .words = "ca revoke",
    .summary = "note that a certificate (a PEM file) is no longer good",
    .arg = "FILE",
    .options = revoke_options,
    .n_options = sizeof revoke_options / sizeof revoke_options[0],
    .run = note_revoked,
};

const struct ctl_command ctl_ca_crl = {
    .words = "ca crl",
    .summary = "make the revocation lists for a hub's crlFile",
    .options = crl_options,
    .n_options = sizeof crl_options / sizeof crl_options[0],
    .run = crl,
};
