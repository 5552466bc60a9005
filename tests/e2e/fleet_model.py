# SPDX-License-Identifier: Apache-2.0
"""What watchers of the fleet view may be told, as a model: each follows its view over whatever
happens to hub, agents and links, and holds every event against what it has been told before."""

import json
import threading
import time
from urllib.parse import quote

from fleet import PARTIAL, STAR, TABLE, bare, cluster_of
from h2client import ConnectionLost, H2Client, StreamReset

END = {"k8s.io/initial-events-end": "true"}


class View:
    """A part of the fleet as one would ask for it, and what belongs to it."""

    def __init__(self, path, accept=None, keep=lambda key, obj: True, **query):
        self.path, self.accept, self.keep, self.query = path, accept, keep, query

    def __repr__(self):
        return f"{self.path} {self.query} {(self.accept or 'objects')[17:26]}"

    def url(self, **more):
        text = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in {**self.query, **more}.items())
        return f"{STAR}{self.path}{'?' if text else ''}{text}"

    def headers(self):
        return [("accept", self.accept)] if self.accept else []

    def of(self, union):
        """What of {key: object} this view shows."""
        return {k: self.form(o) for k, o in union.items() if self.keep(k, o)}

    def form(self, obj):
        """What is compared: a whole object, or its metadata. Without its origin version: a change
        of nothing but managedFields is not synced, so that the fleet view may show an older one."""
        obj = {**obj, "metadata": {**obj["metadata"]}}
        del obj["metadata"]["resourceVersion"]
        return obj if not self.accept else {"metadata": obj["metadata"]}

    def entries(self, document):
        """[(key, content, version, origin version)] of a list or of the object of an event."""
        if document.get("kind") == "Table":
            objects = [row["object"] for row in document["rows"]]
        else:
            objects = document["items"] if "items" in document else [document]
        found = []
        for obj in objects:
            meta = obj["metadata"]
            one = (cluster_of(obj), meta.get("namespace", ""), meta["name"])
            plain = bare(obj)
            found.append((one, self.form(plain), int(meta["resourceVersion"]),
                          int(plain["metadata"]["resourceVersion"])))
        return found


def metadata_view(path, **query):
    return View(path, PARTIAL, **query)


def table_view(path, **query):
    return View(path, TABLE, **query)


class Wrong(AssertionError):
    """An event that no sequence of changes explains."""


