# SPDX-License-Identifier: Apache-2.0
"""How a relayed answer is compared with the direct one."""

import json
import re

# Each answer has its own; everything else must be the same. A kube-apiserver sends no Server;
# the simulator calls itself one there, and the relay lets no such header through.
UNIQUE = {"date", "audit-id", "server"}

# The one listed normalisation for writes on twin objects: what the server makes up anew.
VOLATILE = {"uid", "resourceVersion", "creationTimestamp", "time", "selfLink"}


def comparable(answer, drop=()):
    """Status and headers, duplicates kept, order of equal names kept."""
    skip = UNIQUE | {d.lower() for d in drop}
    headers = [(n.lower(), v) for n, v in answer.headers if n.lower() not in skip]
    return answer.status, sorted(headers, key=lambda h: h[0])


def assert_same(direct, relayed, drop=(), body=True):
    """Byte-equal status, headers (minus Date and Audit-Id) and body."""
    assert comparable(relayed, drop) == comparable(direct, drop)
    if body:
        assert relayed.body == direct.body
    assert len(relayed.all("audit-id")) <= 1


def assert_same_twins(direct, relayed, names=()):
    """For writes: the same after the normalisation; `names` are the twins' two names."""
    drop = {"content-length"}  # a resourceVersion may be one digit longer
    assert comparable(relayed, drop) == comparable(direct, drop)
    assert twin(relayed.body, names) == twin(direct.body, names)


def twin(body, names=()):
    """The JSON of a written object without what is unique to it; bytes for what is not JSON."""
    try:
        value = json.loads(body)
    except ValueError:
        return body
    return _strip(value, names)


def _strip(value, names):
    if isinstance(value, dict):
        if "managedFields" in value:  # entries of one second have no order of their own
            fields = sorted(value["managedFields"], key=lambda f: (f["manager"], f["operation"]))
            value = {**value, "managedFields": fields}
        return {k: "*" if k in VOLATILE else _strip(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_strip(v, names) for v in value]
    if isinstance(value, str):
        for name in names:
            value = value.replace(name, "TWIN")
    return value


AGE = re.compile(r"\b(\d+[dhms])+\b|<unknown>|<invalid>")


def same_text(direct, relayed):
    """Two kubectl outputs, where an age may have grown by the second between them."""
    return _ages(direct) == _ages(relayed)


def _ages(output):
    return [" ".join(AGE.sub("AGE", line).split()) for line in output.splitlines()]
