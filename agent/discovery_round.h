/* SPDX-License-Identifier: Apache-2.0 */
/* discovery_round: asks the local API server what it serves: /api and /apis in the aggregated form,
 * by ETag, so that a round in which nothing changed costs two 304; or, from a server that does not
 * know that form, the old documents one by one.
 * Life:    init, start, on_end (once), start again, ...; deinit at any time.
 * Memory:  the types of both documents; one group, or one old document of at most 1 MiB, while it
 *          is read; nothing else of a document. Threads: the agent's. */
#ifndef AGENT_DISCOVERY_ROUND_H
#define AGENT_DISCOVERY_ROUND_H

#include "agent/discovery.h"
#include "agent/local_get.h"
#include "kube/list_scan.h"

#define AGENT_GROUP_VERSIONS_MAX 512

struct agent_document { /* /api or /apis */
    struct agent_types types;
    struct kr_buf etag;
    bool known;
};

struct agent_round { /* embed it; read documents, changed and old_form; the rest belongs to
                        discovery_round.c */
    struct agent_document documents[2];
    bool changed;  /* a document is another one than before this round (as far as its ETag tells) */
    bool old_form; /* the server knows no aggregated discovery */
    struct agent_core *c;
    void (*on_end)(void *user, bool ok, const char *why);
    void *user;
    struct agent_get get;
    size_t step; /* which document */
    int status;
    bool scanning;
    struct kr_list_scan scan;
    struct kr_buf body; /* of an old document */
    struct kr_buf etag;
    struct agent_types next;
    bool making; /* next is in use */
    struct kr_note why;
    /* old documents */
    struct kr_arena arena;
    struct agent_group_version *versions;
    size_t version_count;
    size_t version_at;
    bool in_versions;
};

void agent_round_init(struct agent_round *r, struct agent_core *c,
                      void (*on_end)(void *user, bool ok, const char *why), void *user);
void agent_round_deinit(struct agent_round *r);
void agent_round_start(struct agent_round *r);
bool agent_round_active(const struct agent_round *r);

#endif
