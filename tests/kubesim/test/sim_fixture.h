/* SPDX-License-Identifier: Apache-2.0 */
/* sim_fixture: a cluster under virtual time, asked without any network. */
#ifndef SIM_FIXTURE_H
#define SIM_FIXTURE_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "api.h"

struct fixture {
    struct kr_sched sched;
    struct sim_cluster *c;
    struct sim_response out; /* of the last question */
    struct json_object *v;   /* its body; NULL if it is no JSON */
    int woken;
};

/* For cmocka's setup and teardown: 40 pods, 3 nodes, 100 events of history. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Asks and reads a whole answer (a source is drained until it waits). Returns the status. */
int ask(struct fixture *f, const char *method, const char *target, const char *content_type,
        const char *body);
int get(struct fixture *f, const char *target);
/* The same with one more field in the request. */
int get_with(struct fixture *f, const char *target, const char *name, const char *value);
/* What a source (the last answer's) gives now; a NUL-terminated text, lent. */
const char *more(struct fixture *f);
/* Virtual time goes on. */
void pass(struct fixture *f, int64_t ms);
const char *str(struct fixture *f, const char *path);

#endif
