/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "kube/proto_body.h"

#define WALL_US INT64_C(1700000000000000)
#define JSON "application/json"
#define PROTO "application/vnd.kubernetes.protobuf"
#define KEY "\"annotations\":{\"kuberelay.io/resource-version\":\"77\"}"
#define SLIMMED "\"annotations\":{\"kuberelay.io/slimmed\":\"true\"}"

struct plans {
    struct hub_revision given_out;
    uint64_t old;
    uint64_t latest;
    char body[512];
};

static int setup(void **state)
{
    static struct plans p;

    assert_int_equal(hub_revision_init(&p.given_out, NULL, 3, WALL_US, NULL), 0);
    p.old = hub_revision_next(&p.given_out, WALL_US);
    p.latest = hub_revision_next(&p.given_out, WALL_US + 1000);
    *state = &p;
    return 0;
}

static int teardown(void **state)
{
    hub_revision_deinit(&((struct plans *)*state)->given_out);
    return 0;
}

static struct hub_plan_ask ask(struct plans *p, const char *verb, const char *type)
{
    return (struct hub_plan_ask){.verb = kr_bytes_str(verb),
                                 .subresource = KR_LIT(""),
                                 .content_type = kr_bytes_str(type),
                                 .revision = p->latest,
                                 .origin = KR_LIT("77"),
                                 .given_out = &p->given_out};
}

/* {"metadata":{"resourceVersion":"VERSION",MORE}} */
static void object(struct plans *p, struct hub_plan_ask *a, uint64_t version, const char *more)
{
    snprintf(p->body, sizeof p->body, "{\"metadata\":{\"resourceVersion\":\"%llu\"%s%s}}",
             (unsigned long long)version, more[0] != '\0' ? "," : "", more);
    a->body = kr_bytes_str(p->body);
}

/* The same as protobuf. */
static void proto_object(struct plans *p, struct hub_plan_ask *a, uint64_t version,
                         const char *note)
{
    char meta[200];
    char text[32];
    size_t note_n = strlen(note);
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    int meta_n = snprintf(meta, sizeof meta, "\x32%c%s", n, text);

    if (note_n != 0)
        meta_n += snprintf(meta + meta_n, sizeof meta - (size_t)meta_n, "\x62%c\x0a%c%s",
                           (int)note_n + 2, (int)note_n, note);
    assert_true(meta_n < 120);
    memcpy(p->body, "k8s", 4);
    n = snprintf(p->body + 4, sizeof p->body - 4, "\x12%c\x0a%c%s", meta_n + 2, meta_n, meta);
    a->body = kr_bytes_of(p->body, 4 + (size_t)n);
}

static enum hub_plan_step step(const struct hub_plan_ask *a)
{
    struct hub_plan plan;

    hub_plan_write(a, &plan);
    return plan.step;
}

static void test_plan_when_nothing_is_of_the_fleet_view_then_pass(void **state)
{
    static const char *const verbs[] = {"create", "update", "patch", "delete"};
    static const char *const types[] = {JSON, PROTO, "application/yaml", ""};
    struct plans *p = *state;

    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            struct hub_plan_ask a = ask(p, verbs[i], types[k]);

            a.lossy = true;
            a.body = KR_LIT("{\"metadata\":{\"resourceVersion\":\"77\"}}");
            assert_int_equal(step(&a), HUB_PLAN_PASS);
            a.body = KR_LIT("");
            assert_int_equal(step(&a), HUB_PLAN_PASS);
            a.body = KR_LIT("\x00{ broken");
            assert_int_equal(step(&a), HUB_PLAN_PASS);
        }
    }
}

static void test_plan_when_the_latest_is_put_then_edited(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "update", JSON "; charset=utf-8");
    struct hub_plan plan;

    object(p, &a, p->latest, KEY);
    hub_plan_write(&a, &plan);
    assert_int_equal(plan.step, HUB_PLAN_EDIT);
    assert_false(plan.is_proto);
    assert_int_equal(plan.body.version_count, 1);
    assert_true(plan.body.injected);
    a.content_type = KR_LIT(PROTO);
    proto_object(p, &a, p->latest, "kuberelay.io/resource-version");
    hub_plan_write(&a, &plan);
    assert_int_equal(plan.step, HUB_PLAN_EDIT);
    assert_true(plan.is_proto);
    assert_int_equal(plan.body.version_count, 1);
    assert_true(plan.body.injected);
}

static void test_plan_when_the_object_is_lossy_then_a_put_becomes_a_patch(void **state)
{
    static const char *const whole[] = {"", "status", "ephemeralcontainers", "resize"};
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "update", JSON);
    struct hub_plan plan;

    a.lossy = true;
    for (size_t i = 0; i < 4; i++) {
        a.subresource = kr_bytes_str(whole[i]);
        a.content_type = KR_LIT(JSON);
        object(p, &a, p->latest, SLIMMED);
        assert_int_equal(step(&a), HUB_PLAN_PATCH);
        a.content_type = KR_LIT(PROTO);
        proto_object(p, &a, p->latest, "kuberelay.io/slimmed");
        hub_plan_write(&a, &plan);
        assert_int_equal(plan.step, HUB_PLAN_UNREADABLE);
        assert_non_null(strstr(plan.why.text, "ContentType \"application/json\""));
    }
    a.subresource = KR_LIT("scale"); /* a kind of its own */
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
    a.content_type = KR_LIT(JSON);
    object(p, &a, p->latest, "");
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
    a.subresource = KR_LIT("");
    a.verb = KR_LIT("patch");
    a.content_type = KR_LIT("application/merge-patch+json");
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
}

