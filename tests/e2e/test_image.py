# SPDX-License-Identifier: Apache-2.0
"""The root file system of the container image (packaging/rootfs): what is in it, and that hub and
agent work in it the way the charts run them: no shell, a root that nobody can write to, another
user than root without any capability."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from backends import KubesimBackend, REPO, kubeconfig_of, write_yaml
from clock import scaled
from h2client import H2Client
from procs import run
from world import Agent, Hub

USER = 65532
PROGRAMS = ("kuberelay-hub", "kuberelay-agent", "kuberelay-signer", "kuberelayctl")
# What a container engine does: a mount namespace of its own, volumes, then the root becomes read-only.
ENTER = """set -eu
root=$1 config=$2 state=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /proc "$root/proc"
mount --bind "$config" "$root/etc/kuberelay"
mount --bind "$state" "$root/var/lib/kuberelay"
mount -t tmpfs -o size=1m,mode=700,uid=65532,gid=65532 tmpfs "$root/run/kuberelay"
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" "$@"
"""
# A leak check traces its own process, which it may not there.
ENV = {"ASAN_OPTIONS": "detect_leaks=0"}


def build_root(binaries, folder):
    programs = Path(binaries["kuberelay-hub"]).parent
    code, _, err = run([REPO / "packaging/rootfs", folder, programs], 60)
    assert code == 0, err.decode()
    return folder


@pytest.fixture(scope="module")
def root(binaries, workdir):
    return build_root(binaries, workdir / "root")


@pytest.fixture(scope="module")
def contained(root, workdir):
    """Folders to mount; a skip where no root file system can be entered."""
    config, state = workdir / "image-config", workdir / "image-state"
    for folder in (config, state):
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, USER, USER)
    box = Box(root, config, state)
    done = subprocess.run(box.argv("kuberelayctl", "--version"), capture_output=True, text=True,
                          timeout=scaled(30), env={**os.environ, **ENV}, check=False)
    if done.returncode != 0 and os.geteuid() != 0:
        pytest.skip("the image is not run: only root may enter another root file system")
    if done.returncode != 0 and ("mount:" in done.stderr or "not permitted" in done.stderr):
        pytest.skip(f"the image is not run: mounts are not permitted here ({done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    return box


class Box:
    def __init__(self, root, config, state):
        self.root, self.config, self.state = Path(root), Path(config), Path(state)

    def argv(self, program, *args):
        return ["unshare", "--mount", "bash", "-c", ENTER, "enter", str(self.root), str(self.config),
                str(self.state), f"/usr/bin/{program}", *map(str, args)]

    def put(self, name, source):
        """A copy that the user in the image may read; its path there."""
        shutil.copyfile(source, self.config / name)
        os.chown(self.config / name, USER, USER)
        os.chmod(self.config / name, 0o600)
        return f"/etc/kuberelay/{name}"

    def put_yaml(self, name, content):
        path = self.config / f"made-{name}"
        write_yaml(path, content)
        return self.put(name, path)


def files_of(folder):
    return sorted(p for p in Path(folder).rglob("*") if p.is_file() and not p.is_symlink())


def test_image_has_the_programs_their_libraries_and_nothing_else(root):
    names = [p.relative_to(root) for p in files_of(root)]
    programs = {str(n) for n in names if n.parts[:2] == ("usr", "bin")}
    assert programs == {f"usr/bin/{p}" for p in PROGRAMS}
    others = {str(n) for n in names} - programs
    libraries = {n for n in others if ".so." in n and n.startswith(("lib", "usr/lib"))}
    assert others - libraries == {"etc/passwd", "etc/group"}
    assert not [n for n in names if n.name in ("sh", "bash", "dash", "busybox")]
    assert not [n for n in names if n.suffix in (".pem", ".crt")]
    for path in files_of(root):
        mode = path.stat().st_mode
        assert not mode & 0o6022, f"{path}: {mode:o}"


def test_image_the_same_programs_give_the_same_files(binaries, root, tmp_path):
    again = build_root(binaries, tmp_path / "again")

    def listing(folder):
        return {str(p.relative_to(folder)): (p.stat().st_mode, p.stat().st_mtime, p.read_bytes())
                for p in files_of(folder)}
    assert listing(again) == listing(root)


def test_image_a_folder_that_is_not_empty_is_refused(binaries, tmp_path):
    (tmp_path / "mine").write_text("mine", encoding="ascii")
    code, _, err = run([REPO / "packaging/rootfs", tmp_path, binaries.folder], 60)
    assert code == 1 and b"is not empty" in err
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_image_programs_tell_version_and_help(contained, program):
    for flag, wanted in (("--version", program), ("--help", "Usage: " + program)):
        code, out, err = run(contained.argv(program, flag), 30, ENV)
        assert code == 0 and out.decode().startswith(wanted), (flag, out, err)


def status_of(process):
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def assert_confined(process):
    """It is who the charts say it is, and cannot write to its root."""
    status = status_of(process)
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {str(USER)}
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"].strip() == "1"
    for folder in ("", "etc", "usr/bin", "tmp"):
        with pytest.raises(OSError, match="Read-only file system"):
            (Path(f"/proc/{process.pid}/root") / folder / "new").write_text("x", encoding="ascii")


def start_hub(world, box):
    path = box.put_yaml("hub.yaml", world.hub_config(
        caFile=box.put("ca.crt", world.ca), certFile=box.put("hub.crt", world.hub_pair.crt),
        keyFile=box.put("hub.key", world.hub_pair.key), stateDir="/var/lib/kuberelay/state",
        adminSocket="/run/kuberelay/admin.sock"))
    hub = Hub("hub-in-image", box.argv("kuberelay-hub", "--config", path), str(world.folder), env=ENV)
    world.processes.append(hub)
    world.hub = hub.wait_ready()
    return hub


def start_agent(world, box, backend):
    pair = world.issue_agent("c1")
    kubeconfig = kubeconfig_of(
        backend.url, box.put("api-ca.crt", backend.ca), box.put("api.crt", backend.agent.crt),
        box.put("api.key", backend.agent.key))
    config = world.agent_config(
        "c1", box.put_yaml("kubeconfig", kubeconfig), pair=pair, caFile="/etc/kuberelay/ca.crt",
        certFile=box.put("agent.crt", pair.crt), keyFile=box.put("agent.key", pair.key),
        policyFile=None)
    agent = Agent("agent-in-image",
                  box.argv("kuberelay-agent", "--config", box.put_yaml("agent.yaml", config)),
                  str(world.folder), env=ENV)
    world.processes.append(agent)
    agent.wait_admin()
    return agent


def test_image_hub_and_agent_relay_in_it(contained, world, workdir):
    if world.binaries.missing("kubesim"):
        pytest.fail("kubesim is not built")
    backend = KubesimBackend(workdir / "image-sim", world.binaries["kubesim"])
    try:
        hub = start_hub(world, contained)
        agent = start_agent(world, contained, backend)
        world.wait_cluster("c1")
        for process in (hub, agent):
            assert_confined(process)
        with H2Client(hub.api, world.context()) as client:
            pods = client.get("/clusters/c1/api/v1/pods?limit=500")
            assert pods.status == 200 and len(pods.json()["items"]) == 40
        inside = ["nsenter", "--target", hub.pid, "--mount", "--root", "--setuid", USER, "--setgid",
                  USER, "/usr/bin/kuberelayctl", "clusters"]
        code, out, err = run(inside, 30, ENV)
        assert code == 0 and b"c1" in out, (out, err)
        kept = {p.name for p in (contained.state / "state").iterdir()}
        assert kept, "the hub kept nothing in its volume"
        for process in (agent, hub):
            process.stop()
    finally:
        backend.close()
