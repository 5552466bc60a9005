/* SPDX-License-Identifier: Apache-2.0 */
#include "heavy.h"

#include <stdio.h>

#include "churn.h"
#include "sim_fixture.h"
#include "view.h"

#define POD_BYTES 14336u
#define NODE_BYTES 11264u
#define PODS "/api/v1/pods"
#define NODES "/api/v1/nodes"
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"

static int heavy_setup(void **state)
{
    struct fixture *f;

    assert_int_equal(fixture_setup(state), 0);
    f = *state;
    f->c->world.heavy = sim_heavy_create(POD_BYTES, NODE_BYTES);
    return f->c->world.heavy != NULL ? 0 : -1;
}

static int heavy_teardown(void **state)
{
    struct fixture *f = *state;
    struct sim_heavy *h = (struct sim_heavy *)(uintptr_t)f->c->world.heavy;
    int rc = fixture_teardown(state);

    sim_heavy_destroy(h);
    return rc;
}

static size_t length_of(struct json_object *v)
{
    return strlen(
        json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

static void test_pods_have_the_size_and_the_share_of_managed_fields_that_was_asked(void **state)
{
    struct fixture *f = *state;
    struct json_object *items;
    size_t all = 0, managed = 0;

    assert_int_equal(get(f, PODS), 200);
    items = sim_json_get(f->v, "items");
    assert_int_equal(sim_json_len(items), 40);
    for (size_t i = 0; i < sim_json_len(items); i++) {
        struct json_object *one = json_object_array_get_idx(items, i);

        assert_in_range(length_of(one), POD_BYTES - 400, POD_BYTES + 400);
        all += length_of(one);
        managed += length_of(sim_json_at(one, "metadata.managedFields"));
    }
    assert_in_range(managed, all * 40 / 100, all * 50 / 100);
}

static void test_nodes_have_the_size_that_was_asked(void **state)
{
    struct fixture *f = *state;
    struct json_object *items;

    assert_int_equal(get(f, NODES), 200);
    items = sim_json_get(f->v, "items");
    assert_int_equal(sim_json_len(items), 3);
    for (size_t i = 0; i < sim_json_len(items); i++)
        assert_in_range(length_of(json_object_array_get_idx(items, i)), NODE_BYTES - 400,
                        NODE_BYTES + 400);
}

/* Rows that were made without a tree must be what the tree would have given. */
static void check_rows(struct fixture *f, const char *target, int kind)
{
    struct json_object *rows;
    char path[128];

    snprintf(path, sizeof path, "%s?includeObject=Object", target);
    assert_int_equal(get_with(f, path, "accept", TABLE), 200);
    rows = sim_json_get(f->v, "rows");
    assert_true(sim_json_len(rows) != 0);
    for (size_t i = 0; i < sim_json_len(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        struct json_object *wanted =
            sim_table_cells(kind, sim_json_get(row, "object"), f->sched.now_wall_ms);

        assert_string_equal(json_object_to_json_string(sim_json_get(row, "cells")),
                            json_object_to_json_string(wanted));
        assert_string_not_equal(sim_json_str(row, "object.kind"), "");
        json_object_put(wanted);
    }
}

static void churn_all(struct fixture *f)
{
    for (int i = 0; i < 90; i++)
        sim_churn(f->c, i % 3 == 0 ? SIM_MIX_HEARTBEATS : SIM_MIX_PODS);
}

static void test_rows_of_heavy_objects_are_those_of_their_json(void **state)
{
    struct fixture *f = *state;

    pass(f, 3000);
    churn_all(f);
    pass(f, 200000);
    check_rows(f, PODS, SIM_KIND_POD);
    check_rows(f, NODES, SIM_KIND_NODE);
}

static void test_rows_of_small_objects_are_those_of_their_json(void **state)
{
    struct fixture *f = *state;

    churn_all(f);
    pass(f, 200000);
    check_rows(f, PODS, SIM_KIND_POD);
    check_rows(f, NODES, SIM_KIND_NODE);
}

/* What a reader of the watch sees of one change, with the version taken out. */
static char *pod_after(struct fixture *f, enum sim_mix mix)
{
    struct json_object *v;
    char *text;

    sim_churn(f->c, mix);
    v = sim_rev_tree(f->c, SIM_KIND_POD, &f->c->colls[SIM_KIND_POD].objs[0]->rev);
    sim_json_set_str(sim_json_get(v, "metadata"), "resourceVersion", "");
    text = strdup(json_object_to_json_string(sim_json_get(v, "status")));
    json_object_put(v);
    return text;
}

static void test_each_change_of_the_mix_changes_what_it_says(void **state)
{
    struct fixture *f = *state;
    char *at_first, *touched, *flipped, *restarted;

    while (f->c->colls[SIM_KIND_POD].n > 1) /* one that is always picked */
        assert_int_equal(
            sim_store_delete(f->c, SIM_KIND_POD, f->c->colls[SIM_KIND_POD].objs[1]->key, NULL), 0);
    at_first = pod_after(f, SIM_MIX_ANNOTATIONS);
    touched = pod_after(f, SIM_MIX_ANNOTATIONS);
    assert_string_equal(at_first, touched);
    flipped = pod_after(f, SIM_MIX_READINESS);
    assert_string_not_equal(touched, flipped);
    assert_non_null(strstr(flipped, "\"type\": \"Ready\""));
    restarted = pod_after(f, SIM_MIX_RESTARTS);
    assert_non_null(strstr(restarted, "\"restartCount\": 1"));
    assert_null(strstr(flipped, "\"restartCount\": 1"));
    free(at_first);
    free(touched);
    free(flipped);
    free(restarted);
}

static bool same_conditions(struct fixture *f, const struct sim_event *e)
{
    struct json_object *now = sim_rev_tree(f->c, SIM_KIND_NODE, &e->now);
    struct json_object *prev = sim_rev_tree(f->c, SIM_KIND_NODE, &e->prev);
    struct json_object *a = sim_json_at(now, "status.conditions");
    struct json_object *b = sim_json_at(prev, "status.conditions");
    bool same = true;

    for (size_t i = 0; i < SIM_CONDITIONS; i++)
        same = same && strcmp(sim_json_str(json_object_array_get_idx(a, i), "status"),
                              sim_json_str(json_object_array_get_idx(b, i), "status")) == 0;
    json_object_put(now);
    json_object_put(prev);
    return same;
}

static void test_few_heartbeats_change_more_than_their_time(void **state)
{
    struct fixture *f = *state;
    size_t real = 0;

    for (int i = 0; i < 500; i++) {
        uint64_t rv = f->c->rv;

        pass(f, 1000);
        sim_churn(f->c, SIM_MIX_HEARTBEATS);
        real += !same_conditions(f, sim_store_event_after(f->c, rv));
    }
    assert_in_range(real, 2, 25);
}

static void test_paced_churn_of_a_fleet_makes_its_rate_in_each_cluster(void **state)
{
    struct fixture *f = *state;
    struct sim_fleet fleet;
    uint64_t rv = f->c->rv;

    sim_fleet_init(&fleet, &f->sched);
    sim_fleet_add(&fleet, f->c);
    sim_fleet_pace(&fleet, 25, SIM_MIX_READINESS);
    for (int i = 0; i < 100; i++)
        pass(f, 20);
    assert_in_range(f->c->rv - rv, 48, 51);
    sim_fleet_pace(&fleet, 0, SIM_MIX_READINESS);
    rv = f->c->rv;
    pass(f, 1000);
    assert_int_equal(f->c->rv, rv);
    sim_fleet_deinit(&fleet);
}

static void test_churn_request_refuses_a_mix_that_is_unknown(void **state)
{
    struct fixture *f = *state;
    uint64_t rv = f->c->rv;

    assert_int_equal(ask(f, "POST", "/kubesim/churn?n=3&mix=some", NULL, ""), 400);
    assert_int_equal(f->c->rv, rv);
    assert_int_equal(ask(f, "POST", "/kubesim/churn?n=3&mix=restarts", NULL, ""), 200);
    assert_int_equal(f->c->rv, rv + 3);
}

#define HEAVY(f) cmocka_unit_test_setup_teardown(f, heavy_setup, heavy_teardown)
#define SMALL(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEAVY(test_pods_have_the_size_and_the_share_of_managed_fields_that_was_asked),
        HEAVY(test_nodes_have_the_size_that_was_asked),
        HEAVY(test_rows_of_heavy_objects_are_those_of_their_json),
        SMALL(test_rows_of_small_objects_are_those_of_their_json),
        HEAVY(test_each_change_of_the_mix_changes_what_it_says),
        HEAVY(test_few_heartbeats_change_more_than_their_time),
        SMALL(test_paced_churn_of_a_fleet_makes_its_rate_in_each_cluster),
        SMALL(test_churn_request_refuses_a_mix_that_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
