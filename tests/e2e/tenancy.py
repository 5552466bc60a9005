# SPDX-License-Identifier: Apache-2.0
"""Who may see what of a fleet, as a model: random projects, objects that name the place where they
are, and what each answer may hold for whom."""

import json
import re

from fleet import PARTIAL, PARTIAL_LIST, TABLE, cluster_of

SPACES = ("n0", "n1", "n2")
TYPES = {"pods": "/api/v1", "configmaps": "/api/v1", "persistentvolumes": "/api/v1",
         "jobs.batch": "/apis/batch/v1"}
NAMESPACED = ("pods", "configmaps", "jobs.batch")
GROUPS = ("g0", "g1", "g2")
TIERS = ("a", "b", None)
REGIONS = ("eu", "us")
# Each object's name, and a label and an annotation of it, say where it is.
PLACE = re.compile(rb"s-(c\d\d)-(n\d|x)-")
CLUSTER = re.compile(rb"(?<![\w-])c\d\d(?![\w-])")


class Leak(AssertionError):
    """Something that this user may not know."""


def region_of(name):
    return REGIONS[int(name[1:]) % 2]


def path_of(resource, space=None):
    inside = f"/namespaces/{space}" if space else ""
    return f"{TYPES[resource]}{inside}/{resource.split('.')[0]}"


def text_of_object(resource, name, place, tier):
    labels = {"at": f"{place}label", **({"tier": tier} if tier else {})}
    obj = {"metadata": {"name": name, "labels": labels,
                        "annotations": {"note": f"in {place}note"}}}
    container = {"containers": [{"name": "c", "image": f"{place}image"}]}
    if resource == "pods":
        obj.update(kind="Pod", apiVersion="v1", spec=container)
    elif resource == "configmaps":
        obj.update(kind="ConfigMap", apiVersion="v1", data={"k": f"{place}data"})
    elif resource == "persistentvolumes":
        obj.update(kind="PersistentVolume", apiVersion="v1",
                   spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                         "hostPath": {"path": f"/{place}path"}})
    else:
        obj.update(kind="Job", apiVersion="batch/v1",
                   spec={"template": {"spec": {**container, "restartPolicy": "Never"}}})
    return obj


class Truth:
    """What is in the clusters: {resource: {(cluster, space, name): tier}}."""

    def __init__(self, clusters, rng):
        self.clusters, self.rng, self.count = clusters, rng, 0
        self.objects = {r: {} for r in TYPES}

    def make(self, cluster, resource, space=None):
        self.count += 1
        place = f"s-{cluster}-{space or 'x'}-"
        name, tier = f"{place}{self.count}", self.rng.choice(TIERS)
        self.clusters[cluster].ask("POST", path_of(resource, space),
                                   text_of_object(resource, name, place, tier))
        self.objects[resource][(cluster, space or "", name)] = tier

    def populate(self, each):
        for name, cluster in self.clusters.items():
            for space in SPACES:
                cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
            for resource in TYPES:
                for space in SPACES if resource in NAMESPACED else (None,):
                    for _ in range(self.rng.randint(0, each)):
                        self.make(name, resource, space)
                for obj in cluster.items(path_of(resource)):  # what was there before us, too
                    meta = obj["metadata"]
                    self.objects[resource].setdefault(
                        (name, meta.get("namespace", ""), meta["name"]), None)

    def change(self):
        """One random change."""
        resource = self.rng.choice(tuple(TYPES))
        known = self.objects[resource]
        turn = self.rng.random()
        ours = [k for k in known if k[2].startswith("s-")]
        if turn < 0.4 or not ours:
            cluster = self.rng.choice(tuple(self.clusters))
            space = self.rng.choice(SPACES) if resource in NAMESPACED else None
            return self.make(cluster, resource, space)
        key = self.rng.choice(ours)
        cluster, space, name = key
        client, path = self.clusters[cluster], f"{path_of(resource, space)}/{name}"
        if turn < 0.7:
            client.ask("DELETE", f"{path}?gracePeriodSeconds=0")
            return known.pop(key)
        obj = client.ask("GET", path)
        known[key] = self.rng.choice(TIERS)
        obj["metadata"]["labels"].pop("tier", None)
        if known[key]:
            obj["metadata"]["labels"]["tier"] = known[key]
        return client.ask("PUT", path, obj)


