/* SPDX-License-Identifier: Apache-2.0 */
/* Format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/. Everything that is not a
 * checked name is written as a double-quoted scalar (YAML 1.2 section 7.3.1). */
#include "base/base64.h"
#include "base/err.h"
#include "certs/ca.h"
#include "certs/identity.h"
#include "certs/store_file.h"
#include "ctl/command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#define PEM_FILE_MAX 262144
#define TEXT_MAX 67108864 /* clusters times the CA bundle, with room */
#define CLUSTERS_MAX 1000
#define FLEET "fleet"

static const struct ctl_option options[] = {
    {"server", CTL_REQUIRED, "URL", "the hub's API port: https://HOST:6443"},
    {"ca", CTL_REQUIRED, "FILE", "the root certificate (ca.crt)"},
    {"cert", CTL_REQUIRED, "FILE", "the user's certificate"},
    {"key", CTL_REQUIRED, "FILE", "the user's key"},
    {"cluster", CTL_MANY, "NAME", "a cluster; each gets a context of its name"},
    {"fleet", CTL_SWITCH, NULL, "a context \"fleet\" that reads all clusters at once"},
    {"embed", CTL_SWITCH, NULL, "put certificates and key into the file (the default)"},
    {"files", CTL_SWITCH, NULL, "refer to the three files by path instead"},
    {"out", CTL_ONE, "FILE", "where to write, mode 0600 (standard output)"},
};

struct kubeconfig {
    const struct ctl_call *call;
    struct kr_bytes server; /* without a slash at its end */
    const char *const *clusters;
    size_t n_clusters;
    bool fleet; /* one context more, behind those of the clusters */
    struct kr_identity user;
    struct kr_buf ca; /* PEM */
    struct kr_buf cert;
    struct kr_buf key;
    struct kr_buf text;
};

static bool is_host_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-';
}

static bool is_port(struct kr_bytes b)
{
    uint64_t port;

    if (b.n == 0)
        return true; /* none given: 443 */
    return b.p[0] == ':' && kr_bytes_to_u64(kr_bytes_skip(b, 1), 65535, &port) && port != 0;
}

/* HOST[:PORT] or [IPv6][:PORT] */
static bool is_authority(struct kr_bytes b)
{
    size_t n = 0;

    if (b.n != 0 && b.p[0] == '[') {
        n = kr_bytes_find(b, ']');
        if (n < 3 || n == b.n)
            return false;
        for (size_t i = 1; i < n; i++) {
            if (!is_host_char(b.p[i]) && b.p[i] != ':')
                return false;
        }
        return is_port(kr_bytes_skip(b, n + 1));
    }
    while (n < b.n && is_host_char(b.p[n]))
        n++;
    return n != 0 && is_port(kr_bytes_skip(b, n));
}

static int read_server(struct kubeconfig *k, struct kr_note *why)
{
    struct kr_bytes url = kr_bytes_str(ctl_get(k->call, "server"));

    if (url.n != 0 && url.p[url.n - 1] == '/')
        url.n--;
    if (!kr_bytes_starts(url, KR_LIT("https://")) || !is_authority(kr_bytes_skip(url, 8)))
        return kr_note_set(why, KR_EINVAL, "--server takes https://HOST:PORT without a path");
    k->server = url;
    return 0;
}

static int read_clusters(struct kubeconfig *k, struct kr_note *why)
{
    k->clusters = ctl_get_all(k->call, "cluster", &k->n_clusters);
    k->fleet = ctl_has(k->call, "fleet");
    if (k->n_clusters == 0 && !k->fleet)
        return kr_note_set(why, KR_EINVAL, "give --cluster NAME, or --fleet");
    if (k->n_clusters > CLUSTERS_MAX)
        return kr_note_set(why, KR_EINVAL, "more than %d clusters", CLUSTERS_MAX);
    for (size_t i = 0; i < k->n_clusters; i++) {
        if (!kr_is_dns_label(kr_bytes_str(k->clusters[i])))
            return kr_note_set(why, KR_EINVAL, "\"%.80s\" is no cluster name", k->clusters[i]);
        if (k->fleet && strcmp(k->clusters[i], FLEET) == 0)
            return kr_note_set(why, KR_EINVAL, "--fleet needs the context's name \"" FLEET "\"");
        for (size_t j = 0; j < i; j++) {
            if (strcmp(k->clusters[i], k->clusters[j]) == 0)
                return kr_note_set(why, KR_EINVAL, "the cluster %s is given twice", k->clusters[i]);
        }
    }
    return 0;
}

/* Reads all three and makes sure that kubectl could use them together. */
static int read_files(struct kubeconfig *k, struct kr_note *why)
{
    const struct kr_identity_rules rules = {.role = KR_ROLE_USER};
    const char *cert = ctl_get(k->call, "cert");
    int rc;

    rc = kr_file_read(&k->ca, ctl_get(k->call, "ca"), PEM_FILE_MAX, why);
    if (rc == 0)
        rc = kr_file_read(&k->cert, cert, PEM_FILE_MAX, why);
    if (rc == 0)
        rc = kr_file_read_private(&k->key, ctl_get(k->call, "key"), PEM_FILE_MAX, why);
    if (rc != 0)
        return rc;
    rc = kr_pem_check_ca(kr_buf_bytes(&k->ca), why);
    if (rc != 0)
        return kr_note_wrap(why, rc, "%.100s", ctl_get(k->call, "ca"));
    rc = kr_pem_check_pair(kr_buf_bytes(&k->cert), kr_buf_bytes(&k->key), why);
    if (rc == 0)
        rc = kr_identity_judge_pem(&k->user, kr_buf_bytes(&k->cert), &rules, why);
    return rc != 0 ? kr_note_wrap(why, rc, "%.100s", cert) : 0;
}

