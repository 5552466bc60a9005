/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_paths.h"

#include <stdlib.h>

#include "base/err.h"
#include "hub/catalogs.h"
#include "hub/fleet_answer.h"
#include "hub/fleet_discovery.h"
#include "hub/fleet_read.h"
#include "hub/fleet_warning.h"

#define DOCUMENT_MAX (64u << 20)
#define SEGMENTS_MAX 4
#define JSON "application/json"
#define AGGREGATED "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define AGGREGATED_BETA "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
#define VERSION                                                                                    \
    "{\"major\":\"1\",\"minor\":\"30\",\"gitVersion\":\"v1.30.0+kuberelay-" KR_VERSION             \
    "\",\"platform\":\"linux\"}\n"

/* The path, cut at its slashes. */
struct segments {
    struct kr_bytes all[SEGMENTS_MAX];
    size_t n;
    bool too_many;
};

static void cut(struct kr_bytes path, struct segments *out)
{
    *out = (struct segments){.n = 0};
    while (path.n != 0) {
        size_t at = kr_bytes_find(path, '/');

        if (at != 0 && out->n == SEGMENTS_MAX)
            out->too_many = true;
        else if (at != 0)
            out->all[out->n++] = kr_bytes_of(path.p, at);
        path = kr_bytes_skip(path, at < path.n ? at + 1 : at);
    }
}

static bool is(const struct segments *s, size_t i, const char *text)
{
    return i < s->n && kr_bytes_is(s->all[i], text);
}

/* ---- what may be seen ---- */

/* The clusters that this reader may see. NULL: memory. */
static const char **visible_clusters(struct hub_request *r, size_t *n)
{
    struct hub_worker *w = r->w;
    const char **names = calloc(w->clusters.by_name.count + 1, sizeof *names);
    struct hub_reader who;
    const struct hub_cluster *c;
    size_t pos = 0;

    *n = 0;
    if (names == NULL || hub_reader_of(r, &who) != 0) {
        free(names);
        return NULL;
    }
    while ((c = kr_map_next(&w->clusters.by_name, &pos, NULL)) != NULL) {
        if (hub_fleet_may_see_cluster(w->fleet_config, &who, c->name))
            names[(*n)++] = c->name;
    }
    return names;
}

static bool anyone_serves(const struct hub_worker *w, const char *const *clusters, size_t n,
                          const struct kr_resource_type *t)
{
    for (size_t i = 0; i < n; i++) {
        if (hub_catalog_find(w->catalogs, clusters[i], t->group, t->version, t->resource) != NULL)
            return true;
    }
    return false;
}

/* NULL: memory. */
static const struct kr_resource_type **visible_types(struct hub_request *r, size_t *n)
{
    struct hub_worker *w = r->w;
    size_t all_n = 0;
    const struct kr_resource_type *all = hub_catalogs_union(w->catalogs, &all_n);
    const struct kr_resource_type **shown = calloc(all_n + 1, sizeof *shown);
    size_t cluster_n = 0;
    const char **clusters = visible_clusters(r, &cluster_n);

    *n = 0;
    if (shown == NULL || clusters == NULL) {
        free(shown);
        free(clusters);
        return NULL;
    }
    for (size_t i = 0; i < all_n; i++) {
        if (anyone_serves(w, clusters, cluster_n, &all[i]))
            shown[(*n)++] = &all[i];
    }
    free(clusters);
    return shown;
}

/* ---- discovery ---- */

static int write_old(struct kr_buf *out, const struct hub_shown_types *types,
                     const struct segments *s)
{
    bool core = is(s, 0, "api");

    if (s->n == 1)
        return core ? hub_discovery_versions(out, types) : hub_discovery_groups(out, types);
    if (core)
        return s->n == 2 ? hub_discovery_resources(out, types, KR_LIT(""), s->all[1]) : KR_ENOENT;
    if (s->n == 2)
        return hub_discovery_group(out, types, s->all[1]);
    return s->n == 3 ? hub_discovery_resources(out, types, s->all[1], s->all[2]) : KR_ENOENT;
}

static int write_discovery(struct kr_buf *out, const struct hub_shown_types *types,
                           const struct segments *s, int form)
{
    int rc;

    if (form == 0)
        rc = write_old(out, types, s);
    else
        rc = hub_discovery_aggregated(out, types, is(s, 0, "api"), form == 2);
    return rc != 0 ? rc : kr_buf_append_str(out, "\n");
}