class Follower(threading.Thread):
    """Follows one view for as long as it is let: lists or starts from nothing, watches, and goes
    on where it was whenever its watch ends. `epoch` is the number of hub starts so far."""

    def __init__(self, site, view, start="list", seconds=None, at=None):
        super().__init__(daemon=True)
        self.site, self.view, self.begin, self.seconds = site, view, start, seconds
        self.held, self.version, self.epoch = {}, 0, site.epoch
        self.lists = self.watches = self.events = self.expired = 0
        self.fault = None
        self.open = None
        self.lock = threading.Lock()
        self.halted = False
        self.recent = []
        if at:
            self.begin, (self.epoch, self.version, self.held) = "at", at
            self.held = dict(self.held)
        self.start()

    # -- what a test does with it
    def halt(self):
        self.halted = True
        self.cut()
        self.join(20)

    def cut(self):
        """The connection is lost, now."""
        client = self.open
        if client is not None:
            client.sock.shutdown()

    def state(self):
        """{key: content}, and the versions of its objects."""
        with self.lock:
            if self.fault:
                raise self.fault
            return ({k: v[0] for k, v in self.held.items()},
                    {k: v[1] for k, v in self.held.items()})

    def place(self):
        """Where it is, to start another one from there later."""
        with self.lock:
            return (self.epoch, self.version, dict(self.held))

    # -- the thread
    def run(self):
        while not self.halted and not self.fault:
            try:
                self.follow()
            except (OSError, ConnectionLost, StreamReset, TimeoutError):
                time.sleep(0.05)  # the hub is away: dial again
            except Exception as error:  # shown by state()
                self.fault = error if isinstance(error, Wrong) else Wrong(
                    f"{self.view}: {type(error).__name__}: {error}")
            finally:
                self.open = None

    def follow(self):
        epoch = self.site.epoch
        with H2Client(self.site.address, self.site.context) as client:
            self.open = client
            if self.begin == "list" and not self.list(client, epoch):
                time.sleep(0.1)
                return
            self.watch(client, epoch)

    def list(self, client, epoch):
        answer = client.get(self.view.url(), self.view.headers() if self.view.accept == TABLE
                            else [], timeout=30)
        if answer.status in (429, 503):
            return False
        if answer.status != 200:
            raise Wrong(f"{self.view}: a list got {answer}")
        body = answer.json()
        version = int(body["metadata"]["resourceVersion"])
        found = self.view.entries(body)
        if len({f[0] for f in found}) != len(found):
            raise Wrong(f"{self.view}: an object twice in a list")
        if any(f[2] > version for f in found):
            raise Wrong(f"{self.view}: an object newer than its list")
        with self.lock:
            self.held = {f[0]: f[1:] for f in found}
            self.version, self.epoch = version, epoch
            self.lists += 1
        self.begin = "at"
        return True

    def watch(self, client, epoch):
        query = {"watch": "1", "allowWatchBookmarks": "true"}
        initial = self.begin in ("nothing", "initial")
        if self.begin == "at":
            query["resourceVersion"] = self.version
        elif self.begin == "initial":
            query.update(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
        if self.seconds and not initial:
            query["timeoutSeconds"] = self.seconds
        stream = client.start("GET", self.view.url(**query), self.view.headers())
        stream.wait_headers(15)
        if stream.status in (429, 503):
            stream.wait_finish(5)
            time.sleep(0.1)
            return
        if stream.status != 200:
            raise Wrong(f"{self.view}: a watch got {stream.status} {stream.body[:300]}")
        self.watches += 1
        reading = Reading(self, epoch, initial)
        seen = rest = 0
        data = b""
        while not self.halted:
            try:
                stream.wait(lambda s: len(s.chunks) > seen or s.ended, 5)
            except TimeoutError:
                continue
            finally:
                pieces = stream.chunks[seen:]
                seen += len(pieces)
                data = data[rest:] + b"".join(p for _, p in pieces)
                rest = data.rfind(b"\n") + 1
                for line in data[:rest].splitlines():
                    reading.take(json.loads(line))
            if reading.over or (stream.ended and seen == len(stream.chunks)):
                break

    def log(self, event):
        obj = event["object"]
        if obj.get("kind") == "Table":
            obj = obj["rows"][0]["object"]
        meta = obj.get("metadata", {})
        self.recent = self.recent[-30:] + [(event["type"], cluster_of(obj), meta.get("name"),
                                            meta.get("resourceVersion"))]


class Reading:
    """The events of one stream against what the follower holds."""

    def __init__(self, follower, epoch, initial):
        self.f, self.epoch, self.over = follower, epoch, False
        self.initial = {} if initial else None
        self.marked = follower.begin == "initial"
        self.highest = 0 if initial else follower.version
        if initial and not self.marked:  # nothing will say that these are all
            with follower.lock:
                follower.held = self.initial

    def wrong(self, why, event):
        f = self.f
        raise Wrong(f"{f.view}: {why}: {json.dumps(event)[:600]} after {f.recent}, begun as "
                    f"{f.begin} at {f.version}")

    def take(self, event):
        with self.f.lock:
            kind = event["type"]
            if kind == "ERROR":
                self.error(event)
            elif kind == "BOOKMARK":
                self.bookmark(event)
            elif self.initial is not None and self.first(event):
                pass
            else:
                self.change(event)
            self.f.log(event)

    def error(self, event):
        if event["object"].get("code") != 410:
            self.wrong("an error", event)
        if self.f.epoch == self.f.site.epoch and not self.f.site.overflows:
            self.wrong("410 without a new hub", event)
        self.f.expired += 1
        self.f.begin, self.over = "list", True

    def bookmark(self, event):
        obj = event["object"]
        if obj.get("kind") == "Table":
            obj = obj["rows"][0]["object"]
        meta = obj["metadata"]
        version = int(meta["resourceVersion"])
        if version < self.highest:
            self.wrong("a bookmark of the past", event)
        if self.initial is not None and self.marked and meta.get("annotations") != END:
            return
        self.settle()
        self.highest = self.f.version = version

    def settle(self):
        """What came first is what there was."""
        if self.initial is None:
            return
        self.f.held, self.initial = self.initial, None
        self.f.epoch, self.f.begin = self.epoch, "at"
        self.f.lists += 1

    def first(self, event):
        """What tells what there is: ADDED in no order of versions. Changes may come before the
        bookmark that ends it, as they may from kube-apiserver; without one, the first change is
        the end of it."""
        (key, *rest), = self.f.view.entries(event["object"])
        if event["type"] == "ADDED" and key not in self.initial:
            self.initial[key] = tuple(rest)
            return True
        self.highest = 0
        if not self.marked:
            self.settle()
        return False

    def change(self, event):
        held = self.f.held if self.initial is None else self.initial
        (key, content, version, origin), = self.f.view.entries(event["object"])
        if version <= self.highest:
            self.wrong("not newer than what came before", event)
        before = held.get(key)
        kind = event["type"]
        if (kind == "ADDED") != (before is None):
            self.wrong("there already" if before else "never was there", event)
        uid = content["metadata"]["uid"]
        if before and before[0]["metadata"]["uid"] != uid:
            self.wrong("another object than the one that was there", event)
        if kind == "MODIFIED" and before[2] == origin:
            self.wrong("told before", event)
        if kind == "DELETED":
            del held[key]
        else:
            held[key] = (content, version, origin)
        self.highest = version
        if self.initial is None:
            self.f.version = version
        self.f.events += 1
