/* SPDX-License-Identifier: Apache-2.0 */
/* audit_log: the audit log of a program, with its options: a chained log that says in the program's
 * own log when it takes no lines and when it does again.
 * Strict: what changes something is to be refused while it takes none; best effort: lines are lost.
 * Errors: those of chained_log. Threads: the owner's. */
#ifndef KR_CERTS_AUDIT_LOG_H
#define KR_CERTS_AUDIT_LOG_H

#include "base/log.h"
#include "base/options.h"
#include "certs/chained_log.h"

enum kr_audit_mode { KR_AUDIT_STRICT, KR_AUDIT_BEST_EFFORT }; /* the order of the choices */

struct kr_audit_options { /* embedded in a program's options */
    const char *log;      /* NULL: none; "-": stdout */
    int mode;
    int64_t max_size;
    int64_t keep;
};

extern const char *const kr_audit_modes[];

/* The rows of an option table whose struct has a kr_audit_options at that offset. */
#define KR_AUDIT_OPTIONS(at)                                                                       \
    {.name = "auditLog",                                                                           \
     .type = KR_OPT_STRING,                                                                        \
     .offset = (at) + offsetof(struct kr_audit_options, log),                                      \
     .unit = "FILE",                                                                               \
     .text = "audit log in the Kubernetes format, one JSON line per stage; - is stdout"},          \
        {.name = "auditMode",                                                                      \
         .type = KR_OPT_ENUM,                                                                      \
         .offset = (at) + offsetof(struct kr_audit_options, mode),                                 \
         .value = "strict",                                                                        \
         .choices = kr_audit_modes,                                                                \
         .text =                                                                                   \
             "while the audit log takes no lines: refuse what changes something, or lose lines"},  \
        {.name = "auditMaxSize",                                                                   \
         .type = KR_OPT_SIZE,                                                                      \
         .offset = (at) + offsetof(struct kr_audit_options, max_size),                             \
         .value = "100MiB",                                                                        \
         .min = 0,                                                                                 \
         .max = INT64_C(1) << 40,                                                                  \
         .text = "beyond it FILE becomes FILE.1; 0: never"},                                       \
    {                                                                                              \
        .name = "auditKeep", .type = KR_OPT_INT,                                                   \
        .offset = (at) + offsetof(struct kr_audit_options, keep), .value = "10", .min = 1,         \
        .max = 1000, .text = "how many of FILE.1, FILE.2, ... are kept"                            \
    }

struct kr_audit_log;

struct kr_audit_log_config {
    const struct kr_audit_options *options; /* borrowed */
    struct kr_sched *sched;
    struct kr_log *log;
    struct kr_metric *lines; /* those of kr_chained_config */
    struct kr_metric *lost;
    struct kr_metric *failing;
};

/* *out is NULL if the options name no file. */
int kr_audit_log_open(struct kr_audit_log **out, const struct kr_audit_log_config *cfg,
                      struct kr_note *why);
void kr_audit_log_close(struct kr_audit_log *a); /* NULL is fine, here and below */
/* Somebody has renamed the file. */
void kr_audit_log_reopen(struct kr_audit_log *a);
/* `line` as for kr_chained_log_put; it is emptied. */
int kr_audit_log_put(struct kr_audit_log *a, struct kr_buf *line);
/* Whether something may change now whose line, if it has one yet, was put with `rc`. */
bool kr_audit_log_allows(const struct kr_audit_log *a, int rc);

#endif
