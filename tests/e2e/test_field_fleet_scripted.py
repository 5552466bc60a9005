# SPDX-License-Identifier: Apache-2.0
"""Field cases through the fleet view, with an API server that says exactly what the test wants:
values that must stay as they are spelt, and answers that break."""

import json
import time

import pytest

from clock import scaled, wait_until
from scripted_fleet import THINGS, ScriptedFleet, line, listed, unhurried, until

SLIMS = "/apis/ex.io/v1/slims"


@pytest.fixture(scope="module")
def scripted_world(binaries, workdir):
    from world import World
    made = World(workdir / "fleet-scripted", binaries)
    yield made
    made.close()


@pytest.fixture(scope="module")
def site(scripted_world):
    """Tests use names of their own and leave the server as it was."""
    made = ScriptedFleet(scripted_world)
    yield made
    assert not scripted_world.hub.grep(r"level=error")
    made.close()


@pytest.fixture
def own(world):
    """For what breaks watches, which are begun again more and more slowly, and for what changes
    the history itself."""
    made = ScriptedFleet(world)
    yield made
    made.close()


def steps(site, name, versions, path=THINGS):
    """Each version is seen in lists and in a watch, byte for byte."""
    store = site.things if path == THINGS else site.slims
    watch = site.watch(path)
    for number, text in enumerate(versions):
        store.put(name, f'"step":{number},{text}' if path == THINGS else text)
        part = f'{text}}}'.encode()
        site.wait_shown(part, path=path)
        until(watch, part)
    watch.reset()


# -- F028 to F032: values

NUMBERS = ('"a":1000000,"b":9007199254740993,"c":-9223372036854775808,"d":18446744073709551615,'
           '"e":1.0,"f":1e3,"g":1E+2,"h":-0,"i":0.1,"j":1.7976931348623157e308,'
           '"k":123456789012345678901234567890,"l":1.10')


def test_field_F028_numbers_keep_their_spelling(site):
    steps(site, "numbers", [f'"spec":{{{NUMBERS}}}',
                            f'"spec":{{{NUMBERS.replace("1000000", "1000001")}}}',
                            '"spec":{"maximum":9223372036854774807}'])


def test_field_F028_numbers_in_what_a_profile_keeps(site):
    steps(site, "numbers", [f'"spec":{{"m":{{{NUMBERS}}}}}'], SLIMS)


def test_field_F029_null_entries_of_arrays_stay(site):
    steps(site, "nulls", [f'"spec":{{"s":{n},"allocations":{a}}}' for n, a in enumerate(
        ["[1,5,null,null]", "[1,null,5,null]", "[null]", "[]", '[{"a":null},{}]',
         '[{"a":null},{}]'])])


STORED_NULLS = ['{"m":{"a":1,"b":2}}', '{"m":{"a":null}}', '{"m":{"a":null,"c":{"d":null}}}',
                '{"m":{}}', '{"m":null}', '{}', '{"m":{"a":null}}']


def test_field_F030_a_stored_null_is_a_value(site):
    steps(site, "stored", [f'"spec":{t}' for t in STORED_NULLS])


def test_field_F030_versions_that_were_missed_leave_nothing(own):
    own.things.put("missed", f'"spec":{STORED_NULLS[0]}')
    own.wait_shown(STORED_NULLS[0])
    own.agent.kill()
    for text in STORED_NULLS[1:3]:
        own.things.put("missed", f'"spec":{text}')
    own.agent = own.world.restart_agent(own.agent)
    own.wait_shown(f'"spec":{STORED_NULLS[2]}}}')


def test_field_F031_what_is_empty_stays(site):
    steps(site, "empty", [f'"spec":{t}' for t in (
        '{"emptyDir":{},"args":[],"podSelector":{},"ingress":[{}]}', '{"args":[],"data":{}}',
        '{"data":{}}', '{"data":{"x":{}}}', '{"data":{}}', '{"k":""}')])


def test_field_F031_what_is_empty_stays_behind_a_profile(site):
    steps(site, "empty", [f'"spec":{t}' for t in (
        '{"m":{}}', '{"m":{"x":{}}}', '{"m":{}}', '{"m":[]}', '{"m":[{}]}', '{"m":null}',
        '{"m":""}')], SLIMS)
    site.slims.put("without", '"spec":{"n":1}')
    site.slims.put("with", '"spec":{"n":1,"m":{}}')
    site.wait_shown('"name":"with"', path=SLIMS)
    items = {i["metadata"]["name"]: i for i in json.loads(site.body(SLIMS))["items"]}
    assert items["with"]["spec"] == {"m": {}}
    assert "m" not in items["without"].get("spec", {})