static void test_plan_when_a_lossy_put_has_no_version_then_refused(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "update", JSON);
    struct hub_plan plan;

    a.lossy = true;
    a.body = KR_LIT("{\"metadata\":{" SLIMMED "}}");
    hub_plan_write(&a, &plan);
    assert_int_equal(plan.step, HUB_PLAN_LOSSY);
    assert_non_null(strstr(plan.why.text, "no resourceVersion"));
    a.verb = KR_LIT("patch");
    a.content_type = KR_LIT("application/merge-patch+json");
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
}

static void test_plan_when_the_version_is_an_old_one_then_conflict(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "update", JSON);

    object(p, &a, p->old, KEY);
    assert_int_equal(step(&a), HUB_PLAN_CONFLICT);
    a.content_type = KR_LIT(PROTO);
    proto_object(p, &a, p->old, "kuberelay.io/resource-version");
    assert_int_equal(step(&a), HUB_PLAN_CONFLICT);
    a.content_type = KR_LIT(JSON);
    object(p, &a, 77, KEY); /* that of the edge */
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
    object(p, &a, p->latest + 16, KEY); /* nobody gave it out: for the API server to judge */
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
    a.revision = 0;
    object(p, &a, p->old, KEY);
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
}

static void test_plan_when_an_object_is_created_then_only_keys_are_cut(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "create", JSON);
    struct hub_plan plan;

    a.revision = 0;
    a.origin = KR_LIT("");
    a.body = KR_LIT("{\"metadata\":{\"name\":\"x\"," KEY "}}");
    hub_plan_write(&a, &plan);
    assert_int_equal(plan.step, HUB_PLAN_EDIT);
    assert_int_equal(plan.body.version_count, 0);
    a.content_type = KR_LIT(PROTO);
    proto_object(p, &a, 0, "kuberelay.io/resource-version");
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
    a.body = KR_LIT("k8s\0no kuberelay.io here");
    assert_int_equal(step(&a), HUB_PLAN_BAD);
}

static void test_plan_when_the_body_is_of_another_form_then_415(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "update", "application/cbor");

    object(p, &a, p->latest, "");
    assert_int_equal(step(&a), HUB_PLAN_UNREADABLE);
    a.body = KR_LIT("kuberelay.io/resource-version");
    assert_int_equal(step(&a), HUB_PLAN_UNREADABLE);
    a.body = KR_LIT("see kuberelay.io");
    assert_int_equal(step(&a), HUB_PLAN_PASS);
    a.verb = KR_LIT("patch");
    a.content_type = KR_LIT("application/apply-patch+yaml");
    object(p, &a, p->latest, "");
    assert_int_equal(step(&a), HUB_PLAN_EDIT); /* it is JSON */
    snprintf(p->body, sizeof p->body, "metadata: {resourceVersion: \"%llu\"}",
             (unsigned long long)p->latest);
    a.body = kr_bytes_str(p->body);
    assert_int_equal(step(&a), HUB_PLAN_UNREADABLE);
    a.content_type = KR_LIT("application/merge-patch+json");
    assert_int_equal(step(&a), HUB_PLAN_PASS); /* the API server refuses it itself */
    a.content_type = KR_LIT(PROTO);
    assert_int_equal(step(&a), HUB_PLAN_UNREADABLE);
}

static void test_plan_when_two_readers_could_differ_then_bad(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "update", JSON);
    struct hub_plan plan;

    snprintf(p->body, sizeof p->body,
             "{\"metadata\":{\"resourceVersion\":\"%llu\"},\"metadata\":{}}",
             (unsigned long long)p->latest);
    a.body = kr_bytes_str(p->body);
    hub_plan_write(&a, &plan);
    assert_int_equal(plan.step, HUB_PLAN_BAD);
    assert_non_null(strstr(plan.why.text, "twice"));
    a.content_type = KR_LIT(PROTO); /* though it is JSON */
    assert_int_equal(step(&a), HUB_PLAN_BAD);
}

static void test_plan_when_a_delete_has_preconditions_then_edited(void **state)
{
    struct plans *p = *state;
    struct hub_plan_ask a = ask(p, "delete", "");

    snprintf(p->body, sizeof p->body, "{\"preconditions\":{\"resourceVersion\":\"%llu\"}}",
             (unsigned long long)p->latest);
    a.body = kr_bytes_str(p->body);
    a.lossy = true;
    assert_int_equal(step(&a), HUB_PLAN_EDIT);
    object(p, &a, p->latest, "");
    assert_int_equal(step(&a), HUB_PLAN_PASS); /* metadata means nothing there */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_plan_when_nothing_is_of_the_fleet_view_then_pass),
        TEST(test_plan_when_the_latest_is_put_then_edited),
        TEST(test_plan_when_the_object_is_lossy_then_a_put_becomes_a_patch),
        TEST(test_plan_when_a_lossy_put_has_no_version_then_refused),
        TEST(test_plan_when_the_version_is_an_old_one_then_conflict),
        TEST(test_plan_when_an_object_is_created_then_only_keys_are_cut),
        TEST(test_plan_when_the_body_is_of_another_form_then_415),
        TEST(test_plan_when_two_readers_could_differ_then_bad),
        TEST(test_plan_when_a_delete_has_preconditions_then_edited),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