static int put_quoted(struct kr_buf *out, struct kr_bytes b)
{
    int rc = kr_buf_append_str(out, "\"");

    for (size_t i = 0; rc == 0 && i < b.n; i++) {
        if (b.p[i] == '"' || b.p[i] == '\\')
            rc = kr_buf_append_str(out, "\\");
        if (rc == 0 && (b.p[i] < ' ' || b.p[i] == 0x7f))
            rc = kr_buf_printf(out, "\\x%02x", b.p[i]);
        else if (rc == 0)
            rc = kr_buf_append(out, (struct kr_bytes){b.p + i, 1});
    }
    return rc != 0 ? rc : kr_buf_append_str(out, "\"\n");
}

/* "    KEY: PATH" or "    KEY-data: BASE64". */
static int put_material(struct kubeconfig *k, const char *key, const char *option,
                        struct kr_bytes pem)
{
    char path[PATH_MAX];
    int rc;

    if (!ctl_has(k->call, "files")) {
        rc = kr_buf_printf(&k->text, "    %s-data: ", key);
        if (rc == 0)
            rc = kr_base64_encode(&k->text, pem, true);
        return rc != 0 ? rc : kr_buf_append_str(&k->text, "\n");
    }
    /* kubectl takes a relative path from the kubeconfig's own directory, so make it absolute. */
    if (realpath(ctl_get(k->call, option), path) == NULL)
        return KR_EIO;
    rc = kr_buf_printf(&k->text, "    %s: ", key);
    return rc != 0 ? rc : put_quoted(&k->text, kr_bytes_str(path));
}

static size_t contexts(const struct kubeconfig *k)
{
    return k->n_clusters + k->fleet;
}

static const char *context_name(const struct kubeconfig *k, size_t i)
{
    return i < k->n_clusters ? k->clusters[i] : FLEET;
}

static int put_clusters(struct kubeconfig *k)
{
    int rc = kr_buf_append_str(&k->text, "apiVersion: v1\nkind: Config\nclusters:\n");

    for (size_t i = 0; rc == 0 && i < contexts(k); i++) {
        rc = kr_buf_printf(&k->text,
                           "- name: \"%s\"\n  cluster:\n    server: \"%.*s/clusters/%s\"\n",
                           context_name(k, i), (int)k->server.n, (const char *)k->server.p,
                           i < k->n_clusters ? k->clusters[i] : "*");
        if (rc == 0)
            rc = put_material(k, "certificate-authority", "ca", kr_buf_bytes(&k->ca));
    }
    return rc;
}

static int put_contexts(struct kubeconfig *k)
{
    int rc = kr_buf_append_str(&k->text, "contexts:\n");

    for (size_t i = 0; rc == 0 && i < contexts(k); i++) {
        rc = kr_buf_printf(&k->text, "- name: \"%s\"\n  context:\n    cluster: \"%s\"\n    user: ",
                           context_name(k, i), context_name(k, i));
        if (rc == 0)
            rc = put_quoted(&k->text, kr_bytes_str(k->user.name));
    }
    return rc != 0 ? rc : kr_buf_printf(&k->text, "current-context: \"%s\"\n", context_name(k, 0));
}

static int put_user(struct kubeconfig *k)
{
    int rc = kr_buf_append_str(&k->text, "users:\n- name: ");

    if (rc == 0)
        rc = put_quoted(&k->text, kr_bytes_str(k->user.name));
    if (rc == 0)
        rc = kr_buf_append_str(&k->text, "  user:\n");
    if (rc == 0)
        rc = put_material(k, "client-certificate", "cert", kr_buf_bytes(&k->cert));
    return rc != 0 ? rc : put_material(k, "client-key", "key", kr_buf_bytes(&k->key));
}

static int deliver(struct kubeconfig *k, struct kr_note *why)
{
    const char *path = ctl_get(k->call, "out");
    int rc;

    if (path == NULL) {
        fwrite(k->text.p, 1, k->text.n, k->call->out);
        return 0;
    }
    rc = kr_file_create(path, kr_buf_bytes(&k->text), why);
    if (rc == 0)
        fprintf(k->call->out, "%s\n", path);
    return rc;
}

static int compose(struct kubeconfig *k, struct kr_note *why)
{
    int rc = put_clusters(k);

    if (rc == 0)
        rc = put_contexts(k);
    if (rc == 0)
        rc = put_user(k);
    return rc != 0 ? kr_note_set(why, rc, "the kubeconfig: %s", kr_err_text(rc)) : 0;
}

static int run(const struct ctl_call *call, struct kr_note *why)
{
    struct kubeconfig k = {.call = call};
    int rc = 0;

    kr_buf_init(&k.text, TEXT_MAX);
    if (ctl_has(call, "embed") && ctl_has(call, "files"))
        rc = kr_note_set(why, KR_EINVAL, "give --embed or --files, not both");
    if (rc == 0)
        rc = read_server(&k, why);
    if (rc == 0)
        rc = read_clusters(&k, why);
    if (rc == 0)
        rc = read_files(&k, why);
    if (rc == 0)
        rc = compose(&k, why);
    if (rc == 0)
        rc = deliver(&k, why);
    kr_identity_deinit(&k.user);
    kr_buf_deinit(&k.ca);
    kr_buf_deinit(&k.cert);
    kr_buf_cleanse(&k.key);
    kr_buf_cleanse(&k.text);
    return rc;
}

const struct ctl_command ctl_kubeconfig = {
    .words = "kubeconfig",
    .summary = "write a kubeconfig with one user and a context per cluster",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
