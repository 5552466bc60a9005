# SPDX-License-Identifier: Apache-2.0
"""T34: random rules, random questions, and a model that knows the answers. Nobody learns of what
their projects do not open: not from objects, counts, tokens, errors, warnings, rows of a Table,
events that come first or later, or bookmarks; and, in the long run, not from the time it takes.

KUBERELAY_TEST_SEED=N asks the questions of a failure again."""

import random
import statistics
import time

import pytest

from backends import write_yaml
from clock import wait_until
from fleet import STAR, Fleet
from tenancy import (GROUPS, Query, Rules, TYPES, Truth, fold, keys_of, order_of, path_of,
                     random_projects, region_of, text_of)
from test_fleet_model import seed_of_run

ADMIN = {"name": "harness", "members": {"users": ["admin"]}, "clusters": ["*"],
         "rules": [{"resources": ["*"], "verbs": ["*"]},
                   {"nonResourcePaths": ["/*"], "verbs": ["get"]}]}
INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


class Tenants:
    def __init__(self, world, seed, clusters, users, each):
        self.rng, self.world, self.asked = random.Random(seed), world, {}
        self.names = [f"c{n:02d}" for n in range(clusters)]
        self.users = [f"u{n:02d}" for n in range(users)]
        self.groups = {u: self.rng.sample(GROUPS, self.rng.randint(0, 2)) for u in self.users}
        self.fleet = Fleet(world, names=self.names, pods=0, cacheQuota="64MiB")
        self.truth = Truth({n: self.fleet.clusters[n] for n in self.names}, self.rng)
        self.truth.populate(each)
        self.clients, self.rules, self.tokens = {}, None, []

    # -- the two ends
    def client(self, user):
        old = self.clients.get(user)
        if old is None or old.lost or old.goaway:
            self.clients[user] = self.world.client(user, self.groups.get(user, ()))
        return self.clients[user]

    def count(self, what):
        self.asked[what] = self.asked.get(what, 0) + 1

    def new_rules(self):
        projects = random_projects(self.rng, self.names, self.users)
        labels = {n: {"region": region_of(n)} for n in self.names}
        mark = self.world.hub.mark()
        write_yaml(self.fleet.file, {"clusters": labels, "projects": [ADMIN, *projects]})
        self.world.hub.wait_line(r"event=reloaded\b.*fleet-file", 20, after=mark)
        self.rules = Rules(projects, self.groups)
        self.settle()

    def settle(self):
        """The hub has all that is in the clusters."""
        for resource in TYPES:
            wait_until(lambda r=resource: self.shown(r) == set(self.truth.objects[r]), 60,
                       f"{resource} in step", every=0.05)

    def shown(self, resource):
        answer = self.client("admin").get(STAR + path_of(resource), timeout=30)
        whole = answer.status == 200 and not answer.get("warning")
        return set(keys_of(answer.json())) if whole else None

    # -- one question
    def ask(self):
        kind = self.rng.random()
        if kind < 0.25:
            return self.ask_cluster()
        query = Query(self.rng, self.users, self.names)
        self.count(query.verb)
        return self.ask_list(query) if query.verb == "list" else self.ask_watch(query)

    def get(self, query, *words):
        text = "&".join([*(f"{k}={v.replace(' ', '%20')}" for k, v in query.words.items()), *words])
        answer = self.client(query.user).get(f"{STAR}{query.path}?{text}", query.headers)
        query.check_bytes(self.rules, self.names, text_of(answer), "an answer")
        return answer

    def ask_list(self, query):
        words = [f"limit={query.limit}"] if query.limit else []
        answer = self.get(query, *words)
        if not self.rules.anything(query.user, "list", query.resource, query.space):
            assert answer.status == 403, (query, answer)
            return
        assert answer.status == 200, (query, answer)
        wanted, got, version = query.chosen(self.truth, self.rules), [], None
        while True:
            page = answer.json()
            got += keys_of(page)
            meta = page["metadata"]
            remains = meta.get("remainingItemCount")
            assert remains is None or remains == len(wanted) - len(got), (query, meta, wanted)
            assert version in (None, meta["resourceVersion"]), query
            version = meta["resourceVersion"]
            token = meta.get("continue")
            # As of a kube-apiserver: whether what is left has the field is not looked at before
            # somebody asks, so that the last page may be empty.
            done = len(got) == len(wanted) and "fieldSelector" not in query.words
            assert not token if done else token or len(got) == len(wanted), (query, meta, got,
                                                                             wanted)
            if not token:
                break
            self.misuse(query, token, list(got))
            answer = self.get(query, *words, f"continue={token}")
            assert answer.status == 200, (query, answer)
        assert len(got) == len(set(got)) and set(got) == wanted, (query, got, wanted)
        assert got == sorted(got, key=order_of), query

    def misuse(self, query, token, got):
        """Another's, one that was changed, one of another question; and this one, when the rules
        are others."""
        if self.rng.random() > 0.25:
            return
        self.count("token")
        if self.rng.random() < 0.2:
            self.tokens.append((query, token, dict(self.truth.objects[query.resource]), got))
        thief = self.rng.choice([u for u in self.users if u != query.user])
        at = self.rng.randrange(len(token))
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1:]
        for user, text in ((thief, token), (query.user, changed)):
            answer = self.client(user).get(
                f"{STAR}{query.path}?limit=3&continue={text}" + "".join(
                    f"&{k}={v.replace(' ', '%20')}" for k, v in query.words.items()), query.headers)
            allowed = self.rules.anything(user, "list", query.resource, query.space)
            assert answer.status == (410 if allowed else 403), (query, user, answer)
            query.check_bytes(self.rules, self.names, answer.body, "an error")

    def ask_watch(self, query):
        words = [f"{k}={v.replace(' ', '%20')}" for k, v in query.words.items()]
        stream = self.client(query.user).start(
            "GET", f"{STAR}{query.path}?" + "&".join(["watch=1", INITIAL, *words]), query.headers)
        stream.wait_headers(20)
        if not self.rules.anything(query.user, "watch", query.resource, query.space):
            stream.wait_end()
            assert stream.status == 403, (query, stream.body)
        else:
            assert stream.status == 200, (query, stream.body)
            wanted = query.chosen(self.truth, self.rules)
            stream.wait(lambda s: fold(s.body)[1], 20, f"{query}: the end of initial events")
            held = fold(stream.body)[0]
            assert held == wanted, (query, held ^ wanted)
            stream.reset()
        query.check_bytes(self.rules, self.names, stream.body, "a watch")

    # -- through one cluster
    def ask_cluster(self):
        """A cluster of which somebody has nothing is one that is not there."""
        self.count("cluster")
        user, resource = self.rng.choice(self.users), self.rng.choice(tuple(TYPES))
        cluster = self.rng.choice(self.names)
        space = self.rng.choice(("n0", "n1")) if resource != "persistentvolumes" else None
        verb, name = self.rng.choice((("list", ""), ("get", "/none"), ("watch", "")))
        query = f"?watch=1&timeoutSeconds=1&resourceVersion=9{'0' * 9}" if verb == "watch" else ""
        path = f"{path_of(resource, space)}{name}{query}"
        answer = self.client(user).get(f"/clusters/{cluster}{path}")
        if self.rules.may(user, verb, resource, cluster, space or ""):
            assert answer.status != 403, (user, cluster, path, answer)
            if verb == "list":
                got = {(o["metadata"].get("namespace", ""), o["metadata"]["name"])
                       for o in answer.json()["items"]}
                assert got == {k[1:] for k in self.truth.objects[resource]
                               if k[0] == cluster and k[1] == (space or "")}, (user, cluster, path)
            return
        assert answer.status == 403, (user, cluster, path, answer)
        assert b"s-c" not in answer.body, answer
        if not self.rules.knows(user, cluster):
            other = self.client(user).get(f"/clusters/q77{path}")
            assert shape(answer, cluster) == shape(other, "q77"), (user, cluster, path)

    # -- later
    def old_tokens(self):
        """Of pages that were begun under other rules: what is left is judged by those of now."""
        for query, token, objects, got in self.tokens:
            self.count("old token")
            answer = self.get(query, "limit=1", f"continue={token}")
            allowed = self.rules.anything(query.user, "list", query.resource, query.space)
            assert answer.status in ((200, 410) if allowed else (403,)), (query, answer)
            if answer.status != 200:
                continue
            page, last = answer.json(), order_of(got[-1])
            wanted = sorted((k for k in query.chosen_of(objects, self.rules)
                             if order_of(k) > last), key=order_of)
            assert keys_of(page) == wanted[:1], (query, page, wanted)
            remains = page["metadata"].get("remainingItemCount")
            assert remains is None or remains == len(wanted) - 1, (query, remains, wanted)
        self.tokens = []

    def live(self, changes):
        """Everybody watches something while the clusters change."""
        watches = []
        version = self.client("admin").get(STAR + path_of("pods")).json()["metadata"][
            "resourceVersion"]
        for user in self.users:
            query = Query(self.rng, [user], self.names)
            query.verb = "watch"
            words = [f"{k}={v.replace(' ', '%20')}" for k, v in query.words.items()]
            begin = INITIAL if self.rng.random() < 0.5 else f"resourceVersion={version}"
            stream = self.client(user).start(
                "GET", f"{STAR}{query.path}?" + "&".join(["watch=1", begin, *words]), query.headers)
            stream.wait_headers(20)
            allowed = self.rules.anything(user, "watch", query.resource, query.space)
            assert stream.status == (200 if allowed else 403), (query, stream.body)
            if allowed:
                before = set() if begin == INITIAL else query.chosen(self.truth, self.rules)
                watches.append((query, stream, before))
        for _ in range(changes):
            self.truth.change()
        self.settle()
        for query, stream, before in watches:
            self.count("live watch")
            wanted = query.chosen(self.truth, self.rules)
            try:
                stream.wait(lambda s, b=before, w=wanted: after(b, s.body) == w, 20, "all events")
            except TimeoutError:
                raise AssertionError(f"{query}: {after(before, stream.body) ^ wanted}") from None
            self.client(query.user).ping()  # what was to come has come
            query.check_bytes(self.rules, self.names, stream.body, "events")
            stream.reset()

    def away(self):
        """Who is told that a cluster is away, and of how many: of those that are theirs."""
        gone = self.rng.choice(self.names)
        self.fleet.agents[gone].kill()
        wait_until(lambda: self.client("admin").get(STAR + path_of("pods")).get("warning"), 30,
                   "the warning")
        for user in self.users:
            for resource in TYPES:
                theirs = self.rules.clusters(user, "list", resource, self.names)
                answer = self.client(user).get(STAR + path_of(resource))
                if not self.rules.anything(user, "list", resource):
                    assert answer.status == 403, (user, resource, answer)
                    continue
                said = answer.get("warning") or ""
                self.count("warning")
                assert bool(said) == (gone in theirs), (user, resource, gone, said)
                assert not said or f"of {len(theirs)} clusters 1 stale: {gone}" in said, said
        self.fleet.agents[gone] = self.world.restart_agent(self.fleet.agents[gone])
        self.settle()


