/* SPDX-License-Identifier: Apache-2.0 */
/* store_sqlite_parts: what the files of store_sqlite share. */
#ifndef HUB_STORE_SQLITE_PARTS_H
#define HUB_STORE_SQLITE_PARTS_H

#include <sqlite3.h>

#include "hub/store_sqlite.h"

struct store_sqlite {
    struct hub_store base;
    sqlite3 *db;
};

static inline sqlite3 *hub_sqlite_db(struct hub_store *s)
{
    return ((struct store_sqlite *)s)->db; /* base is the first member */
}

/* One statement with its parameters, bound in order. The first failure sticks in rc. */
struct hub_query { /* the fields belong to store_sqlite_query.c */
    sqlite3 *db;
    sqlite3_stmt *st;
    int next; /* parameter or column */
    int rc;   /* of SQLite */
};

void hub_query_begin(struct hub_query *q, sqlite3 *db, const char *sql);
void hub_query_text(struct hub_query *q, const char *v);
void hub_query_blob(struct hub_query *q, const void *p, size_t n); /* p NULL: NULL */
void hub_query_int(struct hub_query *q, int64_t v);
/* True: there is a row, its columns are read in order. */
bool hub_query_row(struct hub_query *q);
void hub_column_text(struct hub_query *q, char *out, size_t size);
int64_t hub_column_int(struct hub_query *q);
/* True: it had that length. */
bool hub_column_blob(struct hub_query *q, void *out, size_t n);
void hub_column_append(struct hub_query *q, struct kr_buf *out);
/* 0 or KR_EIO. */
int hub_query_end(struct hub_query *q, struct kr_note *why);
/* Runs it to its end; `changed`, if not NULL, gets how many rows it changed. */
int hub_query_run(struct hub_query *q, int *changed, struct kr_note *why);

/* store_sqlite_keys.c: instances and denied keys. */
int hub_sqlite_instance_find(struct hub_store *s, const char *cluster, const char *name,
                             struct hub_instance *out, struct kr_note *why);
int hub_sqlite_instance_put(struct hub_store *s, const struct hub_instance *i, uint64_t expected,
                            struct kr_note *why);
int hub_sqlite_instances_each(struct hub_store *s, const char *cluster, hub_instance_visit *visit,
                              void *owner, struct kr_note *why);
int hub_sqlite_instance_trusts(struct hub_store *s, const char *cluster, const char *name,
                               uint64_t bundle_generation, struct kr_note *why);
int hub_sqlite_key_deny(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE], int64_t now_wall_ms,
                        struct kr_note *why);
int hub_sqlite_key_allow(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE],
                         struct kr_note *why);
int hub_sqlite_key_denied(struct hub_store *s, const uint8_t spki[HUB_SPKI_SIZE],
                          struct kr_note *why);

#endif
