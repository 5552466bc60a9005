/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_frame: the length-prefixed messages of a gRPC body (gRPC over HTTP/2, "Length-Prefixed-
 * Message": one flag byte, 4 bytes of length, big-endian, the message).
 * Pure:    no I/O, no clock, no globals; one owner.
 * Memory:  the reader holds at most one message of `limit` bytes; a message that lies whole in the
 *          input is lent from there, without a copy.
 * Units:   bytes. */
#ifndef KR_WIRE_GRPC_FRAME_H
#define KR_WIRE_GRPC_FRAME_H

#include "base/buf.h"
#include "base/bytes.h"

#define KR_GRPC_PREFIX 5

/* Takes one whole message, lent for the call; non-zero stops the feed and sticks. Must not feed or
 * deinit the reader. */
typedef int kr_grpc_sink(void *owner, struct kr_bytes message);

struct kr_grpc_reader { /* embed it; the fields belong to grpc_frame.c */
    uint8_t prefix[KR_GRPC_PREFIX];
    uint8_t have; /* bytes of the prefix so far */
    int failed;   /* sticky: a body that broke once has no boundaries any more */
    size_t want;  /* length of the message being read */
    size_t limit;
    struct kr_buf body; /* its bytes so far */
};

void kr_grpc_reader_init(struct kr_grpc_reader *r, size_t limit);
void kr_grpc_reader_deinit(struct kr_grpc_reader *r); /* a zeroed reader is fine */
/* Reads all of `in` and hands each message that is complete to `sink`, in order. 0, or the first of
 * KR_EUNSUPPORTED (compressed), KR_EPROTO (flag), KR_ETOOBIG, KR_ENOMEM or the sink's own code;
 * from then on every call returns that code and calls nothing. */
int kr_grpc_reader_feed(struct kr_grpc_reader *r, struct kr_bytes in, kr_grpc_sink *sink,
                        void *owner);
/* Whether the body may end here: no message is half read. */
bool kr_grpc_reader_clean(const struct kr_grpc_reader *r);

/* Appends one message with its prefix; all or nothing. KR_ETOOBIG, KR_ENOMEM. */
int kr_grpc_write(struct kr_buf *out, struct kr_bytes message);

#endif
