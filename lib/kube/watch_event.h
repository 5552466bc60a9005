/* SPDX-License-Identifier: Apache-2.0 */
/* watch_event: the events of a watch in JSON, one a line: {"type":..,"object":..}.
 * A watch asked for as Table has one row an event; the columns come with the first one.
 * Rules:  apimachinery pkg/watch, apiserver endpoints/handlers/response.go (Table),
 *         KEP-3157 (the bookmark with annotation k8s.io/initial-events-end).
 * Memory: the reader holds one line that spans chunks, at most line_max (beyond it the line is
 *         skipped: on_skipped); spans of an event borrow the line. Pure.
 * Errors: KR_EPROTO with the reason, KR_ENOMEM, or what on_event returned; it sticks. */
#ifndef KR_KUBE_WATCH_EVENT_H
#define KR_KUBE_WATCH_EVENT_H

#include "kube/json_scan.h"

enum kr_event_type {
    KR_EVENT_ADDED,
    KR_EVENT_MODIFIED,
    KR_EVENT_DELETED,
    KR_EVENT_BOOKMARK,
    KR_EVENT_ERROR,
};

struct kr_watch_event {
    enum kr_event_type type;
    struct kr_bytes object;  /* the object itself, not the Table around it; of an ERROR the Status;
                                empty for a bookmark that came as Table without rows */
    struct kr_bytes cells;   /* of a Table's row; else empty */
    struct kr_bytes columns; /* columnDefinitions, if they came with this event; else empty */
    struct kr_bytes version; /* metadata.resourceVersion of the object (or of the Table for a
                                bookmark); plain text; empty if there is none */
    bool initial_end;        /* the bookmark that ends the initial events */
    int code;                /* ERROR: of the Status; 0 if it has none */
    struct kr_bytes reason;  /* ERROR */
    struct kr_bytes message; /* ERROR, as it stands (escaped) */
    int64_t retry_after_s;   /* ERROR: details.retryAfterSeconds, 0 if there is none */
};

/* The line is one JSON object, with `type` and `object` once. What is in the object of ADDED and
 * MODIFIED is framed only (kr_slim checks what it keeps); lines of other types are checked as a
 * whole, since nobody looks at them again. Cells and columns are checked. KR_ETOOBIG: too deep. */
int kr_watch_event_read(struct kr_bytes line, struct kr_watch_event *out, struct kr_note *why);

struct kr_event_reader_ops {
    int (*on_line)(void *user, struct kr_bytes line); /* lent; without its newline; never empty */
    void (*on_skipped)(void *user, uint64_t n);       /* a line longer than line_max */
};

struct kr_event_reader { /* embed it; the fields belong to event_reader.c */
    const struct kr_event_reader_ops *ops;
    void *user;
    struct kr_buf line;
    size_t line_max;
    uint64_t skipping; /* bytes of a line that is too long so far */
    int failed;
};

void kr_event_reader_init(struct kr_event_reader *r, const struct kr_event_reader_ops *ops,
                          void *user, size_t line_max);
void kr_event_reader_deinit(struct kr_event_reader *r);
/* "\r\n" ends a line too; a line without an end is never handed over. */
int kr_event_reader_feed(struct kr_event_reader *r, struct kr_bytes in);

#endif
