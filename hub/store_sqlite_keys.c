/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/store_sqlite_parts.h"

#include "base/err.h"

#define CHAIN_MAX 65536
#define COLUMNS                                                                                    \
    "cluster, name, state, generation, spki, next_spki, previous_spki, serial, not_before, "       \
    "not_after, switched, chain"
#define ALL_COLUMNS COLUMNS ", bundle"

static void read_instance(struct hub_query *q, struct hub_instance *i)
{
    hub_column_text(q, i->cluster, sizeof i->cluster);
    hub_column_text(q, i->name, sizeof i->name);
    i->state = (enum hub_instance_state)hub_column_int(q);
    i->generation = (uint64_t)hub_column_int(q);
    hub_column_blob(q, i->spki, sizeof i->spki);
    i->has_next = hub_column_blob(q, i->next_spki, sizeof i->next_spki);
    i->has_previous = hub_column_blob(q, i->previous_spki, sizeof i->previous_spki);
    hub_column_text(q, i->serial, sizeof i->serial);
    i->not_before_wall_ms = hub_column_int(q);
    i->not_after_wall_ms = hub_column_int(q);
    i->switched_wall_ms = hub_column_int(q);
    hub_column_append(q, &i->chain);
    i->bundle_generation = (uint64_t)hub_column_int(q);
}

int hub_sqlite_instance_find(struct hub_store *s, const char *cluster, const char *name,
                             struct hub_instance *out, struct kr_note *why)
{
    struct hub_query q;
    bool found;
    int rc;

    *out = (struct hub_instance){.chain.max = CHAIN_MAX};
    hub_query_begin(&q, hub_sqlite_db(s),
                    "SELECT " ALL_COLUMNS " FROM instances WHERE cluster = ? AND name = ?");
    hub_query_text(&q, cluster);
    hub_query_text(&q, name);
    found = hub_query_row(&q);
    if (found)
        read_instance(&q, out);
    rc = hub_query_end(&q, why);
    if (rc == 0 && !found)
        rc = KR_ENOENT;
    if (rc != 0)
        kr_buf_deinit(&out->chain);
    return rc;
}

static void bind_instance(struct hub_query *q, const struct hub_instance *i)
{
    hub_query_text(q, i->cluster);
    hub_query_text(q, i->name);
    hub_query_int(q, i->state);
    hub_query_int(q, (int64_t)i->generation);
    hub_query_blob(q, i->spki, sizeof i->spki);
    hub_query_blob(q, i->has_next ? i->next_spki : NULL, sizeof i->next_spki);
    hub_query_blob(q, i->has_previous ? i->previous_spki : NULL, sizeof i->previous_spki);
    hub_query_text(q, i->serial);
    hub_query_int(q, i->not_before_wall_ms);
    hub_query_int(q, i->not_after_wall_ms);
    hub_query_int(q, i->switched_wall_ms);
    hub_query_blob(q, i->chain.n != 0 ? i->chain.p : NULL, i->chain.n);
}

/* One statement, so one transaction: it compares and writes. */
int hub_sqlite_instance_put(struct hub_store *s, const struct hub_instance *i, uint64_t expected,
                            struct kr_note *why)
{
    struct hub_query q;
    int changed = 0;
    int rc;

    if (expected == 0) {
        hub_query_begin(&q, hub_sqlite_db(s),
                        "INSERT INTO instances (" COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?) "
                        "ON CONFLICT DO NOTHING");
        bind_instance(&q, i);
    } else {
        hub_query_begin(&q, hub_sqlite_db(s),
                        "UPDATE instances SET (" COLUMNS ") = (?,?,?,?,?,?,?,?,?,?,?,?) "
                        "WHERE cluster = ? AND name = ? AND generation = ?");
        bind_instance(&q, i);
        hub_query_text(&q, i->cluster);
        hub_query_text(&q, i->name);
        hub_query_int(&q, (int64_t)expected);
    }
    rc = hub_query_run(&q, &changed, why);
    if (rc == 0 && changed == 0)
        rc = kr_note_set(why, KR_EEXIST, "the key of %s/%s has changed meanwhile", i->cluster,
                         i->name);
    return rc;
}

int hub_sqlite_instances_each(struct hub_store *s, const char *cluster, hub_instance_visit *visit,
                              void *owner, struct kr_note *why)
{
    struct hub_query q;
    bool on = true;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "SELECT " ALL_COLUMNS " FROM instances WHERE cluster = ? ORDER BY name");
    hub_query_text(&q, cluster);
    while (on && hub_query_row(&q)) {
        struct hub_instance i = {.chain.max = CHAIN_MAX};

        read_instance(&q, &i);
        on = visit(owner, &i);
        kr_buf_deinit(&i.chain);
    }
    return hub_query_end(&q, why);
}

int hub_sqlite_instance_trusts(struct hub_store *s, const char *cluster, const char *name,
                               uint64_t bundle_generation, struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "UPDATE instances SET bundle = ?1 WHERE cluster = ?2 AND name = ?3 AND"
                    " bundle <> ?1");
    hub_query_int(&q, (int64_t)bundle_generation);
    hub_query_text(&q, cluster);
    hub_query_text(&q, name);
    return hub_query_run(&q, NULL, why);
}

int hub_sqlite_key_deny(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE], int64_t now_wall_ms,
                        struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "INSERT INTO denied_keys (spki, since) VALUES (?, ?) ON CONFLICT DO NOTHING");
    hub_query_blob(&q, spki, HUB_SPKI_SIZE);
    hub_query_int(&q, now_wall_ms);
    return hub_query_run(&q, NULL, why);
}

int hub_sqlite_key_allow(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE],
                         struct kr_note *why)
{
    struct hub_query q;
    int changed = 0;
    int rc;

    hub_query_begin(&q, hub_sqlite_db(s), "DELETE FROM denied_keys WHERE spki = ?");
    hub_query_blob(&q, spki, HUB_SPKI_SIZE);
    rc = hub_query_run(&q, &changed, why);
    return rc == 0 && changed == 0 ? KR_ENOENT : rc;
}

int hub_sqlite_key_denied(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE],
                          struct kr_note *why)
{
    struct hub_query q;
    bool found;
    int rc;

    hub_query_begin(&q, hub_sqlite_db(s), "SELECT 1 FROM denied_keys WHERE spki = ?");
    hub_query_blob(&q, spki, HUB_SPKI_SIZE);
    found = hub_query_row(&q);
    rc = hub_query_end(&q, why);
    return rc == 0 && !found ? KR_ENOENT : rc;
}
