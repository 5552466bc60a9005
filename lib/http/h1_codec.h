/* SPDX-License-Identifier: Apache-2.0 */
/* h1_codec: HTTP/1.1 messages (RFC 9112), bytes in and events out, and heads back into bytes.
 * It is strict where proxies were led astray: what two readers could understand in two ways is
 * refused, never repaired (RFC 9112 sections 2.2, 5, 6.3 and 7.1).
 * Pure:    no I/O, no clock, no logging; one owner, no locks.
 * Memory:  a reader holds at most one line that came in pieces (freed when the head ends); the head
 *          goes into the caller's kr_head, trailers into the reader's. Body bytes are lent slices
 *          of the input.
 * Units:   bytes.
 * Errors:  KR_H1_FAILED is sticky; `rc` says what it is (KR_EPROTO, KR_ETOOBIG, KR_ENOMEM),
 * `status` what a server answers, `why` is a constant text. */
#ifndef KR_HTTP_H1_CODEC_H
#define KR_HTTP_H1_CODEC_H

#include "base/buf.h"
#include "http/head.h"

/* Limits beside KR_FIELD_MAX and the reader's max_head. */
enum {
    KR_H1_FIELDS_MAX = 512,       /* fields of one head */
    KR_H1_TRAILERS_MAX = 8192,    /* bytes of all trailers */
    KR_H1_EXTENSIONS_MAX = 256,   /* bytes of all chunk extensions of one message */
    KR_H1_CHUNK_DIGITS_MAX = 16,  /* of one chunk size, leading zeros included */
    KR_H1_CHUNK_OVERHEAD = 8 + 4, /* of a written chunk: size, CRLF, CRLF */
};

enum kr_h1_framing {
    KR_H1_NONE, /* no body */
    KR_H1_LENGTH,
    KR_H1_CHUNKED,
    KR_H1_UNTIL_CLOSE, /* only responses */
};

enum kr_h1_event {
    KR_H1_MORE,   /* all that could be read was read */
    KR_H1_HEAD,   /* the head is whole; after a 1xx status neither body nor end follows */
    KR_H1_BODY,   /* *body is a slice of the input */
    KR_H1_END,    /* the message is whole; `trailers` may have fields */
    KR_H1_FAILED, /* see rc, status and why */
};

struct kr_h1_facts { /* what the fields of one head said about framing; belongs to h1_head.c */
    struct kr_bytes target_authority; /* of an absolute-form target */
    uint64_t length;
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    unsigned expects;
    bool length_bad;
    bool coding_bad; /* not exactly "chunked" */
    bool expect_bad; /* not exactly "100-continue" */
    bool connection; /* there is a Connection field */
    bool upgrade;    /* there is an Upgrade field */
};

struct kr_h1_reader { /* embed it; read the second part, the rest belongs to h1_codec.c */
    struct kr_head *head;
    struct kr_buf line; /* a line that came in pieces */
    size_t max_head;    /* bytes of a head as it comes */
    size_t head_bytes;  /* so far */
    size_t ext_bytes;   /* of chunk extensions so far */
    uint64_t left;      /* of the body or of this chunk */
    unsigned digits;    /* of the chunk size being read */
    uint8_t state;      /* enum in h1_codec.c */
    bool response;      /* reads responses */
    bool head_request;  /* the response answers HEAD: no body, whatever it says */
    bool blank_skipped; /* the one empty line before a request (RFC 9112 section 2.2) */
    struct kr_h1_facts facts;

    uint8_t framing;       /* enum kr_h1_framing; from KR_H1_HEAD on, like the next four */
    bool http10;           /* the peer speaks HTTP/1.0 */
    bool keep_alive;       /* the connection may go on after this message */
    bool expects_continue; /* a body follows only after 100 */
    bool upgrade;          /* a request for an upgrade (RFC 9110 section 7.8); it has no body */
    struct kr_head trailers;
    int rc;
    int status;
    const char *why;
};

void kr_h1_reader_init(struct kr_h1_reader *r, bool response, size_t max_head);
void kr_h1_reader_deinit(struct kr_h1_reader *r); /* zeroed is fine */
/* Begins the next message; `head` is filled and must live until the message ended (an empty head
 * that was initialised; it may be emptied once KR_H1_HEAD came). */
void kr_h1_reader_start(struct kr_h1_reader *r, struct kr_head *head, bool head_request);
/* Takes from the front of *in up to the next event. Call it again until KR_H1_MORE or
 * KR_H1_FAILED; after KR_H1_END (and the KR_H1_HEAD of a 1xx) it takes nothing until the next
 * start. */
enum kr_h1_event kr_h1_read(struct kr_h1_reader *r, struct kr_bytes *in, struct kr_bytes *body);
/* The peer ended: KR_H1_END for a body that lasts until then, KR_H1_MORE between messages,
 * KR_H1_FAILED in the middle of one. */
enum kr_h1_event kr_h1_read_eof(struct kr_h1_reader *r);
/* Whether nothing of a message has come since the start. */
bool kr_h1_reader_idle(const struct kr_h1_reader *r);

/* Writes start line and fields without the empty line behind them, so that the caller can add
 * fields. Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding, TE (and in requests Host and
 * Upgrade) belong to the connection and are left out, and content-length unless `length`.
 * KR_EINVAL if something would not be read back as it is meant (CR, LF, NUL, a bad name). */
int kr_h1_write_request(struct kr_buf *out, const struct kr_head *head, bool length);
int kr_h1_write_response(struct kr_buf *out, const struct kr_head *head, bool length);
/* The two fields that ask for an upgrade to one protocol, as SPDY/3.1. */
int kr_h1_write_upgrade(struct kr_buf *out, struct kr_bytes token);
int kr_h1_write_fields(struct kr_buf *out, const struct kr_head *head, bool length);
/* Writes the size line of a chunk of n bytes (0 < n < 2^32); returns its length (<= 10). */
size_t kr_h1_write_chunk_size(uint8_t *out, size_t n);

#endif
