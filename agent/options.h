/* SPDX-License-Identifier: Apache-2.0 */
/* options: what can be configured of the agent. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "certs/audit_log.h"

struct agent_options {
    struct kr_strings hubs;
    const char *hub_name;
    const char *ca_file;  /* NULL: root_pin */
    const char *root_pin; /* NULL: ca_file */
    const char *cert_file;
    const char *key_file;
    const char *state_dir; /* instead of both, or beside them: for the roots that hubs tell of */
    const char *join_token;
    const char *join_token_file;
    const char *instance;
    const char *kubeconfig;
    const char *context;
    const char *service_account_dir;
    const char *proxy;
    const char *no_proxy;
    const char *admin_listen;
    const char *user_prefix;
    const char *policy_file;
    struct kr_strings system_users;
    int64_t lanes;
    int log_level;
    bool lax_key_mode;
    int64_t silence_ms;
    int64_t reconnect_base_ms;
    int64_t reconnect_max_ms;
    int64_t api_timeout_ms;
    int64_t drain_timeout_ms;
    int64_t window_budget;
    int64_t max_requests;
    int64_t discovery_interval_ms;
    struct kr_strings sync_allow;
    struct kr_strings sync_deny;
    struct kr_strings sync_namespaces;
    struct kr_audit_options audit;
};

extern const struct kr_program agent_program;

#endif
