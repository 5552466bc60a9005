# SPDX-License-Identifier: Apache-2.0
"""Checks 29 and 31 to 37: watches and lists, against the direct answer."""

import json
import struct
import threading
import time

import pytest

import kubectl
from clock import scaled
from cluster_site import configmap, pod
from oracle import assert_same, comparable, same_text

PODS = "/api/v1/namespaces/{ns}/pods"
MAPS = "/api/v1/namespaces/{ns}/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def events(body):
    return [json.loads(line) for line in body.splitlines() if line]


def version_of(site, path):
    return site.ask_direct("GET", path).json()["metadata"]["resourceVersion"]


def test_check_29_two_hundred_watches_on_one_connection(site):
    path = MAPS.format(ns=site.namespace())
    query = f"{path}?watch=1&resourceVersion={version_of(site, path)}"
    with site.world.client() as client:
        streams = [client.start("GET", site.prefix + query) for _ in range(200)]
        for stream in streams:
            assert stream.wait_headers(20).status == 200
        site.create(path, configmap("seen-by-all"))
        for stream in streams:
            stream.wait(lambda s: s.body.endswith(b"\n"), 20, "a whole event")
        assert len({s.body for s in streams}) == 1
        for stream in streams:
            stream.reset()


@pytest.mark.parametrize("minor", [27, 33, 37])
def test_check_31_kubectl_sees_events_with_the_direct_one(site, minor):
    program = kubectl.need(minor)
    namespace = site.namespace()
    args = ("-n", namespace, "get", "pods", "-w", "--output-watch-events")
    path = PODS.format(ns=namespace)
    site.create(path, pod("first"))
    running = [tool.start(*args) for tool in (site.kubectl_direct(program), site.kubectl(program))]
    try:
        for watcher in running:
            watcher.wait_line("first")
        # The list is printed before the watch begins: make pods until both see one.
        for name in ("a", "b"):
            site.create(path, pod(name))
            times = [w.wait_line(f"^ADDED +{name} ")[0] for w in running]
            site.ask_direct("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
            ends = [w.wait_line(f"^DELETED +{name} ")[0] for w in running]
        # Not a measure of speed: a buffer that waits for more would hold it for ever.
        assert times[1] - times[0] < scaled(10) and ends[1] - ends[0] < scaled(10)
        texts = ["\n".join(line for _, line in w.lines) for w in running]
        assert same_text(*texts)
    finally:
        for watcher in running:
            watcher.stop()


FORMS = {"json": ("application/json", ""),
         "protobuf": ("application/vnd.kubernetes.protobuf;stream=watch,application/json", ""),
         "table": (TABLE, ""), "table-object": (TABLE, "&includeObject=Object"),
         "metadata": ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,"
                      "application/json", "")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wire", ["h2", "h1"])
def test_check_32_a_watch_in_every_form(site, form, wire):
    # A busy machine may let the first watch end before the object is there: then once more.
    direct, relayed = next(found for _ in range(5) if (found := one_event(site, form, wire))[0].body)
    assert relayed.status == 200 and relayed.body
    assert relayed.get("content-type") == direct.get("content-type")
    if "table" not in form:  # a Table tells ages
        assert relayed.body == direct.body
    else:
        assert len(events(relayed.body)) == len(events(direct.body))
    if "protobuf" in relayed.get("content-type"):
        length = struct.unpack(">I", relayed.body[:4])[0]
        assert len(relayed.body) == 4 + length


def one_event(site, form, wire):
    """Two watches of two seconds in which something is made: (direct, relayed)."""
    accept, more = FORMS[form]
    path = MAPS.format(ns=site.namespace())
    query = (f"{path}?watch=true&timeoutSeconds=2{more}"
             f"&resourceVersion={version_of(site, path)}")
    direct = site.start_direct("GET", query, [("accept", accept)])
    direct.wait_headers()
    if wire == "h2":
        relayed = site.start("GET", query, [("accept", accept)])
        relayed.wait_headers()  # before any event
        site.create(path, configmap("one"))
        relayed = relayed.answer()
    else:
        with site.world.h1() as client:
            client.head("GET", site.prefix + query, [("Accept", accept)])
            status, headers = client.read_head()  # before any event
            site.create(path, configmap("one"))
            pieces = []
            while piece := client.read_chunk():
                pieces.append(piece)
            relayed = type(direct.answer())(status, headers, b"".join(pieces))
    return direct.answer(), relayed


def bookmarks(body):
    return [e for e in events(body) if e["type"] == "BOOKMARK"]


def quiet_watches(site, seconds):
    """Two watches on a quiet namespace, while another one brings the kind forward."""
    quiet, loud = (MAPS.format(ns=site.namespace()) for _ in range(2))
    query = (f"{quiet}?watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}"
             f"&resourceVersion={version_of(site, quiet)}")
    relayed, direct = site.start("GET", query), site.start_direct("GET", query)
    relayed.wait_headers()
    direct.wait_headers()
    number = 0
    while not direct.ended:  # a kind without any news gets no bookmark
        site.create(loud, configmap(f"news{number}"))
        number += 1
        try:
            direct.wait_end(1 if seconds < 60 else 10)
        except TimeoutError:
            pass
    relayed.wait_end(10)
    return direct, relayed


def test_check_33_the_bookmark_before_the_deadline_arrives(site):
    """The short form: the server sends one about two seconds before the end."""
    direct, relayed = quiet_watches(site, 5)
    assert len(bookmarks(relayed.body)) == len(bookmarks(direct.body))
    if site.backend.is_real:
        assert bookmarks(relayed.body)


@pytest.mark.long
def test_check_33_bookmarks_each_minute_in_a_quiet_watch(site):
    direct, relayed = quiet_watches(site, 190)
    assert len(bookmarks(relayed.body)) >= 3
    assert abs(len(relayed.chunks) - len(direct.chunks)) <= 1
    for (one, _), (two, _) in zip(direct.chunks, relayed.chunks):
        assert two - one < scaled(1.5)


def test_check_34_a_watch_ends_cleanly_at_its_timeout(site):
    path = MAPS.format(ns=site.namespace())
    query = f"{path}?watch=1&timeoutSeconds=3&resourceVersion={version_of(site, path)}"
    begin = time.monotonic()
    stream = site.start("GET", query)
    with site.world.h1() as client:
        client.head("GET", site.prefix + query)
        assert client.read_head()[0] == 200
        assert client.read_chunk(10) == b""  # the last chunk: a clean end
        assert client.get(site.prefix + "/version").status == 200  # and the connection lives
    stream.wait_end(10)
    assert 2.5 < stream.ended_at - begin < 3 + scaled(7)


def test_check_35_a_version_long_gone_is_the_servers_410(site):
    query = "/api/v1/configmaps?watch=1&resourceVersion=1&timeoutSeconds=2"
    direct, relayed = site.both("GET", query)
    assert comparable(relayed) == comparable(direct)
    if relayed.status == 200 and not events(direct.body):
        pytest.skip(f"{site.backend.name} still has its whole history")
    assert relayed.body == direct.body
    if site.backend.is_real:
        assert events(relayed.body)[0]["object"]["code"] == 410


def test_check_36_a_streaming_list(site):
    path = MAPS.format(ns=site.namespace())
    for name in ("a", "b", "c"):
        site.create(path, configmap(name))
    query = (f"{path}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
             "&allowWatchBookmarks=true&resourceVersion=&timeoutSeconds=2")
    direct, relayed = site.both("GET", query)
    assert comparable(relayed) == comparable(direct)
    if direct.status != 200:  # a server from before it, or without it: 422 all the same
        return assert_same(direct, relayed)
    kinds = [e["type"] for e in events(relayed.body)]
    assert kinds[:3] == ["ADDED"] * 3 and "BOOKMARK" in kinds
    marker = bookmarks(relayed.body)[0]["object"]["metadata"]["annotations"]
    assert marker == {"k8s.io/initial-events-end": "true"}
    assert [e for e in events(direct.body) if e["type"] == "ADDED"] == [
        e for e in events(relayed.body) if e["type"] == "ADDED"]


def test_check_36_streaming_list_without_a_match_is_refused_alike(site):
    query = "/api/v1/configmaps?watch=1&sendInitialEvents=true&timeoutSeconds=2"
    direct, relayed = site.both("GET", query)
    assert relayed.status == direct.status and relayed.body == direct.body


def test_check_37_pages_give_the_whole_set_once(site):
    path = MAPS.format(ns=site.namespace())
    for number in range(7):
        site.create(path, configmap(f"m{number}"))
    names, token, versions = [], "", set()
    while True:
        page = site.ask("GET", f"{path}?limit=2&labelSelector=!x"
                        + (f"&continue={token}" if token else "")).json()
        names += [i["metadata"]["name"] for i in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        token = page["metadata"].get("continue")
        if not token:
            break
    whole = site.ask_direct("GET", path).json()["items"]
    assert names == [i["metadata"]["name"] for i in whole] and len(set(names)) == len(names)
    assert len(versions) == 1


def test_check_37_one_token_gives_the_same_page_on_both_ways(site):
    path = MAPS.format(ns=site.namespace())
    for number in range(3):
        site.create(path, configmap(f"m{number}"))
    token = site.ask("GET", path + "?limit=2").json()["metadata"]["continue"]
    assert_same(*site.both("GET", f"{path}?limit=2&continue={token}"))
    assert_same(*site.both("GET", f"{path}?limit=2&continue=garbage"))


@pytest.mark.real
def test_check_37_an_expired_token_is_the_servers_410(site):
    path = MAPS.format(ns=site.namespace())
    for number in range(3):
        site.create(path, configmap(f"m{number}"))
    token = site.ask("GET", path + "?limit=2").json()["metadata"]["continue"]
    site.create(path, configmap("later"))
    site.backend.etcdctl_compact()
    direct, relayed = site.both("GET", f"{path}?limit=2&continue={token}")
    if direct.status == 200:  # newer servers keep a snapshot of their own for a while
        return assert_same(direct, relayed)
    assert relayed.status == 410 and relayed.json()["reason"] == "Expired"
    assert set(relayed.json()["metadata"]) == set(direct.json()["metadata"])


def test_check_37_kubectl_in_chunks(site):
    namespace = site.namespace()
    for number in range(5):
        site.create(MAPS.format(ns=namespace), configmap(f"m{number}"))
    args = ("-n", namespace, "get", "configmaps", "--chunk-size=2", "-o", "name")
    assert site.kubectl().ok(*args) == site.kubectl_direct().ok(*args)


def test_check_37_lists_in_parallel_do_not_mix(site):
    """Many lists of different namespaces at once: each gets its own."""
    spaces = [site.namespace() for _ in range(8)]
    for space in spaces:
        site.create(MAPS.format(ns=space), configmap(f"own-{space}", {"k": space * 200}))
    wrong = []

    def reader(space):
        for _ in range(10):
            answer = site.ask("GET", MAPS.format(ns=space) + f"/own-{space}")
            if answer.json()["data"]["k"] != space * 200:
                wrong.append(space)
    site.relay()
    threads = [threading.Thread(target=reader, args=(s,)) for s in spaces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
