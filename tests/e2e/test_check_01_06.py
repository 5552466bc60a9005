# SPDX-License-Identifier: Apache-2.0
"""Checks 1 to 6: versions, discovery, OpenAPI, and how kubectl's paths reach a cluster."""

import re

import pytest

import kubectl
from cluster_site import pod
from connectproxy import ConnectProxy
from oracle import assert_same, same_text

DISCOVERY = ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
             "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
             "application/json")
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
RAW_PATHS = ["/version", "/api", "/apis", "/openapi/v2", "/openapi/v3"]


@pytest.mark.parametrize("path", RAW_PATHS)
def test_check_01_raw_paths_give_the_same_answer(site, path):
    assert_same(*site.both("GET", path))


def test_check_01_openapi_v2_as_protobuf_is_the_same(site):
    direct, relayed = site.both("GET", "/openapi/v2", [("accept", OPENAPI_V2)])
    assert direct.status == 200 and len(direct.body) > 10000
    assert_same(direct, relayed)


@pytest.mark.parametrize("path", RAW_PATHS)
def test_check_01_kubectl_raw_prints_the_same(site, path):
    program = kubectl.need(33, 32, 30, 27, 20)
    direct = site.kubectl_direct(program).ok("get", "--raw", path)
    # Up to 1.33 --raw drops the server's path, so the prefix is given by hand.
    assert site.kubectl(program).ok("get", "--raw", site.prefix + path) == direct


@pytest.mark.parametrize("minor", [27, 32, 33])
def test_check_02_raw_livez_old_kubectl_drops_the_prefix(fake, minor):
    program = kubectl.need(minor)
    fake.api.script("/livez", lambda x: x.respond(200, b"cluster", content_type="text/plain"))
    out = fake.kubectl(program).ok("get", "--raw", "/livez")
    assert out != "cluster" and not fake.api.seen(lambda x: x.path == "/livez")


@pytest.mark.parametrize("minor", [27, 32, 33, 37])
def test_check_02_raw_livez_on_the_clusters_own_name_reaches_it(fake, minor):
    program = kubectl.need(minor)
    fake.api.script("/livez", lambda x: x.respond(200, b"cluster", content_type="text/plain"))
    proxy = ConnectProxy(fake.world.hub.api)
    try:
        assert fake.kubectl_named(proxy, program).ok("get", "--raw", "/livez") == "cluster"
        assert proxy.asked_for()[0].startswith("f1.hub.test:")
    finally:
        proxy.close()


def test_check_02_the_clusters_own_name_over_h1_and_h2(fake):
    fake.api.script("/livez", lambda x: x.respond(200, b"cluster", content_type="text/plain"))
    for make in (fake.world.client, fake.world.h1):
        with make(server_name=fake.server_name) as client:
            assert client.get("/livez").body == b"cluster"
        with make(server_name="nosuch.hub.test") as client:
            assert client.get("/livez").status in (403, 421)
        with make(server_name="hub.test") as client:
            assert client.get("/livez").body != b"cluster"


def test_check_02_raw_livez_new_kubectl_keeps_the_prefix(fake):
    program = kubectl.need(34, 35, 36, 37)
    fake.api.script("/livez", lambda x: x.respond(200, b"cluster", content_type="text/plain"))
    assert fake.kubectl(program).ok("get", "--raw", "/livez") == "cluster"


@pytest.mark.parametrize("append,reaches", [(False, False), (True, True)])
def test_check_03_kubectl_proxy_with_and_without_the_server_path(fake, append, reaches):
    import urllib.request

    program = kubectl.need(33, 32, 30)
    fake.api.script("/version", lambda x: x.respond(200, b'{"gitVersion":"v1.99.0-fake"}'))
    flags = ["--append-server-path"] if append else []
    proxy = fake.kubectl(program).start("proxy", "--port", "0", *flags)
    try:
        line = proxy.wait_line(r"Starting to serve on")[1]
        where = re.search(r"127\.0\.0\.1:\d+", line).group(0)
        try:
            with urllib.request.urlopen(f"http://{where}/version", timeout=10) as answer:
                page = answer.read().decode()
        except urllib.error.HTTPError as error:
            page = error.read().decode()
    finally:
        proxy.stop()
    assert ("v1.99.0-fake" in page) == reaches, page


