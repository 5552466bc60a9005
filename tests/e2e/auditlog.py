# SPDX-License-Identifier: Apache-2.0
"""Reads the audit logs of hub and agent: each line is an Event, and the chain holds."""

import hashlib
import json
from pathlib import Path

from clock import wait_until
from world import gauge

OURS = "kuberelay.io/"


def lines(*paths):
    return [line for path in paths for line in Path(path).read_bytes().split(b"\n")[:-1]]


def check_chain(raw, start=None):
    """Each line carries the hash of the one before; gives the number of lines."""
    before = start
    for line in raw:
        prev = json.loads(line)["annotations"][OURS + "prev"]
        if before is None:
            assert prev == "0" * 64, line
        else:
            assert prev == hashlib.sha256(before).hexdigest(), line
        before = line
    return len(raw)


def events(*paths):
    found = []
    for line in lines(*paths):
        event = json.loads(line)
        assert event["kind"] == "Event" and event["apiVersion"] == "audit.k8s.io/v1", event
        assert event["level"] == "Metadata" and event["auditID"], event
        assert event["stageTimestamp"].endswith("Z") and event["requestReceivedTimestamp"], event
        found.append(event)
    return found


def note(event, name):
    return event["annotations"].get(OURS + name)


def of(found, stage="ResponseComplete", **members):
    """Events of that stage with those members."""
    return [e for e in found if e["stage"] == stage and
            all(e.get(name) == value for name, value in members.items())]


def by_id(found, stage="ResponseComplete"):
    made = {}
    for event in of(found, stage):
        assert event["auditID"] not in made, f"two of {event['auditID']}"
        made[event["auditID"]] = event
    return made


def settle(world, agent, timeout=20):
    """Until no request is under way at either end: each has its last line in both logs then."""
    def idle():
        return gauge(world.metrics(), "kuberelay_hub_exchanges") == 0 and (
            not agent.alive or gauge(world.metrics(agent), "kuberelay_agent_exchanges") == 0)
    wait_until(idle, timeout, "no request under way", every=0.05)


def wait_for(path, what, text, timeout=10):
    """The events, once `what` holds of them."""
    wait_until(lambda: what(events(path)), timeout, text, every=0.05)
    return events(path)
