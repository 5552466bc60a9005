# SPDX-License-Identifier: Apache-2.0
"""Check 20 and field case F012: acting as somebody else, where a rule allows it.
Check 32, the WebSocket part: a watch in WebSocket frames."""

import json
import struct
import time

import pytest

import kubectl
from backends import impersonation
from clock import scaled
from cluster_site import Site, configmap

RULES = ["user:alice=user:bob", "user:alice=group:g", "user:alice=uid:7",
         "user:alice=user:system:serviceaccount:d:sa"]
ACCOUNT = "system:serviceaccount:d:sa"


@pytest.fixture(scope="module")
def ruled(binaries, backend, workdir):
    """A hub that lets alice be bob, and an agent that lets one service account be acted as."""
    if not backend.is_real:
        pytest.skip("needs a real API server: runs on the real backends")
    from world import World

    world = World(workdir / "ruled", binaries)
    world.start_hub(impersonation=RULES)
    yield Site(world, backend, "c1", workdir / "ruled-c1", systemUsers=[ACCOUNT])
    world.close()


def whoami(tool, *flags):
    result = tool.run("auth", "whoami", "-o", "json", *flags)
    return result, json.loads(result.out)["status"]["userInfo"] if result.code == 0 else None


@pytest.mark.parametrize("minor", [28, 30, 33, 37])
def test_check_20_as_somebody_else(ruled, minor):
    program = kubectl.need(minor)
    _, relayed = whoami(ruled.kubectl(program, "alice"), "--as=bob", "--as-group=g", "--as-uid=7")
    assert relayed["username"] == "kuberelay:bob" and relayed["uid"] == "7"
    _, direct = whoami(ruled.kubectl_direct(program, "bob", ["g"]), "--as-uid=7")
    assert relayed == direct
    _, relayed = whoami(ruled.kubectl(program, "alice"), "--as=bob")
    _, direct = whoami(ruled.kubectl_direct(program, "bob"))
    assert relayed == direct


@pytest.mark.parametrize("flags", [("--as=carol",), ("--as=bob", "--as-group=h"),
                                   ("--as=bob", "--as-group=g", "--as-group=system:masters"),
                                   ("--as=bob", "--as-uid=8"), ("--as=system:admin",)])
def test_check_20_without_a_rule_it_is_403(ruled, flags):
    result, _ = whoami(ruled.kubectl(kubectl.need(37), "alice"), *flags)
    assert result.code == 1 and "impersonation is not allowed through the relay" in result.err, result
    result, _ = whoami(ruled.kubectl(kubectl.need(37), "eve"), "--as=bob")
    assert result.code == 1 and "impersonation is not allowed through the relay" in result.err, result


@pytest.mark.parametrize("minor", [28, 33, 37])
def test_field_F012_as_a_service_account_on_every_verb(ruled, minor):
    program = kubectl.need(minor)
    relayed = ruled.kubectl(program, "alice")
    result, user = whoami(relayed, f"--as={ACCOUNT}")
    assert result.code == 0 and user["username"] == ACCOUNT, result
    for args in (("get", "pods", "-n", "d"), ("delete", "pod", "p", "-n", "d"),
                 ("auth", "can-i", "create", "pods"), ("exec", "p", "-n", "d", "--", "id")):
        result = relayed.run(f"--as={ACCOUNT}", *args)
        assert result.code == 1 and "kuberelay-agent" not in result.err, result
        if args[0] in ("get", "delete"):
            assert ACCOUNT in result.err, result
    # Only this one, and only with the agent's own consent.
    assert relayed.run("--as=system:serviceaccount:d:other", "get", "pods").code == 1


# -- 32

def frames(client, count, timeout=10):
    """(opcode, payload) of WebSocket frames of a server: unmasked, unfragmented."""
    until = time.monotonic() + scaled(timeout)
    found = []
    while len(found) < count:
        first, length = client.exactly(2, until)
        if length == 126:
            length = struct.unpack(">H", client.exactly(2, until))[0]
        elif length == 127:
            length = struct.unpack(">Q", client.exactly(8, until))[0]
        found.append((first, client.exactly(length, until)))
    return found


UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="), ("Origin", "http://localhost")]


@pytest.mark.real
@pytest.mark.parametrize("more,protocol", [("", None), ("", "binary.k8s.io"),
                                           ("", "base64.binary.k8s.io"), ("&timeoutSeconds=5", None)])
def test_check_32_a_watch_over_websocket(site, more, protocol):
    namespace = site.namespace()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    version = site.ask_direct("GET", path).json()["metadata"]["resourceVersion"]
    target = f"{path}?watch=true&resourceVersion={version}{more}"
    headers = UPGRADE + ([("Sec-WebSocket-Protocol", protocol)] if protocol else [])
    with site.backend.direct_h1(alpn=None) as direct, site.world.h1(alpn=None) as relayed:
        direct.head("GET", target, headers + impersonation("admin"))
        relayed.head("GET", site.prefix + target, headers)
        answers = [client.read_head(10) for client in (direct, relayed)]
        assert [status for status, _ in answers] == [101, 101]
        fields = [{n.lower(): v for n, v in h if n.lower() not in ("date", "audit-id")}
                  for _, h in answers]
        for name in ("upgrade", "sec-websocket-accept", "sec-websocket-protocol"):
            assert fields[1].get(name) == fields[0].get(name)
        for number in range(3):
            site.create(path, configmap(f"m{number}", {"k": "v" * number * 40000}))
            seen = [frames(client, 1)[0] for client in (direct, relayed)]
            assert seen[0] == seen[1]
        if more:  # the server ends it: both ways see the same last bytes
            assert direct.wait_closed(10) == relayed.wait_closed(10)
