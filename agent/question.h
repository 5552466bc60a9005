/* SPDX-License-Identifier: Apache-2.0 */
/* question: the requests of a reflector, as text: pages of a list, a WatchList, a watch, and the
 * small list that tells the server's version (kubernetes.io/docs/reference/using-api/api-concepts).
 * Errors: KR_ETOOBIG, KR_ENOMEM. */
#ifndef AGENT_QUESTION_H
#define AGENT_QUESTION_H

#include "agent/local_get.h"
#include "agent/target.h"

enum agent_question_kind { AGENT_ASK_PAGE, AGENT_ASK_STREAM, AGENT_ASK_VERSION, AGENT_ASK_WATCH };

struct agent_question {
    enum agent_question_kind kind;
    const struct agent_target *target;
    bool plain; /* JSON, no Table */
    bool metadata_only;
    bool whole; /* no pages */
    struct kr_bytes version;
    struct kr_bytes cont;
    int64_t timeout_s; /* of a watch */
};

int agent_question_ask(const struct agent_question *q, struct agent_get *get);
/* Whether a server that says this of itself ("v1.33.2") may know WatchList; unknown: it may. */
bool agent_server_streams(const char *version);

#endif
