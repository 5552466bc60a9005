/* SPDX-License-Identifier: Apache-2.0 */
#include "token.h"

#include <stdio.h>

#include "base/err.h"
#include "json.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void sim_token_write(int64_t rv, const char *key, char out[SIM_TOKEN_MAX])
{
    char json[SIM_KEY_MAX + 96];
    size_t n = (size_t)snprintf(json, sizeof json,
                                "{\"v\":\"meta.k8s.io/v1\",\"rv\":%lld,\"start\":\"%s\\u0000\"}",
                                (long long)rv, key);
    size_t used = 0;
    uint32_t bits = 0;
    int have = 0;

    for (size_t i = 0; i < n; i++) {
        bits = bits << 8 | (uint8_t)json[i];
        for (have += 8; have >= 6; have -= 6)
            out[used++] = alphabet[bits >> (have - 6) & 63];
    }
    if (have != 0)
        out[used++] = alphabet[bits << (6 - have) & 63];
    out[used] = '\0';
}

static int decode(const char *token, char *out, size_t size)
{
    uint32_t bits = 0;
    int have = 0;
    size_t n = 0;

    for (; *token != '\0' && *token != '='; token++) {
        const char *at = strchr(alphabet, *token);

        if (at == NULL || n + 1 >= size)
            return KR_EINVAL;
        bits = bits << 6 | (uint32_t)(at - alphabet);
        have += 6;
        if (have >= 8)
            out[n++] = (char)(bits >> (have -= 8) & 0xff);
    }
    out[n] = '\0';
    return 0;
}

int sim_token_read(const char *token, int64_t *rv, char key[SIM_KEY_MAX])
{
    char json[SIM_TOKEN_MAX];
    struct json_object *v;
    int rc = KR_EINVAL;

    if (decode(token, json, sizeof json) != 0)
        return KR_EINVAL;
    v = sim_json_parse(kr_bytes_str(json));
    /* The key ends at the NUL that the API server appends. */
    if (strcmp(sim_json_str(v, "v"), "meta.k8s.io/v1") == 0 &&
        sim_json_str(v, "start")[0] != '\0') {
        *rv = sim_json_int(v, "rv", -1);
        snprintf(key, SIM_KEY_MAX, "%s", sim_json_str(v, "start"));
        rc = 0;
    }
    json_object_put(v);
    return rc;
}
