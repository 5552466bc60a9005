# SPDX-License-Identifier: Apache-2.0
"""An agent that lies in Catalog and Sync (T33); the tests and ./dev bench fleet share it."""

import json
import struct

from h2.events import RequestReceived, StreamEnded, StreamReset, WindowUpdated

from secondagent import SecondAgent, bytes_field, grpc, number_field, varint


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def kind_of(group="", version="v1", resource="pods", kind="Pod", spaced=True):
    return bytes_field(1, bytes_field(1, group.encode()) + bytes_field(2, version.encode())
                       + bytes_field(3, resource.encode()) + bytes_field(4, kind.encode())
                       + bytes_field(5, kind.lower().encode()) + number_field(8, int(spaced))
                       + number_field(9, 1))


def upsert(name, obj=None, namespace="default", uid="u", cells=b"", plain=None, size=None, **more):
    if obj is None:
        obj = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, "spec": {}}
    if plain is None:
        plain = cells + b"\n" + json.dumps(obj).encode()
    message = (bytes_field(1, namespace.encode()) + bytes_field(2, name.encode())
               + bytes_field(3, uid.encode()) + bytes_field(4, b"1")
               + fixed(5, more.get("hash", 7)) + number_field(7, more.get("dictionary", 0))
               + number_field(8, len(plain) if size is None else size) + bytes_field(9, plain))
    return bytes_field(3, message)


END = number_field(5, 1) + bytes_field(6, b"1")


class Rogue(SecondAgent):
    """Answers Catalog with `catalog` and every Sync with `batches`: messages, or raw bytes."""

    def __init__(self, hub, ca, pair, catalog, batches):
        self.catalog, self.batches, self.queues, self.opened = catalog, batches, {}, 0
        self.sent = 0  # bytes of both
        super().__init__(hub, ca, pair)

    def send_state(self):
        self.beats += 1
        self.h2.send_data(self.attach, grpc(
            bytes_field(2, b"second") + bytes_field(3, self.boot_id) + number_field(4, 1) +
            number_field(7, 1) + number_field(9, self.beats) + bytes_field(12, b"sync/1")))

    def on_event(self, event):
        if isinstance(event, RequestReceived):
            path = dict(event.headers)[":path"]
            if path.endswith(("/Catalog", "/Sync")):
                self.h2.send_headers(event.stream_id, [(":status", "200"),
                                                       ("content-type", "application/grpc")])
                self.heads[event.stream_id] = ({":path": path}, b"")
                if path.endswith("/Catalog"):
                    self.queues[event.stream_id] = b"".join(self.catalog)
                    self.push(event.stream_id)
                return
        if isinstance(event, StreamEnded) and self.heads.get(event.stream_id, ({},))[0].get(
                ":path", "").endswith(("/Catalog", "/Sync")):
            return
        if isinstance(event, StreamReset) and event.stream_id in self.queues:
            self.queues[event.stream_id] = b""
        super().on_event(event)
        stream = getattr(event, "stream_id", None)
        head, body = self.heads.get(stream, ({}, b""))
        if head.get(":path", "").endswith("/Sync") and stream not in self.queues and len(body) > 5:
            self.opened += 1
            self.queues[stream] = b"".join(self.batches)
        if isinstance(event, WindowUpdated) or stream in self.queues:
            for each in list(self.queues):
                self.push(each)

    def more(self, stream):
        """What follows when all is sent."""
        return b""

    def push(self, stream):
        data = self.queues[stream]
        try:
            while (data := data or self.more(stream)) and \
                    (room := min(self.h2.local_flow_control_window(stream), 16384)) > 0:
                self.h2.send_data(stream, data[:room])
                self.sent += len(data[:room])
                data = data[room:]
        except Exception:  # the hub has reset it, or ended the tunnel
            data = b""
        self.queues[stream] = data


CATALOG = [grpc(kind_of())]
LIE = {"metadata": {"name": "lie", "namespace": "default", "uid": "u",
                    "labels": {"kuberelay.io/cluster": "c1"},
                    "annotations": {"kcp.io/cluster": "c1", "kuberelay.io/resource-version": "1",
                                    "multicluster.x-k8s.io/cluster-name": "c1",
                                    "kuberelay.io/stale-since": "never"}}}
DEEP = b"\n" + b'{"metadata":{"name":"deep","namespace":"default","uid":"u"},"x":' + b"[" * 100000


def batch(*parts):
    return grpc(b"".join(parts))


def many(count, size):
    return [batch(upsert(f"fat-{n}", {"metadata": {"name": f"fat-{n}", "namespace": "default",
                                                   "uid": "u"}, "x": "y" * size}))
            for n in range(count)]


