/* SPDX-License-Identifier: Apache-2.0 */
/* chained_log: lines of JSON in a file (base/line_file.h), each with the SHA-256 of the line before
 * it, so that a line that was taken out or changed shows. The chain goes on over rotated files and
 * over a restart; the first line of all has 64 zeros.
 * Failing: while lines cannot be written the log tries again four times a second and says when
 *         that changes.
 * Memory: see line_file.h. Threads: the owner's. */
#ifndef KR_CERTS_CHAINED_LOG_H
#define KR_CERTS_CHAINED_LOG_H

#include "base/line_file.h"
#include "base/metrics.h"
#include "base/sched.h"

struct kr_chained_log;

struct kr_chained_config {
    struct kr_line_file_config file;
    struct kr_sched *sched;
    struct kr_metric *lines; /* that were taken */
    struct kr_metric *lost;  /* that were not */
    struct kr_metric *failing;
    /* `error` is an errno, 0 when nobody reads. */
    void (*on_change)(void *owner, bool failing, int error);
    void *owner;
};

struct kr_chained_log *kr_chained_log_open(const struct kr_chained_config *cfg,
                                           struct kr_note *why);
void kr_chained_log_close(struct kr_chained_log *l); /* NULL is fine */
/* `line` is an object whose last member is an object that is still open and not empty: the hash
 * goes there, and both are closed. KR_EFULL: the line is lost. */
int kr_chained_log_put(struct kr_chained_log *l, struct kr_buf *line);
bool kr_chained_log_ok(const struct kr_chained_log *l);
int kr_chained_log_reopen(struct kr_chained_log *l, struct kr_note *why);

#endif
