# SPDX-License-Identifier: Apache-2.0
"""T13: agents renew their certificates again and again while requests go through them: none fails,
and each new key is the next generation of the one before."""

import json
import threading
import time

import pytest

import clock
from clock import scaled, wait_until
from h2client import ConnectionLost, H2Client, StreamReset

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
JSON = [("content-type", "application/json")]
LOADS = 3  # threads that ask
GROUP = 25  # agents that start at once; what a hub does with all at once, ./dev bench enroll shows


class Load(threading.Thread):
    """Goes round all clusters: reads, and writes that must be done once."""

    def __init__(self, enrollment, names, number):
        super().__init__(daemon=True)
        self.hub, self.context = enrollment.hub, enrollment.world.context()
        self.names, self.number, self.halted = names, number, False
        self.bad, self.done, self.made = [], 0, 0
        self.start()

    def run(self):
        while not self.halted:
            try:
                with H2Client(self.hub.api, self.context) as client:
                    self.rounds(client)
            except (ConnectionLost, StreamReset, TimeoutError, OSError) as error:
                self.bad.append(repr(error))
                time.sleep(0.1)

    def rounds(self, client):
        while not self.halted:
            for name in self.names[self.number::LOADS]:
                if self.halted:
                    return
                self.one(client, f"/clusters/{name}")

    def one(self, client, prefix):
        if self.done % 5:
            return self.note(client.get(f"{prefix}/api/v1/namespaces"), (200,))
        self.made += 1
        name = f"load-{self.number}-{self.made}"
        body = json.dumps({"metadata": {"name": name}}).encode()
        self.note(client.request("POST", prefix + CONFIGMAPS, JSON, body), (201,))
        return self.note(client.request("DELETE", f"{prefix}{CONFIGMAPS}/{name}"), (200,))

    def note(self, answer, wanted):
        self.done += 1
        if answer.status not in wanted:
            self.bad.append(repr(answer))


def generations(hub, name):
    return [int(line.split("generation=")[1].split()[0])
            for line in hub.grep(rf"event=key-in-use\b.*cluster={name}\b")]


def start_agents(enrollment, names, policy):
    enrollment.kubeconfig()
    started = []
    for at in range(0, len(names), GROUP):
        group = [enrollment.start_agent(n, enrollment.token(n), wait=False, policyFile=policy)
                 for n in names[at:at + GROUP]]
        for agent in group:
            agent.wait_admin()
            enrollment.world.wait_cluster(agent.cluster)
        started += group
    return started


def renewals_under_load(enrollment, agents, lifetime, renewals, heartbeat="500ms"):
    """Until each agent has renewed that often."""
    policy = enrollment.world.open_policy()  # so that writes pass the edge
    lifetime = round(lifetime * min(clock.SLOWNESS, 1.5))  # the slow renew later, too
    enrollment.start_hub(agentLifetime=f"{lifetime}s", heartbeat=heartbeat)
    names = [f"edge-{n}" for n in range(agents)]
    started = start_agents(enrollment, names, policy)
    loads = [Load(enrollment, names, n) for n in range(LOADS)]

    def renewed():
        counts = {n: 0 for n in names}
        for line in enrollment.hub.grep(r"event=key-in-use\b.*generation="):
            counts[line.split("cluster=")[1].split()[0]] += 1
        return min(counts.values()) >= renewals
    try:
        # The latest moment of a renewal is 80 % of a certificate's life.
        wait_until(renewed, 0.8 * lifetime * renewals + 20, f"{renewals} renewals of each", every=0.5)
    finally:
        for load in loads:
            load.halted = True
        for load in loads:
            load.join(scaled(60))
    bad = [b for load in loads for b in load.bad]
    done = sum(load.done for load in loads)
    print(f"T13: {agents} agents, {done} requests, {len(bad)} failed, "
          f"{sum(len(generations(enrollment.hub, n)) for n in names)} renewals")
    assert not bad and done > 5 * agents, (len(bad), bad[:3], done)
    for name in names:
        used = generations(enrollment.hub, name)
        assert used == list(range(2, 2 + len(used))), (name, "strictly one more each time", used)
    for cluster in enrollment.registry()["clusters"]:
        instance = cluster["instances"][0]
        assert instance["state"] == "active", cluster
        assert instance["generation"] >= 1 + renewals, cluster
    assert not enrollment.hub.grep(r"level=error|event=alarm")
    assert all(agent.alive for agent in started)


def test_T13_thirty_agents_renew_under_load_and_no_request_fails(enrollment):
    renewals_under_load(enrollment, agents=30, lifetime=20, renewals=2)


@pytest.mark.long
def test_T13_a_thousand_agents_renew_for_half_an_hour_under_load(enrollment):
    """A tenth of them where a sanitizer makes each of them large. Heartbeats as in the field: two a
    second on each of 2,000 tunnels would be most of the work, and a late one costs a handshake."""
    few = enrollment.world.binaries.sanitized
    renewals_under_load(enrollment, 100 if few else 1000, 200 if few else 300, 8, "5s")
