/* SPDX-License-Identifier: Apache-2.0 */
/* selector: label and field selectors of list and watch.
 * Grammar: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
 * Memory: owns copies of what it needs. */
#ifndef SIM_SELECTOR_H
#define SIM_SELECTOR_H

#include "json.h"
#include "kinds.h"

#define SIM_TERMS_MAX 32

enum sim_term_op { SIM_IN, SIM_NOT_IN, SIM_EXISTS, SIM_NOT_EXISTS, SIM_GREATER, SIM_LESS };

struct sim_term {
    enum sim_term_op op;
    bool field; /* key is a path into the object, else a label */
    char *key;
    char *values; /* each value followed by NUL, then an empty end mark of its own */
    size_t n_values;
};

struct sim_selector {
    struct sim_term terms[SIM_TERMS_MAX];
    size_t n;
};

/* Either text may be NULL. KR_EINVAL with the API server's words in `message`, or KR_ENOMEM. */
int sim_selector_parse(struct sim_selector *s, int kind, const char *labels, const char *fields,
                       char message[256]);
void sim_selector_deinit(struct sim_selector *s);
bool sim_selector_matches(const struct sim_selector *s, struct json_object *object);
/* The name that metadata.name=X asks for; NULL if the selector does not fix it. */
const char *sim_selector_name(const struct sim_selector *s);

#endif
