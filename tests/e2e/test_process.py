# SPDX-License-Identifier: Apache-2.0
"""What becomes of clients, tunnels and gauges when processes die, freeze, or links go dead."""

import signal
import threading
import time
from pathlib import Path

import pytest
import yaml

from backends import FakeBackend
from clock import scaled, wait_until
from cluster_site import JSON, Site
from h1client import status_of
from h2client import ConnectionLost
from netns import Netns
from world import admin_get, gauge

WATCH = "/api/v1/pods?watch=1"


def one_event(x):
    x.start_stream()
    x.event("ADDED", {"n": 1})
    x.hold()


def install(api):
    api.script("/api/v1/x", lambda x: (x.body(), x.respond(200, {"ok": 1})))
    api.script("/api/v1/hang", lambda x: x.hold())
    api.script("/api/v1/pods", one_event)


@pytest.fixture
def ready(lone_fake):
    install(lone_fake.api)
    return lone_fake


def baseline(world, agent):
    """Everything that must come back after load: gauges and descriptors."""
    hub, agent_numbers = world.metrics(), world.metrics(agent)
    return {
        "hub exchanges": gauge(hub, "kuberelay_hub_exchanges"),
        "agent exchanges": gauge(agent_numbers, "kuberelay_agent_exchanges"),
        "hub tunnels": gauge(hub, "kuberelay_hub_tunnels"),
        "hub fds": world.hub.fds(),
    }


def assert_back(world, agent, before, timeout=20):
    assert before["hub exchanges"] is not None and before["hub tunnels"] is not None
    last = {}

    def same():
        last.clear()
        last.update(baseline(world, agent))
        return all(last[k] == before[k] for k in before if "fds" not in k) and (
            last["hub fds"] <= before["hub fds"] + 2)
    try:
        wait_until(same, timeout, "gauges at the baseline", every=0.1)
    except TimeoutError:
        pytest.fail(f"not back at the baseline: before {before}, now {last}")


# -- kill -9

def test_process_hub_killed_and_restarted_the_agent_comes_back(ready):
    stream = ready.start("GET", WATCH).wait_bytes(1)
    watch = ready.api.wait_request(lambda x: x.is_watch)
    ready.world.hub.kill()
    assert stream.wait_finish(5) == "lost"
    watch.wait_cancelled(5)  # nobody reads it any more
    ready.world.restart_hub(ready.world.hub)
    ready.world.wait_cluster("f1", 40)
    assert ready.agent.alive
    assert ready.ask("GET", "/api/v1/x").status == 200


def test_process_agent_killed_many_times(ready):
    """The hub keeps nothing of the dead ones."""
    before = baseline(ready.world, ready.agent)
    for _ in range(5):
        streams = [ready.start("GET", WATCH) for _ in range(20)]
        for stream in streams:
            stream.wait_bytes(1)
        hanging = [ready.start("GET", "/api/v1/hang") for _ in range(20)]
        ready.api.wait_request(lambda x: x.path == "/api/v1/hang", count=20)
        ready.agent.kill()
        for stream in streams:
            assert stream.wait_finish(40) == "end"
        for stream in hanging:
            assert stream.answer(40).status == 503
        ready.api.forget()
        install(ready.api)
        ready.agent = ready.world.restart_agent(ready.agent)
    assert_back(ready.world, ready.agent, before)


# -- SIGSTOP

@pytest.fixture
def impatient(world):
    """Both ends take six seconds of silence for death; the default is for F037 below."""
    world.start_hub(silenceTimeout="6s")
    fake = FakeBackend(str(world.folder / "fake"))
    install(fake.api)
    yield Site(world, fake, "f1", world.folder / "f1", silenceTimeout="6s")
    fake.close()


