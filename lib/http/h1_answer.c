/* SPDX-License-Identifier: Apache-2.0 */
#include "http/h1_answer.h"

#include <time.h>

#include "base/err.h"

enum { BAD_BODY_MAX = 64 * 1024 };

const char *kr_h1_date(struct kr_h1_date *d, int64_t now_wall_ms)
{
    time_t now = (time_t)(now_wall_ms / 1000);
    struct tm tm;

    if (d->s != now || d->text[0] == '\0') {
        gmtime_r(&now, &tm);
        strftime(d->text, sizeof d->text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        d->s = now;
    }
    return d->text;
}

enum kr_h1_framing kr_h1_answer_framing(const struct kr_head *head, bool end, bool head_method,
                                        bool http10)
{
    if (head->status == 101)
        return KR_H1_UNTIL_CLOSE;
    if (head_method || head->status == 204 || head->status == 304)
        return KR_H1_NONE;
    if (end || kr_head_content_length(head) >= 0)
        return KR_H1_LENGTH;
    return http10 ? KR_H1_UNTIL_CLOSE : KR_H1_CHUNKED;
}

int kr_h1_answer_head(struct kr_buf *text, const struct kr_head *head, enum kr_h1_framing framing,
                      const char *date)
{
    bool no_length = head->status == 101 || head->status == 204; /* RFC 9110 section 8.6 */
    bool length = kr_head_content_length(head) >= 0;
    int rc = kr_h1_write_response(text, head, length && !no_length);

    if (rc == 0 && head->status != 101 && kr_head_find(head, KR_LIT("date")) == NULL)
        rc = kr_buf_printf(text, "date: %s\r\n", date);
    if (rc == 0 && framing == KR_H1_CHUNKED)
        rc = kr_buf_append_str(text, "transfer-encoding: chunked\r\n");
    if (rc == 0 && framing == KR_H1_LENGTH && !length)
        rc = kr_buf_append_str(text, "content-length: 0\r\n");
    return rc;
}

int kr_h1_answer_bad(struct kr_buf *text, const struct kr_h1_config *cfg, int status,
                     const char *why, bool no_body, const char *date)
{
    struct kr_head head;
    struct kr_buf body;
    int rc;

    kr_head_init(&head, KR_HEAD_MAX);
    kr_buf_init(&body, BAD_BODY_MAX);
    head.status = status;
    if (cfg->on_bad_request != NULL)
        cfg->on_bad_request(cfg->owner, status, why, &head, &body);
    rc = kr_h1_write_response(text, &head, false);
    if (rc == 0)
        rc = kr_buf_printf(text, "date: %s\r\ncontent-length: %zu\r\nconnection: close\r\n\r\n",
                           date, body.n);
    if (rc == 0 && !no_body)
        rc = kr_buf_append(text, kr_buf_bytes(&body));
    kr_head_deinit(&head);
    kr_buf_deinit(&body);
    return rc;
}
