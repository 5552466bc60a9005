/* SPDX-License-Identifier: Apache-2.0 */
/* command: one command of kuberelayctl as a table, and one call of it.
 * A command's file defines one `const struct ctl_command`; ctl.c lists them; --help, the parser and
 * the errors all read the same table.
 * Memory: a call borrows argv; ctl_call_deinit frees its own lists.
 * Errors: KR_EINVAL is a wrong use (exit code 2), every other code a failure (exit code 1); the
 * note is the line on stderr. */
#ifndef KR_CTL_COMMAND_H
#define KR_CTL_COMMAND_H

#include <stdio.h>

#include "base/bytes.h"
#include "base/note.h"

#define CTL_ARGS_MAX 4096  /* words of a command line */
#define CTL_OPTIONS_MAX 16 /* options of a command */

enum ctl_option_kind {
    CTL_ONE,      /* --name VALUE, at most once */
    CTL_REQUIRED, /* exactly once */
    CTL_MANY,     /* any number of times */
    CTL_SOME,     /* at least once */
    CTL_SWITCH,   /* --name, without a value */
};

struct ctl_option {
    const char *name; /* without dashes */
    enum ctl_option_kind kind;
    const char *value; /* how --help calls the value: FILE, NAME; NULL for a switch */
    const char *text;  /* one sentence */
    char letter;       /* -o VALUE is the same; 0: none */
};

struct ctl_call;

struct ctl_command {
    const char *words; /* "ca issue hub" */
    const char *summary;
    const char *arg; /* a positional argument, which is then required; or NULL */
    const struct ctl_option *options;
    size_t n_options;
    int (*run)(const struct ctl_call *call, struct kr_note *why);
    const char *arg2; /* another one behind it; or NULL */
};

struct ctl_call {
    const struct ctl_command *command;
    FILE *out;
    FILE *err; /* for advice; the error line itself is the caller's */
    int64_t now_wall_ms;
    const char *arg;
    const char *arg2;
    bool help;
    const char **slots; /* owned: n_options lists of `room` values */
    size_t room;
    size_t counts[CTL_OPTIONS_MAX];
};

/* Reads the words behind the command's own. */
int ctl_call_init(struct ctl_call *call, const struct ctl_command *command, int argc,
                  char *const *argv, struct kr_note *why);
void ctl_call_deinit(struct ctl_call *call);

/* The value of an option, NULL if it was not given. The name must be in the table. */
const char *ctl_get(const struct ctl_call *call, const char *name);
/* Whether the command has that option at all. */
bool ctl_knows(const struct ctl_call *call, const char *name);
bool ctl_has(const struct ctl_call *call, const char *name);
/* All values of an option. */
const char *const *ctl_get_all(const struct ctl_call *call, const char *name, size_t *n);
/* A whole number within bounds; `fallback` if it was not given. */
int ctl_get_number(const struct ctl_call *call, const char *name, uint64_t min, uint64_t max,
                   uint64_t fallback, uint64_t *out, struct kr_note *why);

void ctl_print_command_help(FILE *out, const struct ctl_command *command);

extern const struct ctl_command ctl_ca_init;
extern const struct ctl_command ctl_ca_issue_hub;
extern const struct ctl_command ctl_ca_issue_agent;
extern const struct ctl_command ctl_ca_issue_user;
extern const struct ctl_command ctl_ca_show;
extern const struct ctl_command ctl_kubeconfig;
extern const struct ctl_command ctl_can_i;
extern const struct ctl_command ctl_clusters;
extern const struct ctl_command ctl_clusters_forget;
extern const struct ctl_command ctl_explain;
extern const struct ctl_command ctl_ca_revoke;
extern const struct ctl_command ctl_ca_crl;
extern const struct ctl_command ctl_ca_rotate_start;
extern const struct ctl_command ctl_ca_rotate_issue;
extern const struct ctl_command ctl_ca_rotate_servers;
extern const struct ctl_command ctl_ca_rotate_finish;
extern const struct ctl_command ctl_ca_rotate_rollback;
extern const struct ctl_command ctl_token_create;
extern const struct ctl_command ctl_token_list;
extern const struct ctl_command ctl_token_revoke;
extern const struct ctl_command ctl_cluster_list;
extern const struct ctl_command ctl_cluster_accept;
extern const struct ctl_command ctl_cluster_deny;
extern const struct ctl_command ctl_cluster_remove;
extern const struct ctl_command ctl_cluster_unlock;

#endif
