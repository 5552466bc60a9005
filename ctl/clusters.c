/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub tells comes from agents in part: texts are shown with nothing but printable ASCII,
 * so that they cannot speak to the terminal. */
#include "base/err.h"
#include "ctl/admin_call.h"
#include "ctl/command.h"
#include "kube/json_scan.h"
#include "kube/list_options.h"

#include <inttypes.h>

#define BODY_MAX (64u << 20)
#define CELL 72
#define COLUMNS 9

static const struct ctl_option options[] = {
    {"socket", CTL_ONE, "PATH", "the hub's adminSocket (" CTL_ADMIN_SOCKET ")"},
    {"output", CTL_ONE, "FORMAT", "table (the default), or json: all that the hub tells", 'o'},
};

struct row {
    char cells[COLUMNS][CELL];
};

static const struct row title = {
    {"NAME", "STATE", "AGE", "AGENT", "KUBERNETES", "NODES", "OBJECTS", "BYTES", "SAVED"}};

static void take_text(struct kr_bytes object, const char *name, char *out)
{
    struct kr_buf text = {.max = 4096};
    struct kr_bytes value;
    size_t n = 0;

    if (kr_scan_find(object, name, &value))
        kr_scan_string(value, &text);
    for (; n < text.n && n < CELL - 1; n++)
        out[n] = text.p[n] > ' ' && text.p[n] < 0x7f ? (char)text.p[n] : '?';
    out[n] = '\0';
    if (n == 0)
        snprintf(out, CELL, "-");
    kr_buf_deinit(&text);
}

static uint64_t take_number(struct kr_bytes object, const char *name)
{
    struct kr_bytes value;
    uint64_t n = 0;

    if (kr_scan_find(object, name, &value))
        kr_bytes_to_u64(value, INT64_MAX, &n);
    return n;
}

static void put_size(uint64_t bytes, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    uint64_t tenths = bytes * 10;

    if (bytes > UINT64_MAX / 16) {
        snprintf(out, CELL, "?");
        return;
    }
    for (; tenths >= 10240 && unit < 4; unit++)
        tenths /= 1024;
    if (unit == 0)
        snprintf(out, CELL, "%" PRIu64 " B", bytes);
    else
        snprintf(out, CELL, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]);
}

/* How much less came than the cluster's own API server had sent. */
static void put_saved(uint64_t raw, uint64_t received, char *out)
{
    if (raw == 0)
        snprintf(out, CELL, "-");
    else if (received >= raw)
        snprintf(out, CELL, "0%%");
    else
        snprintf(out, CELL, "%.1f%%", 100.0 - 100.0 * (double)received / (double)raw);
}

static void put_age(struct kr_bytes object, char *out)
{
    struct kr_buf text = {.max = CELL};
    uint64_t since = take_number(object, "sinceMs");
    uint64_t now = take_number(object, "nowMs");

    kr_human_duration(now > since ? (int64_t)((now - since) / 1000) : 0, &text);
    snprintf(out, CELL, "%.*s", (int)text.n, (const char *)text.p);
    kr_buf_deinit(&text);
}

static void fill(struct kr_bytes object, struct row *row)
{
    take_text(object, "name", row->cells[0]);
    take_text(object, "state", row->cells[1]);
    put_age(object, row->cells[2]);
    take_text(object, "agentVersion", row->cells[3]);
    take_text(object, "serverVersion", row->cells[4]);
    snprintf(row->cells[5], CELL, "%" PRIu64, take_number(object, "nodes"));
    snprintf(row->cells[6], CELL, "%" PRIu64, take_number(object, "objects"));
    put_size(take_number(object, "bytes"), row->cells[7]);
    put_saved(take_number(object, "rawBytes"), take_number(object, "receivedBytes"), row->cells[8]);
}

static void widen(int widths[COLUMNS], const struct row *row)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        int n = (int)strlen(row->cells[i]);

        widths[i] = n > widths[i] ? n : widths[i];
    }
}

static void print_row(FILE *out, const int widths[COLUMNS], const struct row *row)
{
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, "%-*s%s", i + 1 < COLUMNS ? widths[i] : 0, row->cells[i],
                i + 1 < COLUMNS ? "   " : "\n");
}

/* Twice over the clusters: how wide, then the rows. */
static int print_table(FILE *out, struct kr_bytes body, struct kr_note *why)
{
    int widths[COLUMNS] = {0};
    struct kr_bytes clusters;
    struct kr_bytes cluster;
    struct kr_scan it;
    struct row row;

    if (kr_scan_check(body, 64, why) != 0 || !kr_scan_find(body, "clusters", &clusters) ||
        !kr_scan_array(clusters, &it))
        return kr_note_set(why, KR_EPROTO, "not the answer of a hub");
    widen(widths, &title);
    while (kr_scan_element(&it, &cluster)) {
        fill(cluster, &row);
        widen(widths, &row);
    }
    print_row(out, widths, &title);
    kr_scan_array(clusters, &it);
    while (kr_scan_element(&it, &cluster)) {
        fill(cluster, &row);
        print_row(out, widths, &row);
    }
    return 0;
}

static const char *socket_of(const struct ctl_call *call)
{
    const char *given = ctl_get(call, "socket");

    return given != NULL ? given : CTL_ADMIN_SOCKET;
}

static int run(const struct ctl_call *call, struct kr_note *why)
{
    const char *format = ctl_get(call, "output");
    bool json = format != NULL && strcmp(format, "json") == 0;
    struct kr_buf body = {.max = BODY_MAX};
    int status = 0;
    int rc;

    if (format != NULL && !json && strcmp(format, "table") != 0)
        return kr_note_set(why, KR_EINVAL, "--output takes table or json, not \"%.40s\"", format);
    rc = ctl_admin_call(socket_of(call), "GET", "/clusters", &body, &status, why);
    if (rc == 0 && status != 200)
        rc = kr_note_set(why, KR_EIO, "the hub answered %d", status);
    if (rc == 0 && json)
        fprintf(call->out, "%.*s\n", (int)body.n, (const char *)body.p);
    else if (rc == 0)
        rc = print_table(call->out, kr_buf_bytes(&body), why);
    kr_buf_deinit(&body);
    return rc;
}

const struct ctl_command ctl_clusters = {
    .words = "clusters",
    .summary = "show the clusters of a hub, and what it holds of them",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
