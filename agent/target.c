/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/target.h"

#include <stdlib.h>

#include "base/err.h"

#define WORD_MAX 253

static bool is_word_byte(uint8_t c, bool dots)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (dots && c == '.');
}

static bool is_word(struct kr_bytes b, bool dots)
{
    for (size_t i = 0; i < b.n; i++) {
        if (!is_word_byte(b.p[i], dots))
            return false;
    }
    return b.n != 0 && b.n <= WORD_MAX && b.p[0] != '.' && b.p[0] != '-';
}

static int check(const struct agent_target_spec *s, struct kr_note *why)
{
    if (s->group.n != 0 && !is_word(s->group, true))
        return kr_note_set(why, KR_EINVAL, "no name of an API group");
    if (!is_word(s->version, false))
        return kr_note_set(why, KR_EINVAL, "no name of an API version");
    if (!is_word(s->resource, false))
        return kr_note_set(why, KR_EINVAL, "no name of a resource");
    if (s->ns.n != 0 && !kr_is_dns_label(s->ns))
        return kr_note_set(why, KR_EINVAL, "no name of a namespace");
    return 0;
}

static char *join_name(const struct agent_target_spec *s)
{
    struct kr_buf b = {.max = 3 * WORD_MAX};
    int rc = kr_buf_append(&b, s->resource);
    char *name;

    if (rc == 0 && s->group.n != 0)
        rc = kr_buf_append_str(&b, ".");
    if (rc == 0)
        rc = kr_buf_append(&b, s->group);
    name = rc == 0 ? kr_bytes_dup(kr_buf_bytes(&b)) : NULL;
    kr_buf_deinit(&b);
    return name;
}

int agent_target_init(struct agent_target *t, const struct agent_target_spec *spec,
                      struct kr_note *why)
{
    int rc = check(spec, why);

    *t = (struct agent_target){0};
    if (rc != 0)
        return rc;
    t->group = kr_bytes_dup(spec->group);
    t->version = kr_bytes_dup(spec->version);
    t->resource = kr_bytes_dup(spec->resource);
    t->ns = kr_bytes_dup(spec->ns);
    t->labels = kr_bytes_dup(spec->label_selector);
    t->fields = kr_bytes_dup(spec->field_selector);
    t->name = join_name(spec);
    if (t->group != NULL && t->version != NULL && t->resource != NULL && t->ns != NULL &&
        t->labels != NULL && t->fields != NULL && t->name != NULL)
        return 0;
    agent_target_deinit(t);
    return kr_note_set(why, KR_ENOMEM, "out of memory");
}

void agent_target_deinit(struct agent_target *t)
{
    free(t->group);
    free(t->version);
    free(t->resource);
    free(t->ns);
    free(t->labels);
    free(t->fields);
    free(t->name);
    *t = (struct agent_target){0};
}

int agent_path_param(struct kr_buf *out, const char *name, struct kr_bytes value)
{
    int rc = kr_buf_printf(out, "%s=", name);

    for (size_t i = 0; i < value.n && rc == 0; i++) {
        uint8_t c = value.p[i];
        bool plain = is_word_byte(c, true) || (c >= 'A' && c <= 'Z') || c == '_' || c == '~';

        rc = kr_buf_printf(out, plain ? "%c" : "%%%02X", c);
    }
    return rc == 0 ? kr_buf_append_str(out, "&") : rc;
}

int agent_target_path(const struct agent_target *t, struct kr_buf *out)
{
    int rc = t->group[0] == '\0' ? kr_buf_printf(out, "/api/%s/", t->version)
                                 : kr_buf_printf(out, "/apis/%s/%s/", t->group, t->version);

    if (rc == 0 && t->ns[0] != '\0')
        rc = kr_buf_printf(out, "namespaces/%s/", t->ns);
    if (rc == 0)
        rc = kr_buf_printf(out, "%s?", t->resource);
    if (rc == 0 && t->labels[0] != '\0')
        rc = agent_path_param(out, "labelSelector", kr_bytes_str(t->labels));
    if (rc == 0 && t->fields[0] != '\0')
        rc = agent_path_param(out, "fieldSelector", kr_bytes_str(t->fields));
    return rc;
}