def after(before, body):
    """What one holds who held `before` and was told this."""
    held, gone = set(before), b'"type":"DELETED"'
    for line in body.rpartition(b"\n")[0].splitlines():
        told = fold(line + b"\n")[0]
        if gone in line[:30]:
            held -= fold(line.replace(gone, b'"type":"ADDED"', 1) + b"\n")[0]
        held |= told
    return held


def shape(answer, name):
    """All of an answer but its id and the name that was asked for."""
    body = answer.body.decode().replace(name, "NAME")
    return answer.status, body, sorted((n, v.replace(name, "NAME")) for n, v in answer.headers
                                       if n not in ("audit-id", "date"))


def run_questions(world, clusters, users, questions, changes, each=2):
    seed = seed_of_run()
    tenants = Tenants(world, seed, clusters, users, each)
    turns = 4
    try:
        for _ in range(turns):
            tenants.new_rules()
            tenants.old_tokens()
            for _ in range(questions // turns):
                tenants.ask()
            tenants.live(changes)
        tenants.away()
    except BaseException as error:
        raise AssertionError(f"KUBERELAY_TEST_SEED={seed}, after {tenants.asked}: {error}") from error
    print(f"seed {seed}: {tenants.asked}")
    assert not world.hub.grep(r"level=error")
    assert sum(tenants.asked.values()) >= questions and tenants.asked["token"] > questions / 100
    return tenants


def test_T34_nobody_learns_of_what_is_not_theirs(world):
    run_questions(world, clusters=8, users=20, questions=1000, changes=25)


@pytest.mark.long
def test_T34_ten_thousand_questions_of_20_users_about_50_clusters(world):
    run_questions(world, clusters=50, users=20, questions=10000, changes=100)


def test_T34_how_many_remain_is_not_told_of_what_was_closed_meanwhile(world):
    """A list begun by one who saw everything, and continued when that is over."""
    fleet = Fleet(world, names=("c01", "c02"), pods=0)
    for n in range(3):
        fleet.pod("c01", f"one-{n}")
        fleet.pod("c02", f"two-{n}")

    def rules(clusters, turn):
        write_yaml(fleet.file, {"projects": [ADMIN, {
            "name": "p", "members": {"users": ["ursula"]}, "clusters": clusters,
            "rules": [{"resources": ["pods"], "verbs": ["list"]}]}]})
        wait_until(lambda: len(world.hub.grep(r"event=reloaded\b.*fleet-file")) == turn, 20, "rules")
    rules(["*"], 1)
    fleet.wait_synced()
    with world.client("ursula") as client:
        meta = client.get(f"{STAR}/api/v1/pods?limit=1").json()["metadata"]
        assert meta["remainingItemCount"] == 5
        rules(["c01"], 2)
        page = client.get(f"{STAR}/api/v1/pods?limit=1&continue={meta['continue']}").json()
        assert [k[0] for k in keys_of(page)] == ["c01"]
        assert "remainingItemCount" not in page["metadata"]


# -- the time it takes

def took(client, path):
    begin = time.perf_counter()
    answer = client.get(path)
    return time.perf_counter() - begin, answer.status


def effect(one, other):
    """(Welch's t, the difference in standard deviations), without the slowest twentieth of each."""
    one, other = (sorted(x)[:len(x) * 19 // 20] for x in (one, other))
    v1, v2 = statistics.variance(one), statistics.variance(other)
    apart = statistics.fmean(one) - statistics.fmean(other)
    return (apart / (v1 / len(one) + v2 / len(other)) ** 0.5, apart / ((v1 + v2) / 2) ** 0.5)


@pytest.mark.long
def test_T34_the_time_of_a_refusal_does_not_tell_whether_a_cluster_is_there(world):
    """Interleaved, and with a threshold that only a real difference reaches: an effect of half a
    standard deviation, which a few microseconds of work would be."""
    fleet = Fleet(world, names=("c01", "c02"), pods=50)
    write_yaml(fleet.file, {"projects": [ADMIN, {
        "name": "one", "members": {"users": ["ursula"]}, "clusters": ["c01"],
        "rules": [{"resources": ["pods"], "verbs": ["get", "list"]}]}]})
    world.hub.wait_line(r"event=reloaded\b.*fleet-file", 20)
    ways = {"there": "/clusters/c02/api/v1/pods", "not there": "/clusters/q77/api/v1/pods",
            "selected": f"{STAR}/api/v1/pods?clusters=c02",
            "not to be selected": f"{STAR}/api/v1/pods?clusters=q77"}
    rng, times = random.Random(34), {w: [] for w in ways}
    with world.client("ursula") as client:
        for _ in range(3000):
            for way in rng.sample(sorted(ways), len(ways)):
                seconds, status = took(client, ways[way])
                assert status == (200 if "selected" in way else 403), (way, status)
                times[way].append(seconds)
    for one, other in (("there", "not there"), ("selected", "not to be selected")):
        t, d = effect(times[one], times[other])
        print(f"{one} / {other}: t {t:.1f}, d {d:.2f}, "
              f"{statistics.median(times[one]) * 1e6:.0f} us")
        assert abs(d) < 0.5 or abs(t) < 10, (one, other, t, d)