def test_process_frozen_agent_is_dead_within_the_bound_and_comes_back(impatient):
    ready = impatient
    stream = ready.start("GET", WATCH).wait_bytes(1)
    hanging = ready.start("GET", "/api/v1/hang")
    writing = ready.start("POST", "/api/v1/hang", [JSON], end=False).send(b"{}", end=True)
    ready.api.wait_request(lambda x: x.method == "POST")
    begin = time.monotonic()
    ready.agent.freeze()
    assert stream.wait_finish(45) == "end"
    assert stream.ended_at - begin < scaled(9)
    assert hanging.answer(10).status == 503
    answer = writing.answer(10)
    assert answer.status == 504 and answer.get("retry-after") is None
    assert "unknown" in status_of(answer)["message"]
    assert ready.ask("GET", WATCH).status == 429
    ready.agent.thaw()
    ready.world.wait_cluster("f1", 70)
    assert ready.ask("GET", "/api/v1/x").status == 200


def test_process_a_short_freeze_of_the_agent_only_delays(ready):
    ready.agent.freeze()
    stream = ready.start("GET", "/api/v1/x")
    with pytest.raises(TimeoutError):
        stream.wait_headers(2)
    ready.agent.thaw()
    assert stream.answer(10).status == 200


def test_process_frozen_hub_is_left_and_found_again(impatient):
    ready = impatient
    mark = ready.agent.mark()
    ready.world.hub.freeze()
    # The agent has to find out by itself: nothing is closed.
    ready.agent.wait_line(r"event=\S*(down|lost|dead|closed|disconnect)", 45, after=mark)
    ready.world.hub.thaw()
    ready.world.wait_cluster("f1", 70)
    assert ready.ask("GET", "/api/v1/x").status == 200


# -- half-open links: packets vanish, nobody is told

class Leg:
    """A world in the namespace whose one port is about to go dead."""

    def __init__(self, net, binaries, folder, name, **hub):
        from world import World

        self.name = name
        self.world = World(folder / name, binaries)
        self.world.start_hub(prefix=net.prefix, **hub)
        self.fake = FakeBackend(str(self.world.folder / "fake"))
        install(self.fake.api)
        config = self.fake.kubeconfig(self.world.folder / "kc")
        self.agent = self.world.start_agent("f1", config, prefix=net.prefix)
        self.client = self.world.client()
        self.watch = self.client.start("GET", "/clusters/f1" + WATCH).wait_bytes(1)
        self.hanging = self.client.start("GET", "/clusters/f1/api/v1/hang")
        self.fake.api.wait_request(lambda x: x.path == "/api/v1/hang")

    def close(self):
        self.world.close()
        self.fake.close()


@pytest.fixture
def net():
    made = Netns()
    yield made
    made.close()


def test_field_F037_dead_links_are_found_within_the_bound(net, binaries, tmp_path):
    """Three kinds at once: hub leg both ways, hub leg one way, API server leg."""
    folder = tmp_path
    legs = []
    try:
        with net.inside():
            for name in ("both", "oneway", "server"):
                legs.append(Leg(net, binaries, folder, name))
            both, oneway, server = legs
            begin = time.monotonic()
            net.drop(both.world.hub.agent[1])
            net.drop(oneway.world.hub.agent[1], both=False)
            net.drop(server.fake.address[1])
            for leg in (both, oneway):
                assert leg.watch.wait_finish(45) == "end", leg.name
                assert leg.hanging.answer(10).status == 503, leg.name
                assert leg.watch.ended_at - begin < scaled(35), leg.name
                assert leg.client.get("/clusters/f1" + WATCH).status == 429, leg.name
            # The API server leg: the watch ends, and a request does not hang on it.
            assert server.watch.wait_finish(60) in ("end", "reset")
            assert server.watch.ended_at - begin < scaled(50)
            net.restore()
            for leg in legs:
                leg.world.wait_cluster("f1", 70)
                answer = leg.world.client().get("/clusters/f1/api/v1/x")
                assert answer.status == 200, leg.name
                assert leg.agent.alive and leg.world.hub.alive
    finally:
        for leg in legs:
            leg.close()


# -- slow readers and cancel storms