/* What a reader may see of any type. */
struct wide_sight {
    struct hub_sight ops; /* first: what is given away points here */
    const struct hub_fleet_config *config;
    struct hub_reader who;
};

static int sees(const void *sight, const struct hub_shelf *shelf)
{
    const struct wide_sight *s = sight;

    return hub_fleet_may_see_cluster(s->config, &s->who, shelf->cluster);
}

/* Of a type that only a cluster has that has not told yet nothing must say that it is not there. */
static void find_untold(struct hub_request *r, struct hub_completeness *out)
{
    struct wide_sight sight = {.ops = {.cluster = sees}, .config = r->w->fleet_config};

    *out = (struct hub_completeness){.clusters = 0};
    if (hub_reader_of(r, &sight.who) == 0)
        hub_subscriptions_untold(r->w->subscriptions, &sight.ops, out);
}

static void refuse_discovery(struct hub_request *r, struct kr_exchange *ex, int rc,
                             const struct hub_completeness *untold)
{
    if (rc != KR_ENOENT)
        hub_fleet_refuse(r, ex, 500, "InternalError", "Internal error occurred: out of memory");
    else if (hub_fleet_is_incomplete(untold))
        hub_fleet_refuse(r, ex, 503, "ServiceUnavailable", HUB_FLEET_UNTOLD);
    else
        hub_fleet_refuse(r, ex, 404, "NotFound",
                         "the server could not find the requested resource");
}

static void discover(struct hub_request *r, struct kr_exchange *ex, const struct segments *s)
{
    struct kr_buf out = {.max = DOCUMENT_MAX};
    size_t n = 0;
    const struct kr_resource_type **shown = visible_types(r, &n);
    struct hub_shown_types types = {shown, n};
    static const char *const forms[] = {JSON, AGGREGATED, AGGREGATED_BETA};
    int form = kr_accept_discovery(kr_head_get(&ex->head, KR_LIT("accept")));
    struct hub_completeness untold;
    struct hub_document d = {.cached = true, .missing = &untold};
    int rc = KR_ENOMEM;

    find_untold(r, &untold);

    if (form > 0 && s->n > 1)
        form = 0; /* only the two roots have that form */
    if (shown != NULL && form >= 0)
        rc = write_discovery(&out, &types, s, form);
    if (rc == 0) {
        d.type = forms[form];
        d.body = kr_buf_bytes(&out);
    }
    if (form < 0)
        hub_fleet_refuse(r, ex, 406, "NotAcceptable",
                         "only the following media types are accepted: " JSON ", " AGGREGATED);
    else if (rc == 0)
        hub_fleet_document(r, ex, &d);
    else
        refuse_discovery(r, ex, rc, &untold);
    free(shown);
    kr_buf_deinit(&out);
}

/* ---- the rest ---- */

static void openapi(struct hub_request *r, struct kr_exchange *ex, const struct segments *s)
{
    const struct hub_document none = {
        .type = JSON, .body = KR_LIT("{\"paths\":{}}\n"), .cached = true};

    if (is(s, 1, "v3") && s->n == 2)
        hub_fleet_document(r, ex, &none);
    else
        hub_fleet_refuse(r, ex, 404, "NotFound",
                         "the fleet view has no schemas: ask a cluster, /clusters/NAME");
}

static bool is_health(const struct segments *s)
{
    return is(s, 0, "livez") || is(s, 0, "readyz") || is(s, 0, "healthz");
}

void hub_fleet_path(struct hub_request *r, struct kr_exchange *ex)
{
    const struct hub_document version = {.type = JSON, .body = KR_LIT(VERSION)};
    const struct hub_document healthy = {.type = "text/plain; charset=utf-8", .body = KR_LIT("ok")};
    struct segments s;

    cut(r->info.path, &s);
    if (s.too_many)
        s.n = 0;
    if (is(&s, 0, "api") || is(&s, 0, "apis"))
        discover(r, ex, &s);
    else if (is(&s, 0, "openapi"))
        openapi(r, ex, &s);
    else if (is(&s, 0, "version") && s.n == 1)
        hub_fleet_document(r, ex, &version);
    else if (is_health(&s))
        hub_fleet_document(r, ex, &healthy);
    else
        hub_fleet_refuse(r, ex, 405, "MethodNotAllowed",
                         "the fleet view serves discovery, list and watch; for anything else ask "
                         "a cluster, /clusters/NAME");
}
