/* SPDX-License-Identifier: Apache-2.0 */
/* sync_messages: the messages of Catalog and Sync (proto/kuberelay/v1/kuberelay.proto), as plain
 * structs and as protobuf bytes.
 * Decoding never trusts, like wire/messages.h: strings are UTF-8 without NUL, lists have maxima,
 * sums are bounded by the message. `packed` borrows `in`; lists live in the arena.
 * The arena that is enough for a message of n bytes is KR_DECODE_ARENA(n) (wire/messages.h).
 * Errors: KR_EPROTO, KR_ETOOBIG, KR_ENOMEM, with a note. Encoding: those of kr_buf. Pure. */
#ifndef KR_WIRE_SYNC_MESSAGES_H
#define KR_WIRE_SYNC_MESSAGES_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/note.h"
#include "wire/compress.h"
#include "wire/digest.h"

#define KR_GRPC_CATALOG "/kuberelay.v1.Agent/Catalog"
#define KR_GRPC_SYNC "/kuberelay.v1.Agent/Sync"
#define KR_FEATURE_SYNC "sync/1" /* of agents that serve both */

#define KR_SYNC_MESSAGE_MAX (5u * 1024 * 1024) /* one object of KR_PLAIN_MAX must fit */
#define KR_SYNC_BATCH_TARGET (64u * 1024)      /* a batch is closed when it is so long */
#define KR_SYNC_UPSERTS_MAX 4096               /* in one batch; deletes as well */
#define KR_CATALOG_TYPES_MAX 1000              /* in one message */
#define KR_PAIRS_MAX 8192                      /* of one BucketPairs */

struct kr_resource_type {
    struct kr_bytes group;
    struct kr_bytes version;
    struct kr_bytes resource;
    struct kr_bytes kind;
    struct kr_bytes singular;
    const struct kr_bytes *short_names;
    size_t short_name_count;
    const struct kr_bytes *categories;
    size_t category_count;
    bool namespaced;
    bool preferred;
};

struct kr_catalog_update {
    const struct kr_resource_type *types;
    size_t n;
    bool more;
};

struct kr_subscription {
    uint64_t id;
    struct kr_bytes group;
    struct kr_bytes version;
    struct kr_bytes resource;
    const struct kr_bytes *namespaces;
    size_t namespace_count;
    struct kr_bytes label_selector;
    struct kr_bytes field_selector;
    const struct kr_bytes *keep;
    size_t keep_count;
    const struct kr_bytes *drop;
    size_t drop_count;
    bool metadata_only;
    uint32_t priority;
};

struct kr_sync_open {
    struct kr_subscription subscription;
    bool holds; /* digest and version are meant */
    struct kr_digest digest;
    struct kr_bytes version;
    const uint32_t *dictionaries; /* that the hub can unpack */
    size_t dictionary_count;
};

struct kr_pair {
    uint64_t key;
    uint64_t object;
};

struct kr_bucket_pairs {
    unsigned bucket;
    const struct kr_pair *pairs;
    size_t n;
    bool more;
};

struct kr_sync_control {
    const struct kr_sync_open *open; /* NULL: none */
    const struct kr_bucket_pairs *buckets;
    size_t bucket_count;
};

struct kr_upsert {
    struct kr_bytes ns;
    struct kr_bytes name;
    struct kr_bytes uid;
    struct kr_bytes version;
    uint64_t hash;
    bool lossy;
    uint32_t dictionary;
    uint32_t size;
    struct kr_bytes packed;
};

enum kr_sync_problem {
    KR_SYNC_OK,
    KR_SYNC_FORBIDDEN,
    KR_SYNC_NOT_SERVED,
    KR_SYNC_DENIED,
    KR_SYNC_FAILING,
    KR_SYNC_BAD_PROFILE,
};

struct kr_sync_batch {
    struct kr_bytes columns; /* empty: as before */
    const uint32_t *want_buckets;
    size_t want_count;
    const struct kr_upsert *upserts;
    size_t upsert_count;
    const uint64_t *deletes;
    size_t delete_count;
    bool snapshot_end;
    struct kr_bytes progress; /* empty: none */
    bool has_problem;
    enum kr_sync_problem problem;
    struct kr_bytes problem_text;
    uint32_t skipped;
    uint64_t raw_bytes; /* what the API server has sent for this call, so far; 0: not told */
};

#define KR_SYNC_TEXT_MAX 4096 /* one name, selector, path or problem text */
#define KR_SYNC_LIST_MAX 1000 /* namespaces, paths to keep or drop; short names: 64 */
#define KR_SYNC_COLUMNS_MAX (256u * 1024)
/* The plain texts of one batch may have so many bytes together; so has one object alone at most. */
#define KR_SYNC_PLAIN_MAX KR_PLAIN_MAX

int kr_catalog_update_encode(const struct kr_catalog_update *m, struct kr_buf *out);
int kr_catalog_update_decode(struct kr_catalog_update *m, struct kr_bytes in,
                             struct kr_arena *arena, struct kr_note *why);
int kr_sync_control_encode(const struct kr_sync_control *m, struct kr_buf *out);
int kr_sync_control_decode(struct kr_sync_control *m, struct kr_bytes in, struct kr_arena *arena,
                           struct kr_note *why);
int kr_sync_batch_encode(const struct kr_sync_batch *m, struct kr_buf *out);
/* One upsert as it stands in a batch. Encoded parts of a batch that stand in a row are one batch
 * (protobuf merges them), so that an upsert can be encoded before its batch is known.
 * kr_upsert_encode: KR_EINVAL if the peer would not take it. */
int kr_upsert_encode(const struct kr_upsert *u, struct kr_buf *out);
#define KR_UPSERT_SLACK 16 /* room that kr_upsert_encode asks for beyond kr_upsert_size */
size_t kr_upsert_size(const struct kr_upsert *u);
int kr_sync_batch_decode(struct kr_sync_batch *m, struct kr_bytes in, struct kr_arena *arena,
                         struct kr_note *why);

#endif
