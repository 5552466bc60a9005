/* SPDX-License-Identifier: Apache-2.0 */
/* registry: which clusters and keys are known, and what follows from that: who may hold a tunnel.
 * `registration: required` refuses clusters, instances and keys that nobody enrolled, and locks an
 * instance when a key comes back that was replaced by a newer one: then two hold it. With `open`
 * (the default) every certificate of the root is taken, what is seen is recorded, and the same
 * finds are only alarms. What an operator denied is refused by both.
 * A cluster that is pending may hold tunnels, and gets nothing over them.
 * Memory: owns its store. Errors: KR_EDENIED with the reason for the log, else the store's.
 * Threads: the worker's. */
#ifndef HUB_REGISTRY_H
#define HUB_REGISTRY_H

#include "hub/store.h"
#include "hub/worker.h"

struct hub_registry;

/* A tunnel, as the registry sees it; embedded. */
struct hub_seat {
    struct kr_list link;
    const struct kr_identity *id;
    const char *address;
    int64_t retire_ms;          /* its key was replaced: until then it may stay; 0: for good */
    uint64_t bundle_generation; /* that its agent has told */
    bool told;                  /* and the store knows it */
    bool attached;
    void (*on_change)(struct hub_seat *s); /* judge it again; it may leave within */
};

/* *out is NULL without a stateDir. */
int hub_registry_create(struct hub_worker *w, struct hub_registry **out, struct kr_note *why);
void hub_registry_destroy(struct hub_registry *r);
struct hub_store *hub_registry_store(struct hub_registry *r);

/* At the handshake. NULL knows nobody and refuses nobody. `from`: the peer's address, for the
 * audit, here and below; NULL: not known. */
int hub_registry_judge(struct hub_registry *r, const struct kr_identity *id, const char *from,
                       struct kr_note *why);
/* At the first state: judges again, and records the key as the one in use. */
int hub_registry_attach(struct hub_registry *r, const struct kr_identity *id, const char *from,
                        bool *pending, struct kr_note *why);
/* Of a tunnel that is there: whether the cluster still may have it. */
int hub_registry_review(struct hub_registry *r, const struct kr_identity *id, bool *pending,
                        struct kr_note *why);
/* The agent has told which cluster it is in. */
int hub_registry_check_uid(struct hub_registry *r, const struct kr_identity *id,
                           struct kr_bytes uid, struct kr_note *why);

void hub_registry_sit(struct hub_registry *r, struct hub_seat *s);
void hub_registry_leave(struct hub_registry *r, struct hub_seat *s);
/* Calls on_change of the seats of a cluster; of all for NULL. */
void hub_registry_tell(struct hub_registry *r, const char *cluster);
/* The agent of an attached tunnel has told which roots it has. */
void hub_registry_take_told(struct hub_registry *r, struct hub_seat *s, uint64_t bundle_generation);
/* How many attached agents have not told of that generation. */
size_t hub_registry_behind(const struct hub_registry *r, uint64_t bundle_generation,
                           size_t *attached);

/* What operators do; each takes effect at once. KR_ENOENT: not known. */
int hub_registry_set_cluster(struct hub_registry *r, const char *name, enum hub_cluster_state state,
                             bool external, struct kr_note *why);
int hub_registry_set_instance(struct hub_registry *r, const char *cluster, const char *instance,
                              enum hub_instance_state state, struct kr_note *why);
int hub_registry_deny_key(struct hub_registry *r, const uint8_t spki[HUB_SPKI_SIZE],
                          struct kr_note *why);
/* It was denied by mistake: it is worth again what it would be worth without that. */
int hub_registry_allow_key(struct hub_registry *r, const uint8_t spki[HUB_SPKI_SIZE],
                           struct kr_note *why);

/* Whether the record is a tombstone that still counts. */
bool hub_registry_is_buried(const struct hub_registry *r, const struct hub_cluster_record *c);
/* Whether an operator wants nothing of that cluster any more. */
bool hub_registry_is_barred(struct hub_registry *r, const char *cluster);
/* Logs it for people who are to act, and counts it. */
void hub_registry_alarm(struct hub_registry *r, const char *kind, const struct kr_identity *id,
                        const char *text);

#endif