# -- who may what

def random_projects(rng, clusters, users):
    """About one for each two users: some see nothing, few see everything."""
    made = []
    for i in range(len(users) // 2):
        members = {"users": rng.sample(users, rng.randint(1, 3))}
        if rng.random() < 0.3:
            members["groups"] = [rng.choice(GROUPS)]
        project = {"name": f"p{i}", "members": members,
                   "rules": [random_rule(rng) for _ in range(rng.randint(1, 2))]}
        where = rng.random()
        if where < 0.15:
            project["clusters"] = ["*"]
        elif where < 0.3:
            project["clusterSelector"] = f"region={rng.choice(REGIONS)}"
        else:
            project["clusters"] = rng.sample(clusters, rng.randint(1, max(1, len(clusters) // 4)))
        made.append(project)
    return made


def random_rule(rng):
    rule = {"resources": rng.choice((["*"], ["pods"], ["pods", "jobs.batch"], ["configmaps"],
                                     ["persistentvolumes", "configmaps"])),
            "verbs": rng.choice((["get", "list", "watch"], ["list"], ["watch"], ["*"], ["get"]))}
    if rng.random() < 0.6:
        rule["namespaces"] = rng.sample(SPACES, rng.randint(1, 2))
    return rule


class Rules:
    """What the projects say, by the words of hub/projects.h."""

    def __init__(self, projects, groups_of):
        self.projects, self.groups_of = projects, groups_of

    def of(self, user):
        for project in self.projects:
            members = project["members"]
            if user in members["users"] or set(self.groups_of[user]) & set(members.get("groups", ())):
                yield project

    @staticmethod
    def has_cluster(project, cluster):
        if "clusterSelector" in project:
            return project["clusterSelector"] == f"region={region_of(cluster)}"
        return bool({"*", cluster} & set(project["clusters"]))

    @staticmethod
    def gives(rule, verb, resource):
        return bool({"*", verb} & set(rule["verbs"])) and bool({"*", resource} & set(rule["resources"]))

    def knows(self, user, cluster):
        """Whether anything there is theirs: else it might as well not exist."""
        return any(self.has_cluster(p, cluster) for p in self.of(user))

    def may(self, user, verb, resource, cluster, space):
        return any(self.gives(rule, verb, resource) and
                   ("namespaces" not in rule or space in rule["namespaces"])
                   for p in self.of(user) if self.has_cluster(p, cluster) for rule in p["rules"])

    def anything(self, user, verb, resource, space=None):
        """Whether the fleet view of it, or of that namespace of it, is open to them at all."""
        return any(self.gives(rule, verb, resource) and
                   (space is None or space in rule.get("namespaces", (space,)))
                   for p in self.of(user) for rule in p["rules"])

    def clusters(self, user, verb, resource, all_clusters):
        """Those of which they may see at least a part."""
        return {c for c in all_clusters for p in self.of(user) if self.has_cluster(p, c)
                for rule in p["rules"] if self.gives(rule, verb, resource)}


# -- what is asked

class Query:
    """One list or watch of the fleet view, and what of the truth belongs to it."""

    FORMS = {None: None, "table": TABLE, "metadata": PARTIAL_LIST}

    def __init__(self, rng, users, clusters):
        self.user, self.resource = rng.choice(users), rng.choice(tuple(TYPES))
        self.verb = rng.choice(("list", "list", "watch"))
        self.form = rng.choice((None, None, "table", "metadata"))
        self.space = rng.choice(SPACES) if (self.resource in NAMESPACED
                                            and rng.random() < 0.4) else None
        self.words, self.tests = {}, []
        if rng.random() < 0.5:
            self.select(rng, clusters)
        self.limit = rng.choice((None, None, 1, 3, 50))

    def select(self, rng, clusters):
        """Often a place that the user may not see, or one that is not there."""
        one = rng.choice((*clusters, "c99"))
        kind = rng.choice(("label", "label", "tier", "clusters", "name", "space"))
        if kind == "label":
            word, test = rng.choice((
                (f"kuberelay.io/cluster={one}", lambda k, t: k[0] == one),
                (f"kuberelay.io/cluster notin ({one})", lambda k, t: k[0] != one)))
            self.words["labelSelector"] = word
        elif kind == "tier":
            word, test = rng.choice((("tier=a", lambda k, t: t == "a"),
                                     ("tier!=a", lambda k, t: t != "a"),
                                     ("!tier", lambda k, t: t is None)))
            self.words["labelSelector"] = word
        elif kind == "clusters":
            other = rng.choice(clusters)
            self.words["clusters"], test = f"{one},{other}", lambda k, t: k[0] in (one, other)
        elif kind == "name":
            name = f"s-{one}-n1-{rng.randint(1, 40)}"
            self.words["fieldSelector"] = f"metadata.name={name}"

            def test(k, t):
                return k[2] == name
        else:
            self.words["fieldSelector"] = "metadata.namespace!=n1"

            def test(k, t):
                return k[1] != "n1"
        self.tests.append(test)

    def __repr__(self):
        return f"{self.user} {self.verb} {self.resource} in {self.space}, {self.words}, {self.form}"

    @property
    def path(self):
        return path_of(self.resource, self.space)

    @property
    def headers(self):
        accept = self.FORMS[self.form]
        if self.form == "metadata" and self.verb == "watch":
            accept = PARTIAL
        return [("accept", accept)] if accept else []

    def chosen(self, truth, rules):
        return self.chosen_of(truth.objects[self.resource], rules)

    def chosen_of(self, objects, rules):
        return {k for k, tier in objects.items()
                if (self.space is None or k[1] == self.space)
                and rules.may(self.user, self.verb, self.resource, k[0], k[1])
                and all(test(k, tier) for test in self.tests)}

    def check_bytes(self, rules, clusters, data, what):
        """No place in it that the rules do not open, by whatever way it came in."""
        for cluster, space in set(PLACE.findall(data)):
            cluster, space = cluster.decode(), space.decode().replace("x", "")
            if not rules.may(self.user, self.verb, self.resource, cluster, space):
                raise Leak(f"{self}: {cluster}/{space} in {what}: {data[:2000]!r}")
        known = {c.encode() for c in rules.clusters(self.user, self.verb, self.resource, clusters)}
        for cluster in set(CLUSTER.findall(data)) - known:
            raise Leak(f"{self}: {cluster} in {what}: {data[:2000]!r}")


def objects_of(document):
    if document.get("kind") == "Table":
        return [row["object"] for row in document["rows"]]
    return document["items"] if "items" in document else [document]


def key_of(obj):
    meta = obj["metadata"]
    return cluster_of(obj), meta.get("namespace", ""), meta["name"]


def keys_of(document):
    return [key_of(o) for o in objects_of(document)]


def order_of(key):
    """Lists of the fleet view go by namespace, name and cluster."""
    return key[1], key[2], key[0]


def fold(body):
    """({key: last event}, whether all that was there has been told, [bookmarked versions])."""
    held, initial, marks = set(), False, []
    for line in body.rpartition(b"\n")[0].splitlines():
        event = json.loads(line)
        for obj in objects_of(event["object"]):
            if event["type"] == "BOOKMARK":
                initial |= "k8s.io/initial-events-end" in (obj["metadata"].get("annotations") or {})
                marks.append(int(obj["metadata"]["resourceVersion"]))
                assert "name" not in obj["metadata"], event
            elif event["type"] == "DELETED":
                held.discard(key_of(obj))
            else:
                assert event["type"] in ("ADDED", "MODIFIED"), event
                held.add(key_of(obj))
    return held, initial, marks


def text_of(answer):
    """All bytes that came: head and body. The answer's own id says nothing."""
    head = "\n".join(f"{n}: {v}" for n, v in answer.headers if n not in ("audit-id", "date"))
    return head.encode() + b"\n" + answer.body
