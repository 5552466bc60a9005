/* SPDX-License-Identifier: Apache-2.0 */
/* reflector_parts: what the files of reflector.h call of each other. For them only. */
#ifndef AGENT_REFLECTOR_PARTS_H
#define AGENT_REFLECTOR_PARTS_H

#include "agent/reflector.h"

/* reflector.c */
void agent_rf_next(struct agent_reflector *r);
void agent_rf_ask(struct agent_reflector *r, enum agent_reflector_state state);
/* A list is due; `reason` for the metrics. */
void agent_rf_relist(struct agent_reflector *r, const char *reason);
void agent_rf_wait_ms(struct agent_reflector *r, int64_t ms);
int64_t agent_rf_backoff(struct agent_reflector *r);
void agent_rf_tell(struct agent_reflector *r, enum kr_sync_problem problem, const char *text);
void agent_rf_settled(struct agent_reflector *r);
void agent_rf_failed(struct agent_reflector *r, const char *why);
void agent_rf_stall(struct agent_reflector *r);
void agent_rf_leave_place(struct agent_reflector *r);
void agent_rf_take(struct kr_buf *to, struct kr_bytes version);
bool agent_rf_runs_backwards(const struct agent_reflector *r, struct kr_bytes now);

/* reflector_read.c */
void agent_rf_on_head(void *user, const struct kr_head *head);
void agent_rf_on_body(void *user, struct kr_bytes in);
/* A list is whole. False: the owner wants something else now. */
bool agent_rf_list_ended(struct agent_reflector *r, struct kr_bytes version);
void agent_rf_break_off(struct agent_reflector *r);

/* reflector_end.c */
void agent_rf_on_done(void *user, int rc, const char *why);
/* What was read (r->end, or the code) made us stop reading. */
void agent_rf_broke_off(struct agent_reflector *r, int rc);
void agent_rf_on_round(struct agent_catalog_listener *l, bool ok);

#endif
