/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/issuers.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/yaml_map.h"
#include "certs/store_file.h"

#define FILE_MAX (1u << 20)
#define ARENA_MAX (16u << 20)

struct raw {
    struct hub_issuer i;
    const char *username_prefix;
    const char *groups_prefix;
    struct kr_names algorithms;
};

struct document {
    const struct kr_yaml_node *issuers;
};

static bool is_alg(struct kr_bytes v)
{
    return kr_bytes_is(v, "RS256") || kr_bytes_is(v, "ES256");
}

static bool is_https(struct kr_bytes v)
{
    return kr_bytes_starts(v, KR_LIT("https://")) && v.n > 8;
}

#define AT(member) offsetof(struct raw, member)

static const struct kr_yaml_field fields[] = {
    {"url", KR_YAML_TEXT, AT(i.url), is_https},
    {"audiences", KR_YAML_STRINGS, AT(i.audiences), NULL},
    {"jwksFile", KR_YAML_TEXT, AT(i.jwks_file), NULL},
    {"jwksUrl", KR_YAML_TEXT, AT(i.jwks_url), is_https},
    {"caFile", KR_YAML_TEXT, AT(i.ca_file), NULL},
    {"usernameClaim", KR_YAML_TEXT, AT(i.claims.username_claim), NULL},
    {"usernamePrefix", KR_YAML_TEXT, AT(username_prefix), NULL},
    {"groupsClaim", KR_YAML_TEXT, AT(i.claims.groups_claim), NULL},
    {"groupsPrefix", KR_YAML_TEXT, AT(groups_prefix), NULL},
    {"algorithms", KR_YAML_NAMES, AT(algorithms), is_alg},
};

static const struct kr_yaml_field document_fields[] = {
    {"issuers", KR_YAML_NODE, offsetof(struct document, issuers), NULL},
};

/* Users of two issuers must not be mistaken for one another: what kube-apiserver puts in front. */
static const char *prefix_of(struct kr_yaml_reader *r, const char *given, const char *url)
{
    size_t n = strlen(url);
    char *made;

    if (given != NULL)
        return strcmp(given, "-") == 0 ? "" : given;
    made = kr_arena_alloc(r->arena, n + 2);
    if (made != NULL) {
        memcpy(made, url, n);
        memcpy(made + n, "#", 2);
    }
    return made;
}

static int check(struct kr_yaml_reader *r, const struct kr_yaml_node *node, const struct raw *raw)
{
    const struct hub_issuer *i = &raw->i;

    if (i->url == NULL || i->audiences.n == 0)
        return kr_yaml_fault(r, node, "issuers: url and audiences are needed");
    if ((i->jwks_file != NULL) == (i->jwks_url != NULL))
        return kr_yaml_fault(r, node, "issuers: give one of jwksFile and jwksUrl");
    if ((i->jwks_url != NULL) != (i->ca_file != NULL))
        return kr_yaml_fault(r, node, "issuers: caFile goes with jwksUrl");
    return 0;
}

static int read_issuer(struct kr_yaml_reader *r, const struct kr_yaml_node *node,
                       struct hub_issuers *s)
{
    struct raw raw = {.i.claims.username_claim = "sub"};
    struct hub_issuer *i = &raw.i;
    int rc = kr_yaml_map_read(r, "issuers", node, fields, sizeof fields / sizeof fields[0], &raw);

    if (rc == 0)
        rc = check(r, node, &raw);
    if (rc == 0 && hub_issuers_find(s, kr_bytes_str(i->url)) != NULL)
        rc = kr_yaml_fault(r, node, "issuers: %.80s is there already", i->url);
    if (rc != 0)
        return rc;
    i->claims.username_prefix = prefix_of(r, raw.username_prefix, i->url);
    i->claims.groups_prefix = prefix_of(r, raw.groups_prefix, i->url);
    if (i->claims.username_prefix == NULL || i->claims.groups_prefix == NULL)
        return kr_note_set(r->why, KR_ENOMEM, "out of memory");
    if (raw.algorithms.in.n == 0 || kr_names_have(&raw.algorithms, KR_LIT("RS256")))
        i->algs |= KR_JWT_RS256;
    if (raw.algorithms.in.n == 0 || kr_names_have(&raw.algorithms, KR_LIT("ES256")))
        i->algs |= KR_JWT_ES256;
    s->all[s->n++] = *i;
    return 0;
}

static int read_all(struct kr_yaml_reader *r, struct hub_issuers *s)
{
    struct document d = {NULL};
    const struct kr_yaml_node *root = kr_yaml_root(r->doc);
    size_t n = 0;
    int rc = 0;

    if (root != NULL)
        rc = kr_yaml_map_read(r, "the file", root, document_fields, 1, &d);
    if (rc == 0 && d.issuers != NULL)
        rc = kr_yaml_list_length(r, "issuers", d.issuers, &n);
    if (rc == 0 && n > HUB_ISSUERS_MAX)
        rc = kr_yaml_fault(r, d.issuers, "issuers: more than %d", HUB_ISSUERS_MAX);
    if (rc != 0)
        return rc;
    s->all = kr_arena_alloc(r->arena, (n + 1) * sizeof *s->all);
    if (s->all == NULL)
        return kr_note_set(r->why, KR_ENOMEM, "out of memory");
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_issuer(r, kr_yaml_at(r->doc, d.issuers, i), s);
    return rc;
}

int hub_issuers_parse(struct hub_issuers **out, const char *name, struct kr_bytes text,
                      struct kr_note *why)
{
    struct hub_issuers *s = calloc(1, sizeof *s);
    struct kr_yaml_reader r = {.file = name, .why = why};
    struct kr_note cause = {""};
    int rc;

    *out = NULL;
    if (s == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    kr_arena_init(&s->arena, 4096, ARENA_MAX);
    r.arena = &s->arena;
    rc = kr_yaml_parse(text, &r.doc, &cause);
    if (rc != 0) {
        kr_note_set(why, rc, "%.80s: %.120s", name, cause.text);
    } else {
        rc = read_all(&r, s);
        kr_yaml_destroy(r.doc);
    }
    if (rc != 0)
        hub_issuers_destroy(s);
    else
        *out = s;
    return rc;
}

int hub_issuers_load(struct hub_issuers **out, const char *file, struct kr_note *why)
{
    struct kr_buf text = {.max = FILE_MAX};
    int rc = kr_file_read(&text, file, FILE_MAX, why);

    *out = NULL;
    if (rc == 0)
        rc = hub_issuers_parse(out, file, kr_buf_bytes(&text), why);
    for (size_t i = 0; rc == 0 && i < (*out)->n; i++) {
        if ((*out)->all[i].jwks_file != NULL)
            rc = hub_issuer_read_keys(&(*out)->all[i], why);
    }
    if (rc != 0) {
        hub_issuers_destroy(*out);
        *out = NULL;
    }
    kr_buf_deinit(&text);
    return rc;
}
