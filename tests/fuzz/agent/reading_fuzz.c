/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte for the kind of body and a byte for the length of chunks, then the body of a list
 * or watch. What is read is slimmed, hashed and packed as for a hub. However the body is cut, the
 * same comes of it. */
#include <stdlib.h>

#include "agent/sync_pack.h"
#include "base/assert.h"
#include "base/err.h"

struct sums { /* of what was read */
    struct agent_pack *pack;
    const struct kr_profile *profile;
    struct kr_columns columns;
    struct kr_buf text; /* of the columns */
    uint64_t hash;
    uint64_t count;
};

static void mix(struct sums *s, uint64_t v)
{
    s->hash = s->hash * 31 + v + 1;
    s->count++;
}

static int on_columns(void *user, struct kr_bytes columns)
{
    struct sums *s = user;

    s->text.n = 0;
    if (kr_buf_append(&s->text, columns) != 0 ||
        kr_columns_read(kr_buf_bytes(&s->text), &s->columns) != 0)
        s->columns.n = 0;
    return 0;
}

static int on_element(void *user, const struct agent_seen *seen)
{
    struct sums *s = user;
    struct agent_item item;
    struct kr_upsert change;
    int rc =
        agent_pack_read(s->pack, s->profile, s->columns.n != 0 ? &s->columns : NULL, seen, &item);

    if (rc != 0) {
        KR_ASSERT(rc == KR_EPROTO || rc == KR_ETOOBIG);
        mix(s, 7);
        return 0;
    }
    mix(s, item.hash);
    KR_ASSERT(agent_pack_upsert(s->pack, &item, true, &change) == 0);
    KR_ASSERT(change.size == item.plain.n && change.name.n != 0 && item.seen.uid.n != 0);
    mix(s, change.packed.n);
    return 0;
}

static int on_event(void *user, const struct kr_watch_event *e, const struct agent_seen *seen)
{
    struct sums *s = user;
    struct agent_item item;

    if (e->type == KR_EVENT_ADDED || e->type == KR_EVENT_MODIFIED)
        return on_element(user, seen);
    if (e->type == KR_EVENT_DELETED && agent_pack_name(s->pack, seen->object, &item) == 0)
        mix(s, item.key);
    mix(s, (uint64_t)e->type);
    return 0;
}

static void on_skipped(void *user)
{
    mix(user, 3);
}

static const struct agent_reading_ops ops = {on_columns, on_element, on_event, on_skipped};

static int read_body(struct sums *s, struct kr_bytes in, uint8_t kind, size_t chunk)
{
    struct agent_reading r = {0};
    int rc = 0;

    s->hash = s->count = 0;
    s->columns.n = 0;
    if ((kind & 1) != 0)
        KR_ASSERT(agent_reading_list(&r, &ops, s, (enum agent_objects)(kind / 2 % 3)) == 0);
    else
        agent_reading_watch(&r, &ops, s, (enum agent_objects)(kind / 2 % 3));
    while (in.n != 0 && rc == 0) {
        size_t n = in.n < chunk ? in.n : chunk;

        rc = agent_reading_feed(&r, kr_bytes_of(in.p, n));
        in = kr_bytes_skip(in, n);
    }
    if (rc == 0 && (kind & 1) != 0)
        rc = agent_reading_end(&r);
    agent_reading_stop(&r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct kr_bytes keep[] = {{(const uint8_t *)"spec.image", 10}};
    static struct agent_pack pack; /* its tables are dear to make */
    struct kr_profile_paths paths = {.keep = keep};
    struct sums s = {.pack = &pack};
    struct kr_profile *profile;
    uint64_t hash;
    int rc;

    if (size < 2)
        return 0;
    if (pack.packer == NULL)
        KR_ASSERT(agent_pack_init(&pack) == 0);
    paths.keep_count = data[0] >> 6 & 1;
    profile = kr_profile_create(&paths, NULL);
    KR_ASSERT(profile != NULL);
    s.profile = profile;
    kr_buf_init(&s.text, 256u * 1024);
    rc = read_body(&s, kr_bytes_of(data + 2, size - 2), data[0], size);
    hash = s.hash;
    KR_ASSERT(read_body(&s, kr_bytes_of(data + 2, size - 2), data[0], 1 + (size_t)data[1] % 64) ==
              rc);
    KR_ASSERT(rc != 0 || s.hash == hash);
    kr_profile_destroy(profile);
    kr_buf_deinit(&s.text);
    return 0;
}
