/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "object.h"
#include "proto.h"
#include "proto_schema.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define JSON "application/json"
#define MERGE "application/merge-patch+json"
#define STRATEGIC "application/strategic-merge-patch+json"
#define PATCH "application/json-patch+json"
#define APPLY "application/apply-patch+yaml"

static const char deployment[] =
    "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
    "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":"
    "\"one\",\"image\":\"i:1\",\"env\":[{\"name\":\"A\",\"value\":\"1\"}]},{\"name\":\"two\","
    "\"image\":\"j:1\"}]}}}}";

static struct json_object *container(struct fixture *f, size_t i)
{
    return json_object_array_get_idx(sim_json_at(f->v, "spec.template.spec.containers"), i);
}

static void test_create_gives_what_the_api_server_gives(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST", MAPS, JSON,
                         "{\"metadata\":{\"generateName\":\"x-\"},\"data\":{\"b\":\"1\","
                         "\"a\":\"2\"}}"),
                     201);
    assert_int_equal(strlen(str(f, "metadata.name")), 7);
    assert_int_equal(strlen(str(f, "metadata.uid")), 36);
    assert_string_equal(str(f, "metadata.namespace"), "default");
    assert_string_equal(str(f, "kind"), "ConfigMap");
    assert_string_not_equal(str(f, "metadata.resourceVersion"), "");
    /* Maps come sorted, as Go prints them. */
    assert_non_null(memmem(f->out.body.p, f->out.body.n, "{\"a\":\"2\",\"b\":\"1\"}", 17));
}

static void test_create_when_wrong_says_so_as_the_api_server_does(void **state)
{
    static const struct {
        const char *target, *type, *body;
        int status;
        const char *reason;
    } rows[] = {
        {MAPS, JSON, "{bad", 400, "BadRequest"},
        {MAPS, JSON, "[]", 400, "BadRequest"},
        {MAPS, JSON, "{\"kind\":\"Pod\"}", 400, "BadRequest"},
        {MAPS, JSON, "{\"metadata\":{}}", 422, "Invalid"},
        {MAPS, JSON, "{\"metadata\":{\"name\":\"Bad_Name\"}}", 422, "Invalid"},
        {MAPS, JSON, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}", 400, "BadRequest"},
        {MAPS, JSON, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"n\":1}}", 400, "BadRequest"},
        {MAPS, JSON, "{\"metadata\":{\"name\":\"kube-root-ca.crt\"}}", 409, "AlreadyExists"},
        {MAPS, JSON, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}", 500, ""},
        {MAPS, "text/plain", "{}", 415, "UnsupportedMediaType"},
        {"/api/v1/namespaces/nope/configmaps", JSON, "{\"metadata\":{\"name\":\"a\"}}", 404,
         "NotFound"},
        {"/api/v1/configmaps", JSON, "{\"metadata\":{\"name\":\"a\"}}", 405, "MethodNotAllowed"},
        {MAPS "?fieldValidation=Strict", JSON, "{\"metadata\":{\"name\":\"a\"},\"dta\":{}}", 400,
         "BadRequest"},
        {MAPS, JSON, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":\"a b\"}}}", 422, "Invalid"},
        {"/api/v1/namespaces/default/pods", JSON, "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}",
         422, "Invalid"},
        {MAPS "?dryRun=some", JSON, "{\"metadata\":{\"name\":\"a\"}}", 422, "Invalid"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ask(f, "POST", rows[i].target, rows[i].type, rows[i].body),
                         rows[i].status);
        assert_string_equal(str(f, "reason"), rows[i].reason);
    }
}

static void test_create_when_dry_run_stores_nothing(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST", MAPS "?dryRun=All", JSON, "{\"metadata\":{\"name\":\"a\"}}"),
                     201);
    assert_int_equal(get(f, MAPS "/a"), 404);
}

