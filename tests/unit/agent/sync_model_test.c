/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever breaks and whenever it does: once nothing breaks any more, the hub holds exactly what
 * the API server has. Each world is made from one seed, which a failure prints. */
#include "agent/sync_out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "agent/catalog.h"
#include "api_double.h"
#include "hub_double.h"
#include "kube_model.h"
#include "kube_text.h"

enum { SEEDS = 150, STEPS = 250, CALLS_MAX = 64 };

static const char *allow_all[] = {"*", NULL};

struct world {
    struct api_world w;
    struct model m;
    struct hub hub;
    struct hub_call calls[CALLS_MAX]; /* one after the other */
    size_t call_count;
    bool calling;
    char reached[64]; /* what the hub had been told to have reached a while ago */
};

static struct hub_call *call_of(struct world *x)
{
    return &x->calls[x->call_count - 1];
}

static void start_call(struct world *x)
{
    static const struct kr_subscription pods = {
        .id = 1, .version = {(const uint8_t *)"v1", 2}, .resource = {(const uint8_t *)"pods", 4}};

    if (x->calling || x->call_count == CALLS_MAX)
        return;
    x->call_count++;
    x->calling = true;
    hub_call_init(call_of(x), &x->hub, &x->w.c, "hub-1");
    hub_open(call_of(x), &pods);
}

static void cut_call(struct world *x)
{
    if (!x->calling)
        return;
    x->calling = false;
    call_of(x)->wire.server.may_owe = true;
    hub_call_cut(call_of(x));
    api_world_run(&x->w, 0);
    /* A progress may be lost though the changes before it came. */
    if (model_one_in(&x->m, 3))
        snprintf(x->hub.version, sizeof x->hub.version, "%s", x->reached);
}

/* Some of what waits goes over the tunnel. */
static void trickle(struct world *x)
{
    struct fake_wire *w = &call_of(x)->wire;

    for (uint64_t n = kr_rand_below(&x->m.rand, 8); n != 0; n--) {
        fake_step(w, &w->client, 4096);
        fake_step(w, &w->server, 1 + kr_rand_below(&x->m.rand, 4096));
    }
}

static void restart_agent(struct world *x)
{
    cut_call(x);
    agent_sync_destroy(&x->w.c);
    assert_int_equal(agent_sync_create(&x->w.c), 0);
}

static void restart_hub(struct world *x)
{
    cut_call(x);
    x->hub.n = 0;
    x->hub.version[0] = x->reached[0] = '\0';
}

static void step(struct world *x)
{
    struct model *m = &x->m;

    switch (kr_rand_below(&m->rand, 24)) {
    case 0:
        cut_call(x);
        break;
    case 1:
        if (model_one_in(m, 4))
            restart_agent(x);
        break;
    case 2:
        if (model_one_in(m, 6))
            restart_hub(x);
        break;
    case 3:
        if (model_one_in(m, 4))
            model_compact(m);
        break;
    case 4:
        if (model_one_in(m, 3))
            model_cut_all(&x->w.api);
        break;
    case 5:
    case 6:
        start_call(x);
        break;
    case 7:
    case 8:
    case 9:
        api_world_run(&x->w, (int64_t)kr_rand_below(&m->rand, 40000));
        break;
    case 10:
    case 11:
    case 12:
    case 13:
        model_serve(m, &x->w.api);
        break;
    case 14:
        if (model_one_in(m, 10))
            m->backup = m->now;
        break;
    default:
        model_change(m);
    }
    api_world_run(&x->w, 1);
    if (model_one_in(&x->m, 8))
        snprintf(x->reached, sizeof x->reached, "%s", x->hub.version);
    if (x->calling)
        trickle(x);
}

/* Nothing breaks and nothing changes any more. */
static void settle(struct world *x)
{
    x->m.calm = true;
    if (x->call_count == CALLS_MAX) {
        cut_call(x);
        x->call_count = 0;
    }
    start_call(x);
    for (int i = 0; i < 40; i++) {
        if (call_of(x)->ended) {
            cut_call(x);
            start_call(x);
        }
        api_world_run(&x->w, 15000);
        model_serve(&x->m, &x->w.api);
        api_world_run(&x->w, 0);
        fake_pump(&call_of(x)->wire, 4096);
        api_world_run(&x->w, 0);
    }
}

static bool is_right(struct world *x, uint64_t seed)
{
    size_t there = 0;

    for (size_t i = 0; i < PODS; i++) {
        const struct model_pod *p = &x->m.now.pods[i];
        const struct held *o = hub_object(&x->hub, "d", p->name);
        char uid[40];
        char image[40];

        there += p->there;
        snprintf(uid, sizeof uid, "\"uid\":\"%s\"", p->uid);
        snprintf(image, sizeof image, "\"image\":\"%s\"", p->image);
        if (p->there == (o != NULL) &&
            (o == NULL || (strstr(o->plain, uid) != NULL && strstr(o->plain, image) != NULL)))
            continue;
        print_error("seed %llu: %s: %s/%s at the API server, %s at the hub\n",
                    (unsigned long long)seed, p->name, p->there ? p->uid : "not there", p->image,
                    o != NULL ? o->plain : "not there");
        return false;
    }
    if (there != x->hub.n)
        print_error("seed %llu: the hub holds %zu of %zu\n", (unsigned long long)seed, x->hub.n,
                    there);
    return there == x->hub.n;
}

static void set_up(struct world *x, uint64_t seed)
{
    api_world_init(&x->w);
    kr_rand_seed(&x->w.c.rand, seed);
    x->w.options.sync_allow = (struct kr_strings){allow_all, 1};
    snprintf(x->w.c.health.version, sizeof x->w.c.health.version, "v1.33.0");
    x->w.c.catalog = agent_catalog_create(&x->w.c);
    assert_non_null(x->w.c.catalog);
    assert_int_equal(agent_sync_create(&x->w.c), 0);
    hub_init(&x->hub);
    model_init(&x->m, seed);
    x->calling = false;
    x->call_count = 0;
    x->reached[0] = '\0';
}

static void tear_down(struct world *x)
{
    cut_call(x);
    agent_sync_destroy(&x->w.c);
    agent_catalog_destroy(x->w.c.catalog);
    hub_deinit(&x->hub);
    api_world_deinit(&x->w);
}

static void test_whatever_breaks_the_hub_ends_up_with_what_the_api_server_has(void **state)
{
    struct world *x = calloc(1, sizeof *x);

    (void)state;
    assert_non_null(x);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        set_up(x, seed);
        for (int i = 0; i < STEPS; i++)
            step(x);
        settle(x);
        assert_true(is_right(x, seed));
        assert_int_equal(x->hub.backwards, 0);
        assert_int_not_equal(call_of(x)->ends, 0);
        tear_down(x);
    }
    free(x);
}

static void test_a_restore_from_a_backup_is_noticed(void **state)
{
    struct world *x = calloc(1, sizeof *x);

    (void)state;
    assert_non_null(x);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        set_up(x, seed);
        for (int i = 0; i < STEPS; i++)
            step(x);
        settle(x);
        model_restore(&x->m);
        model_cut_all(&x->w.api);
        settle(x);
        assert_true(is_right(x, seed));
        tear_down(x);
    }
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_breaks_the_hub_ends_up_with_what_the_api_server_has),
        cmocka_unit_test(test_a_restore_from_a_backup_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
