# SPDX-License-Identifier: Apache-2.0
"""Checks 7 to 10: content types, 406, gzip and pretty printing pass through untouched."""

import gzip

import pytest

from cluster_site import configmap, pod
from oracle import assert_same

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTS = {
    "json": "application/json",
    "yaml": "application/yaml",
    "protobuf": f"{PROTOBUF},application/json",
    "table": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "metadata": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                "application/json",
    "metadata-protobuf": f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                         "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                         "application/json",
    "any": "*/*",
}


@pytest.fixture(scope="module")
def pods(session_site):
    """A namespace with three pods, made once."""
    namespace = session_site.namespace("types")
    for number in range(3):
        session_site.create(f"/api/v1/namespaces/{namespace}/pods", pod(f"p{number}"))
    return f"/api/v1/namespaces/{namespace}/pods"


@pytest.mark.parametrize("kind", ACCEPTS)
def test_check_07_a_list_in_every_form_is_byte_equal(site, pods, kind):
    # Ages in a Table are told in seconds, so a second border may lie between the two.
    for attempt in range(5):
        direct, relayed = site.both("GET", pods, [("accept", ACCEPTS[kind])])
        if direct.body == relayed.body or kind != "table":
            break
    if direct.status == 406 and not site.backend.is_real:
        pytest.skip(f"{site.backend.name} does not speak {kind}")
    assert direct.status == 200
    assert_same(direct, relayed)


@pytest.mark.parametrize("kind", ["json", "protobuf"])
def test_check_07_one_object_is_byte_equal_over_http1(site, pods, kind):
    headers = [("Accept", ACCEPTS[kind])]
    direct = site.ask_direct("GET", pods + "/p0", headers)
    with site.world.h1() as client:
        relayed = client.get(site.prefix + pods + "/p0", headers)
    assert relayed.status == 200 and relayed.body == direct.body
    assert relayed.get("content-type") == direct.get("content-type")


def test_check_07_head_has_the_headers_and_no_body(site, pods):
    direct, relayed = site.both("HEAD", pods + "/p0")
    assert relayed.body == b""
    assert_same(direct, relayed)


@pytest.mark.parametrize("accept", ["application/xml", "text/plain"])
def test_check_08_an_unknown_type_is_406_from_the_api_server(site, pods, accept):
    direct, relayed = site.both("GET", pods, [("accept", accept)])
    if direct.status != 406:
        assert not site.backend.is_real
        pytest.skip(f"{site.backend.name} does not refuse {accept}")
    assert_same(direct, relayed)


@pytest.fixture(scope="module")
def big_list(session_site):
    """Config maps that together pass the 128 KiB from which the server compresses."""
    namespace = session_site.namespace("big")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(4):
        session_site.create(path, configmap(f"big{number}", {"k": "0123456789abcdef" * 4096}))
    return path


@pytest.mark.parametrize("accept", [ACCEPTS["json"], ACCEPTS["protobuf"]])
def test_check_09_gzip_is_kept_as_it_is(site, big_list, accept):
    headers = [("accept", accept)]
    _, plain = site.both("GET", big_list, headers)
    assert plain.status == 200 and plain.get("content-encoding") is None
    direct, packed = site.both("GET", big_list, [*headers, ("accept-encoding", "gzip")])
    if direct.get("content-encoding") != "gzip":
        assert not site.backend.is_real
        pytest.skip(f"{site.backend.name} does not compress")
    assert packed.get("content-encoding") == "gzip"
    assert len(plain.body) > 128 * 1024 > len(packed.body)
    assert gzip.decompress(packed.body) == plain.body
    assert_same(direct, packed)


def test_check_09_a_small_answer_is_not_compressed_for_us(site, pods):
    direct, relayed = site.both("GET", pods + "/p0", [("accept-encoding", "gzip")])
    assert_same(direct, relayed)


@pytest.mark.parametrize("agent", ["curl/8.1", "Mozilla/5.0 (X11)", "kubectl/v1.33.0"])
def test_check_10_the_user_agent_decides_pretty_printing(site, pods, agent):
    direct, relayed = site.both("GET", pods, [("user-agent", agent)])
    assert_same(direct, relayed)
    if site.backend.is_real:
        assert relayed.body.startswith(b"{\n  ") == (not agent.startswith("kubectl"))
