/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"

enum { DEFAULT_PORT = 3128 };

/* Decodes %XX; false if it does not fit or is malformed or hides a NUL. */
static bool decode_part(const char *in, size_t n, char *out, size_t room)
{
    size_t have = 0;

    for (size_t i = 0; i < n; i++) {
        char c = in[i];

        if (c == '%') {
            int hi = i + 2 < n ? kr_hex_digit((uint8_t)in[i + 1]) : -1;
            int lo = i + 2 < n ? kr_hex_digit((uint8_t)in[i + 2]) : -1;

            if (hi < 0 || lo < 0)
                return false;
            c = (char)(hi * 16 + lo);
            i += 2;
        }
        if (c == '\0' || have + 1 >= room)
            return false;
        out[have++] = c;
    }
    out[have] = '\0';
    return true;
}

static int parse_credentials(const char *in, size_t n, struct kr_proxy *out, struct kr_note *why)
{
    const char *colon = memchr(in, ':', n);
    size_t user = colon != NULL ? (size_t)(colon - in) : n;

    if (!decode_part(in, user, out->user, sizeof out->user) ||
        (colon != NULL &&
         !decode_part(colon + 1, n - user - 1, out->password, sizeof out->password)))
        return kr_note_set(why, KR_EINVAL, "proxy: bad user or password");
    /* RFC 7617: a user with a colon cannot be told from its password. */
    if (strchr(out->user, ':') != NULL)
        return kr_note_set(why, KR_EINVAL, "proxy: the user must not contain a colon");
    return 0;
}

/* The text never appears in a message: it may hold a password. */
int kr_proxy_parse(const char *url, const char *no_proxy, struct kr_proxy *out, struct kr_note *why)
{
    const char *scheme = strstr(url, "://");
    const char *at;
    char host[KR_HOST_MAX + 16];
    size_t n;
    int rc = 0;

    *out = (struct kr_proxy){0};
    if (scheme != NULL && strncasecmp(url, "http://", 7) != 0)
        return kr_note_set(why, KR_EUNSUPPORTED, "proxy: only http:// proxies are supported");
    if (scheme != NULL)
        url = scheme + 3;
    n = strcspn(url, "/?#");
    if (url[n] != '\0' && strcmp(url + n, "/") != 0)
        return kr_note_set(why, KR_EINVAL, "proxy: there is something behind host and port");
    at = memrchr(url, '@', n);
    if (at != NULL) {
        rc = parse_credentials(url, (size_t)(at - url), out, why);
        n -= (size_t)(at + 1 - url);
        url = at + 1;
    }
    if (rc != 0)
        return rc;
    if (n >= sizeof host)
        return kr_note_set(why, KR_EINVAL, "proxy: the host is too long");
    memcpy(host, url, n);
    host[n] = '\0';
    rc = kr_hostport_parse(host, DEFAULT_PORT, &out->at, why);
    if (rc == 0 && out->at.port == 0)
        rc = kr_note_set(why, KR_EINVAL, "port 0 cannot be dialled");
    if (rc != 0)
        return kr_note_wrap(why, rc, "proxy");
    if (no_proxy == NULL)
        return 0;
    if (strlen(no_proxy) >= sizeof out->no_proxy)
        return kr_note_set(why, KR_ETOOBIG, "proxy: the list of exceptions is too long");
    memcpy(out->no_proxy, no_proxy, strlen(no_proxy) + 1);
    return 0;
}

void kr_proxy_deinit(struct kr_proxy *p)
{
    explicit_bzero(p, sizeof *p);
}

/* Whether name is `suffix` (without leading dot) or, when below, ends in "." and it. */
static bool name_under(const char *name, size_t n, const char *suffix, size_t m, bool itself)
{
    if (n == m)
        return itself && strncasecmp(name, suffix, m) == 0;
    return n > m && name[n - m - 1] == '.' && strncasecmp(name + n - m, suffix, m) == 0;
}

/* Takes a ":port" off the end of an entry that is no bare v6 address; false: another port. */
static bool port_fits(char *entry, uint16_t port)
{
    char *colon = strrchr(entry, ':');
    uint64_t want;

    if (colon == NULL || (strchr(entry, ':') != colon && colon[-1] != ']'))
        return true;
    if (!kr_bytes_to_u64(kr_bytes_str(colon + 1), 65535, &want))
        return false;
    *colon = '\0';
    return want == port;
}

