/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/bearer.h"

#include "base/base64.h"
#include "base/err.h"

/* The b64token of RFC 6750, and a little more: any visible ASCII. */
static bool is_token(struct kr_bytes v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] <= ' ' || v.p[i] >= 0x7f)
            return false;
    }
    return v.n != 0 && v.n <= HUB_BEARER_MAX;
}

static int from_field(struct kr_bytes value, struct kr_bytes *token, struct kr_note *why)
{
    size_t at = kr_bytes_find(value, ' ');

    if (!kr_bytes_eq_fold(kr_bytes_of(value.p, at), KR_LIT("bearer")))
        return kr_note_set(why, KR_EDENIED, "Authorization is no bearer token");
    *token = kr_bytes_trim(kr_bytes_skip(value, at));
    return is_token(*token) ? 0 : kr_note_set(why, KR_EDENIED, "the bearer token is malformed");
}

static int decode(struct kr_bytes text, struct kr_arena *arena, struct kr_bytes *token,
                  struct kr_note *why)
{
    struct kr_buf out = {.max = HUB_BEARER_MAX};
    int rc = kr_buf_reserve(&out, text.n < HUB_BEARER_MAX ? text.n : HUB_BEARER_MAX);

    if (rc == 0)
        rc = kr_base64url_decode(&out, text);
    if (rc == 0) {
        *token = kr_arena_copy(arena, kr_buf_bytes(&out));
        rc = token->p != NULL ? 0 : KR_ENOMEM;
    }
    kr_buf_cleanse(&out);
    if (rc == KR_ENOMEM)
        return kr_note_set(why, rc, "out of memory");
    return rc == 0 && is_token(*token)
               ? 0
               : kr_note_set(why, KR_EDENIED,
                             "the bearer token among the subprotocols is malformed");
}

struct found {
    struct kr_bytes item;
    size_t tokens;
    size_t others;
};

static void look_at(struct kr_bytes list, struct found *f)
{
    const struct kr_bytes prefix = KR_LIT(HUB_BEARER_PROTOCOL);

    while (list.n != 0) {
        size_t at = kr_bytes_find(list, ',');
        struct kr_bytes item = kr_bytes_trim(kr_bytes_of(list.p, at));

        list = kr_bytes_skip(list, at < list.n ? at + 1 : at);
        if (kr_bytes_starts(item, prefix)) {
            f->item = kr_bytes_skip(item, prefix.n);
            f->tokens++;
        } else if (item.n != 0) {
            f->others++;
        }
    }
}

static int from_subprotocols(const struct kr_head *head, struct kr_arena *arena,
                             struct kr_bytes *token, struct kr_note *why)
{
    struct found f = {.tokens = 0};

    for (size_t i = 0; i < head->n; i++) {
        if (kr_bytes_is(head->fields[i].name, "sec-websocket-protocol"))
            look_at(head->fields[i].value, &f);
    }
    if (f.tokens == 0)
        return KR_ENOENT;
    if (f.tokens > 1 || f.others == 0)
        return kr_note_set(why, KR_EDENIED, "%s",
                           f.tokens > 1 ? "two bearer tokens among the subprotocols"
                                        : "no other subprotocol beside the bearer token");
    return decode(f.item, arena, token, why);
}

int hub_bearer_find(const struct kr_head *head, struct kr_arena *arena, struct kr_bytes *token,
                    struct kr_note *why)
{
    const struct kr_field *found = NULL;

    for (size_t i = 0; i < head->n; i++) {
        if (!kr_bytes_is(head->fields[i].name, "authorization"))
            continue;
        if (found != NULL)
            return kr_note_set(why, KR_EDENIED, "two Authorization fields");
        found = &head->fields[i];
    }
    return found != NULL ? from_field(found->value, token, why)
                         : from_subprotocols(head, arena, token, why);
}