def test_check_04_aggregated_discovery_and_its_etag(site):
    headers = [("accept", DISCOVERY)]
    direct, relayed = site.both("GET", "/api", headers)
    assert_same(direct, relayed)
    kind = relayed.get("content-type")
    assert "g=apidiscovery.k8s.io" in kind and "as=APIGroupDiscoveryList" in kind
    etag = relayed.get("etag")
    assert etag
    direct, relayed = site.both("GET", "/api", [*headers, ("if-none-match", etag)])
    assert relayed.status == 304 and relayed.body == b""
    assert_same(direct, relayed)


@pytest.mark.parametrize("path", ["/apis", "/apis/apps/v1", "/api/v1"])
def test_check_04_discovery_documents_are_the_same(site, path):
    assert_same(*site.both("GET", path, [("accept", DISCOVERY)]))


def test_check_05_openapi_with_a_stale_hash_redirects_inside_the_prefix(site):
    path = "/openapi/v3/api/v1?hash=bad"
    direct, relayed = site.both("GET", path)
    if direct.status != 301:
        assert not site.backend.is_real
        pytest.skip(f"{site.backend.name} does not redirect a stale hash ({direct.status})")
    assert relayed.status == 301
    assert direct.get("location").startswith("/openapi/v3/api/v1?hash=")
    assert relayed.get("location") == site.prefix + direct.get("location")
    followed = site.relay().get(relayed.get("location"))
    assert followed.status == 200 and b'"openapi"' in followed.body[:200]


def test_check_05_the_clusters_own_name_needs_no_prefix_in_location(site):
    path = "/openapi/v3/api/v1?hash=bad"
    direct = site.ask_direct("GET", path)
    if direct.status != 301:
        pytest.skip(f"{site.backend.name} does not redirect a stale hash ({direct.status})")
    with site.world.client(server_name=site.server_name) as client:
        relayed = client.get(path)
    assert_same(direct, relayed)


@pytest.mark.parametrize("args", [
    ("api-resources",), ("api-versions",), ("explain", "pod.spec"), ("get", "all", "-A"),
    ("get", "namespaces", "--show-labels"), ("get", "pods", "-A", "-o", "wide"), ("version",),
])
def test_check_06_cold_kubectl_prints_the_same(site, args):
    direct = site.kubectl_direct().run(*args)
    if direct.code != 0 and site.backend.name == "kubesim" and args[0] == "explain":
        pytest.skip("the simulator's OpenAPI v2 has no descriptions for an old kubectl explain")
    relayed = site.kubectl().run(*args)
    assert direct.code == 0, direct
    assert relayed.code == 0, relayed
    assert same_text(direct.out, relayed.out)


@pytest.mark.parametrize("minor", sorted({*kubectl.AVAILABLE, 37}))
def test_check_06_every_kubectl_lists_pods_alike(site, minor):
    program = kubectl.need(minor)
    site.namespace()
    direct = site.kubectl_direct(program).ok("get", "pods,namespaces", "-A")
    assert same_text(direct, site.kubectl(program).ok("get", "pods,namespaces", "-A"))


@pytest.mark.parametrize("args", [
    ("get", "nodes", "-o", "wide"), ("get", "pods", "-A", "--show-labels"),
    ("get", "pods", "-A", "--sort-by=.metadata.name"), ("get", "pods,services", "-A"),
    ("get", "namespaces", "-o", "yaml"), ("get", "namespaces", "-o", "json"),
    ("describe", "namespace", "default"), ("get", "nosuchkind"), ("get", "pod", "nosuchpod"),
])
def test_field_F042_kubectl_prints_the_same_text(site, args):
    direct, relayed = site.kubectl_direct().run(*args), site.kubectl().run(*args)
    assert relayed.code == direct.code
    assert same_text(direct.out, relayed.out) and same_text(direct.err, relayed.err)


def test_field_F042_kubectl_logs_prints_the_same_text(site):
    """The real server has no kubelet here and refuses: that text must be the same too."""
    pods = site.ask_direct("GET", "/api/v1/pods?limit=1").json()["items"]
    if not pods:
        space = site.namespace()
        site.create(f"/api/v1/namespaces/{space}/pods", pod("p"))
        pods = site.ask_direct("GET", "/api/v1/pods?limit=1").json()["items"]
    meta = pods[0]["metadata"]
    for more in ((), ("--tail=3",), ("-c", "no-such-container")):
        args = ("-n", meta["namespace"], "logs", meta["name"], *more)
        direct, relayed = site.kubectl_direct().run(*args), site.kubectl().run(*args)
        assert (relayed.code, relayed.out, relayed.err) == (direct.code, direct.out, direct.err)
