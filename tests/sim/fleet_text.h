/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_text: what an API server writes around objects: lists, events, Status, discovery. */
#ifndef SIM_FLEET_TEXT_H
#define SIM_FLEET_TEXT_H

#include "fleet_source.h"

enum include { INCLUDE_NONE, INCLUDE_METADATA, INCLUDE_OBJECT };

struct writing { /* how one answer is written */
    unsigned type;
    bool table;
    enum include include;
    bool columns_sent; /* of a watch */
};

void text_list_begin(struct kr_buf *out, const struct writing *w, uint64_t version,
                     const char *cont);
void text_list_item(struct kr_buf *out, const struct writing *w, const struct thing *t,
                    unsigned index, bool first);
void text_list_end(struct kr_buf *out);
void text_event(struct kr_buf *out, struct writing *w, const char *word, const struct thing *t,
                unsigned index);
void text_bookmark(struct kr_buf *out, const struct writing *w, uint64_t version, bool initial_end);
void text_status(struct kr_buf *out, int code, const char *reason, const char *cause);
void text_error(struct kr_buf *out, int code, const char *reason);
/* A document of discovery at a path. False: there is none. */
bool text_discovery(struct kr_buf *out, const struct source *s, struct kr_bytes path);

#endif
