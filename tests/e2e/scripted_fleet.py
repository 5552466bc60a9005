# SPDX-License-Identifier: Apache-2.0
"""A scripted API server behind the fleet view: two custom types whose objects are the bytes that a
test gives, with a history one can watch, forget, turn back and break."""

import threading
import time

from backends import FakeBackend, write_yaml
from clock import scaled, wait_until
from fleet import ALL, STAR
from h2client import ConnectionLost, H2Client, StreamReset
from world import gauge

GROUP = "ex.io"
THINGS = f"/apis/{GROUP}/v1/things"
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
PROFILES = [{"name": "slims", "resources": [f"slims.{GROUP}"], "keep": ["spec.m"]}]


def listed(*raw, version, cont=""):
    more = b',"continue":"%s"' % cont.encode() if cont else b""
    return (b'{"kind":"ThingList","apiVersion":"ex.io/v1","metadata":{"resourceVersion":"%d"%s},'
            b'"items":[%s]}' % (version, more, b",".join(raw)))


def line(kind, raw):
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


class Store:
    """The objects of one type."""

    def __init__(self, kind):
        self.kind = kind
        self.cond = threading.Condition()
        self.version, self.objects, self.log = 1000, {}, []
        self.oldest = 0
        self.uids = 0
        self.readers = {}  # of each open watch: how much of the log is written

    def raw(self, name, rest, uid, version, meta=""):
        text = (f'{{"apiVersion":"ex.io/v1","kind":"{self.kind}","metadata":{{"name":"{name}",'
                f'"namespace":"d","uid":"{uid}","resourceVersion":"{version}",'
                f'"creationTimestamp":"2024-01-02T03:04:05Z"{meta}}}').encode()
        rest = rest if isinstance(rest, bytes) else rest.encode()
        return text + (b"," + rest if rest else b"") + b"}"

    def put(self, name, rest, meta="", tell=True):
        """`rest` is the text behind the metadata: members, without braces."""
        with self.cond:
            self.version += 1
            old = self.objects.get(name)
            uid = old[1] if old else f"uid-{self.uids}"
            self.uids += 1
            raw = self.raw(name, rest, uid, self.version, meta)
            self.objects[name] = (raw, uid)
            if tell:
                self.note("MODIFIED" if old else "ADDED", raw)
            return raw

    def drop(self, name, tell=True):
        with self.cond:
            self.version += 1
            raw, uid = self.objects.pop(name)
            if tell:
                self.note("DELETED", self.raw(name, "", uid, self.version))

    def note(self, kind, raw):
        """Something for the watches, under the newest version."""
        self.log.append((self.version, line(kind, raw)))
        self.cond.notify_all()

    def tell(self, data):
        """These bytes, whatever they are, to every open watch."""
        with self.cond:
            self.log.append((self.version, data))
            self.cond.notify_all()

    def bookmark(self, step=1):
        with self.cond:
            self.version += step
            self.note("BOOKMARK", (f'{{"apiVersion":"ex.io/v1","kind":"{self.kind}","metadata":'
                                   f'{{"resourceVersion":"{self.version}"}}}}').encode())

    def wait_written(self, timeout=10):
        """Until an open watch was written all of the log."""
        with self.cond:
            if not self.cond.wait_for(lambda: len(self.log) in self.readers.values(),
                                      scaled(timeout)):
                raise TimeoutError("no watch reads")

    def gone(self):
        """The watches get a 410 now."""
        with self.cond:
            self.version += 1
            self.oldest = self.version
            self.note("ERROR", b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":'
                      b'"Failure","message":"too old resource version","reason":"Expired",'
                      b'"code":410}')


