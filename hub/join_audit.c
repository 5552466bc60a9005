/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/join_audit.h"

#include <stdio.h>

#include "base/err.h"
#include "hub/trust_audit.h"

static int code_of(int rc)
{
    switch (rc) {
    case 0:
        return 200;
    case KR_EDENIED:
        return 403;
    case KR_EEXIST:
        return 409;
    case KR_EFULL:
        return 429;
    case KR_EPROTO:
    case KR_EINVAL:
    case KR_ETOOBIG:
        return 400;
    default:
        return 503;
    }
}

static const char *message_of(int rc, const struct hub_issued *got, const struct kr_note *why)
{
    if (rc != 0)
        return why->text;
    if (got->again)
        return "the same answer as before";
    return got->pending ? "the cluster waits for an operator" : NULL;
}

void hub_join_audit(struct hub_worker *w, const char *token_id, const char *from, int rc,
                    const struct hub_issued *got, const struct kr_note *why)
{
    char user[HUB_TRUST_USER_MAX] = "";
    struct hub_trust_event e = {
        .verb = "create",
        .subresource = "join",
        .user = user,
        .from = from,
        .uri = KR_LIT(KR_GRPC_JOIN),
        .generation = got->generation,
        .code = rc == 0 ? 201 : code_of(rc),
        .message = message_of(rc, got, why),
    };

    if (token_id[0] != '\0')
        snprintf(user, sizeof user, "kuberelay:join-token:%s", token_id);
    hub_trust_audit_agent(w, got->cluster, got->instance, &e);
}

void hub_renew_audit(struct hub_worker *w, const struct kr_identity *id, const char *from, int rc,
                     const struct hub_issued *got, const struct kr_note *why)
{
    char user[HUB_TRUST_USER_MAX];
    struct hub_trust_event e = {
        .verb = "update",
        .subresource = "renew",
        .user = user,
        .from = from,
        .uri = KR_LIT(KR_GRPC_RENEW),
        .generation = got->generation,
        .code = code_of(rc),
        .message = message_of(rc, got, why),
    };

    hub_trust_audit_name(id, user);
    hub_trust_audit_agent(w, id->name, id->instance, &e);
}
