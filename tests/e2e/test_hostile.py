# SPDX-License-Identifier: Apache-2.0
"""API servers that do what none should: the agent answers, and goes on."""

import backends
from clock import wait_until
from cluster_site import Site

CONNECTIONS = 64  # the most that an agent opens to an API server that speaks HTTP/2


def test_hostile_an_api_server_without_streams_left_is_an_error_and_passes(world):
    """One stream a connection: the agent ran out of both, and went round in circles."""
    world.start_hub()
    fake = backends.FakeBackend(str(world.folder / "fake"), max_streams=1)
    try:
        site = Site(world, fake, "f1", world.folder / "f1")
        fake.api.script(lambda x: x.is_watch, lambda x: (x.start_stream(), x.hold()))
        fake.api.script(lambda x: not x.is_watch, lambda x: x.respond(200, b"{}"))
        with world.client() as client:
            streams = [client.start("GET", site.prefix + "/api/v1/w?watch=1")
                       for _ in range(CONNECTIONS + 10)]
            for stream in streams:
                stream.wait_headers(20)
            refused = [s for s in streams if s.status != 200]
            assert {s.status for s in refused} == {503}
            assert len(refused) >= 10
            for stream in streams:
                stream.reset()
            wait_until(lambda: client.get(site.prefix + "/api/v1/pods").status == 200, 10,
                       "room again")
        assert site.agent.alive
    finally:
        fake.close()
