/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeconfig.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/token.h"
#include "base/base64.h"
#include "base/err.h"
#include "base/yaml.h"
#include "certs/store_file.h"

#define SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* What would change who is asked, or as whom, and cannot be followed: left out it would be
 * misread in silence. */
static const char *const cluster_refused[] = {"proxy-url", NULL};
static const char *const user_refused[] = {
    "exec",   "auth-provider", "username",      "password", "as",
    "as-uid", "as-groups",     "as-user-extra", NULL,
};

static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");
    long port = n <= 5 && text[n] == '\0' ? strtol(text, NULL, 10) : 0;

    return port > 0 && port <= UINT16_MAX;
}

static int parse_server(struct agent_kubeconfig *k, const char *server, struct kr_note *why)
{
    struct kr_bytes rest = kr_bytes_str(server);
    struct kr_bytes host;
    size_t slash;
    size_t colon;

    if (!kr_bytes_starts(rest, KR_LIT("https://")))
        return kr_note_set(why, KR_EINVAL, "server must be https://HOST[:PORT][/PATH]: %s", server);
    rest = kr_bytes_skip(rest, 8);
    slash = kr_bytes_find(rest, '/');
    host = kr_bytes_of(rest.p, slash);
    rest = kr_bytes_skip(rest, slash);
    while (rest.n != 0 && rest.p[rest.n - 1] == '/')
        rest.n--;
    k->path = kr_bytes_dup(rest);
    if (host.n != 0 && host.p[0] == '[') {
        colon = kr_bytes_find(host, ']');
        if (colon == host.n)
            return kr_note_set(why, KR_EINVAL, "server: bad address: %s", server);
        k->host = kr_bytes_dup(kr_bytes_of(host.p + 1, colon - 1));
        host = kr_bytes_skip(host, colon + 1);
    } else {
        colon = kr_bytes_find(host, ':');
        k->host = kr_bytes_dup(kr_bytes_of(host.p, colon));
        host = kr_bytes_skip(host, colon);
    }
    if (host.n != 0 && host.p[0] != ':')
        return kr_note_set(why, KR_EINVAL, "server: bad address: %s", server);
    k->port = host.n > 1 ? kr_bytes_dup(kr_bytes_skip(host, 1)) : strdup("443");
    if (k->host == NULL || k->port == NULL || k->path == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    if (k->host[0] == '\0')
        return kr_note_set(why, KR_EINVAL, "server: no host: %s", server);
    if (!is_port(k->port))
        return kr_note_set(why, KR_EINVAL, "server: bad port: %s", server);
    return 0;
}

static int check_refused(struct kr_yaml *y, const struct kr_yaml_node *node,
                         const char *const *refused, struct kr_note *why)
{
    for (; *refused != NULL; refused++) {
        const struct kr_yaml_node *found = kr_yaml_get(y, node, *refused);
        const char *text = kr_yaml_text(found);
        bool empty =
            text == NULL ? kr_yaml_kind(found) <= KR_YAML_SCALAR : strcmp(text, "null") == 0;

        if (empty)
            continue;
        return kr_note_set(why, KR_EUNSUPPORTED,
                           "%s is not supported; use a token, tokenFile or client certificate, and "
                           "a server that is reached directly",
                           *refused);
    }
    return 0;
}

/* The entry of `list` whose name is `name`, and in it the member `member`. */
static const struct kr_yaml_node *named(struct kr_yaml *y, const char *list, const char *name,
                                        const char *member)
{
    const struct kr_yaml_node *l = kr_yaml_get(y, kr_yaml_root(y), list);
    const struct kr_yaml_node *e;

    for (size_t i = 0; (e = kr_yaml_at(y, l, i)) != NULL; i++) {
        const char *n = kr_yaml_text(kr_yaml_get(y, e, "name"));

        if (n != NULL && name != NULL && strcmp(n, name) == 0)
            return kr_yaml_get(y, e, member);
    }
    return NULL;
}

/* A path in a kubeconfig is relative to the file's own folder. */
static char *resolve_path(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    char *out = NULL;

    if (path[0] == '/' || slash == NULL)
        return strdup(path);
    if (asprintf(&out, "%.*s/%s", (int)(slash - file), file, path) < 0)
        return NULL;
    return out;
}

/* KEY-data (base64) or KEY (a file); neither is fine. */
static int load_pem(struct kr_yaml *y, const struct kr_yaml_node *node, const char *file,
                    const char *key, struct kr_buf *out, char **path_out, struct kr_note *why)
{
    char data_key[64];
    const char *text;
    char *path;
    int rc;

    snprintf(data_key, sizeof data_key, "%s-data", key);
    kr_buf_init(out, AGENT_FILE_MAX);
    text = kr_yaml_text(kr_yaml_get(y, node, data_key));
    if (text != NULL) {
        rc = kr_base64_decode(out, kr_bytes_str(text));
        return rc != 0 ? kr_note_set(why, rc, "%s: not base64", data_key) : 0;
    }
    text = kr_yaml_text(kr_yaml_get(y, node, key));
    if (text == NULL)
        return 0;
    path = resolve_path(file, text);
    if (path == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    rc = kr_file_read(out, path, AGENT_FILE_MAX, why);
    if (path_out != NULL)
        *path_out = path;
    else
        free(path);
    return rc;
}

static int load_cluster(struct agent_kubeconfig *k, struct kr_yaml *y, const char *file,
                        const struct kr_yaml_node *c, struct kr_note *why)
{
    const char *server = kr_yaml_text(kr_yaml_get(y, c, "server"));
    const char *skip = kr_yaml_text(kr_yaml_get(y, c, "insecure-skip-tls-verify"));
    const char *name = kr_yaml_text(kr_yaml_get(y, c, "tls-server-name"));
    int rc;

    if (skip != NULL && strcmp(skip, "false") != 0)
        return kr_note_set(why, KR_EINVAL, "insecure-skip-tls-verify is refused: name the CA");
    if (server == NULL)
        return kr_note_set(why, KR_EINVAL, "the context's cluster has no server");
    rc = check_refused(y, c, cluster_refused, why);
    if (rc == 0)
        rc = parse_server(k, server, why);
    if (rc != 0)
        return rc;
    k->server_name = strdup(name != NULL ? name : k->host);
    rc = load_pem(y, c, file, "certificate-authority", &k->ca_pem, &k->ca_file, why);
    if (rc == 0 && k->ca_pem.n == 0)
        rc = kr_note_set(why, KR_EINVAL, "the context's cluster has no certificate-authority");
    return rc;
}

static int load_user(struct agent_kubeconfig *k, struct kr_yaml *y, const char *file,
                     const struct kr_yaml_node *u, struct kr_note *why)
{
    const char *token = kr_yaml_text(kr_yaml_get(y, u, "token"));
    const char *token_file = kr_yaml_text(kr_yaml_get(y, u, "tokenFile"));
    int rc = check_refused(y, u, user_refused, why);

    if (rc != 0)
        return rc;
    if (token_file != NULL)
        k->token_file = resolve_path(file, token_file);
    else if (token != NULL)
        k->token = strdup(token);
    rc = load_pem(y, u, file, "client-certificate", &k->cert_pem, NULL, why);
    if (rc == 0)
        rc = load_pem(y, u, file, "client-key", &k->key_pem, NULL, why);
    return rc;
}

static int load_context(struct agent_kubeconfig *k, struct kr_yaml *y, const char *file,
                        const char *context, struct kr_note *why)
{
    const struct kr_yaml_node *c;
    const struct kr_yaml_node *cluster;
    const struct kr_yaml_node *user;
    int rc;

    if (context == NULL)
        context = kr_yaml_text(kr_yaml_get(y, kr_yaml_root(y), "current-context"));
    if (context == NULL)
        return kr_note_set(why, KR_EINVAL, "no current-context; name one with context");
    c = named(y, "contexts", context, "context");
    if (c == NULL)
        return kr_note_set(why, KR_ENOENT, "no context named %s", context);
    cluster = named(y, "clusters", kr_yaml_text(kr_yaml_get(y, c, "cluster")), "cluster");
    user = named(y, "users", kr_yaml_text(kr_yaml_get(y, c, "user")), "user");
    if (cluster == NULL || user == NULL)
        return kr_note_set(why, KR_ENOENT, "context %s names a cluster or user that is not there",
                           context);
    rc = load_cluster(k, y, file, cluster, why);
    return rc != 0 ? rc : load_user(k, y, file, user, why);
}

int agent_kubeconfig_load(struct agent_kubeconfig *k, const char *file, const char *context,
                          struct kr_note *why)
{
    struct kr_buf text = {.max = AGENT_FILE_MAX};
    struct kr_yaml *y = NULL;
    int rc;

    *k = (struct agent_kubeconfig){0};
    rc = kr_file_read(&text, file, AGENT_FILE_MAX, why);
    if (rc != 0)
        return rc;
    rc = kr_yaml_parse(kr_buf_bytes(&text), &y, why);
    if (rc == 0)
        rc = load_context(k, y, file, context, why);
    if (rc != 0)
        kr_note_wrap(why, rc, "%s", file);
    kr_yaml_destroy(y);
    kr_buf_deinit(&text);
    return rc;
}

int agent_kubeconfig_in_cluster(struct agent_kubeconfig *k, const char *dir, struct kr_note *why)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");

    *k = (struct agent_kubeconfig){0};
    dir = dir != NULL ? dir : SERVICE_ACCOUNT_DIR;
    if (host == NULL || port == NULL || host[0] == '\0' || port[0] == '\0')
        return kr_note_set(why, KR_ENOENT,
                           "not in a cluster (KUBERNETES_SERVICE_HOST is not set) and no "
                           "kubeconfig was given");
    k->host = strdup(host);
    k->port = strdup(port);
    k->path = strdup("");
    k->server_name = strdup(host);
    if (asprintf(&k->token_file, "%s/token", dir) < 0 ||
        asprintf(&k->ca_file, "%s/ca.crt", dir) < 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    return kr_file_read(&k->ca_pem, k->ca_file, AGENT_FILE_MAX, why);
}

void agent_kubeconfig_deinit(struct agent_kubeconfig *k)
{
    free(k->host);
    free(k->port);
    free(k->path);
    free(k->server_name);
    free(k->ca_file);
    free(k->token);
    free(k->token_file);
    kr_buf_deinit(&k->ca_pem);
    kr_buf_deinit(&k->cert_pem);
    if (k->key_pem.p != NULL)
        explicit_bzero(k->key_pem.p, k->key_pem.n);
    kr_buf_deinit(&k->key_pem);
    *k = (struct agent_kubeconfig){0};
}
