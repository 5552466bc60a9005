/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_fixture.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "churn.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define JSON "application/json"

static size_t items(struct fixture *f)
{
    return sim_json_len(sim_json_get(f->v, "items"));
}

static void test_get_of_each_generated_kind_is_whole_json(void **state)
{
    static const char *const lists[] = {"/api/v1/pods", "/api/v1/nodes",
                                        "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"};
    static const size_t counts[] = {40, 3, 8, 8};
    struct fixture *f = *state;

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(get(f, lists[i]), 200);
        assert_non_null(f->v);
        assert_int_equal(items(f), counts[i]);
    }
}

static void test_list_in_pages_when_things_change_keeps_its_version(void **state)
{
    struct fixture *f = *state;
    char token[1024], target[2048], version[32];
    size_t seen;

    assert_int_equal(get(f, "/api/v1/pods?limit=15"), 200);
    seen = items(f);
    snprintf(version, sizeof version, "%s", str(f, "metadata.resourceVersion"));
    assert_int_equal(sim_json_int(f->v, "metadata.remainingItemCount", 0), 25);
    for (int page = 0; page < 2; page++) {
        snprintf(token, sizeof token, "%s", str(f, "metadata.continue"));
        assert_string_not_equal(token, "");
        for (int i = 0; i < 20; i++) /* also deletes and makes pods */
            sim_churn(f->c, SIM_MIX_DEFAULT);
        snprintf(target, sizeof target, "/api/v1/pods?limit=15&continue=%s", token);
        assert_int_equal(get(f, target), 200);
        assert_string_equal(str(f, "metadata.resourceVersion"), version);
        seen += items(f);
    }
    assert_string_equal(str(f, "metadata.continue"), "");
    assert_int_equal(seen, 40);
}

static void test_list_with_an_old_token_when_compacted_is_410_with_a_way_on(void **state)
{
    struct fixture *f = *state;
    char target[2048];

    assert_int_equal(get(f, "/api/v1/pods?limit=30"), 200);
    snprintf(target, sizeof target, "/api/v1/pods?continue=%s", str(f, "metadata.continue"));
    sim_churn(f->c, SIM_MIX_DEFAULT);
    sim_store_compact(f->c);
    assert_int_equal(get(f, target), 410);
    assert_string_equal(str(f, "reason"), "Expired");
    snprintf(target, sizeof target, "/api/v1/pods?continue=%s", str(f, "metadata.continue"));
    assert_int_equal(get(f, target), 200);
    assert_int_equal(items(f), 10);
}

static void test_list_at_an_exact_version_when_deleted_since_has_it_still(void **state)
{
    struct fixture *f = *state;
    char target[256];

    assert_int_equal(ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"old\"}}"), 201);
    snprintf(target, sizeof target, MAPS "?resourceVersion=%s&resourceVersionMatch=Exact",
             str(f, "metadata.resourceVersion"));
    assert_int_equal(ask(f, "DELETE", MAPS "/old", NULL, ""), 200);
    assert_int_equal(get(f, target), 200);
    assert_int_equal(items(f), 2); /* kube-root-ca.crt beside it */
    assert_int_equal(get(f, MAPS), 200);
    assert_int_equal(items(f), 1);
}

static void test_list_when_options_contradict_is_refused_as_the_api_server_does(void **state)
{
    static const struct {
        const char *query;
        int status;
    } rows[] = {
        {"resourceVersionMatch=Exact", 422},
        {"resourceVersion=1&resourceVersionMatch=Other", 422},
        {"resourceVersion=0&resourceVersionMatch=Exact", 422},
        {"sendInitialEvents=true", 422},
        {"resourceVersion=abc", 400},
        {"resourceVersion=99999999", 504},
        {"continue=abc", 400},
        {"limit=x", 400},
        {"timeout=abc", 400},
        {"fieldSelector=nope%3D1", 400},
        {"labelSelector=%3D%3D%3D", 400},
        {"a=%zz", 400},
    };
    struct fixture *f = *state;
    char target[256];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(target, sizeof target, "/api/v1/pods?%s", rows[i].query);
        assert_int_equal(get(f, target), rows[i].status);
        assert_string_equal(str(f, "kind"), "Status");
        assert_int_equal(sim_json_int(f->v, "code", 0), rows[i].status);
    }
}

