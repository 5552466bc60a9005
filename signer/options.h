/* SPDX-License-Identifier: Apache-2.0 */
/* options: what can be configured of the signer. */
#ifndef SIGNER_OPTIONS_H
#define SIGNER_OPTIONS_H

#include "base/options.h"

struct signer_options {
    const char *socket;
    int64_t hub_uid; /* -1: our own */
    const char *cert_file;
    const char *key_file;
    const char *trust_domain; /* NULL: the one that the certificate names */
    int64_t lifetime_max_ms;
    int64_t hour_limit;
    int64_t cluster_limit;
    const char *audit_log;
    int64_t audit_max_size;
    int64_t audit_keep;
    int log_level;
    bool lax_key_mode;
};

extern const struct kr_program signer_program;

#endif
