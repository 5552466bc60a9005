/* SPDX-License-Identifier: Apache-2.0 */
/* openapi: small OpenAPI documents made from the table of kinds: which paths exist, that PATCH
 * takes dryRun and fieldValidation, and the first two levels of each kind's fields. kubectl finds
 * here what it asks for before apply and explain; the rest it knows by itself. */
#ifndef SIM_OPENAPI_H
#define SIM_OPENAPI_H

#include "api.h"

struct sim_field { /* a field of a kind, for explain */
    const char *name;
    const char *type; /* of JSON schema; "array" has objects as items */
    const char *text;
};

/* The fields of a kind beside apiVersion, kind and metadata, or of the kind's spec; ended by a
 * NULL name. */
const struct sim_field *sim_openapi_fields(const struct sim_kind *k);
const struct sim_field *sim_openapi_spec(const struct sim_kind *k);

/* "/api/v1/namespaces/{namespace}/pods/{name}". */
void sim_openapi_path(const struct sim_kind *k, char out[256]);
/* "io.k8s.api.core.v1.Pod". */
void sim_openapi_name(const struct sim_kind *k, char out[192]);
/* The v2 document in the protocol buffers form of gnostic's openapi_v2.Document. */
int sim_openapi_v2_proto(struct kr_buf *out);

#endif
