/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "churn.h"
#include "faults.h"
#include "lifecycle.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define JSON "application/json"
#define MERGE "application/merge-patch+json"

/* Writes through a second fixture-like call that leaves the watch's answer alone. */
static void write_map(struct fixture *f, const char *method, const char *target, const char *type,
                      const char *body)
{
    struct fixture other = {.c = f->c};

    sim_response_init(&other.out);
    assert_in_range(ask(&other, method, target, type, body), 200, 201);
    sim_response_deinit(&other.out);
    json_object_put(other.v);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (; (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

static void open_watch(struct fixture *f, const char *query)
{
    char target[512];

    snprintf(target, sizeof target, MAPS "?watch=true&%s", query);
    assert_int_equal(get(f, target), 200);
    assert_non_null(f->out.source);
}

static void test_watch_from_a_version_sees_what_comes_later_in_order(void **state)
{
    struct fixture *f = *state;
    char query[64];
    const char *text;

    snprintf(query, sizeof query, "resourceVersion=%llu", (unsigned long long)f->c->rv);
    open_watch(f, query);
    assert_int_equal(f->out.body.n, 0);
    write_map(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\"}}");
    write_map(f, "PATCH", MAPS "/a", MERGE, "{\"data\":{\"x\":\"1\"}}");
    write_map(f, "DELETE", MAPS "/a", NULL, "");
    assert_true(f->woken >= 3);
    text = more(f);
    assert_true(strstr(text, "ADDED") < strstr(text, "MODIFIED"));
    assert_true(strstr(text, "MODIFIED") < strstr(text, "DELETED"));
    assert_int_equal(count(text, "\"type\""), 3);
}

static void test_watch_without_a_version_begins_with_what_is_there(void **state)
{
    struct fixture *f = *state;

    open_watch(f, "");
    assert_non_null(memmem(f->out.body.p, f->out.body.n, "kube-root-ca.crt", 16));
}

static void test_watch_list_ends_its_beginning_with_a_marked_bookmark(void **state)
{
    struct fixture *f = *state;

    open_watch(f, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
                  "allowWatchBookmarks=true");
    assert_non_null(memmem(f->out.body.p, f->out.body.n, "BOOKMARK", 8));
    assert_non_null(memmem(f->out.body.p, f->out.body.n, "k8s.io/initial-events-end", 25));
}

static void test_watch_with_a_selector_turns_crossing_it_into_added_and_deleted(void **state)
{
    struct fixture *f = *state;
    const char *text;

    write_map(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"a\"}}");
    open_watch(f, "labelSelector=l%3D1");
    assert_int_equal(f->out.body.n, 0);
    write_map(f, "PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"labels\":{\"l\":\"1\"}}}");
    text = more(f);
    assert_int_equal(count(text, "\"ADDED\""), 1);
    write_map(f, "PATCH", MAPS "/a", MERGE, "{\"metadata\":{\"labels\":{\"l\":\"2\"}}}");
    text = more(f);
    assert_int_equal(count(text, "\"DELETED\""), 1);
    assert_non_null(strstr(text, "\"l\":\"1\"")); /* the state before */
    write_map(f, "DELETE", MAPS "/a", NULL, "");
    assert_string_equal(more(f), "");
}

static void test_watch_from_a_version_too_old_is_200_with_a_410_event(void **state)
{
    struct fixture *f = *state;

    open_watch(f, "resourceVersion=5");
    assert_string_equal(str(f, "type"), "ERROR");
    assert_int_equal(sim_json_int(f->v, "object.code", 0), 410);
    assert_string_equal(str(f, "object.reason"), "Expired");
}

static void test_watch_that_cannot_keep_up_ends_without_an_error(void **state)
{
    struct fixture *f = *state;
    char query[64];

    snprintf(query, sizeof query, "resourceVersion=%llu", (unsigned long long)f->c->rv);
    open_watch(f, query);
    for (int i = 0; i < 200; i++) /* more than the history of 100 */
        sim_churn(f->c, SIM_MIX_DEFAULT);
    f->out.body.n = 0;
    assert_int_equal(f->out.source->ops->fill(f->out.source, &f->out.body), SIM_FILL_END);
    assert_int_equal(f->out.body.n, 0);
}

static void test_watch_when_its_time_is_up_sends_a_bookmark_before_it_ends(void **state)
{
    struct fixture *f = *state;

    open_watch(f, "timeoutSeconds=10&allowWatchBookmarks=true");
    pass(f, 8000);
    assert_int_equal(count(more(f), "BOOKMARK"), 1);
    pass(f, 2000);
    f->out.body.n = 0;
    assert_int_equal(f->out.source->ops->fill(f->out.source, &f->out.body), SIM_FILL_END);
}

static void test_watch_as_table_has_columns_once(void **state)
{
    struct fixture *f = *state;
    const char *text;

    assert_int_equal(
        get_with(f, MAPS "?watch=1", "accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
        200);
    assert_int_equal(kr_buf_append(&f->out.body, kr_bytes_of("", 1)), 0);
    assert_int_equal(count((const char *)f->out.body.p, "\"columnDefinitions\":["), 1);
    write_map(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"b\"}}");
    text = more(f);
    assert_non_null(strstr(text, "\"columnDefinitions\":null"));
}

static void test_pod_that_is_deleted_goes_after_its_kubelet_is_done(void **state)
{
    struct fixture *f = *state;
    char target[400], name[300];
    const char *text;

    assert_int_equal(get(f, "/api/v1/namespaces/default/pods?limit=1"), 200);
    snprintf(
        name, sizeof name, "%s",
        sim_json_str(json_object_array_get_idx(sim_json_get(f->v, "items"), 0), "metadata.name"));
    snprintf(target, sizeof target, "/api/v1/namespaces/default/pods?watch=1&resourceVersion=%llu",
             (unsigned long long)f->c->rv);
    assert_int_equal(get(f, target), 200);
    snprintf(target, sizeof target, "/api/v1/namespaces/default/pods/%s", name);
    write_map(f, "DELETE", target, JSON, "{\"propagationPolicy\":\"Background\"}");
    text = more(f);
    assert_non_null(strstr(text, "deletionTimestamp"));
    assert_int_equal(count(text, "\"DELETED\""), 0);
    pass(f, SIM_FINISH_MS + 1);
    assert_int_equal(count(more(f), "\"DELETED\""), 1);
}

static void test_namespace_that_is_deleted_takes_its_content_along(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, "DELETE", "/api/v1/namespaces/default", NULL, ""), 200);
    assert_string_equal(str(f, "status.phase"), "Terminating");
    assert_int_equal(ask(f, "POST", MAPS, JSON, "{\"metadata\":{\"name\":\"late\"}}"), 403);
    pass(f, SIM_FINISH_MS + 1);
    assert_int_equal(get(f, "/api/v1/namespaces/default"), 404);
    assert_int_equal(get(f, "/api/v1/namespaces/default/pods"), 200);
    assert_int_equal(sim_json_len(sim_json_get(f->v, "items")), 0);
}

static struct sim_fault fault(struct fixture *f, const char *json)
{
    struct json_object *v = sim_json_parse(kr_bytes_str(json));
    struct sim_request req = {.method = KR_LIT("GET"), .target = KR_LIT(MAPS)};
    const char *why;

    assert_int_equal(sim_fault_add(f->c, v, &why), 0);
    json_object_put(v);
    return sim_fault_take(f->c, &req);
}

static void test_fault_that_ends_a_watch_cuts_at_a_line(void **state)
{
    struct fixture *f = *state;
    struct sim_fault one = fault(f, "{\"path\":\"/api\",\"action\":\"error-event\",\"bytes\":1}");
    const char *text;

    open_watch(f, "");
    assert_int_equal(one.action, SIM_FAULT_ERROR_EVENT);
    sim_fault_apply(&one, &f->out);
    text = more(f);
    assert_int_equal(count(text, "\"type\":\"ADDED\""), 1);
    assert_int_equal(count(text, "\"type\":\"ERROR\""), 1);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void test_fault_that_truncates_breaks_in_the_middle(void **state)
{
    struct fixture *f = *state;
    struct sim_fault one = fault(f, "{\"path\":\"/api\",\"action\":\"truncate\",\"bytes\":10}");

    assert_int_equal(get(f, MAPS), 200);
    sim_fault_apply(&one, &f->out);
    f->out.body.n = 0;
    assert_int_equal(f->out.source->ops->fill(f->out.source, &f->out.body), SIM_FILL_BREAK);
    assert_int_equal(f->out.body.n, 10);
}

static void test_fault_is_used_as_often_as_it_says(void **state)
{
    struct fixture *f = *state;
    struct sim_request req = {.method = KR_LIT("GET"), .target = KR_LIT(MAPS)};
    struct sim_request other = {.method = KR_LIT("GET"), .target = KR_LIT("/version")};

    (void)fault(f, "{\"path\":\"/api\",\"action\":\"status\",\"times\":2}");
    assert_int_equal(sim_fault_take(f->c, &other).action, SIM_FAULT_NONE);
    assert_int_equal(sim_fault_take(f->c, &req).action, SIM_FAULT_STATUS);
    assert_int_equal(sim_fault_take(f->c, &req).action, SIM_FAULT_NONE);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(test_watch_from_a_version_sees_what_comes_later_in_order),
        T(test_watch_without_a_version_begins_with_what_is_there),
        T(test_watch_list_ends_its_beginning_with_a_marked_bookmark),
        T(test_watch_with_a_selector_turns_crossing_it_into_added_and_deleted),
        T(test_watch_from_a_version_too_old_is_200_with_a_410_event),
        T(test_watch_that_cannot_keep_up_ends_without_an_error),
        T(test_watch_when_its_time_is_up_sends_a_bookmark_before_it_ends),
        T(test_watch_as_table_has_columns_once),
        T(test_pod_that_is_deleted_goes_after_its_kubelet_is_done),
        T(test_namespace_that_is_deleted_takes_its_content_along),
        T(test_fault_that_ends_a_watch_cuts_at_a_line),
        T(test_fault_that_truncates_breaks_in_the_middle),
        T(test_fault_is_used_as_often_as_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
