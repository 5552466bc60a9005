/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a fleet file. What loads answers questions; a "*" never means Secrets. */
#include "base/assert.h"
#include "base/err.h"
#include "hub/fleet_config.h"

static void ask(struct hub_fleet_config *f, const char *user, const char *group,
                const char *resource)
{
    struct kr_bytes groups[] = {KR_LIT("ops")};
    struct hub_reader who = {kr_bytes_str(user), groups, 1};
    struct hub_shelf shelf = {.cluster = "edge-1"};
    bool nothing;
    struct hub_reader_sight *s =
        hub_fleet_sight(f, &who, kr_bytes_str(group), kr_bytes_str(resource), &nothing);

    if (s == NULL)
        return;
    if (hub_reader_sight_ops(s)->cluster(hub_reader_sight_ops(s), &shelf) == 2)
        hub_reader_sight_ops(s)->ns(hub_reader_sight_ops(s), &shelf, KR_LIT("shop"));
    KR_ASSERT(hub_fleet_may_see_cluster(f, &who, "edge-1") ||
              hub_reader_sight_ops(s)->cluster(hub_reader_sight_ops(s), &shelf) == 0);
    hub_reader_sight_destroy(s);
}

static void look(struct hub_fleet_config *f)
{
    const struct hub_profile *p = hub_fleet_profile(f, "edge-1", KR_LIT(""), KR_LIT("secrets"));
    bool named = false;

    for (size_t i = 0; p != NULL && i < p->resources.n; i++)
        named = named || kr_bytes_is(KR_LIT("secrets"), p->resources.v[i]);
    KR_ASSERT(p == NULL || named);
    hub_fleet_profile(f, "edge-2", KR_LIT("apps"), KR_LIT("deployments"));
    hub_fleet_may_sync(f, KR_LIT(""), KR_LIT("pods"));
    ask(f, "alice", "", "pods");
    ask(f, "bob", "", "secrets");
    ask(f, "eve", "apps", "deployments");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct hub_fleet_config *f;
    struct kr_note why = {""};
    int rc;

    if (n > 65536)
        return 0;
    rc = hub_fleet_config_parse(&f, "fuzz.yaml", kr_bytes_of(data, n), &why);
    KR_ASSERT((rc == 0) == (f != NULL));
    KR_ASSERT(rc == 0 || why.text[0] != '\0');
    if (rc == 0)
        look(f);
    hub_fleet_config_destroy(f);
    return 0;
}
