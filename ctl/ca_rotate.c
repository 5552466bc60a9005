/* SPDX-License-Identifier: Apache-2.0 */
/* The root of a PKI directory is replaced in phases; which one it is stands in DIR/rotation:
 *   (none)   ca.crt is the root, bundle.crt holds it
 *   started  next.crt is made; bundle.crt holds both: agents learn of it
 *   issuing  signer.crt is the new root: agents get certificates of it as they renew
 *   serving  hubs and users get certificates of it (`ca issue` works with it)
 *   finish   ca.crt becomes old.crt, next.crt becomes ca.crt, bundle.crt holds the new one alone
 * Where there is an agent-ca, the signer is always one, never a root: agent-ca.crt, then
 * next-agent-ca.crt, which becomes agent-ca.crt at the end.
 * Up to `finish` a rollback leads back; the bundle keeps both roots then, since certificates of the
 * new one are about.
 * `servers` and `finish` are refused while agents would be cut off (rotate_check.h).
 * Hubs: caFile and bundleFile are bundle.crt, signerCertFile and signerKeyFile are signer.*;
 * SIGHUP after each step. */
#include "base/err.h"
#include "certs/ca.h"
#include "certs/store_file.h"
#include "ctl/pki_dir.h"
#include "ctl/registry.h"
#include "ctl/rotate_check.h"

#include <limits.h>
#include <unistd.h>

#define PEM_FILE_MAX 65536

static int path_in(char out[PATH_MAX], const struct ctl_call *call, const char *name,
                   struct kr_note *why)
{
    if (snprintf(out, PATH_MAX, "%s/%s", ctl_get(call, "dir"), name) >= PATH_MAX)
        return kr_note_set(why, KR_EINVAL, "the path is too long");
    return 0;
}

static int read_in(const struct ctl_call *call, const char *name, struct kr_buf *out,
                   struct kr_note *why)
{
    char path[PATH_MAX];
    int rc = path_in(path, call, name, why);

    return rc == 0 ? kr_file_read(out, path, PEM_FILE_MAX, why) : rc;
}

static int write_in(const struct ctl_call *call, const char *name, struct kr_bytes content,
                    struct kr_note *why)
{
    char path[PATH_MAX];
    int rc = path_in(path, call, name, why);

    return rc == 0 ? kr_file_replace(path, content, why) : rc;
}

static int copy_in(const struct ctl_call *call, const char *from, const char *to,
                   struct kr_note *why)
{
    struct kr_buf text = {0};
    int rc = read_in(call, from, &text, why);

    if (rc == 0)
        rc = write_in(call, to, kr_buf_bytes(&text), why);
    kr_buf_cleanse(&text);
    return rc;
}

static int copy_pair(const struct ctl_call *call, const char *from, const char *to,
                     struct kr_note *why)
{
    char a[64];
    char b[64];
    int rc;

    /* The key first: a certificate without its key would be refused, and kept out, anyway. */
    snprintf(a, sizeof a, "%s.key", from);
    snprintf(b, sizeof b, "%s.key", to);
    rc = copy_in(call, a, b, why);
    snprintf(a, sizeof a, "%s.crt", from);
    snprintf(b, sizeof b, "%s.crt", to);
    return rc == 0 ? copy_in(call, a, b, why) : rc;
}

static int write_bundle(const struct ctl_call *call, const char *first, const char *second,
                        struct kr_note *why)
{
    struct kr_buf all = {.max = 2 * PEM_FILE_MAX};
    struct kr_buf more = {0};
    int rc = read_in(call, first, &more, why);

    if (rc == 0)
        rc = kr_buf_append(&all, kr_buf_bytes(&more));
    if (rc == 0 && second != NULL)
        rc = read_in(call, second, &more, why);
    if (rc == 0 && second != NULL)
        rc = kr_buf_append(&all, kr_buf_bytes(&more));
    if (rc == 0)
        rc = write_in(call, "bundle.crt", kr_buf_bytes(&all), why);
    kr_buf_deinit(&all);
    kr_buf_deinit(&more);
    return rc;
}

