/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_lines.h"

/* The part before the next ';', taken off the front. */
static struct kr_bytes next_part(struct kr_bytes *rest)
{
    size_t at = kr_bytes_find(*rest, ';');
    struct kr_bytes part = kr_bytes_of(rest->p, at);

    *rest = kr_bytes_skip(*rest, at < rest->n ? at + 1 : at);
    return kr_bytes_trim(part);
}

enum kr_watch_framing kr_watch_framing_of(struct kr_bytes content_type,
                                          struct kr_bytes content_encoding)
{
    struct kr_bytes type = next_part(&content_type);

    content_encoding = kr_bytes_trim(content_encoding);
    if (content_encoding.n != 0 && !kr_bytes_eq_fold(content_encoding, KR_LIT("identity")))
        return KR_WATCH_UNTRACKED;
    if (kr_bytes_eq_fold(type, KR_LIT("application/json")))
        return KR_WATCH_JSON;
    if (!kr_bytes_eq_fold(type, KR_LIT("application/vnd.kubernetes.protobuf")))
        return KR_WATCH_UNTRACKED;
    while (content_type.n != 0) {
        if (kr_bytes_eq_fold(next_part(&content_type), KR_LIT("stream=watch")))
            return KR_WATCH_PROTOBUF;
    }
    return KR_WATCH_UNTRACKED;
}

void kr_watch_lines_init(struct kr_watch_lines *w, enum kr_watch_framing framing)
{
    *w = (struct kr_watch_lines){.framing = framing};
}

static size_t feed_json(struct kr_bytes in)
{
    const uint8_t *nl = in.n != 0 ? memrchr(in.p, '\n', in.n) : NULL;

    return nl != NULL ? (size_t)(nl - in.p) + 1 : 0;
}

static size_t feed_protobuf(struct kr_watch_lines *w, struct kr_bytes in)
{
    size_t whole = 0;
    size_t at = 0;

    while (at < in.n) {
        if (w->have < 4) {
            w->length = w->length << 8 | in.p[at++];
            w->have++;
            w->left = w->length;
        } else {
            size_t n = in.n - at < w->left ? in.n - at : w->left;

            at += n;
            w->left -= (uint32_t)n;
        }
        if (w->have == 4 && w->left == 0) {
            whole = at;
            w->have = 0;
            w->length = 0;
        }
    }
    return whole;
}

size_t kr_watch_lines_feed(struct kr_watch_lines *w, struct kr_bytes in)
{
    size_t whole = in.n;

    if (w->framing == KR_WATCH_JSON)
        whole = feed_json(in);
    else if (w->framing == KR_WATCH_PROTOBUF)
        whole = feed_protobuf(w, in);
    if (whole != 0)
        w->whole = w->total + whole;
    w->total += in.n;
    return whole;
}

uint64_t kr_watch_lines_whole(const struct kr_watch_lines *w)
{
    return w->whole;
}

bool kr_watch_lines_at_boundary(const struct kr_watch_lines *w)
{
    return w->whole == w->total;
}
