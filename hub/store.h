/* SPDX-License-Identifier: Apache-2.0 */
/* store: what a hub must know of its fleet and must not forget: join tokens, clusters, the keys of
 * their agents. An interface: one hub keeps it in a file (store_sqlite.h); several will share it.
 * Each operation is one transaction: done and on the disk, or not done. `claim` and `put_instance`
 * compare before they write, so that two hubs cannot both win.
 * Nothing in it is of use to a thief: of tokens only SHA-256 of the secret is kept (160 random
 * bits), certificates are public, private keys never come here.
 * Memory: structs are the caller's and hold no pointers, but hub_instance.chain.
 * Errors: KR_ENOENT, KR_EEXIST (the comparison failed), KR_EIO (the note says what), KR_ENOMEM.
 * Threads: the worker's; operations take as long as the disk takes to sync. */
#ifndef HUB_STORE_H
#define HUB_STORE_H

#include "base/buf.h"
#include "base/note.h"

#define HUB_SPKI_SIZE 32 /* SHA-256 of a SubjectPublicKeyInfo */
#define HUB_TOKEN_ID 8

struct hub_token {
    char id[HUB_TOKEN_ID + 1];
    char cluster[64];
    uint8_t secret_sha256[32];
    int64_t expires_wall_ms;
    bool auto_accept;
    bool used;
    uint8_t spki[HUB_SPKI_SIZE]; /* once it is used: by whom */
    char instance[256];          /* and as which instance */
    uint32_t failures;           /* wrong secrets */
};

enum hub_cluster_state { /* written to disk: only append */
                         HUB_CLUSTER_PENDING,
                         HUB_CLUSTER_ACCEPTED,
                         HUB_CLUSTER_DENIED,
                         HUB_CLUSTER_REMOVED, /* its name is not given to another one for a while */
                         HUB_CLUSTER_QUARANTINED, /* another cluster came under its name */
};

struct hub_cluster_record {
    char name[64];
    char uid[64]; /* of its kube-system namespace; empty: not seen yet */
    enum hub_cluster_state state;
    bool external; /* its certificates are issued elsewhere: new keys come without a Renew */
    int64_t since_wall_ms; /* of the state */
};

enum hub_instance_state {
    HUB_INSTANCE_ACTIVE,
    HUB_INSTANCE_LOCKED, /* two hold its key */
    HUB_INSTANCE_DENIED,
};

struct hub_instance {
    char cluster[64];
    char name[256];
    enum hub_instance_state state;
    uint64_t generation; /* of the key in use, from 1 */
    uint8_t spki[HUB_SPKI_SIZE];
    bool has_next; /* a renewed certificate was issued and has not been seen yet */
    uint8_t next_spki[HUB_SPKI_SIZE];
    bool has_previous;
    uint8_t previous_spki[HUB_SPKI_SIZE];
    char serial[41];
    int64_t not_before_wall_ms;
    int64_t not_after_wall_ms;
    int64_t switched_wall_ms;   /* when the key in use was first seen */
    uint64_t bundle_generation; /* of the roots that it told of last; not written by instance_put */
    struct kr_buf chain;        /* PEM: the certificate that was issued last; empty: elsewhere */
};

/* True: go on. */
typedef bool hub_token_visit(void *owner, const struct hub_token *t);
typedef bool hub_cluster_visit(void *owner, const struct hub_cluster_record *c);
typedef bool hub_instance_visit(void *owner, const struct hub_instance *i);

struct hub_store;

struct hub_store_ops {
    int (*token_add)(struct hub_store *s, const struct hub_token *t, struct kr_note *why);
    int (*token_find)(struct hub_store *s, const char *id, struct hub_token *out,
                      struct kr_note *why);
    /* Binds it to the key that uses it. KR_EEXIST: another key has it. */
    int (*token_claim)(struct hub_store *s, const char *id, const uint8_t spki[HUB_SPKI_SIZE],
                       const char *instance, struct kr_note *why);
    int (*token_failed)(struct hub_store *s, const char *id, struct kr_note *why);
    int (*token_remove)(struct hub_store *s, const char *id, struct kr_note *why);
    int (*tokens_expire)(struct hub_store *s, int64_t before_wall_ms, struct kr_note *why);
    int (*tokens_each)(struct hub_store *s, hub_token_visit *visit, void *owner,
                       struct kr_note *why);
    int (*cluster_find)(struct hub_store *s, const char *name, struct hub_cluster_record *out,
                        struct kr_note *why);
    int (*cluster_put)(struct hub_store *s, const struct hub_cluster_record *c,
                       struct kr_note *why);
    /* Writes it and erases its instances: both or nothing. */
    int (*cluster_remove)(struct hub_store *s, const struct hub_cluster_record *c,
                          struct kr_note *why);
    int (*clusters_each)(struct hub_store *s, hub_cluster_visit *visit, void *owner,
                         struct kr_note *why);
    /* The chain is appended to out->chain, which the caller frees. */
    int (*instance_find)(struct hub_store *s, const char *cluster, const char *name,
                         struct hub_instance *out, struct kr_note *why);
    /* Writes it if its generation on the disk is `expected` (0: it must not be there). */
    int (*instance_put)(struct hub_store *s, const struct hub_instance *i, uint64_t expected,
                        struct kr_note *why);
    int (*instances_each)(struct hub_store *s, const char *cluster, hub_instance_visit *visit,
                          void *owner, struct kr_note *why);
    /* It has told which roots it has. Nothing is written if that is known. */
    int (*instance_trusts)(struct hub_store *s, const char *cluster, const char *name,
                           uint64_t bundle_generation, struct kr_note *why);
    int (*key_deny)(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE], int64_t now_wall_ms,
                    struct kr_note *why);
    /* KR_ENOENT, here and below: it is not denied. */
    int (*key_allow)(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE], struct kr_note *why);
    int (*key_denied)(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE], struct kr_note *why);
    int (*number_get)(struct hub_store *s, const char *key, uint64_t *out, struct kr_note *why);
    int (*number_put)(struct hub_store *s, const char *key, uint64_t value, struct kr_note *why);
    /* Now all that was written is on the disk (see store_sqlite.h). */
    int (*sync)(struct hub_store *s, struct kr_note *why);
    void (*close)(struct hub_store *s);
};

struct hub_store { /* embedded in the implementation */
    const struct hub_store_ops *ops;
};

#endif
