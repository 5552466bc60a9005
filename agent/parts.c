/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/parts.h"

#include "agent/apiserver.h"
#include "agent/audit.h"
#include "agent/catalog.h"
#include "agent/member_tokens.h"
#include "agent/sync_out.h"
#include "base/err.h"

int agent_parts_create(struct agent_core *c, struct kr_note *why)
{
    int rc = agent_audit_open(c, why);

    if (rc != 0)
        return rc;
    c->api = agent_apiserver_create(c, why);
    if (c->api == NULL)
        return KR_EINVAL;
    c->catalog = agent_catalog_create(c);
    if (c->catalog == NULL || agent_sync_create(c) != 0)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    return 0;
}

void agent_parts_start(struct agent_core *c)
{
    agent_catalog_start(c->catalog);
}

void agent_parts_stop(struct agent_core *c)
{
    if (c->catalog != NULL)
        agent_catalog_stop(c->catalog);
    if (c->api != NULL)
        agent_apiserver_close(c->api);
}

void agent_parts_destroy(struct agent_core *c)
{
    agent_sync_destroy(c);
    agent_catalog_destroy(c->catalog);
    agent_member_tokens_destroy(c->member_tokens);
    agent_apiserver_destroy(c->api);
    kr_audit_log_close(c->audit);
}

void agent_parts_reopen(struct agent_core *c)
{
    kr_audit_log_reopen(c->audit);
}
