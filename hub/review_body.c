/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/review_body.h"

#include "base/err.h"
#include "base/json.h"
#include "kube/proto_body.h"
#include "wire/proto_read.h"

#define MAGIC_BYTES 4
#define TEXT_MAX 4096
#define NAMES_MAX 8

enum { UNKNOWN_RAW = 2, REVIEW_SPEC = 2, SPEC_RESOURCE = 1, SPEC_OTHER = 2 };

/* By number of the field, from 1 on. */
static const char *const resource_names[NAMES_MAX] = {
    NULL, "namespace", "verb", "group", "version", "resource", "subresource", "name"};
static const char *const rules_names[NAMES_MAX] = {NULL, "namespace"};
static const char *const other_names[NAMES_MAX] = {NULL, "path", "verb"};

/* The one field `number`, a message; *out is {NULL, 0} if it is not there. Twice would be one
 * message of two parts, which nobody writes. */
static int find(struct kr_bytes in, uint32_t number, struct kr_bytes *out)
{
    *out = (struct kr_bytes){NULL, 0};
    while (in.n != 0) {
        struct kr_proto_field f;

        if (kr_proto_next(&in, &f) != 0)
            return KR_EPROTO;
        if (f.number != number)
            continue;
        if (f.type != KR_PROTO_BYTES || out->p != NULL)
            return KR_EPROTO;
        *out = f.bytes;
    }
    return 0;
}

static int put_texts(struct kr_json_out *o, const char *const names[NAMES_MAX], struct kr_bytes in)
{
    while (in.n != 0) {
        struct kr_proto_field f;
        struct kr_bytes text;

        if (kr_proto_next(&in, &f) != 0)
            return KR_EPROTO;
        if (f.number >= NAMES_MAX || names[f.number] == NULL)
            continue;
        if (kr_proto_text(&f, TEXT_MAX, &text, names[f.number], NULL) != 0)
            return KR_EPROTO;
        kr_json_out_string(o, names[f.number], text);
    }
    return o->rc;
}

static int put_attributes(struct kr_json_out *o, struct kr_bytes spec, uint32_t number,
                          const char *name, const char *const names[NAMES_MAX])
{
    struct kr_bytes attributes;
    int rc = find(spec, number, &attributes);

    if (rc != 0 || attributes.p == NULL)
        return rc;
    kr_json_out_object(o, name);
    rc = put_texts(o, names, attributes);
    kr_json_out_end(o);
    return rc;
}

static int find_spec(struct kr_bytes body, struct kr_bytes *spec)
{
    struct kr_bytes raw;
    int rc = kr_proto_body_is(body) ? 0 : KR_EPROTO;

    if (rc == 0)
        rc = find(kr_bytes_skip(body, MAGIC_BYTES), UNKNOWN_RAW, &raw);
    if (rc == 0)
        rc = find(raw, REVIEW_SPEC, spec);
    return rc != 0 || spec->p == NULL ? KR_EPROTO : 0;
}

int hub_rules_body_to_json(struct kr_bytes body, struct kr_buf *json)
{
    struct kr_bytes spec;
    struct kr_json_out o;
    int rc = find_spec(body, &spec);

    if (rc != 0)
        return rc;
    kr_json_out_init(&o, json);
    kr_json_out_object(&o, NULL);
    kr_json_out_object(&o, "spec");
    rc = put_texts(&o, rules_names, spec);
    kr_json_out_end(&o);
    kr_json_out_end(&o);
    return rc == 0 ? o.rc : rc;
}

int hub_review_body_to_json(struct kr_bytes body, struct kr_buf *json)
{
    struct kr_bytes spec;
    struct kr_json_out o;
    int rc = find_spec(body, &spec);

    if (rc != 0)
        return rc;
    kr_json_out_init(&o, json);
    kr_json_out_object(&o, NULL);
    kr_json_out_object(&o, "spec");
    rc = put_attributes(&o, spec, SPEC_RESOURCE, "resourceAttributes", resource_names);
    if (rc == 0)
        rc = put_attributes(&o, spec, SPEC_OTHER, "nonResourceAttributes", other_names);
    kr_json_out_end(&o);
    kr_json_out_end(&o);
    return rc == 0 ? o.rc : rc;
}