ZEROES = ('"data":{"k":"a\\u0000b","t":"\\u0000","e":""},'
          '"x":{"p\\u0000q":1,"p\\u0000r":2,"p":3}')


def test_field_F032_an_escaped_zero_cuts_nothing(site):
    steps(site, "zero", [ZEROES, ZEROES.replace(":2", ":4")])
    mark = site.world.hub.mark()
    site.things.put("zero-note", '"x":1', meta=',"annotations":{"n":"a\\u0000b"}')
    site.wait_shown('"n":"a\\u0000b"')
    assert not site.world.hub.grep(r"\x00|level=error", mark)


def test_field_F032_a_raw_zero_ends_nothing_but_itself(own):
    """It is no JSON: the watch begins again, and nobody gets a shorter string."""
    own.things.put("raw-zero", '"x":"whole"')
    own.wait_shown('"x":"whole"')
    before = own.body()
    own.things.tell(line("MODIFIED", b'{"metadata":{"name":"raw-zero","namespace":"d"},'
                                      b'"x":"cut\x00 off"}'))
    own.things.put("after-zero", '"x":1')
    own.wait_shown('"name":"after-zero"')
    assert b'"x":"cut' not in own.body() and b"\x00" not in before
    own.wait_shown('"x":"whole"')


# -- F033: depth

@pytest.mark.parametrize("depth", [33, 64, 200, 1000])
@pytest.mark.parametrize("form", ["maps", "arrays"])
def test_field_F033_what_is_deep_is_carried(site, depth, form):
    head, tail = ('{"a":', "}") if form == "maps" else ("[", "]")

    def deep(leaf):
        return f'"spec":{head * depth}{leaf}{tail * depth}'
    name = f"deep-{form}-{depth}"
    steps(site, name, [deep(1), deep(2)])
    site.things.drop(name)
    site.wait_away(name)


@pytest.mark.parametrize("depth", [10_001, 2_000_000])
@pytest.mark.parametrize("closed", [True, False])
def test_field_F033_depth_without_sense_is_left_out_alone(own, depth, closed):
    name = f"abyss-{depth}-{closed}".lower()
    before = own.skipped()
    if closed:
        own.things.put(name, f'"spec":{"[" * depth}{"]" * depth}')
    else:
        own.things.tell(line("ADDED", b'{"metadata":{"name":"%s"},"spec":%s' %
                              (name.encode(), b"[" * depth)))
    own.things.put(f"beside-{name}", '"x":1')
    own.wait_shown(f'"name":"beside-{name}"')
    assert f'"name":"{name}"'.encode() not in own.body()
    if closed:
        assert own.skipped() > before
        own.things.gone()  # the same within a list
        own.things.put(f"behind-{name}", '"x":1')
        own.wait_shown(f'"name":"behind-{name}"')


# -- F034, F036: pieces

@pytest.mark.parametrize("sizes", [[1, 2, 3, 4, 5, 6, 7], [2047], [2048], [4095], [4096],
                                   [100_000]])
def test_field_F034_split_characters_arrive_whole(own, sizes):
    own.chop = sizes
    name = "split-" + "-".join(map(str, sizes[:2]))
    letters = "\U0001f680" * 3000 + "\u20ac" * 3000
    if sizes[0] == 1:
        letters = letters[::20]
    watch = own.watch()
    own.things.put(name, '"x":1', meta=f',"annotations":{{"l":"{letters}"}}')
    own.things.put(name + "-2", f'"x":"{letters[:50]}"')
    until(watch, letters)
    until(watch, f'"x":"{letters[:50]}"')
    watch.reset()
    own.things.gone()  # and in a list
    own.things.put(name + "-3", '"x":3')
    own.wait_shown(f'"name":"{name}-3"')
    body = own.body()
    assert body.count(letters.encode()) == 1


