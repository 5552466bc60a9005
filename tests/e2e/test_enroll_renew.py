# SPDX-License-Identifier: Apache-2.0
"""What happens to certificates in their life: renewal, expiry, theft, crashes."""

import datetime
import os
import random
import shutil
import subprocess
import threading
import time

import grpc
import pytest

import testpki
from clock import scaled, wait_until
from enrollment import Caller, certificate_of, lifetime, new_key, pem_of, status_of
from h2client import ConnectionLost, H2Client, StreamReset

DENIED = grpc.StatusCode.PERMISSION_DENIED


def wait_over(stream, timeout):
    try:
        stream.wait_end(timeout)
    except (StreamReset, ConnectionLost):
        pass


def test_renew_changes_key_and_certificate_and_keeps_the_name(enrollment):
    enrollment.start_hub()
    key, caller = new_key(), Caller(enrollment)
    first = caller.join(enrollment.token("edge-1"), key)
    holder = Caller(enrollment, pem_of(key), first[1])
    second_key = new_key()
    second = holder.renew(second_key, generation=1)
    assert holder.renew(second_key)[1] == second[1], "a lost answer can be asked for again"
    assert second[4] == 2
    assert certificate_of(second).serial_number != certificate_of(first).serial_number
    assert status_of(holder.renew, key) == grpc.StatusCode.INVALID_ARGUMENT
    assert status_of(holder.renew, new_key(), generation=7) == DENIED
    assert enrollment.instance("edge-1")["generation"] == 1, "not used yet"
    again = Caller(enrollment, pem_of(second_key), second[1])
    third = again.renew(new_key())
    assert third[4] == 3
    assert enrollment.instance("edge-1")["generation"] == 2


def test_T12_tunnel_ends_when_the_agents_certificate_does(enrollment):
    enrollment.start_hub(registration="open")
    world = enrollment.world
    pair = testpki.issue(world.root(), world.folder, "brief",
                         uris=["spiffe://example.test/cluster/edge-1/agent/a"],
                         lasts=datetime.timedelta(seconds=max(6, scaled(3))), usage=testpki.CLIENT)
    world.hub = enrollment.hub
    agent = world.start_agent("edge-1", enrollment.kubeconfig(), pair=pair)
    watch = world.client().start("GET", "/clusters/edge-1/api/v1/pods?watch=true")
    watch.wait_headers()
    ups = len(enrollment.hub.grep(r"event=tunnel-up\b"))
    enrollment.hub.wait_line(r"event=tunnel-down\b.*certificate has expired", timeout=10)
    assert datetime.datetime.utcnow() >= pair.certificate.not_valid_after, "not before"
    wait_over(watch, 10)
    assert watch.status == 200 and (watch.ended or watch.reset_code is not None)
    agent.wait_line(r"event=tunnel-failed\b")  # and does not come back with it
    assert len(enrollment.hub.grep(r"event=tunnel-up\b")) == ups


def test_T12_client_connection_ends_when_the_users_certificate_does(enrollment):
    enrollment.start_hub()
    world = enrollment.world
    enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    pair = testpki.issue(world.root(), world.folder, "brief-user", "bob",
                         uris=["spiffe://example.test/user/bob"],
                         lasts=datetime.timedelta(seconds=max(4, scaled(2))), usage=testpki.CLIENT)
    client = H2Client(enrollment.hub.api, testpki.client_context(world.ca, pair))
    world.clients.append(client)
    assert client.get("/clusters/edge-1/api/v1/namespaces").status == 200
    watch = client.start("GET", "/clusters/edge-1/api/v1/pods?watch=true")
    watch.wait_headers()
    enrollment.hub.wait_line(r"event=client-expired\b.*user=bob", timeout=10)
    assert datetime.datetime.utcnow() >= pair.certificate.not_valid_after, "not before"
    wait_over(watch, 60)
    assert watch.ended or watch.reset_code is not None or client.lost

    def gone():
        try:
            client.get("/clusters/edge-1/api/v1/namespaces", timeout=2)
        except (ConnectionLost, StreamReset, OSError):
            return True
        return False
    wait_until(gone, 10, "the connection takes nothing new")


def test_T14_cloned_key_locks_the_instance(enrollment):
    enrollment.start_hub(agentLifetime=lifetime(30))
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    agent.stop()
    stolen = enrollment.folder / "stolen"
    shutil.copytree(agent.state, stolen)
    enrollment.restart_agent(agent)
    enrollment.hub.wait_line(r"event=key-in-use\b.*generation=2\b", timeout=35)
    # The thief comes when the switch is over; within it an old key is only refused.
    wait_until(lambda: time.time() * 1000 > _switched(enrollment) + 3500, 30, "the switch is over")
    enrollment.start_agent("edge-1", state=stolen, name="thief", wait=False)
    enrollment.hub.wait_line(r"event=alarm\b.*kind=cloned-key\b.*locked", timeout=20)
    assert enrollment.instance("edge-1")["state"] == "locked"
    assert enrollment.world.metrics(enrollment.hub)[
        'kuberelay_hub_alarms_total{kind="cloned-key"}'] >= 1
    enrollment.hub.wait_line(r"event=tunnel-down\b.*registry", timeout=5)


def _switched(enrollment):
    lines = enrollment.hub.grep(r"event=key-in-use\b.*generation=")
    stamp = lines[-1].split("time=")[1].split()[0]
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() * 1000


