/* SPDX-License-Identifier: Apache-2.0 */
/* kubeconfig: how to reach the local API server: from a kubeconfig file, or from what Kubernetes
 * gives every pod (client-go rest.InClusterConfig).
 * Memory: owns its strings and PEM texts. Errors: a note that names file and field. */
#ifndef AGENT_KUBECONFIG_H
#define AGENT_KUBECONFIG_H

#include "base/buf.h"
#include "base/note.h"

struct agent_kubeconfig {
    char *host; /* without brackets */
    char *port;
    char *path;        /* prefix of every request path, without a final '/'; "" usually */
    char *server_name; /* what the server's certificate must name */
    struct kr_buf ca_pem;
    char *ca_file;          /* re-read; NULL: ca_pem is final */
    char *token;            /* fixed */
    char *token_file;       /* re-read */
    struct kr_buf cert_pem; /* client certificate, may be empty */
    struct kr_buf key_pem;
};

/* `context` NULL: the file's current-context. What clients would honour and this cannot is refused
 * (KR_EUNSUPPORTED): proxy-url, exec, auth-provider, passwords, as and its kin; KR_EINVAL: plain
 * http and insecure-skip-tls-verify. */
int agent_kubeconfig_load(struct agent_kubeconfig *k, const char *file, const char *context,
                          struct kr_note *why);
/* KUBERNETES_SERVICE_HOST and _PORT, and the service account's projected volume in `dir` (NULL: the
 * usual place). */
int agent_kubeconfig_in_cluster(struct agent_kubeconfig *k, const char *dir, struct kr_note *why);
void agent_kubeconfig_deinit(struct agent_kubeconfig *k);

#endif
