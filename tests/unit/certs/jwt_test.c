/* SPDX-License-Identifier: Apache-2.0 */
#include "token_maker.h"

#include "base/err.h"

#define RS "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"r\"}"
#define ES "{\"alg\":\"ES256\",\"kid\":\"e\"}"
#define CLAIMS(more) "{\"iss\":\"" ISSUER "\",\"aud\":\"" AUDIENCE "\",\"sub\":\"alice\"" more "}"
#define GOOD CLAIMS(",\"exp\":1700000300,\"nbf\":1700000000,\"iat\":1700000000")

struct world {
    struct maker m;
    struct kr_jwks *keys;
};

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    maker_init(&w->m);
    w->keys = maker_jwks(&w->m);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    kr_jwks_destroy(w->keys);
    maker_deinit(&w->m);
    free(w);
    return 0;
}

static int judge_text(const struct world *w, struct kr_bytes token, unsigned algs,
                      struct kr_note *why)
{
    static const char *const audiences[] = {"other", AUDIENCE};
    const struct kr_jwt_rules rules = {
        .issuer = ISSUER,
        .audiences = audiences,
        .audience_count = 2,
        .algs = algs,
        .keys = w->keys,
        .now_wall_ms = NOW_S * INT64_C(1000),
    };
    struct kr_jwt jwt;
    int rc = kr_jwt_read(&jwt, token, why);

    if (rc == 0)
        rc = kr_jwt_verify(&jwt, &rules, why);
    kr_jwt_deinit(&jwt);
    return rc;
}

static int judge(const struct world *w, EVP_PKEY *key, const char *header, const char *claims)
{
    struct kr_note why = {""};
    char *token = make_token(key, header, claims);
    int rc = judge_text(w, kr_bytes_str(token), KR_JWT_RS256 | KR_JWT_ES256, &why);

    free(token);
    return rc;
}

static void test_verify_when_all_is_right_then_good(void **state)
{
    const struct world *w = *state;

    assert_int_equal(judge(w, w->m.rsa, RS, GOOD), 0);
    assert_int_equal(judge(w, w->m.ec, ES, GOOD), 0);
    assert_int_equal(judge(w, w->m.ec, ES,
                           "{\"iss\":\"" ISSUER
                           "\",\"aud\":[\"x\",\"kuberelay\"],\"exp\":1700000001}"),
                     0);
}

static void test_verify_when_header_is_not_ours_then_denied(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\",\"kid\":\"r\"}",
        "{\"alg\":\"HS256\",\"kid\":\"r\"}",
        "{\"alg\":\"rs256\",\"kid\":\"r\"}",
        "{\"alg\":\"PS256\",\"kid\":\"r\"}",
        "{\"alg\":\"RS512\",\"kid\":\"r\"}",
        "{\"alg\":[\"RS256\"],\"kid\":\"r\"}",
        "{\"kid\":\"r\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"RS256\",\"kid\":\"\"}",
        "{\"alg\":\"RS256\",\"kid\":7}",
        "{\"alg\":\"RS256\",\"kid\":\"e\"}",
        "{\"alg\":\"RS256\",\"kid\":\"r\",\"crit\":[\"exp\"]}",
        "{\"alg\":\"RS256\",\"kid\":\"r\",\"typ\":\"at+jwt\"}",
        "{\"alg\":\"RS256\",\"kid\":\"r\",\"typ\":1}",
    };
    const struct world *w = *state;

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        assert_int_equal(judge(w, w->m.rsa, headers[i], GOOD), KR_EDENIED);
}

static void test_verify_when_key_is_unknown_then_says_so(void **state)
{
    const struct world *w = *state;

    assert_int_equal(judge(w, w->m.rsa, "{\"alg\":\"RS256\",\"kid\":\"new\"}", GOOD), KR_ENOENT);
    /* whatever the token says about where its key is */
    assert_int_equal(judge(w, w->m.rsa,
                           "{\"alg\":\"RS256\",\"kid\":\"new\",\"jku\":\"https://evil.test\","
                           "\"jwk\":{\"kty\":\"RSA\"},\"x5u\":\"u\",\"x5c\":[\"c\"]}",
                           GOOD),
                     KR_ENOENT);
}

