/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_read: one list or watch of the fleet view: what is asked for, by whom, of which type, and
 * what that reader may see of it. fleet_list.c and fleet_watch.c serve it.
 * Life: hub_read_create takes the request; hub_read_end ends both. In between the exchange has the
 * read as its user.
 * Memory: texts live in the request's arena: the request's head may go. */
#ifndef HUB_FLEET_READ_H
#define HUB_FLEET_READ_H

#include "hub/fleet_answer.h"
#include "hub/fleet_config.h"
#include "hub/fleet_render.h"
#include "hub/fleet_state.h"
#include "hub/subscriptions.h"
#include "kube/list_options.h"

/* What the reader may see, by the configuration of the moment: a reload changes it under a walk. */
struct hub_read_sight {
    struct hub_sight ops;           /* first: what a walk is given points here */
    struct hub_reader_sight *inner; /* NULL: nothing any more */
};

struct hub_read {
    struct hub_fleet *f;
    struct hub_request *r;
    struct kr_exchange *ex;
    struct kr_list link; /* hub_fleet.reads */
    enum kr_form form;
    struct kr_list_options options;
    struct kr_label_selector labels; /* those of the options, and ?clusters= */
    struct kr_bytes ns;              /* empty: all */
    struct kr_bytes bound;           /* who and what, for continue tokens */
    struct hub_type *type;
    struct hub_kind kind;
    struct hub_reader who;
    struct hub_read_sight sight;
    struct hub_want want;
    bool wanting;
    bool ready; /* the want is: the type is complete, or is known not to be */
    struct kr_timer timer;
    uint64_t waited_ms;    /* for a version of the future */
    struct hub_list *list; /* one of the two, once it is served */
    struct hub_watch *watch;
};

/* Reads the request and wants its type. NULL: it was answered, and is gone. */
struct hub_read *hub_read_create(struct hub_fleet *f, struct hub_request *r);
/* The exchange is gone, or no longer the read's. */
void hub_read_end(struct hub_read *rd);
/* Answers instead of what was asked, and ends. */
void hub_read_refuse(struct hub_read *rd, int code, const char *reason, const char *message);
/* 504 with the cause by which clients know that they are ahead. */
void hub_read_too_large(struct hub_read *rd);
/* The configuration was read anew: what may be seen is looked up again. False: nothing. */
bool hub_read_look_again(struct hub_read *rd);

/* The head of an answer that streams: 200, JSON, perhaps packed (hub/gzip.h). With a warning if
 * clusters are missing. */
int hub_read_send_head(struct hub_read *rd, bool packed);
bool hub_read_is_table(const struct hub_read *rd);
bool hub_read_is_partial(const struct hub_read *rd);
const char *hub_read_meta_version(const struct hub_read *rd); /* v1 or v1beta1 of meta.k8s.io */
/* Who asks; Texts in the arena of the request. KR_ENOMEM. */
int hub_reader_of(struct hub_request *r, struct hub_reader *out);

#endif