LIES = {
    "names the other": [batch(upsert("lie", LIE), END)],
    "its own names twice": [batch(upsert("lie", plain=b'\n{"metadata":{"name":"lie","namespace":'
                                         b'"default","uid":"u","labels":{"kuberelay.io/cluster":'
                                         b'"c1","kuberelay.io/cluster":"c1"},"labels":{}}}'), END)],
    "no json": [batch(upsert("a", plain=b"\n{"), upsert("b", plain=b"\n\xff"), END)] * 60,
    "another name": [batch(upsert("a", {"metadata": {"name": "b", "namespace": "default",
                                                     "uid": "u"}}), END)],
    "another namespace": [batch(upsert("a", {"metadata": {"name": "a", "namespace": "kube-system",
                                                          "uid": "u"}}), END)],
    "no metadata": [batch(upsert("a", {"spec": {}}), upsert("c", plain=b"\n[]"), END)],
    "control characters": [batch(upsert("a\nb"), upsert("\x00"), upsert("x" * 100_000), END)],
    "long names": [batch(*(upsert("n" * 2000 + str(n)) for n in range(1000)), END)],
    "names that are paths": [batch(upsert("../../c1"), upsert("a/b"), upsert("*"), END)],
    "empty names": [batch(upsert(""), END)],
    "wrong sizes": [batch(upsert("a", size=1), upsert("b", size=4 << 20), upsert("c", size=0),
                          upsert("d", size=1 << 31), END)],
    "packed without sense": [batch(upsert("a", plain=b"\x28\xb5\x2f\xfd" * 100, size=4 << 20,
                                          dictionary=1), END)],
    "a dictionary of the future": [batch(upsert("a", dictionary=77), END)],
    "very deep": [batch(upsert("deep", plain=DEEP + b"]" * 100000 + b"}"), END)],
    "deletes at random": [grpc(b"".join(fixed(4, n * 0x9E3779B97F4A7C15 % 2**64)
                                        for n in range(4000)) + END)] * 5,
    "upserts and deletes of one": [batch(upsert("a"), fixed(4, 0), fixed(4, 0), END)],
    "columns without sense": [batch(bytes_field(1, b'[{"name":"Evil","type":"x"}]'),
                                    upsert("a", cells=b'["evil",1,2,3,4,5,6,7,8,9]'), END)],
    "columns that are none": [batch(bytes_field(1, b'{"a":'), END)],
    "huge columns": [batch(bytes_field(1, b"[" + b"{}," * 100_000 + b"{}]"), END)],
    "cells that are none": [batch(upsert("a", cells=b'{"a":1}'), upsert("b", cells=b"[" * 5000),
                                  END)],
    "buckets": [batch(varint(2 << 3 | 2), varint(3), b"\x01\x01\xff", END)] * 3,
    "buckets that are none": [batch(*(number_field(2, n) for n in (256, 2**31, 2**32 - 1)), END)],
    "problems": [batch(number_field(7, 99), number_field(9, 1), bytes_field(8, b"x" * 60_000))],
    "not served": [batch(upsert("a"), END), batch(number_field(7, 2), number_field(9, 1))],
    "half a message": [grpc(b"x" * 1000)[:500]],
    "no message": [b"\x00\xff\xff\xff\xff" + b"x" * 1000],
    "a compressed one": [b"\x01" + grpc(END)[1:]],
    "no protobuf": [grpc(b"\xff" * 1000)],
    "ends without number": [batch(END)] * 3000,
    "the same again": [batch(upsert("same", {"metadata": {"name": "same", "namespace": "default",
                                                          "uid": "u"}, "n": n % 2}, hash=n % 2),
                             END) for n in range(3000)],
    "ten times the quota": many(200, 100_000),
}

TYPES = {
    "another kind": [grpc(kind_of(kind="Evil", spaced=False))],
    "a kind that is none": [grpc(kind_of(resource="../x", kind="a b\n"))],
    "secrets": [grpc(kind_of(resource="secrets", kind="Secret") + kind_of())],
    "no end": [grpc(kind_of(resource=f"r{n}") * 10 + number_field(2, 1)) for n in range(3000)],
    "very many": [grpc(b"".join(kind_of(f"g{n}.io", "v1", f"r{m}", f"K{m}") for m in range(900)))
                  for n in range(30)],
    "empty": [grpc(b"")],
    "no protobuf": [grpc(b"\xff" * 100)],
    "one after the other": [grpc(kind_of(resource=f"r{n}")) for n in range(500)],
    "long": [grpc(kind_of("g" * 5000, "v" * 5000, "r" * 5000, "K" * 5000))],
}
