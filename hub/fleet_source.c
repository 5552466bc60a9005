/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/fleet_source.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "hub/access.h"
#include "hub/file_mark.h"
#include "hub/fleet.h"
#include "hub/fleet_config.h"
#include "hub/options.h"
#include "hub/projects.h"
#include "hub/subscriptions.h"

#define LOOK_MS 2000

struct hub_fleet_source {
    struct hub_worker *w;
    struct kr_timer look;
    struct hub_file_mark mark;
};

static void use(struct hub_worker *w, struct hub_fleet_config *config)
{
    struct hub_fleet_config *old = w->fleet_config;

    w->fleet_config = config;
    if (w->subscriptions != NULL)
        hub_subscriptions_reload(w->subscriptions, config);
    if (w->fleet != NULL)
        hub_fleet_reload(w->fleet);
    hub_access_look_again(w);
    hub_fleet_config_destroy(old);
}

/* Where open is what holds without a project, a file that was cut short or emptied while it was
 * written would open every cluster to everybody who is known. Who wants that restarts the hub. */
static int check_stays_closed(const struct hub_worker *w, const struct hub_fleet_config *config,
                              struct kr_note *why)
{
    if (w->options->authorization == HUB_AUTHORIZATION_PROJECTS ||
        !hub_projects_any(w->fleet_config) || hub_projects_any(config))
        return 0;
    return kr_note_set(why, KR_EDENIED,
                       "%s: no project is left, which would open every cluster (to have that, "
                       "restart the hub; to have nobody in, set authorization: projects)",
                       w->options->fleet_file);
}

static int load(const struct hub_worker *w, struct hub_fleet_config **config, struct kr_note *why)
{
    int rc = hub_fleet_config_load(config, w->options->fleet_file, why);

    if (rc == 0)
        rc = check_stays_closed(w, *config, why);
    if (rc != 0)
        hub_fleet_config_destroy(*config);
    return rc;
}

void hub_fleet_source_reload(struct hub_fleet_source *s)
{
    const char *file = s->w->options->fleet_file;
    struct hub_fleet_config *config;
    struct kr_note why = {""};

    s->mark =
        hub_file_mark_of(file); /* before it is read: a change meanwhile is seen the next time */
    if (load(s->w, &config, &why) != 0) {
        KR_LOG_AT(s->w->log, KR_LOG_ERROR, "reload-failed", KR_S("reason", why.text),
                  KR_S("effect", "what was loaded before stays in use"));
        return;
    }
    use(s->w, config);
    KR_LOG_AT(s->w->log, KR_LOG_INFO, "reloaded", KR_S("fleet-file", file));
}

static void on_look(struct kr_timer *timer)
{
    struct hub_fleet_source *s = KR_CONTAINER_OF(timer, struct hub_fleet_source, look);
    struct hub_file_mark now = hub_file_mark_of(s->w->options->fleet_file);

    kr_timer_start(s->w->sched, &s->look, LOOK_MS);
    if (!hub_file_mark_same(&now, &s->mark))
        hub_fleet_source_reload(s);
}

struct hub_fleet_source *hub_fleet_source_create(struct hub_worker *w, struct kr_note *why)
{
    struct hub_fleet_source *s = calloc(1, sizeof *s);

    if (s == NULL) {
        kr_note_set(why, KR_ENOMEM, "out of memory");
        return NULL;
    }
    s->w = w;
    s->mark = hub_file_mark_of(w->options->fleet_file);
    kr_timer_init(&s->look, on_look);
    if (hub_fleet_config_load(&w->fleet_config, w->options->fleet_file, why) != 0) {
        kr_note_wrap(why, KR_EINVAL, "fleetFile");
        free(s);
        return NULL;
    }
    kr_timer_start(w->sched, &s->look, LOOK_MS);
    return s;
}

void hub_fleet_source_destroy(struct hub_fleet_source *s)
{
    if (s == NULL)
        return;
    kr_timer_stop(s->w->sched, &s->look);
    hub_fleet_config_destroy(s->w->fleet_config);
    s->w->fleet_config = NULL;
    free(s);
}
