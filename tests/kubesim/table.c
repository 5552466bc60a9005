/* SPDX-License-Identifier: Apache-2.0 */
/* table: which columns the API server prints for which resource; the cells are in cells.c. */
#include "cells.h"
#include "kinds.h"
#include "view.h"

#define COLUMNS_MAX 12

struct column {
    const char *name;
    const char *type;
    int priority; /* 1: only with -o wide */
};

struct table {
    const char *plural;
    sim_cells_fn *cells;
    struct column columns[COLUMNS_MAX]; /* behind Name, which all have first */
};

#define S "string"
#define I "integer"
#define AGE                                                                                        \
    {                                                                                              \
        "Age", S, 0                                                                                \
    }
#define WORKLOAD_WIDE                                                                              \
    {"Containers", S, 1}, {"Images", S, 1},                                                        \
    {                                                                                              \
        "Selector", S, 1                                                                           \
    }

static const struct table tables[] = {
    {"pods",
     sim_cells_pod,
     {{"Ready", S, 0},
      {"Status", S, 0},
      {"Restarts", S, 0},
      AGE,
      {"IP", S, 1},
      {"Node", S, 1},
      {"Nominated Node", S, 1},
      {"Readiness Gates", S, 1}}},
    {"nodes",
     sim_cells_node,
     {{"Status", S, 0},
      {"Roles", S, 0},
      AGE,
      {"Version", S, 0},
      {"Internal-IP", S, 1},
      {"External-IP", S, 1},
      {"OS-Image", S, 1},
      {"Kernel-Version", S, 1},
      {"Container-Runtime", S, 1}}},
    {"namespaces", sim_cells_namespace, {{"Status", S, 0}, AGE}},
    {"deployments",
     sim_cells_deployment,
     {{"Ready", S, 0}, {"Up-to-date", S, 0}, {"Available", S, 0}, AGE, WORKLOAD_WIDE}},
    {"replicasets",
     sim_cells_replicaset,
     {{"Desired", I, 0}, {"Current", I, 0}, {"Ready", I, 0}, AGE, WORKLOAD_WIDE}},
    {"replicationcontrollers",
     sim_cells_replicaset,
     {{"Desired", I, 0}, {"Current", I, 0}, {"Ready", I, 0}, AGE, WORKLOAD_WIDE}},
    {"daemonsets",
     sim_cells_daemonset,
     {{"Desired", I, 0},
      {"Current", I, 0},
      {"Ready", I, 0},
      {"Up-to-date", I, 0},
      {"Available", I, 0},
      {"Node Selector", S, 0},
      AGE,
      WORKLOAD_WIDE}},
    {"statefulsets",
     sim_cells_statefulset,
     {{"Ready", S, 0}, AGE, {"Containers", S, 1}, {"Images", S, 1}}},
    {"jobs",
     sim_cells_job,
     {{"Status", S, 0}, {"Completions", S, 0}, {"Duration", S, 0}, AGE, WORKLOAD_WIDE}},
    {"services",
     sim_cells_service,
     {{"Type", S, 0},
      {"Cluster-IP", S, 0},
      {"External-IP", S, 0},
      {"Port(s)", S, 0},
      AGE,
      {"Selector", S, 1}}},
    {"configmaps", sim_cells_configmap, {{"Data", S, 0}, AGE}},
    {"secrets", sim_cells_secret, {{"Type", S, 0}, {"Data", S, 0}, AGE}},
    {"serviceaccounts", sim_cells_serviceaccount, {{"Secrets", S, 0}, AGE}},
    {"endpoints", sim_cells_endpoints, {{"Endpoints", S, 0}, AGE}},
    {"leases", sim_cells_lease, {{"Holder", S, 0}, AGE}},
    {"events",
     sim_cells_event,
     {{"Last Seen", S, 0}, {"Type", S, 0}, {"Reason", S, 0}, {"Object", S, 0}, {"Message", S, 0}}},
    {"roles", sim_cells_created, {{"Created At", S, 0}}},
    {"clusterroles", sim_cells_created, {{"Created At", S, 0}}},
    {"rolebindings", sim_cells_binding, {{"Role", S, 0}, AGE}},
    {"clusterrolebindings", sim_cells_binding, {{"Role", S, 0}, AGE}},
};

static const struct table generic = {"", sim_cells_age, {AGE}};

static const struct table *table_of(int kind)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i].plural, sim_kinds[kind].plural) == 0)
            return &tables[i];
    return &generic;
}

static int print_column(const struct column *c, bool is_name, struct kr_buf *out)
{
    return kr_buf_printf(out,
                         "{\"name\":\"%s\",\"type\":\"%s\",\"format\":\"%s\",\"description\":"
                         "\"%s, as the simulator has it\",\"priority\":%d}",
                         c->name, c->type, is_name ? "name" : "", c->name, c->priority);
}

int sim_table_columns(int kind, struct kr_buf *out)
{
    static const struct column name = {"Name", S, 0};
    const struct table *t = table_of(kind);
    /* Events have their name last and only in the wide form. */
    bool name_first = t->cells != sim_cells_event;
    bool first = true;

    kr_buf_append_str(out, "[");
    if (name_first) {
        print_column(&name, true, out);
        first = false;
    }
    for (size_t i = 0; i < COLUMNS_MAX && t->columns[i].name != NULL; i++) {
        if (!first)
            kr_buf_append_str(out, ",");
        first = false;
        print_column(&t->columns[i], false, out);
    }
    if (!name_first) {
        kr_buf_append_str(out, ",");
        print_column(&(struct column){"Name", S, 1}, true, out);
    }
    return kr_buf_append_str(out, "]");
}

struct json_object *sim_table_cells(int kind, struct json_object *object, int64_t now_wall_ms)
{
    const struct table *t = table_of(kind);
    struct json_object *cells = json_object_new_array();
    const char *name = sim_json_str(object, "metadata.name");
    bool name_first = t->cells != sim_cells_event;

    if (name_first)
        json_object_array_add(cells, json_object_new_string(name));
    t->cells(object, now_wall_ms, cells);
    if (!name_first)
        json_object_array_add(cells, json_object_new_string(name));
    return cells;
}
