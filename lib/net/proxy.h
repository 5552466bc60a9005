/* SPDX-License-Identifier: Apache-2.0 */
/* proxy: the way out through an HTTP proxy by CONNECT (RFC 9110 section 9.3.6), and the list of
 * names that go direct. Pure.
 * Memory: by value; the password is wiped by kr_proxy_deinit. */
#ifndef KR_NET_PROXY_H
#define KR_NET_PROXY_H

#include "base/buf.h"
#include "net/addr.h"

#define KR_PROXY_HEAD_MAX 8192 /* bytes of the proxy's answer up to the empty line */
#define KR_NO_PROXY_MAX 4096   /* bytes of a NO_PROXY list */

struct kr_proxy {
    struct kr_hostport at;
    char user[128]; /* empty: no credentials are sent */
    char password[256];
    char no_proxy[KR_NO_PROXY_MAX]; /* see kr_no_proxy_match */
};

/* "http://user:password@host:port" (percent-encoding in user and password), the scheme may be
 * missing, port 3128 if missing. Other schemes: KR_EUNSUPPORTED; nonsense: KR_EINVAL. */
int kr_proxy_parse(const char *url, const char *no_proxy, struct kr_proxy *out,
                   struct kr_note *why);
void kr_proxy_deinit(struct kr_proxy *p);

/* Whether `host` (name or address) with `port` goes direct by a list of names separated by commas
 * or spaces: "*" is everything; "example.com" is that name and all below it; ".example.com" and
 * "*.example.com" only what is below; "10.0.0.0/8", "fd00::/8", "10.1.2.3" are addresses; an entry
 * may end in ":port". Case does not matter. */
bool kr_no_proxy_match(const char *list, const char *host, uint16_t port);

/* Appends the CONNECT request for host:port. */
int kr_proxy_request(const struct kr_proxy *p, const struct kr_hostport *to, struct kr_buf *out);
/* Looks at what the proxy has answered: 1: the tunnel is open, and `*used` bytes were its head;
 * 0: more is needed; negative: KR_EPROTO, KR_ETOOBIG, KR_EDENIED (407), KR_ECONNREFUSED (any other
 * status). */
int kr_proxy_answer(struct kr_bytes in, size_t *used, struct kr_note *why);

#endif
