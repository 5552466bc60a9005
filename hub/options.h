/* SPDX-License-Identifier: Apache-2.0 */
/* options: what can be configured of the hub. */
#ifndef HUB_OPTIONS_H
#define HUB_OPTIONS_H

#include "certs/audit_log.h"

enum hub_registration {
    HUB_REGISTRATION_OPEN,
    HUB_REGISTRATION_REQUIRED,
};

/* Without a project: is everybody allowed everything, as before there were projects, or nothing? */
enum hub_authorization { HUB_AUTHORIZATION_OPEN, HUB_AUTHORIZATION_PROJECTS };

struct hub_options {
    const char *api_listen;
    const char *agent_listen;
    const char *admin_listen;
    const char *ca_file;
    const char *client_ca_file; /* NULL: ca_file */
    const char *cert_file;
    const char *key_file;
    int registration;             /* enum hub_registration */
    const char *signer_cert_file; /* NULL: agents cannot enroll here */
    const char *signer_key_file;  /* NULL: signer has it */
    const char *signer;           /* "unix:PATH"; NULL: we have the key */
    int64_t sign_hour_limit;
    int64_t sign_cluster_limit;
    int64_t agent_lifetime_ms;
    int64_t join_tries;
    const char *bundle_file; /* NULL: ca_file */
    const char *crl_file;    /* NULL: none */
    const char *hub_domain;  /* NULL: no server-name form */
    struct kr_strings impersonation;
    const char *token_file;          /* NULL: none */
    const char *authentication_file; /* NULL: no ID tokens */
    bool member_tokens;
    int authorization; /* enum hub_authorization */
    int64_t workers;
    int log_level;
    bool tls12;
    bool lax_key_mode;
    int64_t hold_ms;
    int64_t start_grace_ms;
    int64_t fleet_wait_ms;
    int64_t request_timeout_ms;
    int64_t heartbeat_ms;
    int64_t silence_ms;
    int64_t stall_timeout_ms;
    int64_t idle_timeout_ms;
    int64_t drain_delay_ms;
    int64_t drain_timeout_ms;
    int64_t window_budget;
    int64_t max_connections;
    int64_t max_handshakes;
    int64_t max_requests;
    int64_t max_clusters;
    const char *fleet_file;   /* NULL: nothing is synced, nobody reads */
    const char *state_dir;    /* NULL: nothing is kept over a restart */
    const char *admin_socket; /* NULL: none */
    int64_t cache_quota;      /* of each cluster */
    int64_t fleet_log_events;
    int64_t unsubscribe_after_ms;
    struct kr_audit_options audit;
};

extern const struct kr_program hub_program;

#endif
