/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/store_sqlite_parts.h"

#include <stdio.h>

#include "base/err.h"

void hub_query_begin(struct hub_query *q, sqlite3 *db, const char *sql)
{
    *q = (struct hub_query){.db = db, .next = 1};
    q->rc = sqlite3_prepare_v2(db, sql, -1, &q->st, NULL);
}

static void keep(struct hub_query *q, int rc)
{
    q->next++;
    if (q->rc == SQLITE_OK)
        q->rc = rc;
}

void hub_query_text(struct hub_query *q, const char *v)
{
    keep(q, sqlite3_bind_text(q->st, q->next, v, -1, SQLITE_TRANSIENT));
}

void hub_query_blob(struct hub_query *q, const void *p, size_t n)
{
    keep(q, p != NULL ? sqlite3_bind_blob(q->st, q->next, p, (int)n, SQLITE_TRANSIENT)
                      : sqlite3_bind_null(q->st, q->next));
}

void hub_query_int(struct hub_query *q, int64_t v)
{
    keep(q, sqlite3_bind_int64(q->st, q->next, v));
}

bool hub_query_row(struct hub_query *q)
{
    int rc;

    if (q->rc != SQLITE_OK)
        return false;
    rc = sqlite3_step(q->st);
    q->next = 0; /* columns count from 0 */
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        q->rc = rc;
    return rc == SQLITE_ROW;
}

void hub_column_text(struct hub_query *q, char *out, size_t size)
{
    const unsigned char *v = sqlite3_column_text(q->st, q->next++);

    snprintf(out, size, "%s", v != NULL ? (const char *)v : "");
}

int64_t hub_column_int(struct hub_query *q)
{
    return sqlite3_column_int64(q->st, q->next++);
}

bool hub_column_blob(struct hub_query *q, void *out, size_t n)
{
    const void *p = sqlite3_column_blob(q->st, q->next);
    bool fits = p != NULL && sqlite3_column_bytes(q->st, q->next) == (int)n;

    q->next++;
    if (fits)
        memcpy(out, p, n);
    return fits;
}

void hub_column_append(struct hub_query *q, struct kr_buf *out)
{
    const void *p = sqlite3_column_blob(q->st, q->next);
    int n = sqlite3_column_bytes(q->st, q->next);

    q->next++;
    if (p != NULL && n > 0 && kr_buf_append(out, kr_bytes_of(p, (size_t)n)) != 0)
        q->rc = SQLITE_NOMEM;
}

int hub_query_end(struct hub_query *q, struct kr_note *why)
{
    int rc = q->rc;

    if (rc != SQLITE_OK)
        kr_note_set(why, KR_EIO, "the hub's state: %s", sqlite3_errmsg(q->db));
    sqlite3_finalize(q->st);
    q->st = NULL;
    return rc == SQLITE_OK ? 0 : KR_EIO;
}

int hub_query_run(struct hub_query *q, int *changed, struct kr_note *why)
{
    while (hub_query_row(q))
        ;
    if (changed != NULL)
        *changed = sqlite3_changes(q->db);
    return hub_query_end(q, why);
}