def test_field_F034_two_events_in_one_piece_and_other_line_ends(site):
    watch = site.watch()
    store = site.things
    with store.cond:
        lines = []
        for n in range(3):
            store.version += 1
            raw = store.raw(f"ends-{n}", '"x":1', f"ends-{n}", store.version)
            store.objects[f"ends-{n}"] = (raw, f"ends-{n}")
            lines.append(line("ADDED", raw).replace(b"\n", b"\r\n"))
        store.log.append((store.version, b"".join(lines) + b"\n"))
        store.cond.notify_all()
    seen = [json.loads(x)["object"]["metadata"]["name"] for x in until(watch, '"ends-2"')]
    assert seen == ["ends-0", "ends-1", "ends-2"]
    watch.reset()


def test_field_F036_an_event_is_passed_on_at_once(site):
    watch = site.watch()
    took = []
    for n in range(15):
        time.sleep(0.2)  # quiet before: a buffer would hold it
        begun = time.monotonic()
        site.things.put(f"quick-{n}", '"x":1')
        until(watch, f'"quick-{n}"')
        took.append(time.monotonic() - begun)
    watch.reset()
    # What holds events back holds each of them; a busy machine may hold up most.
    assert sorted(took)[2] < scaled(0.05), took


# -- F020, F023: what a watch says of itself

@pytest.mark.parametrize("before", [0, 2])
def test_field_F020_a_410_in_the_stream_is_one_new_list(own, before):
    for n in range(before):
        own.things.put(f"o-{n}", '"x":1')
    own.things.put("kept", '"x":1')
    own.wait_shown('"name":"kept"')
    watch = own.watch()
    lists = len(own.lists())
    own.things.put("changed-unseen", '"x":2', tell=False)
    own.things.gone()
    until(watch, '"changed-unseen"')
    own.things.put("later", '"x":3')
    lines = until(watch, '"later"')
    fresh = own.lists(lists)
    assert len(fresh) == 1
    assert "resourceVersion=" not in fresh[0].query.replace("resourceVersion=&", "")
    assert [json.loads(x)["object"]["metadata"]["name"] for x in lines] == ["changed-unseen",
                                                                            "later"]
    assert b"Status" not in own.body()


