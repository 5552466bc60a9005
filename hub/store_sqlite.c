/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/store_sqlite_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* The schema, step by step: migration i brings version i to version i + 1. Only append. */
static const char *const migrations[] = {
    "CREATE TABLE tokens (id TEXT PRIMARY KEY, cluster TEXT NOT NULL, secret BLOB NOT NULL,"
    " expires INTEGER NOT NULL, auto_accept INTEGER NOT NULL, spki BLOB, instance TEXT,"
    " failures INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;"
    "CREATE TABLE clusters (name TEXT PRIMARY KEY, uid TEXT NOT NULL, state INTEGER NOT NULL,"
    " external INTEGER NOT NULL, since INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE instances (cluster TEXT NOT NULL, name TEXT NOT NULL, state INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, spki BLOB NOT NULL, next_spki BLOB, previous_spki BLOB,"
    " serial TEXT NOT NULL, not_before INTEGER NOT NULL, not_after INTEGER NOT NULL,"
    " switched INTEGER NOT NULL, chain BLOB, PRIMARY KEY (cluster, name)) WITHOUT ROWID;"
    "CREATE TABLE denied_keys (spki BLOB PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE numbers (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;",
    "ALTER TABLE instances ADD COLUMN bundle INTEGER NOT NULL DEFAULT 0;",
};
enum { VERSION = sizeof migrations / sizeof migrations[0] };

static int run_sql(sqlite3 *db, const char *sql, struct kr_note *why)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return kr_note_set(why, KR_EIO, "%s", sqlite3_errmsg(db));
}

/* ---- tokens ---- */

#define TOKEN_COLUMNS "id, cluster, secret, expires, auto_accept, spki, instance, failures"

static void read_token(struct hub_query *q, struct hub_token *t)
{
    hub_column_text(q, t->id, sizeof t->id);
    hub_column_text(q, t->cluster, sizeof t->cluster);
    hub_column_blob(q, t->secret_sha256, sizeof t->secret_sha256);
    t->expires_wall_ms = hub_column_int(q);
    t->auto_accept = hub_column_int(q) != 0;
    t->used = hub_column_blob(q, t->spki, sizeof t->spki);
    hub_column_text(q, t->instance, sizeof t->instance);
    t->failures = (uint32_t)hub_column_int(q);
}

static int token_add(struct hub_store *s, const struct hub_token *t, struct kr_note *why)
{
    struct hub_query q;
    int changed = 0;
    int rc;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "INSERT INTO tokens (id, cluster, secret, expires, auto_accept)"
                    " VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING");
    hub_query_text(&q, t->id);
    hub_query_text(&q, t->cluster);
    hub_query_blob(&q, t->secret_sha256, sizeof t->secret_sha256);
    hub_query_int(&q, t->expires_wall_ms);
    hub_query_int(&q, t->auto_accept);
    rc = hub_query_run(&q, &changed, why);
    return rc == 0 && changed == 0 ? KR_EEXIST : rc;
}

static int token_find(struct hub_store *s, const char *id, struct hub_token *out,
                      struct kr_note *why)
{
    struct hub_query q;
    bool found;
    int rc;

    *out = (struct hub_token){.used = false};
    hub_query_begin(&q, hub_sqlite_db(s), "SELECT " TOKEN_COLUMNS " FROM tokens WHERE id = ?");
    hub_query_text(&q, id);
    found = hub_query_row(&q);
    if (found)
        read_token(&q, out);
    rc = hub_query_end(&q, why);
    return rc == 0 && !found ? KR_ENOENT : rc;
}

static int token_claim(struct hub_store *s, const char *id, const uint8_t spki[HUB_SPKI_SIZE],
                       const char *instance, struct kr_note *why)
{
    struct hub_query q;
    int changed = 0;
    int rc;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "UPDATE tokens SET spki = ?1, instance = ?2 WHERE id = ?3 AND"
                    " (spki IS NULL OR (spki = ?1 AND instance = ?2))");
    hub_query_blob(&q, spki, HUB_SPKI_SIZE);
    hub_query_text(&q, instance);
    hub_query_text(&q, id);
    rc = hub_query_run(&q, &changed, why);
    return rc == 0 && changed == 0 ? KR_EEXIST : rc;
}

static int token_failed(struct hub_store *s, const char *id, struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s), "UPDATE tokens SET failures = failures + 1 WHERE id = ?");
    hub_query_text(&q, id);
    return hub_query_run(&q, NULL, why);
}

