/* SPDX-License-Identifier: Apache-2.0 */
/* sync_samples: one message of each kind of Catalog and Sync, with everything in it. */
#ifndef KR_TESTS_SYNC_SAMPLES_H
#define KR_TESTS_SYNC_SAMPLES_H

#include "wire/sync_messages.h"

#define L(s)                                                                                       \
    {                                                                                              \
        (const uint8_t *)(s), sizeof(s) - 1                                                        \
    }

static const struct kr_bytes words[] = {L("po"), L("caf\xC3\xA9")};
static const struct kr_resource_type types[] = {
    {.version = L("v1"),
     .resource = L("pods"),
     .kind = L("Pod"),
     .singular = L("pod"),
     .short_names = words,
     .short_name_count = 2,
     .categories = words,
     .category_count = 1,
     .namespaced = true,
     .preferred = true},
    {.group = L("apps"), .version = L("v1"), .resource = L("deployments"), .kind = L("Deployment")},
};
static const uint32_t dictionaries[] = {1, 300};
static const struct kr_subscription subscription = {
    .id = 1ull << 40,
    .group = L("apps"),
    .version = L("v1"),
    .resource = L("deployments"),
    .namespaces = words,
    .namespace_count = 2,
    .label_selector = L("app=web,tier in (a,b)"),
    .field_selector = L("metadata.name=x"),
    .keep = words,
    .keep_count = 1,
    .drop = words,
    .drop_count = 2,
    .metadata_only = true,
    .priority = 7,
};
static const struct kr_pair pairs[] = {{.key = 5ull << 56 | 1, .object = 0},
                                       {.key = 5ull << 56 | 2, .object = UINT64_MAX}};
static const struct kr_bucket_pairs buckets[] = {
    {.bucket = 5, .pairs = pairs, .n = 2, .more = true},
    {.bucket = 0},
};
static const uint32_t wanted[] = {0, 255, 128};
static const uint64_t deletes[] = {1, UINT64_MAX};
static const struct kr_upsert upserts[] = {
    {.ns = L("default"),
     .name = L("web-0"),
     .uid = L("u-1"),
     .version = L("12345"),
     .hash = 0x0102030405060708,
     .lossy = true,
     .dictionary = 1,
     .size = 1638,
     .packed = L("\x28\xB5\x2F\xFD\0...")},
    {.name = L("node-1"), .hash = 5, .size = 3, .packed = L("\n{}")},
};
static const struct kr_sync_batch batch = {
    .columns = L("[{\"name\":\"Name\"}]"),
    .want_buckets = wanted,
    .want_count = 3,
    .upserts = upserts,
    .upsert_count = 2,
    .deletes = deletes,
    .delete_count = 2,
    .snapshot_end = true,
    .progress = L("12346"),
    .has_problem = true,
    .problem = KR_SYNC_FAILING,
    .problem_text = L("two\nlines"),
    .skipped = 4,
    .raw_bytes = 1ull << 33,
};

#endif
