/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sync_sender.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"

#define CHAINS 512 /* keys are hashes: any nine bits of them will do */

enum kind { /* in the order that parts have within a batch */
            COLUMNS,
            WANT,
            UPSERT,
            DELETE,
            SNAPSHOT_END,
            PROGRESS,
            PROBLEM,
};

struct item {                   /* a change or a mark that waits */
    struct item *next_in_chain; /* changes only */
    struct kr_list link;
    uint64_t key; /* changes only */
    enum kind kind;
    enum kr_sync_problem problem;
    uint32_t plain; /* upserts: size of the plain text */
    uint32_t n;
    /* An encoded upsert; columns; numbers of buckets; a version; a problem's text. Aligned, since
     * what stands before it is. */
    uint8_t bytes[];
};

struct kr_sync_sender {
    struct kr_list items;
    struct item *chains[CHAINS]; /* the waiting change of a key; not those before new columns */
    size_t held;
    size_t budget;
    uint64_t coalesced;
    uint32_t skipped;
    bool tell_skipped;
    uint64_t raw_bytes;
};

struct kr_sync_sender *kr_sync_sender_create(size_t budget)
{
    struct kr_sync_sender *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->budget = budget;
    kr_list_init(&s->items);
    return s;
}

static struct item *of(struct kr_list *link)
{
    return KR_CONTAINER_OF(link, struct item, link);
}

static size_t cost(const struct item *i)
{
    return sizeof *i + i->n + 16; /* and what the allocator adds */
}

static bool is_change(const struct item *i)
{
    return i->kind == UPSERT || i->kind == DELETE;
}

/* --- chains -------------------------------------------------------------------------------- */

static struct item **find(struct kr_sync_sender *s, uint64_t key)
{
    struct item **at = &s->chains[key % CHAINS];

    while (*at != NULL && (*at)->key != key)
        at = &(*at)->next_in_chain;
    return at;
}

static void unchain(struct kr_sync_sender *s, const struct item *i)
{
    struct item **at = find(s, i->key);

    if (*at == i)
        *at = i->next_in_chain;
}

/* It is in no list any more. */
static void discard(struct kr_sync_sender *s, struct item *i)
{
    if (is_change(i))
        unchain(s, i);
    s->held -= cost(i);
    free(i);
}

void kr_sync_sender_destroy(struct kr_sync_sender *s)
{
    if (s == NULL)
        return;
    KR_LIST_FOREACH_SAFE(link, &s->items)
    free(of(link));
    free(s);
}

/* --- putting ------------------------------------------------------------------------------- */

static struct item *make(enum kind kind, struct kr_bytes bytes)
{
    struct item *i = malloc(sizeof *i + bytes.n);

    if (i == NULL)
        return NULL;
    *i = (struct item){.kind = kind, .n = (uint32_t)bytes.n};
    if (bytes.n != 0)
        memcpy(i->bytes, bytes.p, bytes.n);
    return i;
}

static void append(struct kr_sync_sender *s, struct item *i)
{
    kr_list_append(&s->items, &i->link);
    s->held += cost(i);
}

/* At the place of the older change of the key, or behind all. */
static void put_change(struct kr_sync_sender *s, struct item *i)
{
    struct item **at = find(s, i->key);
    struct item *old = *at;

    if (old == NULL) {
        *at = i;
        append(s, i);
        return;
    }
    i->next_in_chain = old->next_in_chain;
    *at = i;
    s->held += cost(i);
    kr_list_append(&old->link, &i->link); /* in a circle, "last" is before `old` */
    kr_list_remove(&old->link);
    s->held -= cost(old);
    s->coalesced++;
    free(old);
}

int kr_sync_sender_put(struct kr_sync_sender *s, uint64_t key, const struct kr_upsert *change)
{
    size_t n = kr_upsert_size(change);
    struct kr_buf out;
    struct item *i;
    int rc;

    if (n > KR_SYNC_MESSAGE_MAX)
        return KR_EINVAL;
    i = malloc(sizeof *i + n + KR_UPSERT_SLACK);
    if (i == NULL)
        return KR_ENOMEM;
    *i = (struct item){.kind = UPSERT, .key = key, .plain = change->size, .n = (uint32_t)n};
    /* Encoded in place: the room is there, so the buf never allocates. */
    out = (struct kr_buf){.p = i->bytes, .cap = n + KR_UPSERT_SLACK, .max = n + KR_UPSERT_SLACK};
    rc = kr_upsert_encode(change, &out);
    if (rc != 0) {
        free(i);
        return rc;
    }
    put_change(s, i);
    return 0;
}