class ScriptedFleet:
    def __init__(self, world, profiles=(), hub=None, **agent):
        self.world = world
        self.backend = FakeBackend(str(world.folder / "scripted"))
        self.api = self.backend.api
        self.things, self.slims = Store("Thing"), Store("Slim")
        self.chop = None  # sizes of the pieces in which bodies are written
        self.scripts = []  # for the next lists of things, one each
        self._install()
        file = write_yaml(world.folder / "fleet.yaml",
                          {"readers": [ALL], "profiles": [*PROFILES, *profiles]})
        world.start_hub(fleetFile=file, **(hub or {}))
        self.kubeconfig = self.backend.kubeconfig(str(world.folder / "scripted.kubeconfig"))
        self.agent = world.start_agent("s1", self.kubeconfig, reconnectMax="300ms", **agent)
        wait_until(lambda: self.get("/apis/ex.io/v1/things").status == 200, 20, "things")

    # -- the scripts
    def _install(self):
        api = self.api

        def answer(path, body):
            api.script(lambda x: x.path == path and x.method == "GET",
                       lambda x: x.respond(200, body))
        answer("/readyz", b"ok")
        answer("/version", {"major": "1", "minor": "33", "gitVersion": "v1.33.0"})
        answer("/api", {"kind": "APIVersions", "versions": ["v1"]})
        answer("/api/v1", {"kind": "APIResourceList", "groupVersion": "v1", "resources": []})
        version = {"groupVersion": "ex.io/v1", "version": "v1"}
        answer("/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
            {"name": GROUP, "versions": [version], "preferredVersion": version}]})
        answer("/apis/ex.io/v1", {
            "kind": "APIResourceList", "groupVersion": "ex.io/v1", "resources": [
                {"name": n, "singularName": n[:-1], "namespaced": True, "kind": k, "verbs": VERBS}
                for n, k in (("things", "Thing"), ("slims", "Slim"))]})
        for name, store in (("things", self.things), ("slims", self.slims)):
            path = f"/apis/ex.io/v1/{name}"
            api.script(lambda x, p=path: x.path == p and not x.is_watch,
                       lambda x, s=store: self._list(x, s))
            api.script(lambda x, p=path: x.path == p and x.is_watch,
                       lambda x, s=store: self._watch(x, s))

    def _write(self, x, data):
        sizes = list(self.chop or [len(data)])
        at = turn = 0
        while at < len(data):
            size = sizes[turn % len(sizes)]
            x.write(data[at:at + size])
            at, turn = at + size, turn + 1

    def _list(self, x, store):
        if store is self.things and self.scripts and "limit=1&" not in x.query + "&":
            return self.scripts.pop(0)(x)
        with store.cond:
            body = listed(*(o[0] for o in store.objects.values()), version=store.version)
        x.start(200, [("content-type", "application/json")])
        self._write(x, body)
        x.end()

    def _watch(self, x, store):
        if "sendInitialEvents" in x.query:
            return x.fail(422, "Invalid")
        since = int(dict(p.split("=") for p in x.query.split("&"))["resourceVersion"])
        if since < store.oldest:
            return x.fail(410, "Expired")
        x.start_stream()
        try:
            self._follow(x, store, since)
        finally:
            with store.cond:
                store.readers.pop(x, None)

    def _follow(self, x, store, since):
        with store.cond:
            # From the log's end if asked for later versions; a server turned back waits for them.
            at = next((i for i, (v, _) in enumerate(store.log) if v > since), len(store.log))
        while not x.cancelled_at:
            with store.cond:
                store.cond.wait_for(lambda: len(store.log) > at or x.cancelled_at, 0.2)
                lines, at = store.log[at:], max(at, len(store.log))
            data = b"".join(d for _, d in lines)
            if data:
                self._write(x, data)
            with store.cond:
                store.readers[x] = at
                store.cond.notify_all()
            if b'"type":"ERROR"' in data:
                return x.end()

    # -- through the hub
    def get(self, path=THINGS, query=""):
        with self.world.client() as client:
            return client.get(f"{STAR}{path}{query}", timeout=30)

    def body(self, path=THINGS):
        answer = self.get(path)
        assert answer.status == 200, answer
        return answer.body

    def wait_shown(self, part, timeout=20, path=THINGS):
        """Until the list has these bytes."""
        part = part if isinstance(part, bytes) else part.encode()
        try:
            wait_until(lambda: part in self.body(path), timeout, "in the fleet view", every=0.05)
        except TimeoutError:
            raise AssertionError(f"{part[:300]!r} is not in {self.body(path)[-1000:]!r}") from None

    def wait_away(self, name, timeout=20, path=THINGS):
        mark = f'"name":"{name}"'.encode()
        wait_until(lambda: mark not in self.body(path), timeout, f"{name} gone", every=0.05)

    def watch(self, path=THINGS, since=True, query=""):
        client = self.world.client()
        version = ""
        if since:
            answer = client.get(f"{STAR}{path}").json()
            version = f"&resourceVersion={answer['metadata']['resourceVersion']}"
        stream = client.start("GET", f"{STAR}{path}?watch=1{version}{query}")
        return stream.wait_headers(10)

    def lists(self, since=0):
        """Full lists of things that the API server was asked for."""
        return [x for x in self.api.seen() if x.path == THINGS and not x.is_watch
                and "limit=1&" not in x.query + "&"][since:]

    def watches(self, since=0):
        return [x for x in self.api.seen() if x.path == THINGS and x.is_watch][since:]

    def skipped(self):
        return gauge(self.world.metrics(self.agent), "kuberelay_agent_sync_skipped_total") or 0

    def close(self):
        self.backend.close()


def until(stream, part, timeout=20):
    """Waits for these bytes in a watch; returns its lines."""
    part = part if isinstance(part, bytes) else part.encode()
    try:
        stream.wait(lambda s: part in s.body, timeout)
    except (TimeoutError, StreamReset, ConnectionLost) as error:
        raise AssertionError(f"{error}: no {part[:300]!r} in {stream.body[-1500:]!r}") from error
    return stream.body.rpartition(b"\n")[0].splitlines()


def unhurried(check, seconds=1.0):
    """Holds `check` for a while: for what must not happen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert check()
        time.sleep(0.05)


__all__ = ["H2Client", "ScriptedFleet", "Store", "THINGS", "line", "listed", "unhurried", "until"]
