# SPDX-License-Identifier: Apache-2.0
"""Options and shared fixtures. Run by Debian's own Python:

    /usr/bin/python3 -m pytest tests/e2e --backend kubesim
    /usr/bin/python3 -m pytest tests/e2e --backend real-1.33 --bin build/release

Tests that need the scripted fake API server do not depend on the backend, so they run
once, with kubesim (or with any backend under --all).
"""

import sys
import tempfile
import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fakes")]

pytest.register_assert_rewrite("oracle", "h1client", "world", "cluster_site")

import backends  # noqa: E402
import clock  # noqa: E402
from cluster_site import Site  # noqa: E402
from kubelet import Kubelet  # noqa: E402
from procs import Process  # noqa: E402
from world import Binaries, World  # noqa: E402


def pytest_addoption(parser):
    group = parser.getgroup("kuberelay")
    group.addoption("--backend", default="kubesim",
                    choices=["kubesim", *backends.real_versions()],
                    help="the API server behind the agent")
    group.addoption("--bin", default=str(backends.REPO / "build/release"),
                    help="the folder with the programs under test")
    group.addoption("--long", action="store_true", help="run the long tests too")
    group.addoption("--all", action="store_true", help="tests on the fake too, on any backend")


def pytest_configure(config):
    config.addinivalue_line("markers", "real: needs a real kube-apiserver")
    config.addinivalue_line("markers", "long: minutes; only with --long")
    config.addinivalue_line("markers", "weighed: measures memory or time of the processor, which "
                            "`./dev test` does once more without a sanitizer")


def pytest_collection_modifyitems(config, items):
    """Deselects what belongs to another run; the rest of the rules are skips with a reason."""
    backend = config.getoption("--backend")
    keep, drop = [], []
    for item in items:
        # A world of its own has no backend under test: such tests are the same on each.
        alone = not {"backend", "site", "session_site"} & set(item.fixturenames)
        other_run = alone and backend != "kubesim"
        (drop if other_run and not config.getoption("--all") else keep).append(item)
        minor = getattr(item, "callspec", None) and item.callspec.params.get("minor")
        if minor:  # into the JUnit file, for compatibility.py
            item.user_properties.append(("kubectl", f"1.{minor}"))
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="long: runs with --long"))
        if item.get_closest_marker("real") and not backend.startswith("real-"):
            item.add_marker(pytest.mark.skip(
                reason="the simulator does not go that far: runs on the real backends"))
    config.hook.pytest_deselected(items=drop)
    items[:] = keep


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure shows the last log lines of every process of its world."""
    outcome = yield
    report = outcome.get_result()
    if report.when != "call" or not report.failed:
        return
    for value in item.funcargs.values():
        owner = getattr(value, "world", value)
        for process in getattr(owner, "processes", []):
            report.sections.append((f"log of {process.name}", process.tail(25)))


@pytest.fixture(scope="session")
def binaries(request):
    found = Binaries(request.config.getoption("--bin"))
    missing = found.missing("kuberelay-hub", "kuberelay-agent", "kuberelayctl")
    if missing:
        pytest.fail(f"not built: {', '.join(missing)} (looked in {found.folder})")
    if found.sanitized:
        clock.SLOWNESS *= 3
        Process.weighable = False
    return found


@pytest.fixture(scope="session")
def workdir():
    """Short paths of our own: pytest's are too long for a Unix socket."""
    folder = tempfile.mkdtemp(prefix="kr-e2e-")
    yield Path(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def backend(request, workdir):
    """The API server that this run is about."""
    name = request.config.getoption("--backend")
    if name == "kubesim":
        found = Binaries(request.config.getoption("--bin"))
        if found.missing("kubesim"):
            pytest.fail(f"kubesim is not built (looked in {found.folder})")
        made = backends.KubesimBackend(workdir / "sim", found["kubesim"])
    else:
        wanted = name.replace("real", "apiserver")
        if wanted not in backends.real_binaries("etcd", wanted):
            pytest.skip(f"{name}: no kube-apiserver here (see tests/real/build)")
        made = backends.RealBackend(name, workdir / name)
    yield made
    made.close()


@pytest.fixture(scope="session")
def session_world(binaries, workdir):
    world = World(workdir / "world", binaries)
    world.start_hub()
    yield world
    world.close()


@pytest.fixture(scope="session")
def session_site(session_world, backend, workdir):
    return Site(session_world, backend, "c1", workdir / "c1")


@pytest.fixture
def site(session_site):
    """The cluster under test behind hub and agent, healthy before each test."""
    session_site.heal()
    return session_site


@pytest.fixture(scope="session")
def kubelet(backend):
    """A node behind the real API server: pods with spec.nodeName run."""
    if not backend.is_real:
        pytest.skip("needs a real API server: runs on the real backends")
    made = Kubelet(backend)
    yield made
    made.close()


@pytest.fixture(scope="session")
def session_fake(session_world, workdir):
    fake = backends.FakeBackend(str(workdir / "fake"))
    site = Site(session_world, fake, "f1", workdir / "f1")
    yield site
    fake.close()


@pytest.fixture
def fake(session_fake):
    """The scripted API server behind the same hub, with a clean script."""
    session_fake.backend.api.forget()
    session_fake.heal()
    session_fake.backend.api.forget()
    yield session_fake
    faults = list(session_fake.backend.api.faults)
    session_fake.backend.api.forget()
    assert not faults, f"the fake API server met faults: {faults}"


@pytest.fixture
def world(binaries, tmp_path):
    """An own world for tests that kill, freeze or reconfigure."""
    folder = tempfile.mkdtemp(prefix="kr-w-")
    made = World(Path(folder) / "w", binaries)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def enrollment(binaries):
    """A hub that enrolls, with nobody enrolled yet."""
    from enrollment import Enrollment

    folder = tempfile.mkdtemp(prefix="kr-n-")
    made = Enrollment(Path(folder) / "w", binaries)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def lone_fake(world):
    """An own hub and agent in front of an own fake: free to be killed."""
    world.start_hub()
    fake = backends.FakeBackend(str(world.folder / "fake"))
    site = Site(world, fake, "f1", world.folder / "f1")
    yield site
    fake.close()
    assert not fake.api.faults, f"the fake API server met faults: {fake.api.faults}"
