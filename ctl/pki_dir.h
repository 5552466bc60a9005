/* SPDX-License-Identifier: Apache-2.0 */
/* pki_dir: the directory that `ca init` makes and `ca issue` works in: DIR/ca.crt, DIR/ca.key and
 * what was issued. All files 0600, none is ever overwritten.
 * Errors: those of certs/ca.h and certs/store_file.h. */
#ifndef KR_CTL_PKI_DIR_H
#define KR_CTL_PKI_DIR_H

#include "certs/ca.h"
#include "ctl/command.h"

/* Options that every `ca issue` command has: dir, days, hours, trust-domain, out. */
#define CTL_ISSUE_OPTIONS(days_text)                                                               \
    {"dir", CTL_REQUIRED, "DIR", "the directory with ca.crt and ca.key"},                          \
        {"days", CTL_ONE, "N", days_text},                                                         \
        {"hours", CTL_ONE, "N", "lifetime in hours, instead of --days"},                           \
        {"trust-domain", CTL_ONE, "DOMAIN", "needed only if ca.crt names none"},                   \
    {                                                                                              \
        "out", CTL_ONE, "PREFIX", "write PREFIX.crt and PREFIX.key instead"                        \
    }

/* Writes PREFIX.crt and PREFIX.key and prints both paths, certificate first. */
int ctl_write_pair(const struct ctl_call *call, const char *prefix, const struct kr_pem_pair *pair,
                   struct kr_note *why);
/* Loads DIR/NAME.crt and DIR/NAME.key. */
int ctl_load_ca(const struct ctl_call *call, const char *name, struct kr_ca **out,
                struct kr_note *why);
bool ctl_has_ca(const struct ctl_call *call, const char *name);
/* Where there is a DIR/crl.pem it is made anew (`ca crl`): the issuers have changed. */
int ctl_renew_crl(const struct ctl_call *call, struct kr_note *why);
/* Issues `leaf` (its lifetime comes from the options) to --out, or to DIR/STEM. */
int ctl_issue(const struct ctl_call *call, struct kr_leaf *leaf, const char *stem,
              struct kr_note *why);

#endif