def test_process_a_slow_reader_of_a_big_log_slows_only_itself(fake):
    api = fake.api
    api.script("/api/v1/x", lambda x: x.respond(200, {"ok": 1}))

    def gigabyte(x):
        x.start_stream("text/plain")
        x.sent = 0
        piece = b"a line of a log that is very long\n" * 1900
        while x.sent < 2**30:
            x.write(piece)
            x.sent += len(piece)
        x.end()
    api.script("/api/v1/namespaces/d/pods/p/log", gigabyte)
    agent_before, hub_before = fake.agent.memory_kib(), fake.world.hub.memory_kib()
    before = baseline(fake.world, fake.agent)
    client = fake.world.client(window=65535)
    log = client.start("GET", fake.prefix + "/api/v1/namespaces/d/pods/p/log?follow=true",
                       auto_window=False)
    log.wait_bytes(60000)
    times = []
    for number in range(200):
        begin = time.monotonic()
        assert fake.ask("GET", "/api/v1/x").status == 200
        times.append(time.monotonic() - begin)
        if number % 10 == 0:
            log.grant(10_000)  # a reader of some kilobytes a second
    times.sort()
    assert times[100] < scaled(0.2) and times[-1] < scaled(2), times[-5:]
    source = api.wait_request(lambda x: "log" in x.path)
    assert source.sent < 32 * 2**20
    assert fake.agent.memory_kib() - agent_before < 8 * 1024
    assert fake.world.hub.memory_kib() - hub_before < 16 * 1024
    client.close()
    source.wait_cancelled(5)
    assert_back(fake.world, fake.agent, {**before, "hub fds": before["hub fds"] + 2})


