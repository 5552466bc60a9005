/* SPDX-License-Identifier: Apache-2.0 */
/* token: the continue token of a chunked list, in the form that the API server uses:
 * base64url of {"v":"meta.k8s.io/v1","rv":N,"start":"key\0"}. */
#ifndef SIM_TOKEN_H
#define SIM_TOKEN_H

#include "gen.h"

#define SIM_TOKEN_MAX (SIM_KEY_MAX * 2 + 128)

/* rv -1: continue with whatever is there now. */
void sim_token_write(int64_t rv, const char *key, char out[SIM_TOKEN_MAX]);
/* 0 or KR_EINVAL; `key` is the last one that was sent. */
int sim_token_read(const char *token, int64_t *rv, char key[SIM_KEY_MAX]);

#endif
