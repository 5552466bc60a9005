/* SPDX-License-Identifier: Apache-2.0 */
/* err: every failure that a function of this project can return.
 * Functions return 0 (or a count) on success and one of these negative codes on failure. One row
 * says how the failure looks to a person, to an HTTP client and to a gRPC peer.
 * Where a person needs the cause, a function also takes a last parameter `struct kr_note *why`. */
#ifndef KR_BASE_ERR_H
#define KR_BASE_ERR_H

/* name, code, text, HTTP status, gRPC status (https://grpc.io/docs/guides/status-codes/) */
#define KR_ERRORS(X)                                                                               \
    X(KR_ENOMEM, -1, "out of memory", 503, 8)                                                      \
    X(KR_EINVAL, -2, "invalid argument", 400, 3)                                                   \
    X(KR_EPROTO, -3, "protocol error", 400, 13)                                                    \
    X(KR_ETOOBIG, -4, "too big", 413, 8)                                                           \
    X(KR_ECANCELED, -5, "canceled", 499, 1)                                                        \
    X(KR_ETIMEDOUT, -6, "timed out", 504, 4)                                                       \
    X(KR_ECONNLOST, -7, "connection lost", 502, 14)                                                \
    X(KR_ECONNREFUSED, -8, "connection refused", 503, 14)                                          \
    X(KR_ERESET, -9, "stream reset by the peer", 502, 13)                                          \
    X(KR_EREFUSED, -10, "refused before it was processed", 503, 14)                                \
    X(KR_ETLS, -11, "TLS failure", 502, 14)                                                        \
    X(KR_EIO, -12, "input/output error", 500, 13)                                                  \
    X(KR_ENOENT, -13, "not found", 404, 5)                                                         \
    X(KR_EEXIST, -14, "already exists", 409, 6)                                                    \
    X(KR_EDENIED, -15, "denied", 403, 7)                                                           \
    X(KR_EFULL, -16, "a limit is reached", 429, 8)                                                 \
    X(KR_EUNAVAILABLE, -17, "unavailable", 503, 14)                                                \
    X(KR_EUNSUPPORTED, -18, "not supported", 501, 12)                                              \
    X(KR_ERESOLVE, -19, "name does not resolve", 503, 14)

enum kr_err {
#define X(name, code, text, http, grpc) name = code,
    KR_ERRORS(X)
#undef X
};

/* The text of a code; "ok" for 0, "unknown error" for a number that is not in the table. */
const char *kr_err_text(int code);
int kr_err_http_status(int code);
int kr_err_grpc_status(int code);

#endif
