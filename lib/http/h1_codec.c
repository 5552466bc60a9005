/* SPDX-License-Identifier: Apache-2.0 */
/* The reader as a machine:
 *
 *   FIRST -> FIELDS -+-> END -> DONE                          (no body)
 *                    +-> DONE                                 (1xx)
 *                    +-> LENGTH -> END
 *                    +-> UNTIL_CLOSE -(eof)-> DONE
 *                    +-> SIZE -> (EXT) -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE
 *                                             +-(size 0)-> TRAILERS -> END
 * and from anywhere to FAILED, for good. */
#include "http/h1_codec.h"

#include "base/assert.h"
#include "base/err.h"
#include "http/h1_head.h"

enum state {
    DONE, /* also before the first start */
    FIRST,
    FIELDS,
    LENGTH,
    UNTIL_CLOSE,
    SIZE,
    EXT,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILERS,
    END,
    FAILED,
};

enum { NAME_SPACE = 1024 }; /* of a line beyond the largest value: name, colon, spaces */

void kr_h1_reader_init(struct kr_h1_reader *r, bool response, size_t max_head)
{
    *r = (struct kr_h1_reader){.response = response, .max_head = max_head};
    kr_buf_init(&r->line, KR_FIELD_MAX + NAME_SPACE + 2);
    kr_head_init(&r->trailers, KR_H1_TRAILERS_MAX);
}

void kr_h1_reader_deinit(struct kr_h1_reader *r)
{
    kr_buf_cleanse(&r->line);
    kr_head_deinit(&r->trailers);
}

void kr_h1_reader_start(struct kr_h1_reader *r, struct kr_head *head, bool head_request)
{
    KR_ASSERT(kr_h1_reader_idle(r));
    r->head = head;
    r->head_request = head_request;
    r->blank_skipped = false;
    r->head_bytes = r->ext_bytes = 0;
    r->facts = (struct kr_h1_facts){0};
    r->framing = KR_H1_NONE;
    r->http10 = r->keep_alive = r->expects_continue = r->upgrade = false;
    kr_head_deinit(&r->trailers);
    r->state = FIRST;
}

bool kr_h1_reader_idle(const struct kr_h1_reader *r)
{
    return r->state == DONE || (r->state == FIRST && r->head_bytes == 0);
}

static bool refuse(struct kr_h1_reader *r, const char *why)
{
    return kr_h1_refuse(r, KR_EPROTO, 400, why);
}

static bool line_too_long(struct kr_h1_reader *r)
{
    if (r->state == FIRST)
        return kr_h1_refuse(r, KR_ETOOBIG, 414, "the request line is too long");
    return kr_h1_refuse(r, KR_ETOOBIG, 431, "a header field is too large");
}

/* Takes bytes up to the next LF. *whole: *line is a line without its CRLF, lent until the next
 * call. False after a refusal. */
static bool take_line(struct kr_h1_reader *r, struct kr_bytes *in, size_t max, bool *whole,
                      struct kr_bytes *line)
{
    size_t at = kr_bytes_find(*in, '\n');
    struct kr_bytes piece = {in->p, at < in->n ? at + 1 : at};
    bool direct = r->line.n == 0 && at < in->n;

    *whole = at < in->n;
    if (r->line.n + piece.n > max + 2)
        return line_too_long(r);
    if (!direct && kr_buf_append(&r->line, piece) != 0)
        return kr_h1_refuse(r, KR_ENOMEM, 503, "out of memory");
    *in = kr_bytes_skip(*in, piece.n);
    r->head_bytes += piece.n;
    if (!*whole)
        return true;
    *line = direct ? piece : kr_buf_bytes(&r->line);
    r->line.n = 0;
    if (line->n < 2 || line->p[line->n - 2] != '\r')
        return refuse(r, "a line ends in a bare LF");
    line->n -= 2;
    return true;
}

static bool read_first(struct kr_h1_reader *r, struct kr_bytes *in)
{
    size_t max = r->max_head < KR_FIELD_MAX ? r->max_head : KR_FIELD_MAX;
    struct kr_bytes line;
    bool whole;

    if (!take_line(r, in, max, &whole, &line))
        return false;
    if (!whole)
        return true;
    if (line.n == 0 && !r->response && !r->blank_skipped) {
        r->blank_skipped = true;
        return true;
    }
    r->state = FIELDS;
    return r->response ? kr_h1_parse_status_line(r, line) : kr_h1_parse_request_line(r, line);
}

static enum state body_state(const struct kr_h1_reader *r)
{
    if (r->response && r->head->status < 200)
        return DONE;
    switch ((enum kr_h1_framing)r->framing) {
    case KR_H1_LENGTH:
        return r->left != 0 ? LENGTH : END;
    case KR_H1_CHUNKED:
        return SIZE;
    case KR_H1_UNTIL_CLOSE:
        return UNTIL_CLOSE;
    case KR_H1_NONE:
        break;
    }
    return END;
}

