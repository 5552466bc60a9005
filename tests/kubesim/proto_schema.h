/* SPDX-License-Identifier: Apache-2.0 */
/* proto_schema: bodies in Kubernetes' protocol buffers form as JSON trees. Typed clients (kubectl
 * create, client-go) send them. Known are the messages of the table in proto_schema.c; a field
 * that is not in it is left out. Answers are always JSON: such clients accept that too. */
#ifndef SIM_PROTO_SCHEMA_H
#define SIM_PROTO_SCHEMA_H

#include "json.h"

/* Whether a body has the form: "k8s\0", then runtime.Unknown. */
bool sim_proto_is_body(struct kr_bytes body);
/* The object in it, with its kind and apiVersion; NULL if it is malformed or of no known kind. */
struct json_object *sim_proto_object(struct kr_bytes body);

#endif
