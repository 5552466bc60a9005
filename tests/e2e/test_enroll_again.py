# SPDX-License-Identifier: Apache-2.0
"""An agent whose certificate is not wanted any more joins again, with a token that it has not used."""

import shutil
import signal

import pytest

from clock import wait_until


def deny(enrollment):
    key = enrollment.instance("edge-1")["key"]
    enrollment.ctl("cluster", "deny", "edge-1", "--key", key)
    return key


def start(enrollment):
    """An agent that has joined with what is in the file."""
    file = enrollment.folder / "token"
    enrollment.start_hub()
    file.write_text(enrollment.token("edge-1") + "\n")
    return file, enrollment.start_agent("edge-1", joinTokenFile=str(file))


def refused(agent):
    agent.wait_line(r"event=tunnel-(down|failed)\b.*refused", timeout=20)


@pytest.mark.parametrize("news", ["signal", "restart"])
def test_denied_key_joins_with_a_new_token(enrollment, news):
    file, agent = start(enrollment)
    key = deny(enrollment)
    refused(agent)
    file.write_text(enrollment.token("edge-1"))
    if news == "signal":
        agent.signal(signal.SIGHUP)
    else:
        agent.stop()
        agent = enrollment.restart_agent(agent, wait=False)
    agent.wait_line(r"event=joined\b", timeout=20)
    enrollment.world.wait_cluster("edge-1")
    wait_until(lambda: enrollment.instance("edge-1")["key"] != key, 10, "the new key in use")
    wait_until(lambda: not (agent.state / "previous.pem").exists(), 10, "the old pair goes")


def test_key_that_was_denied_by_mistake_is_taken_back(enrollment):
    _, agent = start(enrollment)
    key = deny(enrollment)
    refused(agent)
    enrollment.ctl("cluster", "unlock", "edge-1", "--instance", "a", code=1)
    assert enrollment.instance("edge-1")["state"] == "denied"
    assert enrollment.ctl("cluster", "unlock", "edge-1", "--key", key) == f"{key} unlocked\n"
    enrollment.ctl("cluster", "unlock", "edge-1", "--key", key, code=1)  # it is not denied
    enrollment.ctl("cluster", "unlock", "edge-1", code=2)
    agent.signal(signal.SIGHUP)
    enrollment.world.wait_cluster("edge-1")
    assert enrollment.instance("edge-1")["key"] == key
    assert enrollment.instance("edge-1")["generation"] == 1


def test_key_that_was_replaced_is_worth_no_more_when_it_is_taken_back(enrollment):
    """Whoever still has it is a thief, and is treated as one."""
    file, agent = start(enrollment)
    thief = enrollment.folder / "thief"
    shutil.copytree(agent.state, thief)
    key = deny(enrollment)
    refused(agent)
    file.write_text(enrollment.token("edge-1"))
    agent.signal(signal.SIGHUP)
    wait_until(lambda: enrollment.instance("edge-1")["key"] != key, 20, "the new key in use")
    enrollment.ctl("cluster", "unlock", "edge-1", "--key", key)
    mark = enrollment.hub.mark()
    enrollment.start_agent("edge-1", state=thief, name="thief", wait=False)
    enrollment.hub.wait_line(r"event=agent-refused\b.*a newer key of this instance is in use",
                             after=mark, timeout=20)


def test_new_token_is_there_before_the_refusal(enrollment):
    file, agent = start(enrollment)
    file.write_text(enrollment.token("edge-1"))
    key = deny(enrollment)
    wait_until(lambda: enrollment.instance("edge-1")["key"] != key, 20, "it joins by itself")


def test_token_that_was_used_or_is_wrong_changes_nothing(enrollment):
    file, agent = start(enrollment)
    pair = (agent.state / "pair.pem").read_text()
    deny(enrollment)
    refused(agent)
    assert enrollment.instance("edge-1")["state"] == "denied"
    agent.signal(signal.SIGHUP)
    agent.wait_line(r"event=reloaded\b")
    assert not agent.grep(r"event=join-failed\b"), "its own token has done its work"
    file.write_text("kr1.aaaaaaaa." + "a" * 32)
    agent.signal(signal.SIGHUP)
    agent.wait_line(r"event=join-failed\b", timeout=20)
    assert (agent.state / "pair.pem").read_text() == pair
    assert not (agent.state / "previous.pem").exists()


def test_healthy_agent_uses_no_token(enrollment):
    file, agent = start(enrollment)
    file.write_text(enrollment.token("edge-1"))
    pair = (agent.state / "pair.pem").read_text()
    agent.signal(signal.SIGHUP)
    agent.wait_line(r"event=reloaded\b")
    assert not agent.grep(r"event=join-failed\b|event=tunnel-down\b")
    assert (agent.state / "pair.pem").read_text() == pair
