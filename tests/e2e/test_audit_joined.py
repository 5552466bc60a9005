# SPDX-License-Identifier: Apache-2.0
"""T37: what the hub logged, what the agent logged and what the API server got are the same requests:
joined one to one by the audit id, each with the outcome that it had. Several clients ask at once;
then agents are killed in the middle of it.

KUBERELAY_TEST_SEED=N asks the same again."""

import json
import random
import threading
import time

import h2.exceptions
import pytest

import auditlog
from auditlog import settle
from backends import FakeBackend, write_yaml
from clock import scaled, wait_until
from cluster_site import JSON, Site
from fakeapi import Gone
from h2client import ConnectionLost, StreamReset
from test_fleet_model import seed_of_run
from test_upgrades import FORMS
from world import CLOSED

SPACE = "/api/v1/namespaces/default"
PROJECTS = [
    {"name": "all", "members": {"users": ["admin"]}, "clusters": ["*"],
     "rules": [{"resources": ["*", "secrets"], "verbs": ["*", "connect"]},
               {"nonResourcePaths": ["/*"], "verbs": ["get"]}]},
    {"name": "few", "members": {"users": ["paula"]}, "clusters": ["f1"],
     "rules": [{"resources": ["pods"], "verbs": ["get"]}]}]


class Kind:
    """One way to ask, and what the three logs must say of it."""

    def __init__(self, method, path, outcome="completed", code=None, agent=True, server=True,
                 user="admin", how="ask"):
        self.method, self.path, self.outcome, self.code = method, path, outcome, code
        self.agent, self.server, self.user, self.how = agent, server, user, how


REFUSED = {"outcome": "not-forwarded", "server": False}
KINDS = {
    "read": Kind("GET", f"{SPACE}/pods/p", code=200),
    "head": Kind("HEAD", f"{SPACE}/pods/p", code=200),
    "list": Kind("GET", "/api/v1/pods", code=200),
    "version": Kind("GET", "/version", code=200),
    "write": Kind("POST", f"{SPACE}/pods", code=201),
    "patch": Kind("PATCH", f"{SPACE}/pods/p", code=200),
    "delete": Kind("DELETE", f"{SPACE}/pods/p", code=200),
    "not-found": Kind("GET", f"{SPACE}/pods/none", code=404),
    "conflict": Kind("PUT", f"{SPACE}/pods/conflict", code=409),
    "failing": Kind("POST", f"{SPACE}/pods/failing", code=500),
    "half": Kind("GET", f"{SPACE}/pods/half", code=200),  # its body is cut
    "lost-write": Kind("PUT", f"{SPACE}/pods/lost", "unknown", code=504),
    "left-write": Kind("PUT", f"{SPACE}/pods/hold", "unknown", code=499, how="leave"),
    "left-read": Kind("GET", f"{SPACE}/pods/hold", "unknown", code=499, how="leave"),
    "too-slow": Kind("PUT", f"{SPACE}/pods/hold", "unknown", code=504),
    "watch": Kind("GET", f"{SPACE}/pods?watch=1", code=200, how="watch"),
    "watch-cut": Kind("GET", "/api/v1/pods?watch=true", code=200, how="cut"),
    "exec": Kind("GET", f"{SPACE}/pods/p/exec?command=id", code=101, how="websocket"),
    "exec-post": Kind("POST", f"{SPACE}/pods/p/exec?command=id", code=101, how="spdy"),
    "exec-refused": Kind("GET", f"{SPACE}/pods/no/exec?command=id", code=403, how="websocket"),
    "bad-path": Kind("GET", "/api/v1/namespaces/a%2Fb/pods", code=400, agent=False, **REFUSED),
    "unknown": Kind("GET", f"{SPACE}/pods", code=403, agent=False, user="nobody", **REFUSED),
    "forbidden": Kind("DELETE", f"{SPACE}/pods/p", code=403, agent=False, user="paula", **REFUSED),
    "at-the-edge": Kind("GET", f"{SPACE}/secrets/s", code=403, **REFUSED),
    "write-at-the-edge": Kind("POST", f"{SPACE}/secrets", code=403, **REFUSED),
}
RARE = {"too-slow": 250}  # one in so many of the others: each takes seconds