static bool read_fields(struct kr_h1_reader *r, struct kr_bytes *in, bool *head_ends)
{
    struct kr_bytes line;
    bool whole;

    if (!take_line(r, in, KR_FIELD_MAX + NAME_SPACE, &whole, &line))
        return false;
    if (r->head_bytes > r->max_head)
        return kr_h1_refuse(r, KR_ETOOBIG, 431, "the header is too large");
    if (!whole)
        return true;
    if (line.n != 0)
        return kr_h1_parse_field(r, line);
    if (!(r->response ? kr_h1_judge_response(r) : kr_h1_judge_request(r)))
        return false;
    kr_buf_cleanse(&r->line);
    r->digits = 0;
    r->state = (uint8_t)body_state(r);
    if (r->state == SIZE)
        r->left = 0;
    *head_ends = true;
    return true;
}

static bool read_trailers(struct kr_h1_reader *r, struct kr_bytes *in)
{
    struct kr_bytes line;
    bool whole;

    if (!take_line(r, in, KR_H1_TRAILERS_MAX, &whole, &line))
        return false;
    if (r->head_bytes > KR_H1_TRAILERS_MAX)
        return kr_h1_refuse(r, KR_ETOOBIG, 431, "the trailers are too large");
    if (!whole)
        return true;
    if (line.n != 0)
        return kr_h1_parse_trailer(r, line);
    kr_buf_cleanse(&r->line);
    r->state = END;
    return true;
}

static bool on_size_byte(struct kr_h1_reader *r, uint8_t c)
{
    int digit = kr_hex_digit(c);

    if (digit >= 0) {
        if (++r->digits > KR_H1_CHUNK_DIGITS_MAX || r->left >> 59 != 0)
            return refuse(r, "a chunk size is too large");
        r->left = r->left << 4 | (uint64_t)digit;
        return true;
    }
    if (r->digits == 0 || (c != '\r' && c != ';'))
        return refuse(r, "a chunk size is no hexadecimal number");
    r->state = c == '\r' ? SIZE_LF : EXT;
    if (c == ';')
        r->ext_bytes++;
    return true;
}

static bool on_ext_byte(struct kr_h1_reader *r, uint8_t c)
{
    if (c == '\r') {
        r->state = SIZE_LF;
        return true;
    }
    if (!kr_h1_all_of(kr_bytes_of(&c, 1), KR_H1_VALUE))
        return refuse(r, "a chunk extension has bytes that do not belong there");
    if (++r->ext_bytes > KR_H1_EXTENSIONS_MAX)
        return refuse(r, "the chunk extensions are too long");
    return true;
}

static bool on_size_end(struct kr_h1_reader *r, uint8_t c)
{
    if (c != '\n')
        return refuse(r, "a chunk size line ends in a bare CR");
    r->state = r->left != 0 ? DATA : TRAILERS;
    r->head_bytes = 0; /* counts the trailers from here */
    return true;
}

static bool on_data_end(struct kr_h1_reader *r, uint8_t c)
{
    if (c != (r->state == DATA_CR ? '\r' : '\n'))
        return refuse(r, "a chunk is longer than its size");
    r->digits = 0;
    r->left = 0;
    r->state = r->state == DATA_CR ? DATA_LF : SIZE;
    return true;
}

/* The bytes between chunks. */
static bool read_chunk_line(struct kr_h1_reader *r, struct kr_bytes *in)
{
    uint8_t c = in->p[0];

    *in = kr_bytes_skip(*in, 1);
    switch ((enum state)r->state) {
    case SIZE:
        return on_size_byte(r, c);
    case EXT:
        return on_ext_byte(r, c);
    case SIZE_LF:
        return on_size_end(r, c);
    default:
        return on_data_end(r, c);
    }
}

static struct kr_bytes take_body(struct kr_h1_reader *r, struct kr_bytes *in)
{
    struct kr_bytes body = *in;

    if (r->state != UNTIL_CLOSE) {
        if (body.n > r->left)
            body.n = (size_t)r->left;
        r->left -= body.n;
        if (r->left == 0)
            r->state = r->state == LENGTH ? END : DATA_CR;
    }
    *in = kr_bytes_skip(*in, body.n);
    return body;
}

enum kr_h1_event kr_h1_read(struct kr_h1_reader *r, struct kr_bytes *in, struct kr_bytes *body)
{
    bool ok = r->state != FAILED;
    bool head_ends = false;

    while (ok) {
        if (r->state == END) {
            r->state = DONE;
            return KR_H1_END;
        }
        if (r->state == DONE || in->n == 0)
            return KR_H1_MORE;
        switch ((enum state)r->state) {
        case FIRST:
            ok = read_first(r, in);
            break;
        case FIELDS:
            ok = read_fields(r, in, &head_ends);
            if (ok && head_ends)
                return KR_H1_HEAD;
            break;
        case LENGTH:
        case UNTIL_CLOSE:
        case DATA:
            *body = take_body(r, in);
            return KR_H1_BODY;
        case TRAILERS:
            ok = read_trailers(r, in);
            break;
        default:
            ok = read_chunk_line(r, in);
            break;
        }
    }
    r->state = FAILED;
    return KR_H1_FAILED;
}

enum kr_h1_event kr_h1_read_eof(struct kr_h1_reader *r)
{
    if (kr_h1_reader_idle(r))
        return KR_H1_MORE;
    if (r->state == UNTIL_CLOSE || r->state == END) {
        r->state = DONE;
        return KR_H1_END;
    }
    if (r->state != FAILED)
        kr_h1_refuse(r, KR_ECONNLOST, 400, "the message was cut short");
    r->state = FAILED;
    return KR_H1_FAILED;
}
