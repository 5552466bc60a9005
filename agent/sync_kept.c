/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sync_kept.h"

#include <stdlib.h>

#include "base/assert.h"

#define LEFT_MS 600000
#define LOOK_MS 60000
#define KEY_MAX (1024u * 1024)
#define VERSION_MAX 4096

static void drop(struct agent_kept_all *all, struct agent_kept *k)
{
    KR_ASSERT(k->holder == NULL);
    kr_list_remove(&k->link);
    all->n--;
    kr_sync_table_deinit(&k->table);
    kr_buf_deinit(&k->key);
    kr_buf_deinit(&k->version);
    kr_buf_deinit(&k->changed);
    kr_buf_deinit(&k->columns);
    free(k);
}

static void on_timer(struct kr_timer *t)
{
    struct agent_kept_all *all = KR_CONTAINER_OF(t, struct agent_kept_all, timer);

    KR_LIST_FOREACH_SAFE(node, &all->list)
    {
        struct agent_kept *k = KR_CONTAINER_OF(node, struct agent_kept, link);

        if (k->holder == NULL && all->sched->now_ms - k->left_ms >= LEFT_MS)
            drop(all, k);
    }
    if (all->n != 0)
        kr_timer_start(all->sched, &all->timer, LOOK_MS);
}

void agent_kept_init(struct agent_kept_all *all, struct kr_sched *sched)
{
    *all = (struct agent_kept_all){.sched = sched};
    kr_list_init(&all->list);
    kr_timer_init(&all->timer, on_timer);
}

void agent_kept_deinit(struct agent_kept_all *all)
{
    KR_LIST_FOREACH_SAFE(node, &all->list)
    drop(all, KR_CONTAINER_OF(node, struct agent_kept, link));
    kr_timer_stop(all->sched, &all->timer);
}

static int add(struct kr_buf *out, struct kr_bytes word)
{
    int rc = kr_buf_printf(out, "%zu:", word.n);

    return rc == 0 ? kr_buf_append(out, word) : rc;
}

static int add_all(struct kr_buf *out, const struct kr_bytes *words, size_t n)
{
    int rc = kr_buf_printf(out, "%zu,", n);

    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add(out, words[i]);
    return rc;
}

int agent_kept_key(const char *replica, const struct kr_subscription *s, struct kr_buf *out)
{
    const struct kr_bytes words[] = {kr_bytes_str(replica), s->group,          s->version,
                                     s->resource,           s->label_selector, s->field_selector};
    int rc = add_all(out, words, sizeof words / sizeof words[0]);

    if (rc == 0)
        rc = add_all(out, s->namespaces, s->namespace_count);
    if (rc == 0)
        rc = add_all(out, s->keep, s->keep_count);
    if (rc == 0)
        rc = add_all(out, s->drop, s->drop_count);
    return rc == 0 ? kr_buf_append_str(out, s->metadata_only ? "m" : "-") : rc;
}

/* Room for another one: the one that was left first goes. */
static bool make_room(struct agent_kept_all *all)
{
    struct agent_kept *oldest = NULL;

    if (all->n < AGENT_KEPT_MAX)
        return true;
    KR_LIST_FOREACH(node, &all->list)
    {
        struct agent_kept *k = KR_CONTAINER_OF(node, struct agent_kept, link);

        if (k->holder == NULL && (oldest == NULL || k->left_ms < oldest->left_ms))
            oldest = k;
    }
    if (oldest != NULL)
        drop(all, oldest);
    return oldest != NULL;
}

static struct agent_kept *make(struct agent_kept_all *all, struct kr_bytes key)
{
    struct agent_kept *k = make_room(all) ? calloc(1, sizeof *k) : NULL;

    if (k == NULL)
        return NULL;
    kr_buf_init(&k->key, KEY_MAX);
    kr_buf_init(&k->version, VERSION_MAX);
    kr_buf_init(&k->changed, VERSION_MAX);
    kr_buf_init(&k->columns, KR_SYNC_COLUMNS_MAX);
    kr_sync_table_init(&k->table, AGENT_KEPT_OBJECTS_MAX);
    kr_list_append(&all->list, &k->link);
    all->n++;
    if (kr_buf_append(&k->key, key) != 0) {
        drop(all, k);
        return NULL;
    }
    k->left_ms = all->sched->now_ms;
    if (!kr_timer_running(&all->timer))
        kr_timer_start(all->sched, &all->timer, LOOK_MS);
    return k;
}

struct agent_kept *agent_kept_get(struct agent_kept_all *all, struct kr_bytes key)
{
    KR_LIST_FOREACH(node, &all->list)
    {
        struct agent_kept *k = KR_CONTAINER_OF(node, struct agent_kept, link);

        if (kr_bytes_eq(kr_buf_bytes(&k->key), key))
            return k;
    }
    return make(all, key);
}

void agent_kept_leave(struct agent_kept_all *all, struct agent_kept *k)
{
    k->holder = NULL;
    k->left_ms = all->sched->now_ms;
}

void agent_kept_reset(struct agent_kept *k)
{
    kr_sync_table_deinit(&k->table);
    k->valid = false;
    k->version.n = 0;
    k->changed.n = 0;
}