int kr_sync_sender_delete(struct kr_sync_sender *s, uint64_t key)
{
    struct item *i = make(DELETE, KR_LIT(""));

    if (i == NULL)
        return KR_ENOMEM;
    i->key = key;
    put_change(s, i);
    return 0;
}

/* The mark of this kind behind the last change, or NULL. */
static struct item *last_mark(struct kr_sync_sender *s, enum kind kind)
{
    for (struct kr_list *l = s->items.prev; l != &s->items && !is_change(of(l)); l = l->prev) {
        if (of(l)->kind == kind)
            return of(l);
    }
    return NULL;
}

static int put_mark(struct kr_sync_sender *s, enum kind kind, enum kr_sync_problem problem,
                    struct kr_bytes bytes)
{
    struct item *i = make(kind, bytes);
    struct item *old = last_mark(s, kind);

    if (i == NULL)
        return KR_ENOMEM;
    i->problem = problem;
    append(s, i);
    if (old != NULL) {
        kr_list_remove(&old->link);
        discard(s, old);
    }
    return 0;
}

int kr_sync_sender_columns(struct kr_sync_sender *s, struct kr_bytes columns)
{
    int rc;

    if (columns.n == 0 || columns.n > KR_SYNC_COLUMNS_MAX || !kr_bytes_is_utf8(columns))
        return KR_EINVAL;
    rc = put_mark(s, COLUMNS, KR_SYNC_OK, columns);
    if (rc == 0)
        memset(s->chains, 0, sizeof s->chains); /* no later change moves to before this */
    return rc;
}

int kr_sync_sender_want(struct kr_sync_sender *s, const uint32_t *buckets, size_t n)
{
    struct item *i;

    if (n > KR_BUCKETS)
        return KR_EINVAL;
    if (n == 0)
        return 0;
    i = make(WANT, kr_bytes_of(buckets, n * sizeof *buckets));
    if (i == NULL)
        return KR_ENOMEM;
    append(s, i);
    return 0;
}

int kr_sync_sender_snapshot_end(struct kr_sync_sender *s)
{
    return put_mark(s, SNAPSHOT_END, KR_SYNC_OK, KR_LIT(""));
}

int kr_sync_sender_progress(struct kr_sync_sender *s, struct kr_bytes version)
{
    if (version.n == 0 || version.n > KR_SYNC_TEXT_MAX)
        return KR_EINVAL;
    return put_mark(s, PROGRESS, KR_SYNC_OK, version);
}

/* At most so many bytes, and no character in halves. */
static struct kr_bytes cut(struct kr_bytes text, size_t max)
{
    size_t n = text.n < max ? text.n : max;

    while (n < text.n && n != 0 && (text.p[n] & 0xC0) == 0x80)
        n--;
    return kr_bytes_of(text.p, n);
}

int kr_sync_sender_problem(struct kr_sync_sender *s, enum kr_sync_problem problem,
                           struct kr_bytes text)
{
    text = kr_bytes_is_utf8(text) ? cut(text, KR_SYNC_TEXT_MAX) : KR_LIT("");
    return put_mark(s, PROBLEM, problem, text);
}

void kr_sync_sender_skipped(struct kr_sync_sender *s, uint32_t skipped)
{
    s->tell_skipped = s->tell_skipped || s->skipped != skipped;
    s->skipped = skipped;
}

void kr_sync_sender_raw(struct kr_sync_sender *s, uint64_t raw_bytes)
{
    s->raw_bytes = raw_bytes;
}

bool kr_sync_sender_full(const struct kr_sync_sender *s)
{
    return s->held >= s->budget;
}

bool kr_sync_sender_empty(const struct kr_sync_sender *s)
{
    return kr_list_empty(&s->items) && !s->tell_skipped;
}

uint64_t kr_sync_sender_coalesced(const struct kr_sync_sender *s)
{
    return s->coalesced;
}

/* --- taking -------------------------------------------------------------------------------- */