static int token_remove(struct hub_store *s, const char *id, struct kr_note *why)
{
    struct hub_query q;
    int changed = 0;
    int rc;

    hub_query_begin(&q, hub_sqlite_db(s), "DELETE FROM tokens WHERE id = ?");
    hub_query_text(&q, id);
    rc = hub_query_run(&q, &changed, why);
    return rc == 0 && changed == 0 ? KR_ENOENT : rc;
}

static int tokens_expire(struct hub_store *s, int64_t before_wall_ms, struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s), "DELETE FROM tokens WHERE expires < ?");
    hub_query_int(&q, before_wall_ms);
    return hub_query_run(&q, NULL, why);
}

static int tokens_each(struct hub_store *s, hub_token_visit *visit, void *owner,
                       struct kr_note *why)
{
    struct hub_query q;
    bool on = true;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "SELECT " TOKEN_COLUMNS " FROM tokens ORDER BY cluster, id");
    while (on && hub_query_row(&q)) {
        struct hub_token t = {.used = false};

        read_token(&q, &t);
        on = visit(owner, &t);
    }
    return hub_query_end(&q, why);
}

/* ---- clusters ---- */

static void read_cluster(struct hub_query *q, struct hub_cluster_record *c)
{
    hub_column_text(q, c->name, sizeof c->name);
    hub_column_text(q, c->uid, sizeof c->uid);
    c->state = (enum hub_cluster_state)hub_column_int(q);
    c->external = hub_column_int(q) != 0;
    c->since_wall_ms = hub_column_int(q);
}

static int cluster_find(struct hub_store *s, const char *name, struct hub_cluster_record *out,
                        struct kr_note *why)
{
    struct hub_query q;
    bool found;
    int rc;

    *out = (struct hub_cluster_record){.external = false};
    hub_query_begin(&q, hub_sqlite_db(s),
                    "SELECT name, uid, state, external, since FROM clusters WHERE name = ?");
    hub_query_text(&q, name);
    found = hub_query_row(&q);
    if (found)
        read_cluster(&q, out);
    rc = hub_query_end(&q, why);
    return rc == 0 && !found ? KR_ENOENT : rc;
}

static int cluster_put(struct hub_store *s, const struct hub_cluster_record *c, struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "INSERT OR REPLACE INTO clusters (name, uid, state, external, since)"
                    " VALUES (?,?,?,?,?)");
    hub_query_text(&q, c->name);
    hub_query_text(&q, c->uid);
    hub_query_int(&q, c->state);
    hub_query_int(&q, c->external);
    hub_query_int(&q, c->since_wall_ms);
    return hub_query_run(&q, NULL, why);
}

static int erase_instances(struct hub_store *s, const char *cluster, struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s), "DELETE FROM instances WHERE cluster = ?");
    hub_query_text(&q, cluster);
    return hub_query_run(&q, NULL, why);
}

/* Anything in between would be a cluster that is neither denied nor removed, or keys that come back
 * when its name is accepted again. */
static int cluster_remove(struct hub_store *s, const struct hub_cluster_record *c,
                          struct kr_note *why)
{
    sqlite3 *db = hub_sqlite_db(s);
    int rc = run_sql(db, "BEGIN IMMEDIATE", why);

    if (rc != 0)
        return rc;
    rc = erase_instances(s, c->name, why);
    if (rc == 0)
        rc = cluster_put(s, c, why);
    if (rc == 0)
        rc = run_sql(db, "COMMIT", why);
    if (rc != 0)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static int clusters_each(struct hub_store *s, hub_cluster_visit *visit, void *owner,
                         struct kr_note *why)
{
    struct hub_query q;
    bool on = true;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "SELECT name, uid, state, external, since FROM clusters ORDER BY name");
    while (on && hub_query_row(&q)) {
        struct hub_cluster_record c = {.external = false};

        read_cluster(&q, &c);
        on = visit(owner, &c);
    }
    return hub_query_end(&q, why);
}

/* ---- numbers ---- */

static int number_get(struct hub_store *s, const char *key, uint64_t *out, struct kr_note *why)
{
    struct hub_query q;

    *out = 0;
    hub_query_begin(&q, hub_sqlite_db(s), "SELECT value FROM numbers WHERE key = ?");
    hub_query_text(&q, key);
    if (hub_query_row(&q))
        *out = (uint64_t)hub_column_int(&q);
    return hub_query_end(&q, why);
}

