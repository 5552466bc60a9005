/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte for the kind of document, then a document of discovery. */
#include <stdlib.h>

#include "agent/discovery.h"
#include "base/assert.h"
#include "base/err.h"
#include "kube/list_scan.h"

static int on_group(void *user, struct kr_bytes item)
{
    struct agent_types *t = user;
    struct agent_types none = {0};
    struct kr_note why = {""};
    int rc = agent_discovery_group(t, item, &none, &why);

    KR_ASSERT(rc == 0 || rc == KR_EPROTO || rc == KR_ENOMEM);
    return rc;
}

static void on_skipped(void *user, uint64_t n)
{
    (void)user, (void)n;
}

static void read_aggregated(struct agent_types *t, struct kr_bytes doc)
{
    static const struct kr_list_scan_ops ops = {on_group, on_skipped};
    struct kr_list_scan scan = {0};

    KR_ASSERT(kr_list_scan_init(&scan, &ops, t, 4096) == 0);
    kr_list_scan_feed(&scan, doc);
    kr_list_scan_end(&scan, NULL);
    kr_list_scan_deinit(&scan);
}

static void read_versions(struct kr_bytes doc)
{
    struct agent_group_version found[16];
    struct kr_arena arena;
    size_t n = 0;

    kr_arena_init(&arena, 128, 4096);
    if (agent_discovery_versions(doc, &arena, found, 16, &n, NULL) == 0) {
        for (size_t i = 0; i < n; i++)
            KR_ASSERT(found[i].group.p != NULL && found[i].version.p != NULL);
    }
    KR_ASSERT(n <= 16);
    kr_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct agent_group_version gv = {KR_LIT("g"), KR_LIT("v1"), true};
    struct agent_types types;
    struct agent_types again;
    struct kr_bytes doc = {data + 1, size - 1};

    if (size == 0)
        return 0;
    agent_types_init(&types);
    agent_types_init(&again);
    if (data[0] % 3 == 0)
        read_aggregated(&types, doc);
    else if (data[0] % 3 == 1)
        agent_discovery_resources(&types, doc, &gv, NULL);
    else
        read_versions(doc);
    for (size_t i = 0; i < types.n; i++) {
        const struct kr_resource_type *type = &types.all[i];

        KR_ASSERT(type->resource.n != 0 && type->kind.n != 0);
        KR_ASSERT(agent_types_find(&types, type->group, type->version, type->resource) != NULL);
        agent_discovery_keep(&again, &types, type->group, type->version);
    }
    agent_types_deinit(&types);
    agent_types_deinit(&again);
    return 0;
}
