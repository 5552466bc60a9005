/* SPDX-License-Identifier: Apache-2.0 */
/* list: what list and watch share: their options, checked as the API server checks them. */
#ifndef SIM_LIST_H
#define SIM_LIST_H

#include "view.h"

struct sim_list_options {
    struct sim_selector selector;
    int64_t rv; /* -1: unset */
    const char *match;
    int64_t limit;
    bool initial_events; /* sendInitialEvents given and true */
};

/* 0, or a negative code and the answer (400, 422). Deinit in either case. */
int sim_list_options_read(struct sim_call *call, bool watch, struct sim_list_options *o);
void sim_list_options_deinit(struct sim_list_options *o);
#endif
