/* SPDX-License-Identifier: Apache-2.0 */
/* h1_head: the lines of an HTTP/1.1 head, one by one, into a kr_head, and the verdict over the
 * whole: what may be accepted, how the body is framed (RFC 9112 sections 3, 4, 5, 6). Part of
 * h1_codec; each function returns whether the reader goes on, else rc, status and why are set. */
#ifndef KR_HTTP_H1_HEAD_H
#define KR_HTTP_H1_HEAD_H

#include "http/h1_codec.h"

enum kr_h1_class { /* of a byte; a set */
                   KR_H1_TOKEN = 1,
                   KR_H1_VALUE = 2,
                   KR_H1_TARGET = 4,
                   KR_H1_HOST = 8
};

bool kr_h1_all_of(struct kr_bytes b, enum kr_h1_class set);
/* Sets the failure and returns false. */
bool kr_h1_refuse(struct kr_h1_reader *r, int rc, int status, const char *why);
bool kr_h1_parse_request_line(struct kr_h1_reader *r, struct kr_bytes line);
bool kr_h1_parse_status_line(struct kr_h1_reader *r, struct kr_bytes line);
bool kr_h1_parse_field(struct kr_h1_reader *r, struct kr_bytes line);
bool kr_h1_parse_trailer(struct kr_h1_reader *r, struct kr_bytes line);
/* After the last field: checks the head as a whole; sets framing, left, keep_alive, expects. */
bool kr_h1_judge_request(struct kr_h1_reader *r);
bool kr_h1_judge_response(struct kr_h1_reader *r);

#endif