static void test_create_from_yaml_and_from_protobuf(void **state)
{
    struct kr_buf meta, object, unknown, type, body;
    struct fixture *f = *state;
    struct json_object *v;

    assert_int_equal(ask(f, "POST", MAPS, "application/yaml",
                         "metadata:\n  name: y\ndata:\n  a: \"1\"\n  b: text\n"),
                     201);
    assert_string_equal(str(f, "data.b"), "text");
    kr_buf_init(&meta, 1000);
    kr_buf_init(&object, 1000);
    kr_buf_init(&type, 1000);
    kr_buf_init(&unknown, 1000);
    kr_buf_init(&body, 1000);
    assert_int_equal(sim_proto_str(&meta, 1, "n"), 0);
    assert_int_equal(sim_proto_bytes(&object, 1, kr_buf_bytes(&meta)), 0);
    meta.n = 0; /* a map entry */
    assert_int_equal(sim_proto_str(&meta, 1, "k"), 0);
    assert_int_equal(sim_proto_str(&meta, 2, "v"), 0);
    assert_int_equal(sim_proto_bytes(&object, 2, kr_buf_bytes(&meta)), 0);
    assert_int_equal(sim_proto_str(&type, 1, "v1"), 0);
    assert_int_equal(sim_proto_str(&type, 2, "ConfigMap"), 0);
    assert_int_equal(sim_proto_bytes(&unknown, 1, kr_buf_bytes(&type)), 0);
    assert_int_equal(sim_proto_bytes(&unknown, 2, kr_buf_bytes(&object)), 0);
    assert_int_equal(kr_buf_append(&body, kr_bytes_of("k8s\0", 4)), 0);
    assert_int_equal(kr_buf_append(&body, kr_buf_bytes(&unknown)), 0);
    v = sim_proto_object(kr_buf_bytes(&body));
    assert_string_equal(sim_json_str(v, "kind"), "ConfigMap");
    assert_string_equal(sim_json_str(v, "metadata.name"), "n");
    assert_string_equal(sim_json_str(v, "data.k"), "v");
    json_object_put(v);
    for (size_t n = 4; n < body.n; n++) /* cut anywhere: no crash */
        json_object_put(sim_proto_object(kr_bytes_of(body.p, n)));
    kr_buf_deinit(&meta);
    kr_buf_deinit(&object);
    kr_buf_deinit(&type);
    kr_buf_deinit(&unknown);
    kr_buf_deinit(&body);
}

static void test_update_with_an_old_version_is_a_conflict(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\"}}"), 201);
    assert_int_equal(
        ask(f, "PUT", MAPS "/a", JSON, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}"),
        409);
    assert_string_equal(str(f, "reason"), "Conflict");
    assert_int_equal(
        ask(f, "PUT", MAPS "/a", JSON, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}"),
        200);
    assert_int_equal(ask(f, "PUT", MAPS "/a", JSON, "{\"metadata\":{\"name\":\"b\"}}"), 400);
    assert_int_equal(ask(f, "PUT", MAPS "/b", JSON, "{\"metadata\":{\"name\":\"b\"}}"), 404);
}

static void test_update_that_changes_nothing_keeps_the_version(void **state)
{
    struct fixture *f = *state;
    char version[32];

    assert_int_equal(
        ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}"), 201);
    snprintf(version, sizeof version, "%s", str(f, "metadata.resourceVersion"));
    assert_int_equal(ask(f, "PATCH", MAPS "/a", MERGE, "{\"data\":{\"k\":\"v\"}}"), 200);
    assert_string_equal(str(f, "metadata.resourceVersion"), version);
}