/* KR_EDENIED unless the phase is one of those. */
static int expect(const struct ctl_call *call, const char *a, const char *b, struct kr_note *why)
{
    struct kr_buf text = {0};
    int rc = read_in(call, "rotation", &text, NULL);
    struct kr_bytes phase = kr_buf_bytes(&text);

    if (phase.n != 0 && phase.p[phase.n - 1] == '\n')
        phase.n--;
    if (rc != 0)
        phase = KR_LIT("none");
    rc = kr_bytes_is(phase, a) || (b != NULL && kr_bytes_is(phase, b))
             ? 0
             : kr_note_set(why, KR_EDENIED, "the rotation is at \"%.*s\", not at \"%s\"",
                           (int)(phase.n < 20 ? phase.n : 20), (const char *)phase.p, a);
    kr_buf_deinit(&text);
    return rc;
}

static int enter(const struct ctl_call *call, const char *phase, const char *next,
                 struct kr_note *why)
{
    char text[32];
    int rc;

    snprintf(text, sizeof text, "%s\n", phase);
    rc = write_in(call, "rotation", kr_bytes_str(text), why);
    if (rc == 0)
        fprintf(call->out, "%s", text);
    if (rc == 0)
        fprintf(call->err, "note: %s\n", next);
    return rc;
}

/* Whose pair the signer of the hubs is. */
static const char *signer_now(const struct ctl_call *call)
{
    return ctl_has_ca(call, "agent-ca") ? "agent-ca" : "ca";
}

static int make_next_agent_ca(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_pem_pair pair = {0};
    struct kr_ca *root = NULL;
    char prefix[PATH_MAX];
    int rc;

    if (ctl_has_ca(call, "next-agent-ca")) /* before a rollback */
        return 0;
    rc = ctl_load_ca(call, "next", &root, why);
    if (rc == 0)
        rc = kr_ca_create_agent_ca(root, 365 * KR_CA_DAY_S, call->now_wall_ms, &pair, why);
    if (rc == 0)
        rc = path_in(prefix, call, "next-agent-ca", why);
    if (rc == 0)
        rc = ctl_write_pair(call, prefix, &pair, why);
    kr_pem_pair_deinit(&pair);
    kr_ca_destroy(root);
    return rc;
}

static int remove_pair(const struct ctl_call *call, const char *name, struct kr_note *why)
{
    static const char *const ends[] = {"key", "crt"};
    char file[64];
    char path[PATH_MAX];
    int rc = 0;

    for (size_t i = 0; i < 2 && rc == 0; i++) {
        snprintf(file, sizeof file, "%s.%s", name, ends[i]);
        rc = path_in(path, call, file, why);
        if (rc == 0)
            (void)unlink(path); /* a copy that stays harms nobody */
    }
    return rc;
}

/* NAME is kept as OLD, and NEXT takes its place. */
static int succeed(const struct ctl_call *call, const char *name, const char *old, const char *next,
                   struct kr_note *why)
{
    int rc = copy_pair(call, name, old, why);

    return rc == 0 ? copy_pair(call, next, name, why) : rc;
}

static const struct ctl_option dir_only[] = {
    {"dir", CTL_REQUIRED, "DIR", "the directory with ca.crt and ca.key"},
};

static int start(const struct ctl_call *call, struct kr_note *why)
{
    struct kr_pem_pair pair = {0};
    struct kr_ca *ca = NULL;
    char prefix[PATH_MAX];
    int rc = expect(call, "none", NULL, why);

    if (rc == 0)
        rc = ctl_load_ca(call, "ca", &ca, why);
    if (rc == 0)
        rc = kr_ca_create_root(&pair, kr_ca_trust_domain(ca), 10, call->now_wall_ms, why);
    if (rc == 0)
        rc = path_in(prefix, call, "next", why);
    if (rc == 0)
        rc = ctl_write_pair(call, prefix, &pair, why);
    if (rc == 0)
        rc = copy_pair(call, signer_now(call), "signer", why);
    if (rc == 0)
        rc = write_bundle(call, "ca.crt", "next.crt", why);
    if (rc == 0)
        rc = ctl_renew_crl(call, why);
    if (rc == 0)
        rc = enter(call, "started",
                   "give bundle.crt to all hubs (caFile, bundleFile) and users, SIGHUP; when "
                   "`cluster list -o json` shows agentsBehind 0: ca rotate issue",
                   why);
    kr_pem_pair_deinit(&pair);
    kr_ca_destroy(ca);
    return rc;
}

