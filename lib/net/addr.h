/* SPDX-License-Identifier: Apache-2.0 */
/* addr: IP addresses with ports, and the texts they come from.
 * Pure. Memory: by value. */
#ifndef KR_NET_ADDR_H
#define KR_NET_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/note.h"

#define KR_HOST_MAX 253
#define KR_ADDR_TEXT 64 /* "[v6%scope]:port" and the NUL */

struct kr_addr {
    union {
        struct sockaddr sa;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } u;
    socklen_t len;
};

struct kr_hostport {
    char host[KR_HOST_MAX + 1]; /* a name, or an IP address without brackets */
    uint16_t port;
};

/* "name:port", "1.2.3.4:port", "[v6]:port", nothing else: port is decimal 0..65535 without sign or
 * leading zeros; a name has only letters, digits, '-', '_' and '.' (labels of 1 to 63). When
 * default_port is not 0 the port may be missing. KR_EINVAL. */
int kr_hostport_parse(const char *text, uint16_t default_port, struct kr_hostport *out,
                      struct kr_note *why);
/* Whether it is a name as above or a numeric address. */
bool kr_host_valid(const char *host);
/* Whether the host is a numeric address; then *out is that address. */
bool kr_addr_parse(const char *ip, uint16_t port, struct kr_addr *out);
void kr_addr_set_port(struct kr_addr *a, uint16_t port);
uint16_t kr_addr_port(const struct kr_addr *a);
/* "1.2.3.4:443" or "[::1]:443"; a v4 address mapped into v6 is printed as v4. */
void kr_addr_text(const struct kr_addr *a, char out[KR_ADDR_TEXT]);
/* The same without the port and brackets. */
void kr_addr_ip_text(const struct kr_addr *a, char out[KR_ADDR_TEXT]);
/* Whether a lies in the network `cidr` ("10.0.0.0/8", "fd00::/8") or is exactly that address. */
bool kr_addr_in(const struct kr_addr *a, const char *cidr);

#endif
