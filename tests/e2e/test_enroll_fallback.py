# SPDX-License-Identifier: Apache-2.0
"""The pair before the last renewal: kept until a hub has accepted the new one, and gone back to."""

import shutil

import testpki
from clock import wait_until
from enrollment import Caller, new_key, pem_of
from procs import run


def pair_text(key, chain):
    return pem_of(key).decode() + chain.decode()


def put(folder, **files):
    """What the disk holds when an agent starts; names with _ for the dot."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, text in files.items():
        if text is not None:
            path = folder / name.replace("_", ".")
            path.touch(mode=0o600)
            path.write_text(text)


def joined(enrollment, cluster):
    """(pair text) of a cluster that has joined by hand, and its key and chain."""
    key = new_key()
    answer = Caller(enrollment).join(enrollment.token(cluster), key)
    return key, answer[1]


def test_T15_each_step_of_a_renewal_leaves_one_working_pair(enrollment):
    """The states of the disk between two writes, made by hand; each goes on working and renewing."""
    enrollment.start_hub(agentLifetime="16s")
    agents = {}
    for cluster, step in (("asked", 1), ("answered-1", 2), ("answered-2", 3), ("answered-3", 4),
                          ("accepted", 5)):
        key, chain = joined(enrollment, cluster)
        next_key = new_key()
        answer = Caller(enrollment, pem_of(key), chain).renew(next_key)
        old, new = pair_text(key, chain), pair_text(next_key, answer[1])
        state = enrollment.folder / f"state-{cluster}"
        put(state, pair_pem=old if step <= 2 else new,
            previous_pem=old if 2 <= step <= 4 else None,
            pending_key=pem_of(next_key).decode() if step <= 3 else None)
        agents[cluster] = enrollment.start_agent(cluster, state=state, wait=False)
    for cluster, agent in agents.items():
        enrollment.world.wait_cluster(cluster)
        agent.wait_line(r"event=renewed\b", timeout=25)
        wait_until(lambda a=agent: not (a.state / "previous.pem").exists(), 10,
                   "a hub has accepted it")
        assert not agent.grep(r"event=pair-before\b"), cluster
        assert enrollment.instance(cluster)["state"] == "active", cluster


def test_pair_that_cannot_be_read_is_replaced_by_the_one_before(enrollment):
    enrollment.start_hub()
    key, chain = joined(enrollment, "edge-1")
    good = pair_text(key, chain)
    for number, bad in enumerate(("", "-----BEGIN CERTIFICATE-----\nAAAA\n",
                                  pair_text(new_key(), chain), good[:len(good) // 2], None)):
        state = enrollment.folder / f"state-{number}"
        put(state, pair_pem=bad, previous_pem=good)
        agent = enrollment.start_agent("edge-1", state=state, name=f"agent-{number}", wait=False)
        agent.wait_line(r"event=pair-before\b")
        agent.wait_line(r"event=tunnel-up\b")
        assert (state / "pair.pem").read_text() == good
        assert not (state / "previous.pem").exists()
        agent.stop()
    state = enrollment.folder / "state-none"
    put(state, pair_pem="", previous_pem="")
    agent = enrollment.start_agent("edge-1", state=state, name="agent-none", wait=False)
    agent.wait_line(r"event=start-failed\b")
    assert (state / "pair.pem").read_text() == "", "nothing is put in its place"


def test_pair_that_every_hub_refuses_is_replaced_by_the_one_before(enrollment):
    enrollment.start_hub()
    world = enrollment.world
    key, chain = joined(enrollment, "edge-1")
    foreign = testpki.new_ca(world.folder, "foreign", "foreign root")
    bad = testpki.issue(foreign, world.folder, "bad",
                        uris=["spiffe://example.test/cluster/edge-1/agent/a"], usage=testpki.CLIENT)
    state = enrollment.folder / "state"
    text = open(bad.key, encoding="ascii").read() + open(bad.crt, encoding="ascii").read()
    put(state, pair_pem=text, previous_pem=pair_text(key, chain))
    agent = enrollment.start_agent("edge-1", state=state, wait=False)
    agent.wait_line(r"event=pair-before\b.*refused our certificate", timeout=20)
    world.wait_cluster("edge-1")
    assert (state / "pair.pem").read_text() == pair_text(key, chain)
    agent.wait_admin()
    assert world.metrics(agent)['kuberelay_agent_renewals_total{result="went-back"}'] == 1
    agent.stop()
    put(state, pair_pem=text)  # and without one before it stays, and tries
    agent = enrollment.restart_agent(agent, wait=False)
    agent.wait_line(r"event=tunnel-failed\b.*refused our certificate")
    assert agent.alive and not agent.grep(r"event=pair-before\b")
    assert (state / "pair.pem").read_text() == text


def test_renewed_certificate_that_the_hub_does_not_take_costs_no_tunnel(enrollment):
    """Phases of a rotation in the wrong order: the signer is the new root, caFile has the old one."""
    world, pki = enrollment.world, enrollment.world.pki
    for end in ("crt", "key"):
        shutil.copy(pki / f"ca.{end}", pki / f"signer.{end}")
    shutil.copy(pki / "ca.crt", pki / "bundle.crt")
    shutil.copy(pki / "ca.crt", pki / "old.crt")
    enrollment.start_hub(caFile=str(pki / "old.crt"), bundleFile=str(pki / "bundle.crt"),
                         signerCertFile=str(pki / "signer.crt"),
                         signerKeyFile=str(pki / "signer.key"), agentLifetime="40s")
    agent = enrollment.start_agent("edge-1", enrollment.token("edge-1"))
    watch = world.client().start("GET", "/clusters/edge-1/api/v1/pods?watch=true")
    watch.wait_headers()
    before = (agent.state / "pair.pem").read_text()
    for phase in ("start", "issue"):
        code, _, err = run([world.binaries["kuberelayctl"], "ca", "rotate", phase, "--dir", pki], 30)
        assert code == 0, err
    enrollment.hub.signal(1)
    agent.wait_line(r"event=renewed\b", timeout=40)
    agent.wait_line(r"event=pair-before\b", timeout=20)
    assert (agent.state / "pair.pem").read_text() == before
    assert not watch.ended
    assert world.client().get("/clusters/edge-1/api/v1/namespaces").status == 200
    assert enrollment.instance("edge-1")["state"] == "active"
    assert not enrollment.hub.grep(r"event=alarm\b")