static void test_list_with_selectors_gives_what_matches(void **state)
{
    static const struct {
        const char *query;
        size_t n;
    } rows[] = {
        {"labelSelector=app%3Dweb", 5},
        {"labelSelector=app+in+%28web%2Capi%29", 10},
        {"labelSelector=app+notin+%28web%2Capi%29", 30},
        {"labelSelector=app%21%3Dweb", 35},
        {"labelSelector=app", 40},
        {"labelSelector=%21app", 0},
        {"labelSelector=app%3Dweb,tier%3Dbackend", 0},
        {"fieldSelector=metadata.namespace%3Ddefault", 10},
        {"fieldSelector=spec.nodeName%3Dnode-001", 13},
        {"fieldSelector=status.phase%21%3DRunning", 0},
    };
    struct fixture *f = *state;
    char target[256];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(target, sizeof target, "/api/v1/pods?%s", rows[i].query);
        assert_int_equal(get(f, target), 200);
        assert_int_equal(items(f), rows[i].n);
    }
}

static void test_list_as_table_has_rows_with_as_many_cells_as_columns(void **state)
{
    struct fixture *f = *state;
    char target[320];

    for (size_t i = 0; i < sim_kind_count; i++) {
        const struct sim_kind *k = &sim_kinds[i];
        struct json_object *rows, *columns;

        if ((k->flags & SIM_CREATE_ONLY) != 0)
            continue;
        snprintf(target, sizeof target, "/%s%s/%s/%s", k->group[0] != '\0' ? "apis/" : "api",
                 k->group, k->version, k->plural);
        assert_int_equal(get_with(f, target, "accept",
                                  "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
                         200);
        assert_string_equal(str(f, "kind"), "Table");
        columns = sim_json_get(f->v, "columnDefinitions");
        rows = sim_json_get(f->v, "rows");
        for (size_t r = 0; r < sim_json_len(rows); r++)
            assert_int_equal(
                sim_json_len(sim_json_get(json_object_array_get_idx(rows, r), "cells")),
                sim_json_len(columns));
    }
}

static void test_discovery_in_both_forms_names_every_resource(void **state)
{
    struct fixture *f = *state;
    struct json_object *groups;
    size_t n = 0, legacy = 0;
    char target[200];

    assert_int_equal(get_with(f, "/apis", "accept",
                              "application/json;g=apidiscovery.k8s.io;v=v2;as="
                              "APIGroupDiscoveryList,application/json"),
                     200);
    groups = sim_json_get(f->v, "items");
    for (size_t g = 0; g < sim_json_len(groups); g++) {
        struct json_object *version = json_object_array_get_idx(
            sim_json_get(json_object_array_get_idx(groups, g), "versions"), 0);

        n += sim_json_len(sim_json_get(version, "resources"));
    }
    for (size_t i = 0; i < sim_kind_count; i++) {
        if (!sim_kind_first_of_group(i) || sim_kinds[i].group[0] == '\0')
            continue;
        snprintf(target, sizeof target, "/apis/%s/%s", sim_kinds[i].group, sim_kinds[i].version);
        assert_int_equal(get(f, target), 200);
        for (size_t r = 0; r < sim_json_len(sim_json_get(f->v, "resources")); r++) {
            struct json_object *one = json_object_array_get_idx(sim_json_get(f->v, "resources"), r);

            legacy += strchr(sim_json_str(one, "name"), '/') == NULL;
        }
    }
    assert_int_equal(n, legacy);
}

static void test_discovery_when_the_etag_is_known_is_304(void **state)
{
    struct fixture *f = *state;
    char etag[200];
    struct kr_bytes value;

    assert_int_equal(get(f, "/openapi/v3"), 200);
    value = kr_head_get(&f->out.more, KR_LIT("etag"));
    snprintf(etag, sizeof etag, "%.*s", (int)value.n, (const char *)value.p);
    assert_int_equal(get_with(f, "/openapi/v3", "if-none-match", etag), 304);
    assert_int_equal(f->out.body.n, 0);
}

static void test_paths_that_lead_nowhere_are_404_in_the_right_form(void **state)
{
    static const struct {
        const char *path;
        bool status; /* a Status object */
    } rows[] = {
        {"/nope", false},
        {"/apis/nope/v1/things", false},
        {"/api/v1/nothing", true},
        {"/api/v1/namespaces/default/configmaps/a/b/c", true},
        {"/api/v1/namespaces/default/configmaps/a%2Fb", true},
        {"/api/v1/namespaces/default/configmaps/a", true},
        {"/api/v1/namespaces/default/nodes", true},
        {"/api/v1/a/b/c/d/e/f/g/h/i/j/k", false},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(get(f, rows[i].path), 404);
        assert_int_equal(strcmp(str(f, "kind"), "Status") == 0, rows[i].status);
    }
}

static void test_review_of_oneself_when_impersonating_names_the_other(void **state)
{
    struct fixture *f = *state;
    struct sim_request req = {.method = KR_LIT("POST"),
                              .target = KR_LIT("/apis/authentication.k8s.io/v1/selfsubjectreviews"),
                              .body = KR_LIT("{}"),
                              .user = "agent",
                              .groups = ""};
    struct kr_head head;

    kr_head_init(&head, KR_HEAD_MAX);
    (void)kr_head_add_str(&head, "impersonate-user", "kuberelay:bob");
    (void)kr_head_add_str(&head, "impersonate-group", "kuberelay:ops");
    (void)kr_head_add_str(&head, "impersonate-extra-a%2fb", "c");
    req.head = &head;
    sim_handle(f->c, &req, &f->out);
    f->v = sim_json_parse(kr_buf_bytes(&f->out.body));
    kr_head_deinit(&head);
    assert_int_equal(f->out.status, 201);
    assert_string_equal(str(f, "status.userInfo.username"), "kuberelay:bob");
    assert_non_null(sim_json_get(sim_json_at(f->v, "status.userInfo.extra"), "a/b"));
}

static void test_request_of_nobody_is_401(void **state)
{
    struct fixture *f = *state;
    struct kr_head head;
    struct sim_request req = {.method = KR_LIT("GET"), .target = KR_LIT("/api"), .head = &head};

    kr_head_init(&head, KR_HEAD_MAX);
    sim_handle(f->c, &req, &f->out);
    kr_head_deinit(&head);
    assert_int_equal(f->out.status, 401);
}

/* The promise of gen.h, measured where the allocator can be asked. */
static void test_generated_pods_cost_less_than_200_bytes_each(void **state)
{
    const uint32_t n = 50000;
    struct fixture *f = *state;
    struct mallinfo2 before = mallinfo2(), after;
    struct sim_cluster *c = sim_cluster_create(&(struct sim_cluster_config){
        .world = {"big", 1, n, 10, 0}, .sched = &f->sched, .history = 10});

    after = mallinfo2();
    assert_non_null(c);
    /* The deployments and replica sets are in it, too. Under a sanitizer it measures nothing. */
    assert_true(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd < 200ul * n);
    sim_cluster_destroy(c);
}

static void test_logs_end_where_they_were_asked_to(void **state)
{
    struct fixture *f = *state;
    char target[512], pod[300];

    assert_int_equal(get(f, "/api/v1/namespaces/default/pods?limit=1"), 200);
    snprintf(
        pod, sizeof pod, "%s",
        sim_json_str(json_object_array_get_idx(sim_json_get(f->v, "items"), 0), "metadata.name"));
    snprintf(target, sizeof target, "/api/v1/namespaces/default/pods/%s/log?tailLines=2", pod);
    assert_int_equal(get(f, target), 200);
    assert_non_null(memmem(f->out.body.p, f->out.body.n, "line=18", 7));
    assert_null(memmem(f->out.body.p, f->out.body.n, "line=17", 7));
    snprintf(target, sizeof target, "/api/v1/namespaces/default/pods/%s/log?kubesim-bytes=1000000",
             pod);
    assert_int_equal(get(f, target), 200);
    assert_int_equal(f->out.body.n, 1000000);
    snprintf(target, sizeof target,
             "/api/v1/namespaces/default/pods/%s/log?follow=true&tailLines=0", pod);
    assert_int_equal(get(f, target), 200);
    assert_int_equal(f->out.body.n, 0);
    pass(f, 1000);
    assert_int_equal(f->woken, 1);
    assert_non_null(strstr(more(f), "line=20"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(test_get_of_each_generated_kind_is_whole_json),
        T(test_list_in_pages_when_things_change_keeps_its_version),
        T(test_list_with_an_old_token_when_compacted_is_410_with_a_way_on),
        T(test_list_at_an_exact_version_when_deleted_since_has_it_still),
        T(test_list_when_options_contradict_is_refused_as_the_api_server_does),
        T(test_list_with_selectors_gives_what_matches),
        T(test_list_as_table_has_rows_with_as_many_cells_as_columns),
        T(test_discovery_in_both_forms_names_every_resource),
        T(test_discovery_when_the_etag_is_known_is_304),
        T(test_paths_that_lead_nowhere_are_404_in_the_right_form),
        T(test_review_of_oneself_when_impersonating_names_the_other),
        T(test_request_of_nobody_is_401),
        T(test_generated_pods_cost_less_than_200_bytes_each),
        T(test_logs_end_where_they_were_asked_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
