# SPDX-License-Identifier: Apache-2.0
"""An audit log that takes no lines (T39): what changes something is refused, reads go on, and it is
over by itself; or lines are lost and counted, if the operator wants that."""

import fcntl
import json
import os
import signal
import subprocess
import threading

import pytest

import auditlog
from backends import FakeBackend
from clock import wait_until
from cluster_site import JSON, Site
from world import gauge

POD = "/api/v1/namespaces/default/pods/p"
LIMITED = ("prlimit", "--fsize=6000:unlimited")


def ok(x):
    x.respond(200, {"kind": "x"})


class Sink:
    """Hub or agent with an audit log of our choice, in front of the scripted API server."""

    def __init__(self, world, end, log, mode="strict", prefix=()):
        self.world, self.end = world, end
        more = {"auditLog": str(log), "auditMode": mode, "prefix": prefix}
        world.start_hub(**(more if end == "hub" else {}))
        self.fake = FakeBackend(str(world.folder / "fake"))
        self.site = Site(world, self.fake, "f1", world.folder / "f1",
                         **(more if end == "agent" else {}))
        self.site.api.script(lambda x: x.path.startswith("/api/v1/namespaces/default"), ok)

    @property
    def process(self):
        return self.world.hub if self.end == "hub" else self.site.agent

    def read(self, path=POD):
        return self.site.ask("GET", path).status

    def write(self):
        return self.site.ask("POST", "/api/v1/namespaces/default/pods", [JSON], b"{}")

    def connect(self):
        return self.site.ask("GET", POD + "/exec?command=id")

    def number(self, what):
        return gauge(self.world.metrics(self.process), f"kuberelay_{self.end}_audit_{what}")

    def sent(self, method):
        return len(self.site.api.seen(lambda x: x.method == method))

    def refuses(self, says):
        answer = self.write()
        assert answer.status == 503, answer
        body = json.loads(answer.body)
        assert body["kind"] == "Status" and says in body["message"], body
        assert answer.get("retry-after") == "1", answer
        assert self.connect().status == 503, "exec by GET is no read"
        assert self.read() == 200, "reads go on"
        assert self.number("failing") == 1
        assert self.process.grep("event=audit-failing")

    def recovers(self):
        wait_until(lambda: self.number("failing") == 0, 10, "the log takes lines again")
        assert self.process.grep("event=audit-recovered")
        assert self.write().status == 200


@pytest.fixture(params=["hub", "agent"])
def end(request):
    return request.param


def test_t39_a_full_device_refuses_writes_and_serves_reads(world, end):
    sink = Sink(world, end, "/dev/full")
    sink.refuses("audit log of the " + ("relay" if end == "hub" else "agent"))
    assert sink.sent("POST") == 0, "nothing was changed without a line in the log"
    sink.fake.close()


def test_t39_a_disk_with_room_again_is_used_again_and_no_line_is_lost(world, end):
    log = world.folder / "audit.log"
    sink = Sink(world, end, log, prefix=LIMITED)
    for _ in range(20):
        assert sink.read() == 200
    sink.refuses("audit log")
    assert log.stat().st_size <= 6000
    pid = sink.process.pid
    subprocess.run(["prlimit", "--pid", str(pid), "--fsize=unlimited:unlimited"], check=True)
    sink.recovers()
    assert auditlog.check_chain(auditlog.lines(log)) > 20
    refused = [e for e in auditlog.of(auditlog.events(log), verb="create")
               if e["responseStatus"]["code"] == 503]
    assert refused and all(auditlog.note(e, "outcome") == "not-forwarded" for e in refused)
    assert sink.number("lost_total") == 0
    sink.fake.close()


def test_t39_a_reader_that_stops_refuses_writes_until_it_goes_on(world, end):
    """The log is a named pipe: its reader stops, the pipe fills, and then it reads on."""
    pipe, out = world.folder / "audit.pipe", world.folder / "audit.out"
    os.mkfifo(pipe)
    hold = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(hold, fcntl.F_SETPIPE_SZ, 4096)
    with open(out, "wb") as file:
        reader = subprocess.Popen(["cat", str(pipe)], stdout=file)
    sink = Sink(world, end, pipe)
    try:
        assert sink.write().status == 200
        reader.send_signal(signal.SIGSTOP)
        wait_until(lambda: sink.read() and sink.number("failing") == 1, 20, "noticed", every=0.02)
        sink.refuses("audit log")
        reader.send_signal(signal.SIGCONT)
        sink.recovers()
        wait_until(lambda: auditlog.of([json.loads(x) for x in auditlog.lines(out)
                                        if x.endswith(b"}}")][-4:], verb="create"), 10, "read")
        assert auditlog.check_chain(auditlog.lines(out)) > 5
        assert sink.number("lost_total") == 0
    finally:
        os.close(hold)
        reader.kill()
        reader.wait()
        sink.fake.close()


def test_audit_best_effort_goes_on_and_counts_what_is_lost(world, end):
    sink = Sink(world, end, "/dev/full", mode="best-effort")
    assert sink.write().status == 200
    assert sink.number("failing") == 1
    for _ in range(30):  # what waits is bounded, too
        assert sink.read(POD + "?x=" + "y" * 50000) == 200
    assert sink.number("lost_total") > 0
    assert sink.write().status == 200
    sink.fake.close()


def test_audit_a_dash_is_stdout(world):
    sink = Sink(world, "hub", "-")
    assert sink.write().status == 200
    world.hub.wait_line(r'^\{"kind":"Event".*"stage":"ResponseComplete".*"verb":"create"')
    sink.fake.close()


def test_audit_a_log_that_cannot_be_opened_ends_the_start(world):
    from backends import write_yaml
    from procs import run

    config = world.hub_config(auditLog="/no/such/folder/audit.log")
    code, _, err = run([world.binaries["kuberelay-hub"], "--config",
                        write_yaml(world.folder / "bad.yaml", config)], 10)
    assert code == 1 and b"/no/such/folder/audit.log" in err, err


def test_audit_many_at_once_are_all_there(world):
    log = world.folder / "audit.log"
    sink = Sink(world, "hub", log)

    def ask():
        with world.client() as client:
            for _ in range(50):
                assert client.get(sink.site.prefix + POD).status == 200

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: world.metrics().get('kuberelay_hub_exchanges{class="all"}') == 0, 10, "idle")
    found = auditlog.by_id([e for e in auditlog.events(log) if e["requestURI"].endswith(POD)])
    assert len(found) == 400
    auditlog.check_chain(auditlog.lines(log))
    sink.fake.close()
