/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/chained_log.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "certs/hmac.h"

#define AGAIN_MS 250

struct kr_chained_log {
    struct kr_chained_config cfg;
    struct kr_line_file *file;
    struct kr_timer again;
    uint8_t prev[KR_HMAC_SIZE];
    bool failing; /* as was told last */
};

/* Tells what has changed, and comes again while something waits. */
static void look(struct kr_chained_log *l)
{
    bool failing = !kr_line_file_ok(l->file);

    if (kr_line_file_waiting(l->file) != 0 && !kr_timer_running(&l->again))
        kr_timer_start(l->cfg.sched, &l->again, AGAIN_MS);
    if (failing == l->failing)
        return;
    l->failing = failing;
    kr_metric_set(l->cfg.failing, failing);
    l->cfg.on_change(l->cfg.owner, failing, kr_line_file_errno(l->file));
}

static void on_again(struct kr_timer *t)
{
    struct kr_chained_log *l = KR_CONTAINER_OF(t, struct kr_chained_log, again);

    kr_line_file_flush(l->file, l->cfg.sched->now_ms);
    look(l);
}

/* The line that the chain goes on from. */
static int find_last(struct kr_chained_log *l)
{
    struct kr_buf last = {.max = KR_LINE_WAIT_MAX};
    int rc = kr_line_file_last(l->file, &last);

    if (rc == 0 && last.n != 0)
        rc = kr_sha256(kr_buf_bytes(&last), l->prev);
    kr_buf_deinit(&last);
    return rc;
}

struct kr_chained_log *kr_chained_log_open(const struct kr_chained_config *cfg, struct kr_note *why)
{
    struct kr_chained_log *l = calloc(1, sizeof *l);
    int rc = KR_ENOMEM;

    if (l != NULL) {
        l->cfg = *cfg;
        kr_timer_init(&l->again, on_again);
        l->file = kr_line_file_open(&cfg->file, why);
        if (l->file == NULL) {
            free(l);
            return NULL;
        }
        rc = find_last(l);
    }
    if (rc == 0)
        return l;
    kr_note_text(why, "%s: %s", cfg->file.path, kr_err_text(rc));
    kr_chained_log_close(l);
    return NULL;
}

void kr_chained_log_close(struct kr_chained_log *l)
{
    if (l == NULL)
        return;
    kr_timer_stop(l->cfg.sched, &l->again);
    kr_line_file_close(l->file);
    free(l);
}

static int add_hash(const struct kr_chained_log *l, struct kr_buf *line)
{
    char hex[2 * KR_HMAC_SIZE + 1];

    for (size_t i = 0; i < sizeof l->prev; i++) {
        hex[2 * i] = "0123456789abcdef"[l->prev[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[l->prev[i] & 15];
    }
    hex[sizeof hex - 1] = '\0';
    return kr_buf_printf(line, ",\"kuberelay.io/prev\":\"%s\"}}", hex);
}

int kr_chained_log_put(struct kr_chained_log *l, struct kr_buf *line)
{
    uint8_t hash[KR_HMAC_SIZE];
    int rc = add_hash(l, line);

    if (rc == 0)
        rc = kr_sha256(kr_buf_bytes(line), hash);
    if (rc == 0)
        rc = kr_line_file_put(l->file, kr_buf_bytes(line), l->cfg.sched->now_ms);
    if (rc == 0)
        memcpy(l->prev, hash, sizeof hash);
    kr_metric_add(rc == 0 ? l->cfg.lines : l->cfg.lost, 1);
    look(l);
    return rc;
}

bool kr_chained_log_ok(const struct kr_chained_log *l)
{
    return kr_line_file_ok(l->file);
}

int kr_chained_log_reopen(struct kr_chained_log *l, struct kr_note *why)
{
    int rc = kr_line_file_reopen(l->file, why);

    if (rc == 0)
        kr_line_file_flush(l->file, l->cfg.sched->now_ms);
    look(l);
    return rc;
}
