# SPDX-License-Identifier: Apache-2.0
"""An edge that closes its policy while something runs: what runs is not let run on."""

import signal

from backends import FakeBackend
from clock import wait_until
from cluster_site import Site

WATCH = "/api/v1/pods?watch=1"


def start(world, policy):
    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    fake.api.script("/api/v1/x", lambda x: (x.body(), x.respond(200, {"ok": 1})))
    fake.api.script("/api/v1/pods", watch)
    return fake, Site(world, fake, "f1", world.folder / "f1", policyFile=str(policy))


def watch(x):
    x.start_stream()
    x.event("ADDED", {"n": 1})
    x.hold()


def reload(site):
    mark = site.agent.mark()
    site.agent.signal(signal.SIGHUP)
    site.agent.wait_line(r"event=reloaded\b", 10, after=mark)
    return mark


def test_policy_that_closes_ends_what_runs(world):
    policy = world.folder / "policy.yaml"
    policy.write_text("mode: read-only\n", encoding="utf-8")
    fake, site = start(world, policy)
    running = site.start("GET", WATCH).wait_bytes(1)
    reload(site)  # the same file: nothing happens
    policy.write_text("mode: 'off'\n", encoding="utf-8")
    mark = reload(site)
    assert site.ask("GET", "/api/v1/x").status == 403
    assert running.wait_finish(15) == "end"  # cleanly: an informer goes on where it was
    fake.api.wait_request(lambda x: x.is_watch).wait_cancelled(5)
    assert site.ask("GET", "/api/v1/pods?watch=1").status == 403
    site.agent.wait_line(r"event=tunnel-up\b", 10, after=mark)
    policy.write_text("mode: read-only\n", encoding="utf-8")
    reload(site)
    wait_until(lambda: site.ask("GET", "/api/v1/x").status == 200, 10, "it is open again")
    fake.close()


def test_policy_that_is_the_same_lets_run_what_runs(world):
    policy = world.folder / "policy.yaml"
    policy.write_text("mode: read-only\n", encoding="utf-8")
    fake, site = start(world, policy)
    running = site.start("GET", WATCH).wait_bytes(1)
    mark = reload(site)
    reload(site)
    assert site.ask("GET", "/api/v1/x").status == 200
    assert not [line for line in site.agent.lines[mark:] if "event=tunnel-" in line]
    assert not running.ended and running.reset_code is None
    fake.close()
