/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_source: an API server as a model: objects of two types with a history; and what a profile
 * leaves of an object, which is what the hub must come to show. */
#ifndef SIM_FLEET_SOURCE_H
#define SIM_FLEET_SOURCE_H

#include "base/buf.h"
#include "base/rand.h"

enum { TYPES = 2, THINGS = 30, SNAPSHOTS = 8, NAMESPACES = 3, APPS = 3 };

enum { PODS, WIDGETS }; /* in namespaces; of a cluster as a whole, and a custom type */

struct thing { /* ordered by namespace and name, as its index is */
    bool there;
    bool running;
    char app;
    uint64_t uid;
    uint64_t version;
    unsigned image;
    unsigned note;
    unsigned noise; /* of what no profile keeps */
    unsigned pad;
};

/* What identifies an object and its content, wherever it is read: what is compared. */
struct facts {
    char uid[24];
    char app;
    bool running;
    uint64_t meta;  /* hash of what is in its metadata */
    uint64_t whole; /* the same with spec and status */
};

struct api_type {
    const char *group;
    const char *resource;
    const char *kind;
    const char *api_version;
    const char *path; /* of its version: api/v1 */
    bool namespaced;
};
extern const struct api_type api_types[TYPES];

/* A profile. Selectors are those that the model knows (source_selects). */
struct shape {
    unsigned type;
    const char *labels;
    const char *fields;
    const char *namespaces; /* in YAML */
    unsigned ns_mask;       /* 0: all */
    bool image_only;        /* keep: [spec.image] */
    bool no_status;         /* drop: [status] */
    bool metadata_only;
    bool always;
    bool first_only; /* of the first cluster; the others have the default */
};
extern const struct shape shapes[];
extern const size_t shape_count;

struct change {
    uint64_t version;
    unsigned type;
    unsigned index;
    struct thing before;
    struct thing after;
};

struct snapshot { /* what a continue token speaks of */
    uint64_t version;
    unsigned type;
    struct thing things[THINGS];
};

struct content { /* what a backup has */
    struct thing things[TYPES][THINGS];
    bool served[TYPES];
    uint64_t version;
};

struct source {
    struct content now;
    struct content backup;
    struct snapshot pages[SNAPSHOTS];
    size_t page_next;
    struct change *history;
    size_t n;
    size_t cap;
    uint64_t compacted; /* older versions are 410 */
    uint64_t uids;
    unsigned epoch;   /* restores: what runs from before is of another history */
    unsigned toggles; /* of types, so far: watches of them do not survive one */
    bool frozen;      /* restored: versions that were used before must not come again unnoticed */
    bool tables;      /* it makes Tables */
    bool streams;     /* it knows WatchList */
    bool aggregated;  /* discovery in one document */
    bool as_event;    /* 410 of a watch comes as an event, not as a status */
    bool waits; /* it keeps who asks for a version of the future waiting, rather than refuse */
    unsigned page;
    bool left[TYPES][THINGS]; /* since the last quiet point it was gone, or not selected */
};

void source_init(struct source *s, struct kr_rand *rand);
void source_deinit(struct source *s);
/* Something happens to one object. Returns which type it is of. */
unsigned source_change(struct source *s, struct kr_rand *rand);
void source_compact(struct source *s);
/* From the backup. `bump`: as the tools advise, to versions that never were. */
void source_restore(struct source *s, bool bump);
/* The type goes, with its objects, or comes back. */
void source_toggle(struct source *s, unsigned type);

/* Selectors as requests have them; false and *known false: the model does not know it. */
bool source_selects(const struct thing *t, unsigned index, struct kr_bytes labels,
                    struct kr_bytes fields, bool *known);
/* Whether a profile selects it on that cluster. `s` NULL: the default. */
bool shape_selects(const struct shape *s, unsigned cluster, const struct thing *t, unsigned index);

enum form { FORM_WHOLE, FORM_METADATA };
void source_text(struct kr_buf *out, unsigned type, const struct thing *t, unsigned index,
                 enum form form);
/* What the profile leaves of it. */
void shape_text(struct kr_buf *out, const struct shape *s, unsigned cluster, const struct thing *t,
                unsigned index, unsigned type);
void source_name(unsigned type, unsigned index, char ns[8], char name[8]);
/* Of an object's checked JSON, whoever wrote it. False: it is none of ours. */
bool facts_read(struct kr_bytes object, struct facts *out, unsigned type, unsigned *index);

#endif