def crash_in_renewals(enrollment, name, rounds, dice):
    """Kills an agent whenever it renews, and starts it again: it always has a whole pair."""
    agent = enrollment.start_agent(name, enrollment.token(name))
    for _ in range(rounds):
        mark = enrollment.hub.mark()
        enrollment.hub.wait_line(rf"event=renew\b.*cluster={name}\b", timeout=20, after=mark)
        # The hub has answered or is about to: the next milliseconds write, rename and dial.
        threading.Event().wait(dice.uniform(0, 0.02))
        agent.kill()
        agent = enrollment.restart_agent(agent)
        text = (agent.state / "pair.pem").read_text()
        assert text.count("PRIVATE KEY-----") == 2 and "BEGIN CERTIFICATE" in text
    assert enrollment.instance(name)["state"] == "active"
    assert not agent.grep(r"event=join\b")


@pytest.mark.parametrize("agents, rounds", [
    (4, 2), pytest.param(10, 20, marks=pytest.mark.long)])
def test_T15_crash_at_any_moment_of_a_renewal_leaves_a_working_pair(enrollment, agents, rounds):
    enrollment.start_hub(agentLifetime=lifetime(14))
    enrollment.kubeconfig()
    seed = int(os.environ.get("KUBERELAY_TEST_SEED", 0)) or random.SystemRandom().randrange(1 << 32)
    faults = []

    def work(name):
        try:
            crash_in_renewals(enrollment, name, rounds, random.Random(f"{seed}-{name}"))
        except BaseException as error:
            faults.append((name, error))
    enrollment.world.user("admin")
    threads = [threading.Thread(target=work, args=(f"edge-{n}",)) for n in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, (f"KUBERELAY_TEST_SEED={seed}", faults)
    assert not enrollment.hub.grep(r"event=alarm\b")


def test_F041_agent_that_was_dark_too_long_joins_again_with_a_new_token(enrollment):
    enrollment.start_hub(agentLifetime="6s")
    folder = enrollment.folder / "token"
    folder.write_text(enrollment.token("edge-1") + "\n")
    agent = enrollment.start_agent("edge-1", joinTokenFile=str(folder))
    agent.stop()
    wait_until(lambda: enrollment.instance("edge-1")["notAfterMs"] < time.time() * 1000, 10,
               "the certificate has expired")
    again = enrollment.restart_agent(agent, wait=False)
    again.wait_line(r"event=join-failed\b")  # the token is used
    folder.write_text(enrollment.token("edge-1") + "\n")
    again.signal(1)
    again.wait_line(r"event=joined\b.*cluster=edge-1\b")
    enrollment.world.wait_cluster("edge-1")


def test_F041_agent_whose_token_is_worth_nothing_waits_for_another_one(enrollment):
    """Nobody sends a signal: it looks by itself. The reason is in the hub's log: who has no good
    token is not told."""
    enrollment.start_hub()
    file = enrollment.folder / "token"
    file.write_text("kr1.aaaaaaaa." + "a" * 32)
    agent = enrollment.start_agent("edge-1", joinTokenFile=str(file), wait=False)
    agent.wait_line(r"event=join-failed\b.*refused.*retry-ms=[0-9]{5}")
    enrollment.hub.wait_line(r"event=join\b.*the token is not good: not known")
    file.write_text(enrollment.token("edge-1"))
    agent.wait_line(r"event=joined\b", timeout=45)
    enrollment.world.wait_cluster("edge-1")


def can_mount():
    return subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"],
                          capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="may not mount a small file system (needs root)")
def test_F041_disk_that_is_full_when_a_pair_is_saved(enrollment):
    enrollment.start_hub(agentLifetime=lifetime(14))
    state = enrollment.folder / "small"
    state.mkdir(mode=0o700)
    mount = f'mount -t tmpfs -o size=64k,mode=700 none {state} && exec "$@"'
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"), state=state,
                                   prefix=("unshare", "-m", "sh", "-c", mount, "sh"))
    inside = f"/proc/{agent.pid}/root{state}"
    pair = open(f"{inside}/pair.pem", encoding="utf-8").read()
    with open(f"{inside}/fill", "wb") as fill, pytest.raises(OSError):
        while True:
            os.write(fill.fileno(), b"x" * 4096)
    agent.wait_line(r"event=renew-failed\b.*[Nn]o space", timeout=30)
    assert open(f"{inside}/pair.pem", encoding="utf-8").read() == pair, "whole, and the old one"
    os.unlink(f"{inside}/fill")
    agent.wait_line(r"event=renewed\b", timeout=20)
    wait_until(lambda: enrollment.instance("edge-1")["generation"] == 2, 10, "it is in use")
    enrollment.world.wait_cluster("edge-1")


def test_another_cluster_under_the_same_name_is_quarantined(enrollment):
    enrollment.start_hub()
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    wait_until(lambda: enrollment.cluster("edge-1")["uid"], 10, "the uid is known")
    agent.stop()
    other = enrollment.kubeconfig("two")
    config = open(agent.config_path, encoding="utf-8").read()
    with open(agent.config_path, "w", encoding="utf-8") as file:
        file.write(config.replace("one.kubeconfig", "two.kubeconfig"))
    assert os.path.exists(other)
    enrollment.restart_agent(agent, wait=False)
    enrollment.hub.wait_line(r"event=alarm\b.*kind=other-cluster\b")
    assert enrollment.cluster("edge-1")["state"] == "quarantined"
    enrollment.hub.wait_line(r"event=tunnel-down\b.*registry")
