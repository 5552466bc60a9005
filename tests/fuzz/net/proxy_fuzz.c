/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses: a proxy's URL, its answer, or a list of exceptions (up to a line end)
 * with a host. */
#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"
#include "net/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const char *url)
{
    struct kr_hostport to = {.host = "hub.example.com", .port = 443};
    struct kr_proxy p;
    struct kr_buf out;

    if (kr_proxy_parse(url, NULL, &p, NULL) != 0)
        return;
    kr_buf_init(&out, KR_PROXY_HEAD_MAX);
    KR_ASSERT(kr_proxy_request(&p, &to, &out) == 0);
    /* Nothing in the URL can start another line: 2 lines, 3 with credentials, and the empty one. */
    size_t ends = 0;
    for (size_t i = 0; i < out.n; i++)
        ends += out.p[i] == '\n';
    KR_ASSERT(ends == (p.user[0] != '\0' ? 4 : 3));
    kr_buf_deinit(&out);
    kr_proxy_deinit(&p);
}

static void answer(struct kr_bytes in)
{
    size_t used = 0;
    int rc = kr_proxy_answer(in, &used, NULL);

    KR_ASSERT(rc <= 1);
    KR_ASSERT(rc != 1 || (used >= 16 && used <= in.n && used <= KR_PROXY_HEAD_MAX));
    KR_ASSERT(rc != 0 || in.n < KR_PROXY_HEAD_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kr_bytes in;
    char *text;
    char *host;

    if (size == 0)
        return 0;
    in = kr_bytes_of(data + 1, size - 1);
    if (data[0] % 3 == 1) {
        answer(in);
        return 0;
    }
    text = kr_bytes_dup(in);
    if (text == NULL)
        return 0;
    host = strchr(text, '\n');
    if (data[0] % 3 == 0) {
        parse(text);
    } else if (host != NULL) {
        *host++ = '\0';
        kr_no_proxy_match(text, host, 443);
    }
    free(text);
    return 0;
}
