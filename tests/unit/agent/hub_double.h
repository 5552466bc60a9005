/* SPDX-License-Identifier: Apache-2.0 */
/* hub_double: the hub's end of a Sync call: applies what comes to a small table, as a hub would,
 * and counts it. */
#ifndef KR_TESTS_HUB_DOUBLE_H
#define KR_TESTS_HUB_DOUBLE_H

#include "../wire/fake_exchange.h"
#include "agent/sync_out.h"
#include "kube/list_options.h"
#include "wire/compress.h"
#include "wire/grpc_call.h"
#include "wire/sync_messages.h"

enum { HELD_MAX = 20480 };

struct held { /* one object, as the hub has it */
    uint64_t key;
    uint64_t hash;
    char name[64];
    char version[32];
    char plain[1024];
};

struct hub { /* outlives its calls */
    struct held held[HELD_MAX];
    size_t n;
    char version[64]; /* the last progress */
    int backwards;    /* upserts that showed watchers an older object than they had seen */
    struct kr_dictionaries *dictionaries;
    struct kr_unpacker *unpacker;
};

struct hub_call {
    struct hub *hub;
    struct agent_core *c;
    const char *replica;
    struct fake_wire wire;
    struct kr_grpc_stream stream;
    bool ended;
    int status;
    /* what came */
    int upserts;
    int deletes;
    int ends; /* of snapshots */
    int columns;
    int wants; /* buckets */
    int problems;
    enum kr_sync_problem problem;
    char problem_text[128];
    size_t bytes;
    bool silent; /* does not answer want_buckets */
};

static __attribute__((unused)) void hub_init(struct hub *h)
{
    h->n = 0;
    h->backwards = 0;
    h->version[0] = '\0';
    h->dictionaries = kr_dictionaries_create(false, true);
    h->unpacker = kr_unpacker_create(h->dictionaries);
    assert_non_null(h->unpacker);
}

static __attribute__((unused)) void hub_deinit(struct hub *h)
{
    kr_unpacker_destroy(h->unpacker);
    kr_dictionaries_destroy(h->dictionaries);
}

static __attribute__((unused)) struct held *hub_find(struct hub *h, uint64_t key)
{
    for (size_t i = 0; i < h->n; i++) {
        if (h->held[i].key == key)
            return &h->held[i];
    }
    return NULL;
}

static __attribute__((unused)) const struct held *hub_object(struct hub *h, const char *ns,
                                                             const char *name)
{
    return hub_find(h, kr_key_hash(kr_bytes_str(ns), kr_bytes_str(name)));
}

static __attribute__((unused)) void hub_take(struct hub *h, const struct kr_upsert *u)
{
    uint64_t key = kr_key_hash(u->ns, u->name);
    struct held *o = hub_find(h, key);
    uint8_t plain[64 * 1024];

    assert_true(u->size < sizeof plain);
    assert_int_equal(kr_unpack(h->unpacker, u->packed, u->dictionary, plain, u->size), 0);
    if (o == NULL) {
        assert_in_range(h->n, 0, HELD_MAX - 1);
        o = &h->held[h->n++];
    } else if (o->hash != u->hash && kr_version_compare(u->version, kr_bytes_str(o->version)) < 0)
        h->backwards++;
    o->key = key;
    o->hash = u->hash;
    snprintf(o->name, sizeof o->name, "%.*s", (int)u->name.n, (const char *)u->name.p);
    snprintf(o->version, sizeof o->version, "%.*s", (int)u->version.n, (const char *)u->version.p);
    snprintf(o->plain, sizeof o->plain, "%.*s", (int)u->size, (const char *)plain);
}

static __attribute__((unused)) void hub_drop(struct hub *h, uint64_t key)
{
    struct held *o = hub_find(h, key);

    if (o != NULL) /* else it came and went while it waited to be sent */
        *o = h->held[--h->n];
}

static __attribute__((unused)) void hub_send(struct hub_call *k, const struct kr_sync_control *m)
{
    struct kr_buf out = {.max = KR_SYNC_MESSAGE_MAX};

    assert_int_equal(kr_sync_control_encode(m, &out), 0);
    assert_int_equal(kr_grpc_send(&k->stream, kr_buf_bytes(&out)), 0);
    kr_buf_deinit(&out);
}

