/* SPDX-License-Identifier: Apache-2.0 */
/* headers: the head filter: which header fields may pass the relay, in either direction.
 * What is not on the list is dropped; below a /proxy subresource it is the other way round:
 * everything passes but hop-by-hop fields, identity and our own.
 * Names are lower-case (http/head.h keeps them so). Pure; one look-up by length.
 * Fields that a Connection field names are hop-by-hop too: ask kr_header_list_has for each. */
#ifndef KR_KUBE_HEADERS_H
#define KR_KUBE_HEADERS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/note.h"

enum kr_header_rule {
    KR_HEADER_DROP,
    KR_HEADER_PASS,
    KR_HEADER_REFUSE,   /* request: impersonation that was not granted: answer 403 */
    KR_HEADER_LOCATION, /* response: through kr_location_rewrite */
};

enum kr_header_flags {
    KR_HEADERS_PROXY = 1,   /* below a /proxy subresource */
    KR_HEADERS_UPGRADE = 2, /* of an upgrade: sec-websocket-* and x-stream-* pass too */
};

enum kr_header_rule kr_header_request_rule(struct kr_bytes name, unsigned flags);
enum kr_header_rule kr_header_response_rule(struct kr_bytes name, unsigned flags);

/* Connection, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade and Proxy-* (RFC 9110 7.6.1). */
bool kr_header_is_hop_by_hop(struct kr_bytes name);
/* Whether `list` (a Connection value) has `name`, case folded. */
bool kr_header_list_has(struct kr_bytes list, struct kr_bytes name);

/* The Location of a 3xx answer as the client must see it: server-relative ones, and absolute ones
 * that point at `own_host` (the API server's host[:port]; empty: none), get `prefix` in front
 * ("/clusters/NAME", or empty). KR_EDENIED for every other one, for dot segments and for bytes that
 * a URL cannot have: the caller answers 502. */
int kr_location_rewrite(struct kr_bytes location, struct kr_bytes prefix, struct kr_bytes own_host,
                        struct kr_buf *out, struct kr_note *why);

#endif
