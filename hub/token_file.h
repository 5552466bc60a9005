/* SPDX-License-Identifier: Apache-2.0 */
/* token_file: bearer tokens that never expire, for labs: lines `token,user,uid[,"group1,group2"]`,
 * as kube-apiserver's --token-auth-file has them (empty lines and lines with # are skipped).
 * Memory: only hashes of the tokens are kept.
 * Limits: 4 MiB, 10,000 tokens. Errors: KR_EINVAL with FILE:LINE, those of files. */
#ifndef HUB_TOKEN_FILE_H
#define HUB_TOKEN_FILE_H

#include "hub/caller.h"

struct hub_token_file;

int hub_token_file_load(struct hub_token_file **out, const char *file, struct kr_note *why);
int hub_token_file_parse(struct hub_token_file **out, const char *name, struct kr_bytes text,
                         struct kr_note *why);
void hub_token_file_destroy(struct hub_token_file *f); /* NULL is fine */
/* Lent; NULL: no such token. */
struct hub_caller *hub_token_file_find(const struct hub_token_file *f, struct kr_bytes token);
/* Marks the callers of `old` (may be NULL) whose tokens are not in `now`, or name somebody else. */
void hub_token_file_revoke(struct hub_token_file *old, const struct hub_token_file *now);
size_t hub_token_file_count(const struct hub_token_file *f);

#endif