static __attribute__((unused)) void hub_tell_bucket(struct hub_call *k, unsigned bucket)
{
    static struct kr_pair pairs[HELD_MAX];
    struct kr_bucket_pairs b = {.bucket = bucket, .pairs = pairs};
    struct kr_sync_control m = {.buckets = &b, .bucket_count = 1};

    for (size_t i = 0; i < k->hub->n; i++) {
        if (kr_bucket_of(k->hub->held[i].key) == bucket)
            pairs[b.n++] = (struct kr_pair){k->hub->held[i].key, k->hub->held[i].hash};
    }
    hub_send(k, &m);
}

static __attribute__((unused)) int hub_on_message(void *user, struct kr_bytes message)
{
    struct hub_call *k = user;
    struct kr_sync_batch m;
    struct kr_note why = {""};
    struct kr_arena arena;

    k->bytes += message.n;
    kr_arena_init(&arena, 1024, 16u << 20);
    assert_int_equal(kr_sync_batch_decode(&m, message, &arena, &why), 0);
    k->columns += m.columns.n != 0;
    for (size_t i = 0; i < m.upsert_count; i++, k->upserts++)
        hub_take(k->hub, &m.upserts[i]);
    for (size_t i = 0; i < m.delete_count; i++, k->deletes++)
        hub_drop(k->hub, m.deletes[i]);
    k->ends += m.snapshot_end;
    if (m.progress.n != 0)
        snprintf(k->hub->version, sizeof k->hub->version, "%.*s", (int)m.progress.n,
                 (const char *)m.progress.p);
    if (m.has_problem) {
        k->problems++;
        k->problem = m.problem;
        snprintf(k->problem_text, sizeof k->problem_text, "%.*s", (int)m.problem_text.n,
                 (const char *)m.problem_text.p);
    }
    k->wants += (int)m.want_count;
    for (size_t i = 0; i < m.want_count && !k->silent; i++)
        hub_tell_bucket(k, m.want_buckets[i]);
    kr_arena_deinit(&arena);
    return 0;
}

static __attribute__((unused)) void hub_on_end(void *user, int status, struct kr_bytes message)
{
    struct hub_call *k = user;

    (void)message;
    k->ended = true;
    k->status = status;
}

static const struct kr_grpc_user hub_user = {.on_message = hub_on_message, .on_end = hub_on_end};

static __attribute__((unused)) void hub_on_request(struct fake_wire *w)
{
    struct hub_call *k = w->owner;

    agent_sync_accept(k->c, &w->server.ex, k->replica);
}

static __attribute__((unused)) void hub_call_init(struct hub_call *k, struct hub *h,
                                                  struct agent_core *c, const char *replica)
{
    struct kr_grpc_limits limits = {.message = KR_SYNC_MESSAGE_MAX, .queue = KR_SYNC_MESSAGE_MAX};

    *k = (struct hub_call){.hub = h, .c = c, .replica = replica};
    fake_wire_init(&k->wire, hub_on_request, k);
    assert_int_equal(kr_grpc_open(&k->stream, &k->wire.conn, KR_LIT("a"), KR_LIT(KR_GRPC_SYNC),
                                  limits, &hub_user, k),
                     0);
    fake_pump(&k->wire, 4096);
}

static __attribute__((unused)) void hub_open(struct hub_call *k, const struct kr_subscription *s)
{
    struct kr_sync_open open = {
        .subscription = *s,
        .holds = k->hub->n != 0,
        .version = kr_bytes_str(k->hub->version),
        .dictionaries = kr_dictionaries_all(k->hub->dictionaries),
    };
    struct kr_sync_control m = {.open = &open};

    while (open.dictionaries[open.dictionary_count] != 0)
        open.dictionary_count++;
    for (size_t i = 0; i < k->hub->n; i++)
        kr_digest_add(&open.digest, k->hub->held[i].key, k->hub->held[i].hash);
    hub_send(k, &m);
    fake_pump(&k->wire, 4096);
}

/* The tunnel breaks. */
static __attribute__((unused)) void hub_call_cut(struct hub_call *k)
{
    fake_finish(&k->wire.server, KR_ECONNLOST, 0);
    fake_finish(&k->wire.client, KR_ECONNLOST, 0);
    kr_grpc_deinit(&k->stream);
    fake_wire_deinit(&k->wire);
}

#endif
