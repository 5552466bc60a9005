/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/jwt.h"

#include "base/base64.h"
#include "base/err.h"

#define TIME_MAX (INT64_C(1) << 40) /* seconds: far beyond any year that is meant */

/* One of the first two parts: base64url of a JSON object. */
static int read_part(struct kr_bytes part, struct kr_json **out, struct kr_note *why)
{
    struct kr_buf text = {.max = KR_JWT_MAX};
    int rc = kr_base64url_decode(&text, part);

    if (rc == 0)
        rc = kr_json_parse(kr_buf_bytes(&text), out, NULL);
    kr_buf_deinit(&text);
    if (rc == KR_ENOMEM)
        return kr_note_set(why, rc, "out of memory");
    return rc == 0 && kr_json_is_object(*out) ? 0 : kr_note_set(why, KR_EPROTO, "malformed token");
}

static int split(struct kr_bytes token, struct kr_bytes parts[3])
{
    for (size_t i = 0; i < 3; i++) {
        size_t at = kr_bytes_find(token, '.');

        parts[i] = kr_bytes_of(token.p, at);
        if ((at == token.n) != (i == 2) || at == 0)
            return KR_EPROTO;
        token = kr_bytes_skip(token, i < 2 ? at + 1 : at);
    }
    return 0;
}

static enum kr_jwt_alg alg_of(const struct kr_json *header)
{
    const char *alg = kr_json_text(header, "alg");

    if (alg != NULL && strcmp(alg, "RS256") == 0)
        return KR_JWT_RS256;
    return alg != NULL && strcmp(alg, "ES256") == 0 ? KR_JWT_ES256 : 0;
}

/* Whole seconds since 1970. */
static bool time_claim(const struct kr_json *claims, const char *name, int64_t *wall_ms)
{
    int64_t s;

    if (!kr_json_int(kr_json_get(claims, name), &s) || s < 0 || s > TIME_MAX)
        return false;
    *wall_ms = s * 1000;
    return true;
}

int kr_jwt_read(struct kr_jwt *out, struct kr_bytes token, struct kr_note *why)
{
    struct kr_bytes parts[3];
    int rc;

    *out = (struct kr_jwt){.signature.max = KR_JWT_MAX};
    if (token.n > KR_JWT_MAX || split(token, parts) != 0)
        return kr_note_set(why, KR_EPROTO, "malformed token");
    rc = read_part(parts[0], &out->header, why);
    if (rc == 0)
        rc = read_part(parts[1], &out->claims, why);
    if (rc == 0 && kr_base64url_decode(&out->signature, parts[2]) != 0)
        rc = kr_note_set(why, KR_EPROTO, "malformed token");
    if (rc != 0) {
        kr_jwt_deinit(out);
        return rc;
    }
    out->text = kr_bytes_of(token.p, parts[0].n + 1 + parts[1].n);
    out->alg = alg_of(out->header);
    kr_json_string(kr_json_get(out->header, "kid"), &out->kid);
    kr_json_string(kr_json_get(out->claims, "iss"), &out->issuer);
    time_claim(out->claims, "exp", &out->expires_wall_ms);
    return 0;
}

void kr_jwt_deinit(struct kr_jwt *t)
{
    kr_json_destroy(t->header);
    kr_json_destroy(t->claims);
    kr_buf_deinit(&t->signature);
    *t = (struct kr_jwt){0};
}

static int deny(struct kr_note *why, const char *text)
{
    return kr_note_set(why, KR_EDENIED, "%s", text);
}

static int check_header(const struct kr_jwt *t, const struct kr_jwt_rules *rules,
                        struct kr_note *why)
{
    const struct kr_json *typ = kr_json_get(t->header, "typ");
    struct kr_bytes type;

    if (t->alg == 0 || (rules->algs & t->alg) == 0)
        return deny(why, "the algorithm is not allowed");
    if (kr_json_get(t->header, "crit") != NULL)
        return deny(why, "the token has critical extensions");
    if (typ != NULL && (!kr_json_string(typ, &type) || !kr_bytes_eq_fold(type, KR_LIT("jwt"))))
        return deny(why, "the token is of another type");
    return t->kid.n != 0 ? 0 : deny(why, "the token names no key");
}

static bool is_ours(const struct kr_jwt_rules *rules, const struct kr_json *aud)
{
    struct kr_bytes text;

    if (!kr_json_string(aud, &text))
        return false;
    for (size_t i = 0; i < rules->audience_count; i++) {
        if (kr_bytes_is(text, rules->audiences[i]))
            return true;
    }
    return false;
}

static int check_audience(const struct kr_jwt *t, const struct kr_jwt_rules *rules,
                          struct kr_note *why)
{
    const struct kr_json *aud = kr_json_get(t->claims, "aud");
    bool found = is_ours(rules, aud);

    for (size_t i = 0; i < kr_json_len(aud) && !found; i++)
        found = is_ours(rules, kr_json_at(aud, i));
    return found ? 0 : deny(why, "the token is for another audience");
}

/* A time that is there but no time is a fault, not an absence. */
static int check_not_before(const struct kr_jwt *t, const char *name, int64_t now,
                            struct kr_note *why)
{
    int64_t at;

    if (kr_json_get(t->claims, name) == NULL)
        return 0;
    if (!time_claim(t->claims, name, &at))
        return kr_note_set(why, KR_EDENIED, "%s is no time", name);
    return at <= now + KR_JWT_LEEWAY_MS ? 0 : deny(why, "the token is not valid yet");
}

static int check_times(const struct kr_jwt *t, int64_t now, struct kr_note *why)
{
    int rc;

    if (t->expires_wall_ms == 0)
        return deny(why, "the token never expires");
    if (now >= t->expires_wall_ms)
        return deny(why, "the token has expired");
    rc = check_not_before(t, "nbf", now, why);
    return rc != 0 ? rc : check_not_before(t, "iat", now, why);
}

/* The signature last: it is what costs, and nothing is believed before it. */
int kr_jwt_verify(const struct kr_jwt *t, const struct kr_jwt_rules *rules, struct kr_note *why)
{
    int rc = check_header(t, rules, why);

    if (rc == 0 && !kr_bytes_is(t->issuer, rules->issuer))
        rc = deny(why, "the token is of another issuer");
    if (rc == 0)
        rc = check_audience(t, rules, why);
    if (rc == 0)
        rc = check_times(t, rules->now_wall_ms, why);
    if (rc != 0)
        return rc;
    if (rules->keys == NULL)
        return kr_note_set(why, KR_ENOENT, "the issuer's keys are not known yet");
    return kr_jwks_verify(rules->keys, t->kid, t->alg, t->text, kr_buf_bytes(&t->signature), why);
}