static bool entry_fits(char *entry, const char *host, size_t host_n, uint16_t port)
{
    struct kr_addr ip;
    size_t n;
    bool itself = true;

    if (strcmp(entry, "*") == 0)
        return true;
    if (!port_fits(entry, port))
        return false;
    n = strlen(entry);
    if (entry[0] == '[' && n > 2 && entry[n - 1] == ']') {
        entry[n - 1] = '\0';
        entry++;
    }
    if (kr_addr_parse(host, 0, &ip))
        return kr_addr_in(&ip, entry);
    if (entry[0] == '*' && entry[1] == '.')
        entry++;
    if (entry[0] == '.') {
        entry++;
        itself = false;
    }
    n = strlen(entry);
    if (n > 0 && entry[n - 1] == '.')
        n--;
    return n > 0 && name_under(host, host_n, entry, n, itself);
}

bool kr_no_proxy_match(const char *list, const char *host, uint16_t port)
{
    size_t host_n = strlen(host);

    if (host_n > 1 && host[host_n - 1] == '.')
        host_n--;
    while (*list != '\0') {
        char entry[KR_HOST_MAX + 32];
        size_t n;

        list += strspn(list, ", \t");
        n = strcspn(list, ", \t");
        if (n != 0 && n < sizeof entry) {
            memcpy(entry, list, n);
            entry[n] = '\0';
            if (entry_fits(entry, host, host_n, port))
                return true;
        }
        list += n;
    }
    return false;
}

static int append_base64(struct kr_buf *out, struct kr_bytes in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int rc = 0;

    for (size_t i = 0; i < in.n && rc == 0; i += 3) {
        size_t left = in.n - i;
        unsigned v = (unsigned)in.p[i] << 16;
        char four[5] = "====";

        if (left > 1)
            v |= (unsigned)in.p[i + 1] << 8;
        if (left > 2)
            v |= in.p[i + 2];
        four[0] = digits[v >> 18 & 63];
        four[1] = digits[v >> 12 & 63];
        if (left > 1)
            four[2] = digits[v >> 6 & 63];
        if (left > 2)
            four[3] = digits[v & 63];
        rc = kr_buf_append_str(out, four);
        explicit_bzero(four, sizeof four);
    }
    return rc;
}

static int append_authorization(const struct kr_proxy *p, struct kr_buf *out)
{
    char pair[sizeof p->user + sizeof p->password + 1];
    int n = snprintf(pair, sizeof pair, "%s:%s", p->user, p->password);
    int rc = kr_buf_append_str(out, "Proxy-Authorization: Basic ");

    if (rc == 0)
        rc = append_base64(out, kr_bytes_of(pair, (size_t)n));
    explicit_bzero(pair, sizeof pair);
    return rc == 0 ? kr_buf_append_str(out, "\r\n") : rc;
}

int kr_proxy_request(const struct kr_proxy *p, const struct kr_hostport *to, struct kr_buf *out)
{
    bool v6 = strchr(to->host, ':') != NULL;
    const char *open = v6 ? "[" : "";
    const char *close = v6 ? "]" : "";
    int rc = kr_buf_printf(out, "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n", open, to->host,
                           close, to->port, open, to->host, close, to->port);

    if (rc == 0 && p->user[0] != '\0')
        rc = append_authorization(p, out);
    if (rc == 0)
        rc = kr_buf_append_str(out, "\r\n");
    return rc;
}

static int judge_status(struct kr_bytes line, struct kr_note *why)
{
    uint64_t status;

    if (line.n < 12 || !kr_bytes_starts(line, KR_LIT("HTTP/1.")) || line.p[8] != ' ' ||
        (line.n > 12 && line.p[12] != ' ') ||
        !kr_bytes_to_u64(kr_bytes_of(line.p + 9, 3), 999, &status))
        return kr_note_set(why, KR_EPROTO, "the proxy does not answer in HTTP/1");
    if (status >= 200 && status < 300)
        return 1;
    if (status == 407)
        return kr_note_set(why, KR_EDENIED, "the proxy wants other credentials (407)");
    return kr_note_set(why, KR_ECONNREFUSED, "the proxy refused: status %u", (unsigned)status);
}

int kr_proxy_answer(struct kr_bytes in, size_t *used, struct kr_note *why)
{
    size_t room = in.n < KR_PROXY_HEAD_MAX ? in.n : KR_PROXY_HEAD_MAX;
    const uint8_t *end = room != 0 ? memmem(in.p, room, "\r\n\r\n", 4) : NULL;
    struct kr_bytes line = {in.p, 0};

    if (end == NULL && in.n >= KR_PROXY_HEAD_MAX)
        return kr_note_set(why, KR_ETOOBIG, "the proxy's answer has a head above 8 KiB");
    if (end == NULL)
        return 0;
    *used = (size_t)(end - in.p) + 4;
    line.n = (size_t)((const uint8_t *)memmem(in.p, *used, "\r\n", 2) - in.p);
    return judge_status(line, why);
}