static void test_verify_when_claims_are_wrong_then_denied(void **state)
{
    static const char *const claims[] = {
        CLAIMS(""),
        CLAIMS(",\"exp\":\"1700000300\""),
        CLAIMS(",\"exp\":1700000000"),
        CLAIMS(",\"exp\":-1"),
        CLAIMS(",\"exp\":9223372036854775807"),
        CLAIMS(",\"exp\":1700000300,\"nbf\":1700000031"),
        CLAIMS(",\"exp\":1700000300,\"iat\":1700000031"),
        CLAIMS(",\"exp\":1700000300,\"nbf\":\"x\""),
        "{\"iss\":\"" ISSUER "/\",\"aud\":\"kuberelay\",\"exp\":1700000300}",
        "{\"iss\":[\"" ISSUER "\"],\"aud\":\"kuberelay\",\"exp\":1700000300}",
        "{\"aud\":\"kuberelay\",\"exp\":1700000300}",
        "{\"iss\":\"" ISSUER "\",\"exp\":1700000300}",
        "{\"iss\":\"" ISSUER "\",\"aud\":[],\"exp\":1700000300}",
        "{\"iss\":\"" ISSUER "\",\"aud\":\"kuberelay2\",\"exp\":1700000300}",
        "{\"iss\":\"" ISSUER "\",\"aud\":{\"a\":\"kuberelay\"},\"exp\":1700000300}",
    };
    const struct world *w = *state;

    for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++)
        assert_int_equal(judge(w, w->m.rsa, RS, claims[i]), KR_EDENIED);
    /* within the leeway */
    assert_int_equal(judge(w, w->m.rsa, RS, CLAIMS(",\"exp\":1700000300,\"nbf\":1700000030")), 0);
}

static void test_verify_when_signed_by_another_then_denied(void **state)
{
    const struct world *w = *state;
    struct maker other;

    maker_init(&other);
    assert_int_equal(judge(w, other.rsa, RS, GOOD), KR_EDENIED);
    assert_int_equal(judge(w, other.ec, ES, GOOD), KR_EDENIED);
    assert_int_equal(judge(w, w->m.ec, RS, GOOD), KR_EDENIED);
    maker_deinit(&other);
}

static void test_verify_when_algorithm_is_not_allowed_then_denied(void **state)
{
    const struct world *w = *state;
    struct kr_note why = {""};
    char *token = make_token(w->m.rsa, RS, GOOD);

    assert_int_equal(judge_text(w, kr_bytes_str(token), KR_JWT_RS256, &why), 0);
    assert_int_equal(judge_text(w, kr_bytes_str(token), KR_JWT_ES256, &why), KR_EDENIED);
    free(token);
}

/* Each bit of a good token counts. */
static void test_verify_when_any_byte_changes_then_refused(void **state)
{
    const struct world *w = *state;
    struct kr_note why = {""};
    char *token = make_token(w->m.ec, ES, GOOD);
    size_t n = strlen(token);

    for (size_t i = 0; i < n; i++) {
        char was = token[i];

        token[i] = was == 'A' ? 'B' : 'A';
        assert_int_not_equal(judge_text(w, kr_bytes_of(token, n), KR_JWT_ES256, &why), 0);
        token[i] = was;
        assert_int_not_equal(judge_text(w, kr_bytes_of(token, i), KR_JWT_ES256, &why), 0);
    }
    assert_int_equal(judge_text(w, kr_bytes_of(token, n), KR_JWT_ES256, &why), 0);
    free(token);
}

static void test_read_when_form_is_wrong_then_refused(void **state)
{
    static const char *const texts[] = {
        "",
        ".",
        "..",
        "...",
        "e30",
        "e30.e30",
        "e30.",
        "e30.e30.",
        ".e30.AA",
        "e30..AA",
        "e30.e30.A",
        "e30.e30.AA.AA",
        "e30=.e30.AA",
        "W10.e30.AA",
        "e30.W10.AA",
        "e30.e30.A+",
        "e30.e30.AB",
    };
    struct kr_jwt jwt;
    struct kr_buf big = {.max = 65536};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(kr_jwt_read(&jwt, kr_bytes_str(texts[i]), NULL), KR_EPROTO);
    while (big.n <= KR_JWT_MAX)
        kr_buf_append_str(&big, "e30.");
    assert_int_equal(kr_jwt_read(&jwt, kr_buf_bytes(&big), NULL), KR_EPROTO);
    kr_buf_deinit(&big);
}

