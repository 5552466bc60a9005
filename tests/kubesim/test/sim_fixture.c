/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_fixture.h"

#include <stdlib.h>

#include "lifecycle.h"

#define JUNE_2026_MS 1780272000000

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    kr_sched_init(&f->sched, 1000, JUNE_2026_MS);
    f->c = sim_cluster_create(&(struct sim_cluster_config){
        .world = {"c1", 7, 40, 3, JUNE_2026_MS}, .sched = &f->sched, .history = 100});
    assert_non_null(f->c);
    assert_int_equal(sim_lifecycle_seed(f->c), 0);
    sim_response_init(&f->out);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    sim_response_deinit(&f->out);
    json_object_put(f->v);
    sim_lifecycle_end(f->c);
    sim_cluster_destroy(f->c);
    kr_sched_deinit(&f->sched);
    free(f);
    return 0;
}

static void on_wake(void *owner)
{
    struct fixture *f = owner;

    f->woken++;
}

static int ask_head(struct fixture *f, const char *method, const char *target, const char *body,
                    const struct kr_head *head)
{
    struct sim_request req = {.method = kr_bytes_str(method),
                              .target = kr_bytes_str(target),
                              .head = head,
                              .body = kr_bytes_str(body),
                              .user = "tester",
                              .groups = "g1,g2"};

    sim_response_deinit(&f->out);
    sim_response_init(&f->out);
    json_object_put(f->v);
    sim_handle(f->c, &req, &f->out);
    if (f->out.source != NULL) {
        f->out.source->wake = on_wake;
        f->out.source->wake_owner = f;
        while (f->out.source->ops->fill(f->out.source, &f->out.body) == SIM_FILL_MORE)
            ;
    }
    f->v = sim_json_parse(kr_buf_bytes(&f->out.body));
    return f->out.status;
}

int ask(struct fixture *f, const char *method, const char *target, const char *content_type,
        const char *body)
{
    struct kr_head head;
    int status;

    kr_head_init(&head, KR_HEAD_MAX);
    if (content_type != NULL)
        (void)kr_head_add_str(&head, "content-type", content_type);
    status = ask_head(f, method, target, body, &head);
    kr_head_deinit(&head);
    return status;
}

int get(struct fixture *f, const char *target)
{
    return ask(f, "GET", target, NULL, "");
}

int get_with(struct fixture *f, const char *target, const char *name, const char *value)
{
    struct kr_head head;
    int status;

    kr_head_init(&head, KR_HEAD_MAX);
    (void)kr_head_add_str(&head, name, value);
    status = ask_head(f, "GET", target, "", &head);
    kr_head_deinit(&head);
    return status;
}

const char *more(struct fixture *f)
{
    f->out.body.n = 0;
    assert_non_null(f->out.source);
    while (f->out.source->ops->fill(f->out.source, &f->out.body) == SIM_FILL_MORE)
        ;
    assert_int_equal(kr_buf_append(&f->out.body, kr_bytes_of("", 1)), 0);
    return (const char *)f->out.body.p;
}

void pass(struct fixture *f, int64_t ms)
{
    int64_t end = f->sched.now_ms + ms;

    while (f->sched.now_ms < end) {
        int64_t wait = kr_sched_run(&f->sched, f->sched.now_ms, f->sched.now_wall_ms);
        int64_t step = wait < 0 || wait > end - f->sched.now_ms ? end - f->sched.now_ms : wait;

        (void)kr_sched_run(&f->sched, f->sched.now_ms + step, f->sched.now_wall_ms + step);
        if (step == 0)
            (void)kr_sched_run(&f->sched, f->sched.now_ms + 1, f->sched.now_wall_ms + 1);
    }
}

const char *str(struct fixture *f, const char *path)
{
    return sim_json_str(f->v, path);
}
