/* SPDX-License-Identifier: Apache-2.0 */
/* list_scan: takes a Kubernetes list apart while it arrives: each element of `items` (any List) or
 * `rows` (a Table) is handed over as soon as it is whole, and forgotten. It resumes at every byte,
 * so chunks may end anywhere; an element that lies in one chunk is not copied.
 * Memory: one element that spans chunks, at most item_max; larger ones are skipped (on_skipped) and
 *         the list goes on. `head` values at most 64 KiB, `columns` at most 256 KiB.
 * Errors: KR_EPROTO (no list, malformed, cut), KR_ETOOBIG, KR_ENOMEM, or what on_item returned; the
 *         first one sticks. A body that ends early is an error of kr_list_scan_end, never a short
 *         list. `items: null` is an empty list. Pure. */
#ifndef KR_KUBE_LIST_SCAN_H
#define KR_KUBE_LIST_SCAN_H

#include "kube/json_scan.h"

struct kr_list_scan_ops {
    /* One element, lent for the call. It begins and ends where it should, but what is in it was not
     * checked: kr_row_read does it for cells, kr_slim for what it keeps. Non-zero stops the scan.
     */
    int (*on_item)(void *user, struct kr_bytes item);
    /* One that is larger than item_max (n bytes) or deeper than KR_SCAN_DEPTH_MAX. */
    void (*on_skipped)(void *user, uint64_t n);
};

struct kr_list_scan { /* embed it; read what is said to be readable after kr_list_scan_end */
    const struct kr_list_scan_ops *ops;
    void *user;
    struct kr_buf version; /* metadata.resourceVersion, decoded; readable */
    struct kr_buf cont;    /* metadata.continue, decoded; readable */
    struct kr_buf kind;    /* "PodList", "Table", "Status", ...; readable */
    struct kr_buf columns; /* columnDefinitions of a Table, as it stands; readable, also within
                              on_item if it stood before the rows */
    uint64_t items;        /* elements handed over or skipped; readable */
    size_t item_max;
    struct kr_list_scan_state *state; /* the rest belongs to list_scan.c */
};

int kr_list_scan_init(struct kr_list_scan *s, const struct kr_list_scan_ops *ops, void *user,
                      size_t item_max);
void kr_list_scan_deinit(struct kr_list_scan *s); /* zeroed is fine */
int kr_list_scan_feed(struct kr_list_scan *s, struct kr_bytes in);
int kr_list_scan_end(struct kr_list_scan *s, struct kr_note *why);

/* A row of a Table: {"cells":[..],"object":{..}}; empty spans for what is missing. The cells are
 * checked, the object is not. KR_EPROTO, KR_ETOOBIG (depth). */
int kr_row_read(struct kr_bytes row, struct kr_bytes *cells, struct kr_bytes *object);

#endif