static void test_status_and_spec_are_written_apart(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST", DEPLOYMENTS, JSON, deployment), 201);
    assert_int_equal(ask(f, "PATCH", DEPLOYMENTS "/d/status", MERGE,
                         "{\"status\":{\"replicas\":3},\"spec\":{\"replicas\":9}}"),
                     200);
    assert_int_equal(sim_json_int(f->v, "status.replicas", 0), 3);
    assert_int_equal(sim_json_int(f->v, "spec.replicas", 0), 1);
    assert_int_equal(sim_json_int(f->v, "metadata.generation", 0), 1);
    assert_int_equal(ask(f, "PATCH", DEPLOYMENTS "/d/scale", MERGE, "{\"spec\":{\"replicas\":5}}"),
                     200);
    assert_string_equal(str(f, "kind"), "Scale");
    assert_int_equal(get(f, DEPLOYMENTS "/d"), 200);
    assert_int_equal(sim_json_int(f->v, "spec.replicas", 0), 5);
    assert_int_equal(sim_json_int(f->v, "status.replicas", 0), 3);
    assert_int_equal(sim_json_int(f->v, "metadata.generation", 0), 2);
}

static void test_strategic_patch_merges_lists_by_their_keys(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST", DEPLOYMENTS, JSON, deployment), 201);
    assert_int_equal(
        ask(f, "PATCH", DEPLOYMENTS "/d", STRATEGIC,
            "{\"spec\":{\"template\":{\"spec\":{\"$setElementOrder/containers\":[{\"name\":"
            "\"three\"},{\"name\":\"one\"}],\"containers\":[{\"name\":\"three\",\"image\":\"k\"},"
            "{\"name\":\"one\",\"env\":[{\"name\":\"B\",\"value\":\"2\"}]},{\"name\":\"two\","
            "\"$patch\":\"delete\"}]}}}}"),
        200);
    assert_int_equal(sim_json_len(sim_json_at(f->v, "spec.template.spec.containers")), 2);
    assert_string_equal(sim_json_str(container(f, 0), "name"), "three");
    assert_string_equal(sim_json_str(container(f, 1), "image"), "i:1");
    assert_int_equal(sim_json_len(sim_json_get(container(f, 1), "env")), 2);
}

static void test_json_patch_does_what_rfc_6902_says(void **state)
{
    static const struct {
        const char *doc, *patch, *result; /* result NULL: refused */
    } rows[] = {
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
        {"{\"a\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":2}]", "{\"a\":[1,2,3]}"},
        {"{\"a\":[1]}", "[{\"op\":\"add\",\"path\":\"/a/-\",\"value\":2}]", "{\"a\":[1,2]}"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{}"},
        {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}"},
        {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", NULL},
        {"{\"a/b\":1}", "[{\"op\":\"move\",\"from\":\"/a~1b\",\"path\":\"/c~0\"}]", "{\"c~\":1}"},
        {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}]",
         "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1}"},
        {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":2}]", NULL},
        {"{\"a\":[1]}", "[{\"op\":\"remove\",\"path\":\"/a/5\"}]", NULL},
        {"{\"a\":1}", "[{\"op\":\"odd\",\"path\":\"/a\"}]", NULL},
        {"{\"a\":1}", "{}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json_object *v = sim_json_parse(kr_bytes_str(rows[i].doc));
        struct json_object *patch = sim_json_parse(kr_bytes_str(rows[i].patch));
        char why[256];
        int rc = sim_patch_json(&v, patch, why);

        assert_int_equal(rc == 0, rows[i].result != NULL);
        if (rc == 0)
            assert_string_equal(json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN),
                                rows[i].result);
        json_object_put(v);
        json_object_put(patch);
    }
}

static void test_apply_takes_back_what_it_no_longer_says(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, "PATCH", MAPS "/a?fieldManager=m", APPLY,
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"x\":\"1\",\"y\":\"1\"}}"),
        201);
    assert_int_equal(ask(f, "PATCH", MAPS "/a?fieldManager=m", APPLY,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"x\":\"2\"}}"),
                     200);
    assert_string_equal(str(f, "data.x"), "2");
    assert_null(sim_json_at(f->v, "data.y"));
}

