/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_warning.h"

#include "kube/status.h"

#define WARNING_MAX 240
#define RESOURCE_MAX 63
#define MORE ", ..."

static size_t incomplete(const struct hub_completeness *c)
{
    return c->stale + c->loading + c->failing + c->missing;
}

bool hub_fleet_is_incomplete(const struct hub_completeness *c)
{
    return incomplete(c) != 0;
}

static void put_number(struct kr_buf *text, size_t n, const char *word)
{
    if (n != 0)
        kr_buf_printf(text, " %zu %s", n, word);
}

/* As many as fit. */
static void put_names(struct kr_buf *text, const struct hub_completeness *c)
{
    struct kr_bytes names = kr_bytes_str(c->names);
    size_t room = WARNING_MAX - text->n - sizeof ": " MORE;
    bool all = c->named == incomplete(c);

    while (names.n > room) {
        all = false;
        while (names.n != 0 && names.p[--names.n] != ',') {
        }
    }
    if (names.n != 0)
        kr_buf_printf(text, ": %.*s%s", (int)names.n, (const char *)names.p, all ? "" : MORE);
}

int hub_fleet_warn(struct kr_head *head, struct kr_bytes of, const struct hub_completeness *c)
{
    struct kr_buf text = {.max = WARNING_MAX};
    struct kr_buf line = {.max = 2 * WARNING_MAX + 64};
    int rc;

    if (!hub_fleet_is_incomplete(c))
        return 0;
    if (of.n > RESOURCE_MAX)
        of.n = RESOURCE_MAX;
    kr_buf_printf(&text, "fleet view%s%.*s: of %zu clusters", of.n != 0 ? " of " : "", (int)of.n,
                  (const char *)of.p, c->clusters);
    put_number(&text, c->stale, "stale");
    put_number(&text, c->loading, "loading");
    put_number(&text, c->failing, "failing");
    put_number(&text, c->missing, "missing");
    put_names(&text, c);
    rc = kr_warning_write(&line, kr_buf_bytes(&text), "hub-agent");
    if (rc == 0)
        rc = kr_head_add(head, KR_LIT("warning"), kr_buf_bytes(&line));
    kr_buf_deinit(&text);
    kr_buf_deinit(&line);
    return rc;
}
