# SPDX-License-Identifier: Apache-2.0
"""A second agent, written from docs/protocol.md alone: if this stops working, the page is wrong or
the wire has changed."""

import pytest

from clock import scaled, wait_until
from secondagent import SecondAgent


@pytest.fixture
def second(world):
    world.start_hub()
    agent = SecondAgent(world.hub.agent, world.ca, world.issue_agent("py"))
    wait_until(lambda: agent.hub_states and agent.beats, 10, "the hub's state")
    yield agent
    agent.close()


def test_protocol_a_second_agent_is_accepted_and_told_about(second, world):
    world.wait_cluster("py")
    state = second.hub_states[0]
    assert state[1] == [b"hub-1"]  # replica
    assert state[2] == [10000]  # heartbeat_ms
    assert 6 not in state  # no refusal
    settings = second.h2.remote_settings
    assert settings.enable_push == 0
    assert settings.initial_window_size == 256 * 1024
    assert settings.max_header_list_size == 262144


def test_protocol_a_request_comes_with_who_asks(second, world):
    world.wait_cluster("py")
    second.requests.clear()
    with world.client("alice", ["dev", "ops"]) as client:
        answer = client.request("POST", "/clusters/py/api/v1/namespaces/d/configmaps?dryRun=All",
                                [("content-type", "application/json"), ("x-secret", "drop me"),
                                 ("authorization", "Bearer drop-me-too")], b'{"a":1}')
    assert answer.status == 200 and answer.json() == {"second": True}
    ((head, who, body),) = second.requests
    assert body == b'{"a":1}'
    assert head[":method"] == "POST"
    assert head[":path"] == "/api/v1/namespaces/d/configmaps?dryRun=All"
    assert (head[":scheme"], head[":authority"]) == ("https", "kubernetes")
    assert head["x-forwarded-for"] == "127.0.0.1"
    assert "x-secret" not in head and "authorization" not in head
    assert who[2] == [b"alice"] and who[3] == [b"dev", b"ops"]
    assert who[1] == [bytes.fromhex(head["audit-id"].replace("-", ""))]
    assert who[6] == [65000] and who[7] == [1]  # deadline_ms, attempt


def test_protocol_long_running_requests_have_no_deadline(second, world):
    world.wait_cluster("py")
    second.requests.clear()
    with world.client("alice") as client:
        assert client.get("/clusters/py/api/v1/pods?watch=1").status == 200
    assert 6 not in second.requests[0][1]


def test_protocol_a_state_with_a_bad_boot_id_ends_the_tunnel(world):
    world.start_hub()
    agent = SecondAgent(world.hub.agent, world.ca, world.issue_agent("py"), boot_id=b"short")
    agent.thread.join(scaled(8))  # sooner than the hub would miss a first state
    assert not agent.thread.is_alive() and agent.beats == 1