static int parse_set(const char *head, const EVP_PKEY *rsa, const char *more, const char *tail,
                     size_t *count)
{
    struct kr_buf text = {.max = KR_JWKS_MAX};
    struct kr_jwks *keys;
    int rc;

    kr_buf_append_str(&text, head);
    put_rsa(&text, rsa, "r", more);
    kr_buf_append_str(&text, tail);
    rc = kr_jwks_parse(&keys, kr_buf_bytes(&text), NULL);
    *count = rc == 0 ? kr_jwks_count(keys) : 0;
    kr_jwks_destroy(keys);
    kr_buf_deinit(&text);
    return rc;
}

static void test_jwks_when_keys_are_for_other_use_then_not_taken(void **state)
{
    const struct world *w = *state;
    EVP_PKEY *small = EVP_RSA_gen(1024);
    size_t n;

    assert_int_equal(parse_set("{\"keys\":[", w->m.rsa, "", "]}", &n), 0);
    assert_int_equal(n, 1);
    assert_int_equal(parse_set("{\"keys\":[", w->m.rsa, "\"use\":\"enc\",", "]}", &n), KR_EPROTO);
    assert_int_equal(parse_set("{\"keys\":[", w->m.rsa, "\"alg\":\"PS256\",", "]}", &n), KR_EPROTO);
    assert_int_equal(parse_set("{\"keys\":[", w->m.rsa, "\"key_ops\":[\"sign\"],", "]}", &n),
                     KR_EPROTO);
    assert_int_equal(parse_set("{\"keys\":[", w->m.rsa, "\"key_ops\":[\"verify\"],", "]}", &n), 0);
    assert_int_equal(parse_set("{\"keys\":[", small, "", "]}", &n), KR_EPROTO);
    assert_int_equal(parse_set("{\"keys\":{\"a\":", w->m.rsa, "", "}}", &n), KR_EPROTO);
    assert_int_equal(parse_set("{\"keys\":[{\"kty\":\"oct\",\"kid\":\"r\",\"k\":\"AAAA\"},",
                               w->m.rsa, "", "]}", &n),
                     0);
    assert_int_equal(n, 1);
    EVP_PKEY_free(small);
}

static void test_jwks_when_a_kid_is_twice_or_a_point_off_the_curve_then_refused(void **state)
{
    const struct world *w = *state;
    struct kr_buf text = {.max = KR_JWKS_MAX};
    struct kr_jwks *keys;

    kr_buf_append_str(&text, "{\"keys\":[");
    put_rsa(&text, w->m.rsa, "k", "");
    kr_buf_append_str(&text, ",");
    put_ec(&text, w->m.ec, "k", "");
    kr_buf_append_str(&text, "]}");
    assert_int_equal(kr_jwks_parse(&keys, kr_buf_bytes(&text), NULL), KR_EPROTO);
    kr_buf_deinit(&text);
    text.max = KR_JWKS_MAX;
    kr_buf_append_str(&text, "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\",\"x\":\"");
    put_url(&text, "0123456789abcdef0123456789abcdef", 32);
    kr_buf_append_str(&text, "\",\"y\":\"");
    put_url(&text, "0123456789abcdef0123456789abcdef", 32);
    kr_buf_append_str(&text, "\"}]}");
    assert_int_equal(kr_jwks_parse(&keys, kr_buf_bytes(&text), NULL), KR_EPROTO);
    kr_buf_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify_when_all_is_right_then_good),
        cmocka_unit_test(test_verify_when_header_is_not_ours_then_denied),
        cmocka_unit_test(test_verify_when_key_is_unknown_then_says_so),
        cmocka_unit_test(test_verify_when_claims_are_wrong_then_denied),
        cmocka_unit_test(test_verify_when_signed_by_another_then_denied),
        cmocka_unit_test(test_verify_when_algorithm_is_not_allowed_then_denied),
        cmocka_unit_test(test_verify_when_any_byte_changes_then_refused),
        cmocka_unit_test(test_read_when_form_is_wrong_then_refused),
        cmocka_unit_test(test_jwks_when_keys_are_for_other_use_then_not_taken),
        cmocka_unit_test(test_jwks_when_a_kid_is_twice_or_a_point_off_the_curve_then_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
