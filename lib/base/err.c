/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stddef.h>

static const struct row {
    int code;
    const char *text;
    int http;
    int grpc;
} rows[] = {
#define X(name, code, text, http, grpc) {code, text, http, grpc},
    KR_ERRORS(X)
#undef X
};

static const struct row *find(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == code)
            return &rows[i];
    }
    return NULL;
}

const char *kr_err_text(int code)
{
    const struct row *r = find(code);

    if (code >= 0)
        return "ok";
    return r != NULL ? r->text : "unknown error";
}

int kr_err_http_status(int code)
{
    const struct row *r = find(code);

    return r != NULL ? r->http : 500;
}

int kr_err_grpc_status(int code)
{
    const struct row *r = find(code);

    return r != NULL ? r->grpc : 2;
}