static int number_put(struct hub_store *s, const char *key, uint64_t value, struct kr_note *why)
{
    struct hub_query q;

    hub_query_begin(&q, hub_sqlite_db(s),
                    "INSERT OR REPLACE INTO numbers (key, value) VALUES (?,?)");
    hub_query_text(&q, key);
    hub_query_int(&q, (int64_t)value);
    return hub_query_run(&q, NULL, why);
}

/* ---- the file ---- */

static int sync_store(struct hub_store *s, struct kr_note *why)
{
    sqlite3 *db = hub_sqlite_db(s);

    if (sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL) == SQLITE_OK)
        return 0;
    return kr_note_set(why, KR_EIO, "the hub's state: %s", sqlite3_errmsg(db));
}

static void close_store(struct hub_store *s)
{
    sqlite3_close_v2(hub_sqlite_db(s));
    free(s);
}

static const struct hub_store_ops ops = {
    .token_add = token_add,
    .token_find = token_find,
    .token_claim = token_claim,
    .token_failed = token_failed,
    .token_remove = token_remove,
    .tokens_expire = tokens_expire,
    .tokens_each = tokens_each,
    .cluster_find = cluster_find,
    .cluster_put = cluster_put,
    .cluster_remove = cluster_remove,
    .clusters_each = clusters_each,
    .instance_find = hub_sqlite_instance_find,
    .instance_put = hub_sqlite_instance_put,
    .instances_each = hub_sqlite_instances_each,
    .instance_trusts = hub_sqlite_instance_trusts,
    .key_deny = hub_sqlite_key_deny,
    .key_allow = hub_sqlite_key_allow,
    .key_denied = hub_sqlite_key_denied,
    .number_get = number_get,
    .number_put = number_put,
    .sync = sync_store,
    .close = close_store,
};

static int migrate(sqlite3 *db, int from, struct kr_note *why)
{
    char mark[64];
    int rc = run_sql(db, "BEGIN IMMEDIATE", why);

    snprintf(mark, sizeof mark, "PRAGMA user_version = %d", from + 1);
    if (rc == 0)
        rc = run_sql(db, migrations[from], why);
    if (rc == 0)
        rc = run_sql(db, mark, why);
    if (rc == 0)
        return run_sql(db, "COMMIT", why);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

static int prepare(sqlite3 *db, bool lazy, struct kr_note *why)
{
    struct hub_query q;
    int64_t version = 0;
    int rc = run_sql(db,
                     "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                     "PRAGMA trusted_schema = OFF; PRAGMA secure_delete = ON;",
                     why);

    if (rc == 0 && lazy)
        rc = run_sql(db, "PRAGMA synchronous = NORMAL", why);
    if (rc != 0)
        return rc;
    hub_query_begin(&q, db, "PRAGMA user_version");
    if (hub_query_row(&q))
        version = hub_column_int(&q);
    rc = hub_query_end(&q, why);
    if (rc == 0 && (version < 0 || version > VERSION))
        rc = kr_note_set(why, KR_EUNSUPPORTED,
                         "it was written by a newer hub (version %lld, not %d)", (long long)version,
                         (int)VERSION);
    for (; rc == 0 && version < VERSION; version++)
        rc = migrate(db, (int)version, why);
    return rc;
}

/* Before SQLite makes it with another mode; its journals take the mode of the file. */
static int ensure_file(const char *path, struct kr_note *why)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = 0;

    if (fd < 0)
        return kr_note_set(why, KR_EIO, "cannot open it for writing");
    if (fchmod(fd, 0600) != 0)
        rc = kr_note_set(why, KR_EDENIED, "it belongs to somebody else");
    close(fd);
    return rc;
}

int hub_store_sqlite_open(struct hub_store **out, const char *path, bool lazy, struct kr_note *why)
{
    struct store_sqlite *s = calloc(1, sizeof *s);
    int rc;

    *out = NULL;
    if (s == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    s->base.ops = &ops;
    rc = ensure_file(path, why);
    if (rc == 0 && sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW,
                                   NULL) != SQLITE_OK)
        rc =
            kr_note_set(why, KR_EIO, "%s", s->db != NULL ? sqlite3_errmsg(s->db) : "out of memory");
    if (rc == 0) {
        sqlite3_busy_timeout(s->db, 1000); /* a backup may read */
        rc = prepare(s->db, lazy, why);
    }
    if (rc != 0) {
        close_store(&s->base);
        return kr_note_wrap(why, rc, "%.200s", path);
    }
    *out = &s->base;
    return 0;
}