struct plan { /* of one batch: the first `items` that wait */
    size_t items;
    size_t bytes;
    size_t plain;
    size_t upserts;
    size_t deletes;
    enum kind last; /* the latest part that is in it */
};

/* Parts have their order within a batch. What does not fit it begins the next one. Upserts and
 * deletes may mix: no two of them are about the same object but with columns between them. */
static bool fits(const struct plan *p, const struct item *i)
{
    enum kind last = p->last == DELETE ? UPSERT : p->last;
    enum kind kind = i->kind == DELETE ? UPSERT : i->kind;

    if (p->items == 0)
        return true;
    if (kind < last || (kind == last && kind != UPSERT))
        return false;
    if (i->kind == UPSERT && p->plain + i->plain > KR_SYNC_PLAIN_MAX)
        return false;
    return p->bytes + i->n <= KR_SYNC_BATCH_TARGET && p->upserts < KR_SYNC_UPSERTS_MAX &&
           p->deletes < KR_SYNC_UPSERTS_MAX;
}

static struct plan plan_batch(const struct kr_sync_sender *s)
{
    struct plan p = {.items = 0};

    KR_LIST_FOREACH(link, &s->items)
    {
        const struct item *i = of(link);

        if (!fits(&p, i))
            break;
        p.items++;
        p.bytes += i->kind == DELETE ? sizeof i->key : i->n;
        p.plain += i->plain;
        p.upserts += i->kind == UPSERT;
        p.deletes += i->kind == DELETE;
        p.last = i->kind;
    }
    return p;
}

static struct kr_bytes bytes_of(const struct item *i)
{
    return kr_bytes_of(i->bytes, i->n);
}

/* What one item adds to the batch. Upserts go straight to `out`, behind the parts that come before
 * them and were written by then. */
static int take_item(const struct item *i, struct kr_sync_batch *m, uint64_t *deletes,
                     struct kr_buf *out)
{
    switch (i->kind) {
    case COLUMNS:
        m->columns = bytes_of(i);
        break;
    case WANT:
        m->want_buckets = (const uint32_t *)(const void *)i->bytes;
        m->want_count = i->n / sizeof *m->want_buckets;
        break;
    case UPSERT:
        return kr_buf_append(out, bytes_of(i));
    case DELETE:
        deletes[m->delete_count++] = i->key;
        break;
    case SNAPSHOT_END:
        m->snapshot_end = true;
        break;
    case PROGRESS:
        m->progress = bytes_of(i);
        break;
    case PROBLEM:
        m->has_problem = true;
        m->problem = i->problem;
        m->problem_text = bytes_of(i);
        break;
    }
    return 0;
}

static int write_batch(const struct kr_sync_sender *s, const struct plan *p, uint64_t *deletes,
                       struct kr_buf *out)
{
    struct kr_sync_batch m = {.skipped = 0};
    struct kr_list *link = s->items.next;
    bool head = true; /* columns and wanted buckets are still in `m` */
    int rc = 0;

    for (size_t n = 0; n < p->items && rc == 0; n++, link = link->next) {
        const struct item *i = of(link);

        if (head && i->kind > WANT) {
            rc = kr_sync_batch_encode(&m, out);
            m = (struct kr_sync_batch){.deletes = deletes};
            head = false;
        }
        if (rc == 0)
            rc = take_item(i, &m, deletes, out);
    }
    m.skipped = s->skipped;
    m.raw_bytes = s->raw_bytes;
    return rc == 0 ? kr_sync_batch_encode(&m, out) : rc;
}

static void drop(struct kr_sync_sender *s, size_t items)
{
    KR_LIST_FOREACH_SAFE(link, &s->items)
    {
        if (items-- == 0)
            return;
        kr_list_remove(link);
        discard(s, of(link));
    }
}

int kr_sync_sender_next(struct kr_sync_sender *s, struct kr_buf *out)
{
    struct plan p = plan_batch(s);
    size_t start = out->n;
    uint64_t *deletes;
    int rc;

    if (kr_sync_sender_empty(s))
        return 0;
    deletes = malloc(p.deletes * sizeof *deletes + 1);
    rc = deletes != NULL ? write_batch(s, &p, deletes, out) : KR_ENOMEM;
    free(deletes);
    if (rc != 0) {
        out->n = start;
        return rc;
    }
    drop(s, p.items);
    s->tell_skipped = false;
    return 1;
}