static int issue(const struct ctl_call *call, struct kr_note *why)
{
    bool agent_ca = ctl_has_ca(call, "agent-ca");
    int rc = expect(call, "started", NULL, why);

    if (rc == 0 && agent_ca)
        rc = make_next_agent_ca(call, why);
    if (rc == 0)
        rc = copy_pair(call, agent_ca ? "next-agent-ca" : "next", "signer", why);
    if (rc == 0)
        rc = ctl_renew_crl(call, why);
    return rc == 0 ? enter(call, "issuing",
                           "SIGHUP the hubs; agents get new certificates as they renew, then: "
                           "ca rotate servers",
                           why)
                   : rc;
}

static const struct ctl_option checked_options[] = {
    {"dir", CTL_REQUIRED, "DIR", "the directory with ca.crt and ca.key"},
    {"force", CTL_SWITCH, NULL, "also if agents would be cut off, or no hub can be asked"},
    CTL_SOCKET_OPTION,
};

/* Whoever does not know the next root, or (`keys`) needs the old one, would be cut off. */
static int check_agents(const struct ctl_call *call, bool keys, struct kr_note *why)
{
    struct kr_buf next = {0};
    int rc;

    if (ctl_has(call, "force"))
        return 0;
    rc = read_in(call, "next.crt", &next, why);
    if (rc == 0)
        rc = ctl_rotate_check(call, kr_buf_bytes(&next), keys, why);
    kr_buf_deinit(&next);
    return rc;
}

/* From here on hubs show certificates of the next root. */
static int servers(const struct ctl_call *call, struct kr_note *why)
{
    int rc = expect(call, "issuing", NULL, why);

    if (rc == 0)
        rc = check_agents(call, false, why);
    return rc == 0 ? enter(call, "serving",
                           "give each hub and each user a certificate of the new root (ca issue), "
                           "SIGHUP, then: ca rotate finish",
                           why)
                   : rc;
}

static int finish(const struct ctl_call *call, struct kr_note *why)
{
    int rc = expect(call, "serving", NULL, why);

    if (rc == 0)
        rc = check_agents(call, true, why);
    if (rc == 0 && ctl_has_ca(call, "next-agent-ca"))
        rc = succeed(call, "agent-ca", "old-agent-ca", "next-agent-ca", why);
    if (rc == 0)
        rc = succeed(call, "ca", "old", "next", why);
    if (rc == 0)
        rc = write_bundle(call, "ca.crt", NULL, why);
    if (rc == 0)
        rc = remove_pair(call, "next", why);
    if (rc == 0)
        rc = remove_pair(call, "next-agent-ca", why);
    return rc == 0 ? enter(call, "none", "SIGHUP the hubs; old.key can be destroyed", why) : rc;
}

/* The new root stays in the bundle: certificates of it may be about. */
static int rollback(const struct ctl_call *call, struct kr_note *why)
{
    int rc = expect(call, "issuing", "serving", why);

    if (rc == 0)
        rc = copy_pair(call, signer_now(call), "signer", why);
    return rc == 0 ? enter(call, "started",
                           "SIGHUP the hubs, and give them certificates of the old root again if "
                           "they have others; agents go back as they renew",
                           why)
                   : rc;
}

#define PHASE(name_, words_, summary_, options_)                                                   \
    const struct ctl_command ctl_ca_rotate_##name_ = {                                             \
        .words = words_,                                                                           \
        .summary = summary_,                                                                       \
        .options = options_,                                                                       \
        .n_options = sizeof options_ / sizeof options_[0],                                         \
        .run = name_,                                                                              \
    }

PHASE(start, "ca rotate start", "make the next root, and trust both", dir_only);
PHASE(issue, "ca rotate issue", "certify agents by the next root", dir_only);
PHASE(servers, "ca rotate servers", "certify hubs and users by the next root", checked_options);
PHASE(finish, "ca rotate finish", "trust the next root alone", checked_options);
PHASE(rollback, "ca rotate rollback", "certify by the root before again", dir_only);
