/* SPDX-License-Identifier: Apache-2.0 */
#include "net/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/err.h"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Labels of 1..63 characters; one dot at the end (the root) is allowed. */
static bool is_name(const char *s, size_t n)
{
    size_t label = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i] == '.' && label == 0)
            return false;
        if (s[i] != '.' && (!is_name_char(s[i]) || ++label > 63))
            return false;
        if (s[i] == '.')
            label = 0;
    }
    return n > 0;
}

bool kr_host_valid(const char *host)
{
    size_t n = strlen(host);
    struct kr_addr a;

    return n <= KR_HOST_MAX && (is_name(host, n) || kr_addr_parse(host, 0, &a));
}

static bool parse_port(const char *s, uint16_t *out)
{
    uint64_t port;

    if (s[0] == '0' && s[1] != '\0')
        return false;
    if (!kr_bytes_to_u64(kr_bytes_str(s), 65535, &port))
        return false;
    *out = (uint16_t)port;
    return true;
}

int kr_hostport_parse(const char *text, uint16_t default_port, struct kr_hostport *out,
                      struct kr_note *why)
{
    bool v6 = text[0] == '[';
    const char *host = v6 ? text + 1 : text;
    size_t n = strcspn(host, v6 ? "]" : ":");
    const char *rest = host + n;
    struct kr_addr a;

    *out = (struct kr_hostport){.port = default_port};
    if (v6 && *rest++ != ']')
        return kr_note_set(why, KR_EINVAL, "\"%.100s\": the bracket is not closed", text);
    if (n == 0 || n > KR_HOST_MAX)
        return kr_note_set(why, KR_EINVAL, "\"%.100s\": the host is empty or too long", text);
    memcpy(out->host, host, n);
    if (v6 ? !kr_addr_parse(out->host, 0, &a) || a.u.sa.sa_family != AF_INET6
           : !is_name(out->host, n))
        return kr_note_set(why, KR_EINVAL, "\"%.100s\": not a host name or address", text);
    if (*rest == '\0' && default_port != 0)
        return 0;
    if (*rest == '\0')
        return kr_note_set(why, KR_EINVAL, "\"%.100s\": the port is missing", text);
    if (*rest != ':' || !parse_port(rest + 1, &out->port))
        return kr_note_set(why, KR_EINVAL, "\"%.100s\": the port is not a number up to 65535",
                           text);
    return 0;
}

bool kr_addr_parse(const char *ip, uint16_t port, struct kr_addr *out)
{
    *out = (struct kr_addr){0};
    if (inet_pton(AF_INET, ip, &out->u.v4.sin_addr) == 1) {
        out->u.v4.sin_family = AF_INET;
        out->len = sizeof out->u.v4;
    } else if (inet_pton(AF_INET6, ip, &out->u.v6.sin6_addr) == 1) {
        out->u.v6.sin6_family = AF_INET6;
        out->len = sizeof out->u.v6;
    } else {
        return false;
    }
    kr_addr_set_port(out, port);
    return true;
}

void kr_addr_set_port(struct kr_addr *a, uint16_t port)
{
    if (a->u.sa.sa_family == AF_INET)
        a->u.v4.sin_port = htons(port);
    else
        a->u.v6.sin6_port = htons(port);
}

uint16_t kr_addr_port(const struct kr_addr *a)
{
    return ntohs(a->u.sa.sa_family == AF_INET ? a->u.v4.sin_port : a->u.v6.sin6_port);
}

/* The four bytes of a v4 address, also of one mapped into v6; NULL for others. */
static const uint8_t *v4_bytes(const struct kr_addr *a)
{
    if (a->u.sa.sa_family == AF_INET)
        return (const uint8_t *)&a->u.v4.sin_addr;
    if (IN6_IS_ADDR_V4MAPPED(&a->u.v6.sin6_addr))
        return a->u.v6.sin6_addr.s6_addr + 12;
    return NULL;
}

void kr_addr_ip_text(const struct kr_addr *a, char out[KR_ADDR_TEXT])
{
    const uint8_t *v4 = v4_bytes(a);

    if (v4 != NULL)
        inet_ntop(AF_INET, v4, out, KR_ADDR_TEXT);
    else
        inet_ntop(AF_INET6, &a->u.v6.sin6_addr, out, KR_ADDR_TEXT);
}

void kr_addr_text(const struct kr_addr *a, char out[KR_ADDR_TEXT])
{
    char ip[KR_ADDR_TEXT];

    kr_addr_ip_text(a, ip);
    if (v4_bytes(a) != NULL)
        snprintf(out, KR_ADDR_TEXT, "%.50s:%u", ip, kr_addr_port(a));
    else
        snprintf(out, KR_ADDR_TEXT, "[%.50s]:%u", ip, kr_addr_port(a));
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned rest = bits % 8;

    if (memcmp(a, b, bits / 8) != 0)
        return false;
    return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) & (0xff << (8 - rest)) & 0xff) == 0;
}

bool kr_addr_in(const struct kr_addr *a, const char *cidr)
{
    size_t n = strcspn(cidr, "/");
    char ip[KR_ADDR_TEXT];
    struct kr_addr net;
    uint64_t bits;
    bool v4;

    if (n >= sizeof ip)
        return false;
    memcpy(ip, cidr, n);
    ip[n] = '\0';
    if (!kr_addr_parse(ip, 0, &net))
        return false;
    v4 = net.u.sa.sa_family == AF_INET;
    bits = v4 ? 32 : 128;
    if (cidr[n] == '/' && !kr_bytes_to_u64(kr_bytes_str(cidr + n + 1), bits, &bits))
        return false;
    if (v4)
        return v4_bytes(a) != NULL && same_bits(v4_bytes(a), v4_bytes(&net), (unsigned)bits);
    return a->u.sa.sa_family == AF_INET6 &&
           same_bits(a->u.v6.sin6_addr.s6_addr, net.u.v6.sin6_addr.s6_addr, (unsigned)bits);
}