@pytest.mark.parametrize("obj", [b'{"kind":"Status","code":500}', b"{}", b"null",
                                 b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":1}}'])
def test_field_F020_other_errors_in_the_stream_are_no_objects(own, obj):
    own.things.tell(line("ERROR", obj))
    name = f"after-{abs(hash(obj)) % 10000}"
    own.things.put(name, '"x":1')
    own.wait_shown(f'"name":"{name}"')
    names = [i["metadata"]["name"] for i in json.loads(own.body())["items"]]
    assert sorted(names) == sorted(n for n in own.things.objects if n in names)
    assert "Status" not in {i["kind"] for i in json.loads(own.body())["items"]}


@pytest.mark.parametrize("count", [0, 3])
def test_field_F023_bookmarks_alone_carry_a_watch(own, count):
    for n in range(count):
        own.things.put(f"quiet-{n}", '"x":1')
        own.wait_shown(f'"name":"quiet-{n}"')
    watch = own.watch(query="&allowWatchBookmarks=true")
    lists, watches = len(own.lists()), len(own.watches())
    for _ in range(5):
        own.things.bookmark(100)
    last = own.things.version
    own.things.wait_written()
    for connection in list(own.api.connections):
        connection.wait_read()
    own.things.log, own.things.oldest = [], last  # compacted up to it
    own.api.drop_connections()
    wait_until(lambda: len(own.watches()) > watches, 20, "a new watch")
    assert f"resourceVersion={last}&" in own.watches(watches)[0].query + "&"
    assert len(own.lists()) == lists, "a full list although the bookmark was good"
    own.agent.kill()
    own.agent = own.world.restart_agent(own.agent)
    own.things.put("loud", '"x":1')
    lines = [json.loads(x) for x in until(watch, '"loud"')]
    assert [e["object"]["metadata"]["name"] for e in lines if e["type"] != "BOOKMARK"] == ["loud"]
    assert len(json.loads(own.body())["items"]) == count + 1


# -- F019: a history that runs backwards

@pytest.mark.parametrize("agent_too", [False, True])
def test_field_F019_after_a_restore_the_fleet_view_is_what_was_restored(own, agent_too):
    store = own.things
    for n in range(5):
        store.put(f"old-{n}", '"x":"old"')
    saved = (store.version, dict(store.objects))
    for n in range(5):
        store.put(f"new-{n}", '"x":1')
    for n in range(3):
        store.drop(f"old-{n}")
    for n in (3, 4):
        store.put(f"old-{n}", '"x":"changed"')
    for _ in range(150):
        store.bookmark()
    own.wait_shown('"name":"new-4"')
    watch = own.watch()
    with store.cond:
        store.version, store.objects = saved[0], dict(saved[1])
        store.log = []
    if agent_too:
        own.agent.kill()
    own.api.drop_connections()
    if agent_too:
        own.agent = own.world.restart_agent(own.agent)

    def restored():
        items = json.loads(own.body())["items"]
        return {i["metadata"]["name"]: i["x"] for i in items} == {f"old-{n}": "old"
                                                                 for n in range(5)}
    wait_until(restored, 40, "what was restored")
    lines = [json.loads(x) for x in until(watch, '"old-2"')]
    kinds = sorted((e["type"], e["object"]["metadata"]["name"]) for e in lines)
    assert kinds == sorted([("DELETED", f"new-{n}") for n in range(5)]
                           + [("ADDED", f"old-{n}") for n in range(3)]
                           + [("MODIFIED", f"old-{n}") for n in (3, 4)])
    store.put("beyond", '"x":1')
    own.wait_shown('"name":"beyond"')


# -- F024: lists that fail

def whole(site):
    with site.things.cond:
        return listed(*(o[0] for o in site.things.objects.values()), version=site.things.version)


def cut(x, site):
    body = whole(site)
    x.start(200, [("content-type", "application/json")])
    x.write(body[:len(body) * 6 // 10])
    x.end()


def reset_at_the_end(x, site):
    x.start(200, [("content-type", "application/json")])
    x.write(whole(site)[:-2])
    time.sleep(0.1)
    x.reset()


def third_page(x, site):
    """Pages of ten; the third fails."""
    at = int(dict(p.split("=", 1) for p in x.query.split("&")).get("continue", "0"))
    if at == 20:
        return x.fail(500, "InternalError")
    site.scripts.insert(0, lambda y: third_page(y, site))
    raw = [o[0] for o in list(site.things.objects.values())[at:at + 10]]
    x.respond(200, listed(*raw, version=site.things.version, cont=str(at + 10)))


BAD = {
    "400": lambda x, s: x.fail(400, "BadRequest"),
    "429": lambda x, s: x.fail(429, "TooManyRequests", headers=[("retry-after", "1")]),
    "500": lambda x, s: x.fail(500, "InternalError"),
    "page": third_page,
    "cut": cut,
    "empty": lambda x, s: x.respond(200, b""),
    "status": lambda x, s: x.respond(200, {"kind": "Status", "apiVersion": "v1", "metadata": {},
                                           "items": []}),
    "html": lambda x, s: x.respond(200, b"<html>", content_type="text/html"),
    "reset": reset_at_the_end,
}


@pytest.mark.parametrize("fault", BAD)
def test_field_F024_a_list_that_fails_deletes_nothing(own, fault):
    store = own.things
    for n in range(50):
        store.put(f"o-{n}", '"x":1')
    own.wait_shown('"name":"o-49"')
    watch = own.watch()
    own.scripts = [lambda x: BAD[fault](x, own)] * 2
    store.drop("o-0", tell=False)
    store.put("o-1", '"x":2', tell=False)
    store.put("o-50", '"x":1', tell=False)
    store.gone()
    wait_until(lambda: not own.scripts or b'"o-50"' in watch.body, scaled(30), "the faults")
    until(watch, '"o-50"', 40)
    own.wait_away("o-0", 40)
    lines = [json.loads(x) for x in until(watch, '"DELETED"')]
    kinds = sorted((e["type"], e["object"]["metadata"]["name"]) for e in lines)
    assert kinds == [("ADDED", "o-50"), ("DELETED", "o-0"), ("MODIFIED", "o-1")]
    assert len(json.loads(own.body())["items"]) == 50


def test_field_F024_while_lists_fail_what_was_known_stays(own):
    for n in range(20):
        own.things.put(f"o-{n}", '"x":1')
    own.wait_shown('"name":"o-19"')
    own.scripts = [lambda x: x.fail(403, "Forbidden")] * 100
    own.things.gone()
    wait_until(lambda: len(own.scripts) < 100, 20, "a list that is refused")
    unhurried(lambda: len(json.loads(own.body())["items"]) == 20)
    answer = own.get()
    assert "1 failing: s1" in answer.get("warning")
    assert all("kuberelay.io/stale-since" in i["metadata"]["annotations"]
               for i in answer.json()["items"])