def test_field_F005_twenty_thousand_cancelled_requests(lone_fake):
    """50 connections, 8 at a time each, dropped before the head, in it, and in the body."""
    site = lone_fake
    site.api.script("/api/v1/x", lambda x: x.respond(200, {"ok": 1}))
    site.api.script("/api/v1/hang", lambda x: x.hold())
    site.api.script("/api/v1/big", lambda x: (x.start_stream(), [
        x.write(b"z" * 16384) for _ in range(10_000)]))
    assert site.ask("GET", "/api/v1/x").status == 200
    before = baseline(site.world, site.agent)
    memory = site.world.hub.memory_kib(), site.agent.memory_kib()
    clients = [site.world.client(window=65535) for _ in range(50)]
    problems = []

    def storm(client, seed):
        paths = ["/api/v1/hang", "/api/v1/big", "/api/v1/x", "/api/v1/hang"]
        try:
            for round_ in range(100):
                streams = [client.start("GET", site.prefix + paths[(seed + n) % 4])
                           for n in range(4)]
                if round_ % 10 == 0:  # now and then the big one is under way
                    streams[(1 - seed) % 4].wait(lambda s: s.status or s.ended, 20)
                for stream in streams:
                    stream.reset()
                    client.streams.pop(stream.id, None)
                client.get("/livez", timeout=20)  # the hub has seen them all by now
        except (ConnectionLost, TimeoutError, OSError) as error:
            problems.append(repr(error))
    threads = [threading.Thread(target=storm, args=(c, n)) for n, c in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.close()
    # 400 resets in one connection are within its budget: nobody may have been cut off.
    assert not problems, problems[:3]
    begin = time.monotonic()
    assert site.ask("GET", "/api/v1/x").status == 200
    assert time.monotonic() - begin < scaled(1)
    assert_back(site.world, site.agent, {**before, "hub fds": before["hub fds"] + 2})
    wait_until(lambda: not [x for x in site.api.requests
                            if not x.finished and not x.cancelled_at], 10, "all cancelled upstream")
    grown = site.world.hub.memory_kib() - memory[0], site.agent.memory_kib() - memory[1]
    assert grown[0] < 32 * 1024 and grown[1] < 8 * 1024, grown


def test_field_F005_a_reset_flood_is_limited_and_hurts_no_other(lone_fake):
    site = lone_fake
    site.api.script("/api/v1/x", lambda x: x.respond(200, {"ok": 1}))
    site.api.script("/api/v1/hang", lambda x: x.hold())
    assert site.ask("GET", "/api/v1/x").status == 200
    before = baseline(site.world, site.agent)
    flood = site.world.client()
    try:
        for _ in range(5000):
            stream = flood.start("GET", site.prefix + "/api/v1/hang")
            stream.reset()
            flood.streams.pop(stream.id, None)
    except (ConnectionLost, OSError):
        pass
    flood.wait_lost(20)
    assert flood.goaway and flood.goaway[1] == 11, flood.goaway  # ENHANCE_YOUR_CALM
    assert site.ask("GET", "/api/v1/x").status == 200  # another connection of the same user
    assert len(site.api.seen(lambda x: x.path == "/api/v1/hang")) < 4900
    flood.close()
    assert_back(site.world, site.agent, {**before, "hub fds": before["hub fds"] + 2})


# -- signals

def test_process_sigterm_of_the_hub_drains(world):
    world.start_hub(drainDelay="300ms", drainTimeout="10s")
    fake = FakeBackend(str(world.folder / "fake"))
    install(fake.api)
    site = Site(world, fake, "f1", world.folder / "f1")
    go = threading.Event()

    def slow(x):
        go.wait(20)
        x.respond(200, {"late": 1})
    fake.api.script("/api/v1/slow", slow)
    watch = site.start("GET", WATCH).wait_bytes(1)
    running = site.start("GET", "/api/v1/slow")
    fake.api.wait_request(lambda x: x.path == "/api/v1/slow")
    world.hub.signal(signal.SIGTERM)
    wait_until(lambda: admin_get(world.hub.admin, "/readyz")[0] == 503, 5, "readiness off")
    site.relay().wait_goaway(10)
    go.set()
    assert running.answer(10).status == 200  # what runs is finished
    assert watch.wait_finish(15) == "end"
    assert world.hub.wait(20) == 0
    fake.close()


def test_process_a_second_sigterm_ends_the_hub_at_once(ready):
    stream = ready.start("GET", "/api/v1/hang")
    ready.api.wait_request(lambda x: x.path == "/api/v1/hang")
    ready.world.hub.signal(signal.SIGTERM)
    wait_until(lambda: admin_get(ready.world.hub.admin, "/readyz")[0] == 503, 5, "readiness off")
    ready.world.hub.signal(signal.SIGTERM)
    ready.world.hub.wait(5)
    assert stream.wait_finish(5) in ("reset", "lost", "end")


def test_process_sigterm_of_the_agent_lets_requests_finish(ready):
    go = threading.Event()

    def slow(x):
        go.wait(20)
        x.respond(200, {"late": 1})
    ready.api.script("/api/v1/slow", slow)
    watch = ready.start("GET", WATCH).wait_bytes(1)
    running = ready.start("GET", "/api/v1/slow")
    ready.api.wait_request(lambda x: x.path == "/api/v1/slow")
    ready.agent.signal(signal.SIGTERM)
    go.set()
    assert running.answer(10).status == 200
    assert watch.wait_finish(40) == "end"
    assert ready.agent.wait(40) == 0


def serial_of(world, hub, port):
    """The serial number of the certificate that a port shows now."""
    import socket
    import testpki
    from cryptography import x509

    context = world.context()("h2" if port == "api" else "kuberelay/1")
    if port == "agent":
        pair = world.probe_pair
        context = testpki.client_context(world.ca, pair)("kuberelay/1")
    with socket.create_connection(getattr(hub, port), timeout=scaled(5)) as raw:
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
            return x509.load_der_x509_certificate(tls.getpeercert(True)).serial_number


def test_process_sighup_takes_new_certificates_and_drops_nothing(ready):
    import shutil

    world, hub = ready.world, ready.world.hub
    world.probe_pair = world.issue_agent("probe")
    watch = ready.start("GET", WATCH).wait_bytes(1)
    fresh = world.issue_hub("hub-new")
    before = {port: serial_of(world, hub, port) for port in ("api", "agent")}
    shutil.copy(fresh.key, world.hub_pair.key + ".new")
    shutil.copy(fresh.crt, world.hub_pair.crt + ".new")
    for path in (world.hub_pair.key, world.hub_pair.crt):
        shutil.move(path + ".new", path)
    hub.signal(signal.SIGHUP)
    wanted = fresh.certificate.serial_number
    wait_until(lambda: serial_of(world, hub, "api") == wanted, 10, "the new certificate")
    assert serial_of(world, hub, "agent") == wanted
    assert before["api"] != wanted and before["agent"] != wanted
    assert ready.ask("GET", "/api/v1/x").status == 200
    assert watch.reset_code is None and not watch.ended and not watch.client.lost
    assert gauge(world.metrics(), "kuberelay_hub_tunnels") >= 1


def test_process_sighup_with_a_broken_file_keeps_the_old(ready):
    from pathlib import Path

    world, hub = ready.world, ready.world.hub
    before = serial_of(world, hub, "api")
    Path(world.hub_pair.crt).write_text("not a certificate")
    mark = hub.mark()
    hub.signal(signal.SIGHUP)
    hub.wait_line(r"level=(error|warn)", 10, after=mark)
    assert hub.alive and serial_of(world, hub, "api") == before
    assert ready.ask("GET", "/api/v1/x").status == 200


def test_process_requests_of_a_hub_with_a_short_limit_end_there(world):
    """Check 28 in short: the hub's own deadline, by its option."""
    world.start_hub(requestTimeout="2s")
    fake = FakeBackend(str(world.folder / "fake"))
    install(fake.api)
    site = Site(world, fake, "f1", world.folder / "f1")
    begin = time.monotonic()
    watch = site.start("GET", "/api/v1/hang?watch=1")
    log = site.start("GET", "/api/v1/hang/x/log?follow=1")
    answer = site.ask("GET", "/api/v1/hang")
    assert answer.status == 504 and status_of(answer)["reason"] == "Timeout"
    assert answer.get("retry-after") is None
    assert 1.8 < time.monotonic() - begin < 2 + scaled(2)
    with pytest.raises(TimeoutError):
        watch.wait_headers(2)
    assert log.status is None and log.reset_code is None
    fake.close()


def test_process_admin_ports_tell_health(session_world, fake):
    for process in (session_world.hub, fake.agent):
        assert admin_get(process.admin, "/livez")[0] == 200
        assert admin_get(process.admin, "/readyz")[0] == 200
        numbers = session_world.metrics(process)
        assert any(k.startswith("kuberelay_") for k in numbers)
        assert admin_get(process.admin, "/no-such-page")[0] == 404


def test_process_an_idle_client_connection_answers_pings(fake):
    with fake.world.client() as client:
        assert client.ping() < scaled(1)


def test_check_30_pings_are_answered_while_a_download_stalls(fake):
    fake.api.script("/api/v1/big", lambda x: (x.start_stream(), [
        x.write(b"z" * 65536) for _ in range(1600)]))
    with fake.world.client(window=65535) as client:
        stream = client.start("GET", fake.prefix + "/api/v1/big", auto_window=False)
        stream.wait_bytes(60000)
        for _ in range(3):
            assert client.ping() < scaled(1)
        stream.reset()


def test_process_an_agent_leaves_through_a_connect_proxy(world):
    from connectproxy import ConnectProxy

    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    install(fake.api)
    proxy = ConnectProxy()
    site = Site(world, fake, "f1", world.folder / "f1",
                proxy=proxy.url.replace("//", "//user:p%40ss@"))
    assert site.ask("GET", "/api/v1/x").status == 200
    assert world.hub.agent_address in proxy.asked_for()
    assert b"proxy-authorization: basic dxnlcjpwqhnz" in proxy.heads[0].lower()
    proxy.close()
    fake.close()


def test_process_a_proxy_that_refuses_is_named_in_the_log(world):
    from connectproxy import ConnectProxy

    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    proxy = ConnectProxy(answer=b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    agent = world.start_agent("f1", fake.kubeconfig(world.folder / "kc"), wait=False,
                              proxy=proxy.url)
    agent.wait_line(r"level=warn.*407", 15)
    assert agent.alive
    proxy.close()
    fake.close()


def test_process_two_agents_of_one_cluster_stand_in_for_each_other(ready):
    second = ready.world.start_agent("f1", ready.agent_kubeconfig, instance="b", name="agent-b")
    second.wait_line("event=tunnel-up")
    watches = [ready.start("GET", WATCH).wait_bytes(1) for _ in range(10)]
    ready.agent.kill()
    codes = [ready.ask("GET", "/api/v1/x").status for _ in range(50)]
    assert set(codes) == {200}, codes  # held at most, never refused
    for stream in watches:
        if not stream.ended and stream.reset_code is None:
            stream.reset()
    second.kill()
    assert {s.reset_code for s in watches} == {None}


def test_process_sighup_of_the_agent_takes_a_new_certificate(ready):
    """Seen from outside: the next connection shows the instance of the new certificate."""
    import shutil

    watch = ready.start("GET", WATCH).wait_bytes(1)
    with open(ready.agent.config_path, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    fresh = ready.world.issue_agent("f1", "renewed")
    for new, old in ((fresh.key, config["keyFile"]), (fresh.crt, config["certFile"])):
        shutil.copy(new, old + ".new")
        shutil.move(old + ".new", old)
    mark = ready.agent.mark()
    ready.agent.signal(signal.SIGHUP)
    ready.agent.wait_line(r"event=\S*reload", 10, after=mark)
    assert watch.reset_code is None and not watch.ended
    assert ready.ask("GET", "/api/v1/x").status == 200
    ready.world.hub.kill()
    fresh_hub = ready.world.restart_hub(ready.world.hub)
    fresh_hub.wait_line(r"event=tunnel-up.*instance=renewed", 30)


def test_process_sighup_of_the_agent_a_faulty_part_holds_up_no_other(world):
    """logrotate has renamed the audit log, and somebody broke the policy file or a certificate."""
    world.start_hub()
    fake = FakeBackend(str(world.folder / "fake"))
    install(fake.api)
    audit, policy = world.folder / "agent-audit.log", world.folder / "policy.yaml"
    policy.write_text("mode: read-only\n", encoding="utf-8")
    site = Site(world, fake, "f1", world.folder / "f1", auditLog=str(audit),
                policyFile=str(policy))
    assert site.ask("GET", "/api/v1/x").status == 200
    with open(site.agent.config_path, encoding="utf-8") as file:
        cert = Path(yaml.safe_load(file)["certFile"])

    def reload(number):
        audit.rename(f"{audit}.{number}")
        mark = site.agent.mark()
        site.agent.signal(signal.SIGHUP)
        site.agent.wait_line("event=reload-failed", 10, after=mark)
        wait_until(audit.exists, 10, "a new file")
    policy.write_text("mode: [no\n", encoding="utf-8")
    reload(1)
    assert site.ask("GET", "/api/v1/x").status == 200
    policy.write_text("mode: 'off'\n", encoding="utf-8")
    cert.write_text("no certificate", encoding="utf-8")
    reload(2)
    assert site.ask("GET", "/api/v1/x").status == 403
    fake.close()


def test_process_overload_is_429_and_passes(world):
    world.start_hub(maxRequests=16)
    fake = FakeBackend(str(world.folder / "fake"))
    install(fake.api)
    site = Site(world, fake, "f1", world.folder / "f1")
    streams = [site.start("GET", "/api/v1/hang") for _ in range(40)]
    refused = []
    for stream in streams[16:]:
        if stream.wait_finish(10) == "reset":
            assert stream.reset_code == 7  # REFUSED_STREAM: nothing was done
        else:
            answer = stream.answer()
            assert answer.status == 429 and 1 <= int(answer.get("retry-after")) <= 32
            assert status_of(answer)["reason"] == "TooManyRequests"
        refused.append(stream)
    assert len(refused) == 24
    fake.api.wait_request(lambda x: x.path == "/api/v1/hang", count=16)
    assert len(fake.api.seen(lambda x: x.path == "/api/v1/hang")) == 16
    for stream in streams[:16]:
        stream.reset()
    wait_until(lambda: site.ask("GET", "/api/v1/x").status == 200, 5, "room again")
    fake.close()
