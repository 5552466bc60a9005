/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/request_header.h"

#include "base/base64.h"
#include "base/err.h"

static int write_value(struct kr_buf *message, int rc, struct kr_buf *out)
{
    if (rc == 0)
        rc = kr_base64_encode(out, kr_buf_bytes(message), false);
    kr_buf_cleanse(message); /* it may hold a token */
    return rc;
}

int kr_request_header_write(const struct kr_relay_request *m, struct kr_buf *out)
{
    struct kr_buf message;

    kr_buf_init(&message, KR_REQUEST_HEADER_MAX / 4 * 3);
    return write_value(&message, kr_relay_request_encode(m, &message), out);
}

int kr_response_header_write(const struct kr_relay_response *m, struct kr_buf *out)
{
    struct kr_buf message;

    kr_buf_init(&message, KR_REQUEST_HEADER_MAX / 4 * 3);
    return write_value(&message, kr_relay_response_encode(m, &message), out);
}

static int read_value(struct kr_bytes value, struct kr_arena *arena, struct kr_bytes *message,
                      struct kr_note *why)
{
    size_t room = value.n / 4 * 3 + 3;
    struct kr_buf out = {.cap = room, .max = room}; /* on the arena: never grows, never freed */

    if (value.n > KR_REQUEST_HEADER_MAX)
        return kr_note_set(why, KR_ETOOBIG, "the header is %zu bytes", value.n);
    out.p = kr_arena_alloc(arena, room);
    if (out.p == NULL)
        return kr_note_set(why, KR_ENOMEM, "no memory for the header");
    if (kr_base64_decode(&out, value) != 0)
        return kr_note_set(why, KR_EPROTO, "the header is no base64");
    *message = kr_buf_bytes(&out);
    return 0;
}

int kr_request_header_read(struct kr_relay_request *m, struct kr_bytes value,
                           struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes message;
    int rc = read_value(value, arena, &message, why);

    *m = (struct kr_relay_request){.deadline_ms = 0};
    if (rc == 0)
        rc = kr_relay_request_decode(m, message, arena, why);
    return rc != 0 ? kr_note_wrap(why, rc, KR_REQUEST_HEADER) : 0;
}

int kr_response_header_read(struct kr_relay_response *m, struct kr_bytes value,
                            struct kr_arena *arena, struct kr_note *why)
{
    struct kr_bytes message;
    int rc = read_value(value, arena, &message, why);

    *m = (struct kr_relay_response){.origin = KR_ORIGIN_UNSPECIFIED};
    if (rc == 0)
        rc = kr_relay_response_decode(m, message, why);
    return rc != 0 ? kr_note_wrap(why, rc, KR_RESPONSE_HEADER) : 0;
}
