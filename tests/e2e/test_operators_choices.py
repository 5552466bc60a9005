# SPDX-License-Identifier: Apache-2.0
"""What an operator decides: who may act as whom, and how long a hub that stops is still of use."""

import signal

import pytest

from backends import FakeBackend
from clock import wait_until
from cluster_site import Site
from world import admin_get

PATH = "/api/v1/x"
RULES = ["user:alice=user:*", "group:ops=group:dev", "user:alice=extra:scopes", "user:alice=uid:*"]


@pytest.fixture
def site(world):
    """A hub with rules for impersonation and a long drainDelay; the agent allows one system user."""
    world.start_hub(impersonation=RULES, drainDelay="60s")
    backend = FakeBackend(str(world.folder / "fake"))
    backend.api.script(PATH, lambda x: x.respond(200, {"ok": 1}))
    yield Site(world, backend, "f1", world.folder / "f1",
               systemUsers=["system:serviceaccount:d:sa"])
    backend.close()


def test_start_grace_an_unknown_cluster_may_be_on_its_way(world):
    world.start_hub(startGrace="60s")
    pods = "/clusters/later/api/v1/pods"
    with world.client() as client:
        listed = client.get(pods)
        watched = client.get(pods + "?watch=1")
        discovered = client.get("/clusters/later/api")
    assert (listed.status, listed.get("retry-after")) == (503, "1")
    assert (watched.status, watched.get("retry-after")) == (429, "1")
    assert (discovered.status, discovered.get("retry-after")) == (503, None)


def as_(user, *more):
    return [("impersonate-user", user), *more]


def asked(site):
    return site.api.seen(lambda x: x.path == PATH)


def test_impersonation_by_rule_reaches_the_api_server_with_the_prefix(site):
    headers = as_("bob", ("impersonate-group", "dev"), ("impersonate-uid", "7"),
                  ("impersonate-extra-scopes", "all"))
    answer = site.ask("GET", PATH, headers, user="alice", groups=["ops"])
    assert answer.status == 200, answer
    (seen,) = asked(site)
    assert seen.all("impersonate-user") == ["kuberelay:bob"]
    assert seen.all("impersonate-group") == ["kuberelay:dev"]  # alice's own are not bob's
    assert seen.all("impersonate-uid") == ["7"]
    assert seen.all("impersonate-extra-scopes") == ["all"]


@pytest.mark.parametrize("user, groups, headers", [
    ("alice", [], as_("bob", ("impersonate-group", "dev"))),
    ("alice", ["ops"], as_("bob", ("impersonate-group", "admins"))),
    ("alice", [], as_("bob", ("impersonate-extra-other", "x"))),
    ("carol", ["ops"], as_("bob")),
])
def test_impersonation_needs_a_rule_for_each_part(site, user, groups, headers):
    assert site.ask("GET", PATH, headers, user=user, groups=groups).status == 403
    assert not asked(site)


@pytest.mark.parametrize("name", ["impersonate-extra-a%zz", "impersonate-extra-%", "impersonate-extra-"])
def test_impersonation_with_a_key_that_does_not_decode_is_400(site, name):
    assert site.ask("GET", PATH, as_("bob", (name, "x")), user="alice").status == 400
    assert not asked(site)
    assert site.ask("GET", PATH, user="alice").status == 200


def test_impersonation_of_a_system_user_needs_the_agents_word(site):
    answer = site.ask("GET", PATH, as_("system:serviceaccount:d:other"), user="alice")
    if answer.status == 200:  # prefixed, it is nobody
        assert asked(site)[-1].all("impersonate-user") == ["kuberelay:system:serviceaccount:d:other"]
    else:
        assert answer.status == 403
    assert site.ask("GET", PATH, as_("system:serviceaccount:d:sa"), user="alice").status == 200
    assert asked(site)[-1].all("impersonate-user") == ["system:serviceaccount:d:sa"]


def test_sigterm_leaves_drain_delay_for_load_balancers(site):
    hub = site.world.hub
    site.world.hub.signal(signal.SIGTERM)
    wait_until(lambda: admin_get(hub.admin, "/readyz")[0] == 503, 5, "readiness off")
    assert site.ask("GET", PATH).status == 200
    with site.world.client("admin") as late:  # new connections, too
        assert late.request("GET", site.prefix + PATH).status == 200
        assert late.request("GET", "/readyz").status == 503