class Joined:
    """Hub and agent with audit logs before a scripted API server that speaks HTTP/1.1, where an
    exchange that dies takes no other with it."""

    def __init__(self, world):
        self.world, self.held, self.dying = world, {}, False
        self.logs = [world.folder / f"{end}-audit.log" for end in ("hub", "agent")]
        world.start_hub(auditLog=str(self.logs[0]), requestTimeout="4s",
                        fleetFile=write_yaml(world.folder / "fleet.yaml", {"projects": PROJECTS}))
        policy = write_yaml(world.folder / "edge.yaml", {
            "mode": "read-write", "exec": True, "open": [c for c in CLOSED if c != "secrets"]})
        self.fake = FakeBackend(str(world.folder / "fake"), protocols=["http/1.1"])
        self.site = Site(world, self.fake, "f1", world.folder / "f1", auditLog=str(self.logs[1]),
                         policyFile=policy)
        self.site.api.script(lambda x: x.path.startswith((SPACE, "/api/v1/pods", "/version")),
                             self.serve)

    # -- the API server
    def serve(self, x):
        if "exec" in x.path:
            return self.serve_exec(x)
        if x.is_watch:
            return serve_watch(x)
        x.body()
        name = x.path.rpartition("/")[2]
        if name == "hold":
            self.held[mark_of(x.query)].set()
            return x.hold()
        if name == "lost":
            return x.abort()
        if name == "half":
            x.start(200, [("content-type", "application/json"), ("content-length", "1000")])
            x.write(b'{"half":')
            return x.abort()
        code = {"none": 404, "conflict": 409, "failing": 500}.get(name)
        if code:
            return x.fail(code, "Scripted")
        return x.respond(201 if x.method == "POST" else 200, {"kind": "x"})

    @staticmethod
    def serve_exec(x):
        if "/no/" in x.path:
            return x.fail(403, "Forbidden")
        fields = FORMS["spdy" if x.method == "POST" else "websocket"][2]
        x.raw(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n{fields}\r\n".encode())
        while data := x.read_raw(scaled(20)):
            x.raw(data)
        return x.abort()

    # -- what was logged
    def settle(self):
        settle(self.world, self.site.agent)

    def joined(self):
        """({mark: line of the hub}, {id: line of the agent}, {id: requests of the API server})."""
        hub, agent = (auditlog.by_id(auditlog.events(path)) for path in self.logs)
        server = {}
        for x in self.site.relayed():
            if "impersonate-user" in x.names():
                server.setdefault(x.get("audit-id"), []).append(x)
        return {m: e for e in hub.values() if (m := mark_of(e["requestURI"]))}, agent, server


def serve_watch(x):
    x.start_stream()
    try:
        for n in range(1000):
            x.event("ADDED", {"kind": "Pod", "metadata": {"name": f"p{n}", "resourceVersion": f"{n}"}})
            if "watch=1" in x.query and n == 3:
                return x.end()
            x.wait(lambda x: False, 0.01)
    except Gone:
        pass
    return None


def mark_of(text):
    return text.partition("mark=")[2]


class Asker(threading.Thread):
    """One client: requests of all kinds in any order. `answers` is {mark: (kind, status)}; None for
    the status of one that got no answer."""

    def __init__(self, joined, number, count, seed, only=None):
        super().__init__(daemon=True)
        self.joined, self.number, self.count = joined, number, count
        self.rng = random.Random(f"{seed}-{number}")
        self.kinds, self.rare = only or [k for k in KINDS if k not in RARE], {} if only else RARE
        self.answers, self.fault, self.clients = {}, None, {}
        self.start()

    def run(self):
        try:
            for n in range(self.count):
                kind = self.rng.choice(self.kinds)
                for rare, share in self.rare.items():
                    if self.rng.random() < 1 / share:
                        kind = rare
                mark = f"{self.number}-{n}-{kind}"
                self.answers[mark] = (kind, self.one(kind, mark))
        except BaseException as error:
            self.fault = error

    def client(self, user):
        old = self.clients.get(user)
        if old is None or old.lost or old.goaway:
            self.clients[user] = self.joined.world.client(user)
        return self.clients[user]

    def one(self, name, mark):
        kind = KINDS[name]
        path = f"/clusters/f1{kind.path}{'&' if '?' in kind.path else '?'}mark={mark}"
        self.joined.held[mark] = threading.Event()
        if kind.how in FORMS:
            return self.upgrade(kind, path)
        body = b"{}" if kind.method in ("POST", "PUT", "PATCH") else None
        stream = self.client(kind.user).start(kind.method, path, [JSON] if body else [], end=not body)
        try:
            if body:
                stream.send(body, end=True)
            return getattr(self, kind.how)(stream, mark)
        except (StreamReset, ConnectionLost, h2.exceptions.ProtocolError):
            return stream.status  # also where the answer came before the body was sent

    def ask(self, stream, _):
        stream.wait_finish(scaled(30))
        return stream.status

    watch = ask

    def cut(self, stream, _):
        stream.wait_headers(20)
        time.sleep(self.rng.uniform(0, 0.05))
        stream.reset()
        return stream.status

    def leave(self, stream, mark):
        """Once the API server has it; unless an agent died under it before."""
        held = self.joined.held[mark]
        wait_until(lambda: held.is_set() or stream.status or stream.client.lost, 20, "it arrived")
        if held.is_set() and not stream.status:
            stream.reset()
            return 499
        return self.ask(stream, mark)

    def upgrade(self, kind, path):
        status = None
        with self.joined.world.h1(kind.user) as client:
            client.head(kind.method, path, FORMS[kind.how][1])
            try:
                status, _ = client.read_head(20)
                if status == 101:
                    client.send(b"echo")
                    assert client.exactly(4, time.monotonic() + scaled(20)) == b"echo"
            except (ConnectionLost, OSError):
                assert self.joined.dying, "nobody died"
        return status


def ask_all(joined, clients, count, seed, only=None, meanwhile=lambda askers: None):
    for kind in KINDS.values():
        joined.world.user(kind.user)  # one makes the certificates, and not each its own
    askers = [Asker(joined, f"{seed % 1000}.{n}", count, seed, only) for n in range(clients)]
    meanwhile(askers)
    answers = {}
    for asker in askers:
        asker.join(scaled(600))
        if asker.fault:
            raise asker.fault
        answers.update(asker.answers)
    joined.settle()
    return answers


def check_exactly(joined, answers):
    """Nothing was killed: each line of each log is the one that it must be."""
    hub, agent, server = joined.joined()
    for mark, (name, status) in answers.items():
        kind, at_hub = KINDS[name], hub[mark]
        audit_id = at_hub["auditID"]
        # Where a body is cut at once, its head may never have left.
        assert status == kind.code or (name == "half" and status is None), (mark, status, at_hub)
        assert at_hub["responseStatus"]["code"] == kind.code, (mark, at_hub)
        assert auditlog.note(at_hub, "outcome") == kind.outcome, (mark, at_hub)
        assert at_hub["user"]["username"] == kind.user, (mark, at_hub)
        assert len(server.get(audit_id, [])) == int(kind.server), (mark, server.get(audit_id))
        assert (audit_id in agent) == kind.agent, (mark, at_hub)
        if not kind.agent:
            continue
        at_agent = agent[audit_id]
        assert auditlog.note(at_agent, "outcome") == kind.outcome, (mark, at_agent)
        # The hub gave it up, and the agent saw it go.
        code = 499 if name == "too-slow" else kind.code
        assert at_agent["responseStatus"]["code"] == code, (mark, at_agent)
        assert at_hub["requestURI"] == "/clusters/f1" + at_agent["requestURI"]
        for member in ("verb", "user", "objectRef"):
            assert at_agent.get(member) == at_hub.get(member), (mark, at_agent, at_hub)
        for x in server.get(audit_id, []):
            assert x.target.decode() == at_agent["requestURI"], (x, at_agent)
            assert x.method == kind.method, (x, at_agent)
    ids = {e["auditID"] for e in auditlog.by_id(auditlog.events(joined.logs[0])).values()}
    assert len(hub) >= len(answers)
    assert set(agent) <= ids, "the agent got what the hub did not log"
    assert set(server) <= set(agent), "the API server got what the agent did not log"


def check_after_kills(joined, answers):
    """Agents died in the middle: what is certain must be true, and what is not must be unknown."""
    hub, _, server = joined.joined()
    begun = {e["auditID"] for e in auditlog.events(joined.logs[1])}
    count = {"completed": 0, "unknown": 0, "not-forwarded": 0}
    for mark, (name, status) in answers.items():
        at_hub = hub[mark]
        outcome, arrived = auditlog.note(at_hub, "outcome"), server.get(at_hub["auditID"], [])
        code = at_hub["responseStatus"]["code"]
        count[outcome] += 1
        assert len(arrived) <= 1, (mark, arrived)
        # Who leaves (499) while an agent dies does not hear which of the two came first.
        assert status in (None, 499, code), (mark, status, at_hub)
        if outcome == "not-forwarded":
            assert not arrived, (mark, at_hub, arrived)
        elif outcome == "completed":
            assert arrived and code == KINDS[name].code, (mark, at_hub, arrived)
        else:
            assert code in (429, 499, 502, 503, 504), (mark, at_hub)
        if arrived and arrived[0].method not in ("GET", "HEAD"):
            assert at_hub["auditID"] in begun, (mark, "written before it was logged at the edge")
    return count


def whole_chains(joined):
    """The hub's is one; the agent's goes on after each death, with what the death tore."""
    auditlog.check_chain(auditlog.lines(joined.logs[0]))
    raw, at = auditlog.lines(joined.logs[1]), 0
    for n, line in enumerate(raw):
        try:
            json.loads(line)
        except ValueError:
            auditlog.check_chain(raw[at:n], raw[at - 1] if at else None)
            at = n + 1
    auditlog.check_chain(raw[at:], raw[at - 1] if at else None)


def run_joined(world, requests, kills):
    seed = seed_of_run()
    joined = Joined(world)
    try:
        answers = ask_all(joined, 4, requests // 4, seed)
        check_exactly(joined, answers)
        got = {name for name, _ in answers.values()}
        assert got >= set(KINDS) - set(RARE), set(KINDS) - got
        whole_chains(joined)
        killed = ask_all(joined, 4, requests // 8, seed + 1, [
            "read", "list", "write", "patch", "delete", "conflict", "watch", "left-write", "exec"],
            lambda askers: kill_agents(joined, askers, kills, seed))
        count = check_after_kills(joined, killed)
        whole_chains(joined)
    except BaseException as error:
        raise AssertionError(f"KUBERELAY_TEST_SEED={seed}: {error}") from error
    finally:
        joined.fake.close()
    print(f"seed {seed}: {len(answers)} requests; with {kills} deaths {len(killed)}: {count}")
    assert len(answers) >= requests - 4 and count["completed"]


def kill_agents(joined, askers, kills, seed):
    rng, site, joined.dying = random.Random(seed), joined.site, True
    for _ in range(kills):
        done = sum(len(a.answers) for a in askers)
        wait_until(lambda d=done: sum(len(a.answers) for a in askers) > d + 10 or
                   not any(a.is_alive() for a in askers), 60, "requests go on")
        time.sleep(rng.uniform(0, 0.1))
        site.agent.kill()
        site.agent = joined.world.restart_agent(site.agent)


def test_t37_a_thousand_mixed_requests_are_joined_one_to_one(world):
    run_joined(world, 1000, 4)


def test_t37_a_watch_that_was_lost_is_an_unknown_outcome(world):
    joined = Joined(world)
    try:
        joined.site.api.script(lambda x: x.is_watch, lambda x: x.hold())
        stream = joined.site.start("GET", f"{SPACE}/pods?watch=1&mark=lost")
        x = joined.site.api.wait_request(lambda x: x.is_watch)
        joined.site.agent.kill()
        stream.wait_finish(scaled(20))
        assert stream.status == 429
        joined.settle()
        at_hub = joined.joined()[0]["lost"]
        assert at_hub["auditID"] == x.get("audit-id"), "it has arrived"
        assert auditlog.note(at_hub, "outcome") == "unknown", at_hub
    finally:
        joined.fake.close()


@pytest.mark.long
def test_t37_ten_thousand_mixed_requests_are_joined_one_to_one(world):
    run_joined(world, 10000, 50)
