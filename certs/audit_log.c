/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/audit_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char *const kr_audit_modes[] = {"strict", "best-effort", NULL};

struct kr_audit_log {
    const struct kr_audit_options *options;
    struct kr_log *log;
    struct kr_chained_log *lines;
};

static bool is_strict(const struct kr_audit_log *a)
{
    return a->options->mode == KR_AUDIT_STRICT;
}

static void on_change(void *owner, bool failing, int error)
{
    struct kr_audit_log *a = owner;

    if (failing)
        KR_LOG_AT(a->log, KR_LOG_ERROR, "audit-failing", KR_S("file", a->options->log),
                  KR_S("reason", error != 0 ? strerror(error) : "nobody reads it"),
                  KR_S("effect", is_strict(a) ? "what changes something is refused"
                                              : "lines are lost when too many wait"));
    else
        KR_LOG_AT(a->log, KR_LOG_WARN, "audit-recovered", KR_S("file", a->options->log));
}

int kr_audit_log_open(struct kr_audit_log **out, const struct kr_audit_log_config *cfg,
                      struct kr_note *why)
{
    const struct kr_audit_options *o = cfg->options;
    struct kr_chained_config chained = {
        .file = {o->log, o->max_size, o->keep},
        .sched = cfg->sched,
        .lines = cfg->lines,
        .lost = cfg->lost,
        .failing = cfg->failing,
        .on_change = on_change,
    };
    struct kr_audit_log *a;

    *out = NULL;
    if (o->log == NULL)
        return 0;
    a = calloc(1, sizeof *a);
    if (a == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    a->options = o;
    a->log = cfg->log;
    chained.owner = a;
    a->lines = kr_chained_log_open(&chained, why);
    if (a->lines == NULL) {
        free(a);
        return kr_note_wrap(why, KR_EIO, "auditLog");
    }
    *out = a;
    return 0;
}

void kr_audit_log_close(struct kr_audit_log *a)
{
    if (a == NULL)
        return;
    kr_chained_log_close(a->lines);
    free(a);
}

void kr_audit_log_reopen(struct kr_audit_log *a)
{
    struct kr_note why = {""};

    if (a != NULL && kr_chained_log_reopen(a->lines, &why) != 0)
        KR_LOG_AT(a->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "the audit log goes on in the old file"));
}

int kr_audit_log_put(struct kr_audit_log *a, struct kr_buf *line)
{
    int rc = a != NULL ? kr_chained_log_put(a->lines, line) : 0;

    kr_buf_deinit(line);
    return rc;
}

bool kr_audit_log_allows(const struct kr_audit_log *a, int rc)
{
    return a == NULL || !is_strict(a) || (rc == 0 && kr_chained_log_ok(a->lines));
}
