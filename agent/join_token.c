/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/join_token.h"

#include <string.h>

#include "agent/state.h"
#include "base/err.h"
#include "certs/store_file.h"

#define TOKEN_MAX 256

static const char prefix[] = "kr1.";

int agent_join_token_read(const struct agent_options *o, struct kr_buf *token, struct kr_note *why)
{
    int rc;

    if (o->join_token_file != NULL) {
        rc = kr_file_read(token, o->join_token_file, TOKEN_MAX, why);
        while (rc == 0 && token->n != 0 && token->p[token->n - 1] <= ' ')
            token->n--;
        return rc;
    }
    if (o->join_token == NULL)
        return kr_note_set(why, KR_EDENIED,
                           "no certificate that is good, and no joinToken to get one");
    kr_buf_init(token, TOKEN_MAX);
    return kr_buf_append_str(token, o->join_token);
}

void agent_join_token_id(struct kr_bytes token, char id[AGENT_TOKEN_ID + 1])
{
    struct kr_bytes rest;

    id[0] = '\0';
    if (!kr_bytes_starts(token, kr_bytes_str(prefix)))
        return;
    rest = kr_bytes_skip(token, sizeof prefix - 1);
    if (kr_bytes_find(rest, '.') != AGENT_TOKEN_ID || rest.n == AGENT_TOKEN_ID)
        return;
    memcpy(id, rest.p, AGENT_TOKEN_ID);
    id[AGENT_TOKEN_ID] = '\0';
}

bool agent_join_token_is_new(const struct agent_options *o, const char *tried)
{
    struct kr_buf token = {0};
    struct kr_buf used = {0};
    char id[AGENT_TOKEN_ID + 1];

    id[0] = '\0';
    if (agent_join_token_read(o, &token, NULL) == 0)
        agent_join_token_id(kr_buf_bytes(&token), id);
    kr_buf_cleanse(&token);
    if (id[0] == '\0' || strcmp(id, tried) == 0)
        return false;
    if (agent_state_load_token_id(o->state_dir, &used, NULL) != 0) {
        kr_buf_deinit(&used);
        return true; /* it joined before this was kept, or with files */
    }
    if (kr_bytes_is(kr_buf_bytes(&used), id))
        id[0] = '\0';
    kr_buf_deinit(&used);
    return id[0] != '\0';
}