static void test_apply_over_another_manager_is_a_conflict_unless_forced(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, "PATCH", MAPS "/a?fieldManager=m", APPLY,
            "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"x\":\"1\",\"y\":\"1\"}}"),
        201);
    /* The same value is shared, another one is refused. */
    assert_int_equal(ask(f, "PATCH", MAPS "/a?fieldManager=n", APPLY,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"x\":\"1\"}}"),
                     200);
    assert_int_equal(ask(f, "PATCH", MAPS "/a?fieldManager=n", APPLY,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"x\":\"2\"}}"),
                     409);
    assert_string_equal(
        sim_json_str(json_object_array_get_idx(sim_json_at(f->v, "details.causes"), 0), "field"),
        ".data.x");
    assert_int_equal(ask(f, "PATCH", MAPS "/a?fieldManager=n&force=true", APPLY,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"x\":\"2\"}}"),
                     200);
    assert_string_equal(str(f, "data.x"), "2");
    assert_string_equal(str(f, "data.y"), "1");
}

static void test_apply_without_a_manager_or_with_managed_fields_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "PATCH", MAPS "/a", APPLY, "{\"data\":{}}"), 422);
    assert_int_equal(ask(f, "PATCH", MAPS "/a?fieldManager=m", APPLY,
                         "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                         "\"managedFields\":[{\"manager\":\"x\"}]}}"),
                     400);
    assert_int_equal(ask(f, "PATCH", MAPS "/a", "text/plain", "{}"), 415);
}

static void test_delete_with_finalizers_waits_for_the_last_one(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x.y/z\"]}}"),
        201);
    assert_int_equal(ask(f, "DELETE", MAPS "/a", NULL, ""), 200);
    assert_string_not_equal(str(f, "metadata.deletionTimestamp"), "");
    assert_int_equal(get(f, MAPS "/a"), 200);
    assert_int_equal(ask(f, "PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"finalizers\":null}}"),
                     200);
    assert_int_equal(get(f, MAPS "/a"), 404);
}

static void test_delete_with_preconditions_that_do_not_hold_is_a_conflict(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\"}}"), 201);
    assert_int_equal(ask(f, "DELETE", MAPS "/a", JSON, "{\"preconditions\":{\"uid\":\"u\"}}"), 409);
    assert_int_equal(
        ask(f, "DELETE", MAPS "/a", JSON, "{\"preconditions\":{\"resourceVersion\":\"1\"}}"), 409);
    assert_int_equal(ask(f, "DELETE", MAPS "/a", JSON, "{\"kind\":\"DeleteOptions\"}"), 200);
    assert_string_equal(str(f, "status"), "Success");
}

static void test_delete_of_a_collection_takes_what_the_selector_says(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(
        ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":\"1\"}}}"),
        201);
    assert_int_equal(ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"b\"}}"), 201);
    assert_int_equal(ask(f, "DELETE", MAPS "?labelSelector=l%3D1", NULL, ""), 200);
    assert_int_equal(sim_json_len(sim_json_get(f->v, "items")), 1);
    assert_int_equal(get(f, MAPS "/a"), 404);
    assert_int_equal(get(f, MAPS "/b"), 200);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(test_create_gives_what_the_api_server_gives),
        T(test_create_when_wrong_says_so_as_the_api_server_does),
        T(test_create_when_dry_run_stores_nothing),
        T(test_create_from_yaml_and_from_protobuf),
        T(test_update_with_an_old_version_is_a_conflict),
        T(test_update_that_changes_nothing_keeps_the_version),
        T(test_status_and_spec_are_written_apart),
        T(test_strategic_patch_merges_lists_by_their_keys),
        T(test_json_patch_does_what_rfc_6902_says),
        T(test_apply_takes_back_what_it_no_longer_says),
        T(test_apply_over_another_manager_is_a_conflict_unless_forced),
        T(test_apply_without_a_manager_or_with_managed_fields_is_refused),
        T(test_delete_with_finalizers_waits_for_the_last_one),
        T(test_delete_with_preconditions_that_do_not_hold_is_a_conflict),
        T(test_delete_of_a_collection_takes_what_the_selector_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
