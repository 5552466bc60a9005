# SPDX-License-Identifier: Apache-2.0
"""Bad input to the programs: exit code 2 and one line on stderr that says what and where."""

import subprocess

import pytest

from backends import write_yaml
from clock import scaled
from procs import run

PROGRAMS = ["kuberelay-hub", "kuberelay-agent"]


@pytest.fixture(scope="module")
def good(session_world, workdir):
    """A good configuration of each program, as text."""
    kubeconfig = write_yaml(workdir / "good.kubeconfig", {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1",
                                               "certificate-authority": session_world.ca}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]})
    return {
        "kuberelay-hub": session_world.hub_config(),
        "kuberelay-agent": session_world.agent_config("good", kubeconfig,
                                                      hubs=["127.0.0.1:1"]),
    }


def check(binaries, program, path, *more):
    return run([binaries[program], "--config", path, *more, "--check-config"], 10)


def start(binaries, program, path, *more):
    """For what only a start can find; it must end by itself."""
    return run([binaries[program], "--config", path, *more], 10)


@pytest.mark.parametrize("program", PROGRAMS)
def test_config_a_good_file_passes_the_check(binaries, good, tmp_path, program):
    path = write_yaml(tmp_path / "c.yaml", good[program])
    code, _, err = check(binaries, program, path)
    assert code == 0, err


BAD_LINES = {
    "unknown key": ("noSuchKey: 1\n", "noSuchKey"),
    "wrong case": ("CAFILE: x\n", "CAFILE"),
    "bad level": ("logLevel: loud\n", "logLevel"),
    "not a map": ("- a\n- b\n", ""),
    "broken yaml": ("a: [1, 2\n", ""),
    "nested": ("apiListen:\n  deep: 1\n", ""),
    "tabs": ("\tlogLevel: info\n", ""),
}


@pytest.mark.parametrize("kind", BAD_LINES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_config_a_bad_line_is_refused_with_its_place(binaries, good, tmp_path, program, kind):
    line, word = BAD_LINES[kind]
    path = write_yaml(tmp_path / "c.yaml", {k: v for k, v in good[program].items()
                                            if k != "logLevel"})
    before = (tmp_path / "c.yaml").read_text()
    (tmp_path / "c.yaml").write_text(before + line)
    code, _, err = check(binaries, program, path)
    text = err.decode()
    assert code == 2, text
    assert len(text.strip().splitlines()) == 1, text
    assert "c.yaml" in text and word in text, text
    if word:
        assert str(before.count("\n") + 1) in text, f"the line number is missing: {text}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_config_a_duplicate_key_is_refused(binaries, good, tmp_path, program):
    path = write_yaml(tmp_path / "c.yaml", {**good[program], "logLevel": "info"})
    with open(path, "a", encoding="utf-8") as file:
        file.write("logLevel: debug\n")
    code, _, err = check(binaries, program, path)
    assert code == 2 and b"logLevel" in err and len(err.strip().splitlines()) == 1, err


@pytest.mark.parametrize("program,key", [("kuberelay-hub", "caFile"), ("kuberelay-hub", "certFile"),
                                         ("kuberelay-hub", "keyFile"),
                                         ("kuberelay-agent", "caFile"),
                                         ("kuberelay-agent", "certFile"),
                                         ("kuberelay-agent", "kubeconfig")])
def test_config_an_absent_file_is_named(binaries, good, tmp_path, program, key):
    config = {**good[program], key: "/no/such/file"}
    code, _, err = start(binaries, program, write_yaml(tmp_path / "c.yaml", config))
    assert code in (1, 2) and len(err.strip().splitlines()) == 1, err
    assert b"/no/such/file" in err, err


def test_config_a_hub_address_must_be_one(binaries, good, tmp_path):
    for hubs in (["no host here"], ["host:notaport"], ["host:70000"], []):
        config = {**good["kuberelay-agent"], "hubs": hubs}
        code, _, err = start(binaries, "kuberelay-agent", write_yaml(tmp_path / "c.yaml", config))
        assert code in (1, 2) and len(err.strip().splitlines()) == 1, (hubs, err)


@pytest.mark.parametrize("program", PROGRAMS)
def test_config_a_key_of_another_certificate_is_refused(binaries, good, tmp_path, session_world,
                                                        program):
    other = session_world.user("somebody-else")
    config = {**good[program], "keyFile": other.key}
    code, _, err = start(binaries, program, write_yaml(tmp_path / "c.yaml", config))
    assert code in (1, 2) and len(err.strip().splitlines()) == 1, err
    assert b"key" in err


@pytest.mark.parametrize("program", PROGRAMS)
def test_config_a_key_that_others_can_read_is_refused(binaries, good, tmp_path, program):
    import shutil

    shutil.copy(good[program]["keyFile"], tmp_path / "open.key")
    (tmp_path / "open.key").chmod(0o644)
    config = {**good[program], "keyFile": str(tmp_path / "open.key")}
    code, _, err = start(binaries, program, write_yaml(tmp_path / "c.yaml", config))
    assert code in (1, 2) and b"open.key" in err, err


@pytest.mark.parametrize("program", [*PROGRAMS, "kuberelayctl"])
@pytest.mark.parametrize("args", [["--no-such-flag"], ["--config"], ["stray"]])
def test_config_bad_flags_are_one_line_and_exit_2(binaries, program, args):
    code, _, err = run([binaries[program], *args], 10)
    assert code == 2, err
    assert len(err.strip().splitlines()) == 1, err.decode()


@pytest.mark.parametrize("program", [*PROGRAMS, "kuberelayctl"])
def test_config_help_and_version(binaries, program):
    for flag in ("--help", "--version"):
        code, out, err = run([binaries[program], flag], 10)
        assert code == 0 and out and not err, (flag, out, err)


@pytest.mark.parametrize("program", PROGRAMS)
def test_config_flags_win_over_the_file(binaries, good, tmp_path, program):
    path = write_yaml(tmp_path / "c.yaml", {**good[program], "certFile": "/of/the/file"})
    _, _, err = start(binaries, program, path, "--cert-file", "/of/the/flag")
    assert b"/of/the/flag" in err and b"/of/the/file" not in err, err


def test_config_a_port_in_use_is_a_clear_error(binaries, good, tmp_path, session_world):
    config = {**good["kuberelay-hub"], "apiListen": "%s:%d" % session_world.hub.admin}
    path = write_yaml(tmp_path / "c.yaml", config)
    done = subprocess.run([binaries["kuberelay-hub"], "--config", path], capture_output=True,
                          timeout=scaled(10), check=False)
    assert done.returncode != 0
    assert b"in use" in done.stderr.lower() and str(session_world.hub.admin[1]).encode() in (
        done.stderr)


def test_config_ctl_refuses_to_overwrite_and_bad_names(binaries, session_world, tmp_path):
    ctl, pki = binaries["kuberelayctl"], str(tmp_path / "p")
    assert run([ctl, "ca", "init", "--dir", pki])[0] == 0
    before = (tmp_path / "p" / "ca.key").read_bytes()
    code, _, err = run([ctl, "ca", "init", "--dir", pki])
    assert code != 0 and len(err.strip().splitlines()) == 1
    assert (tmp_path / "p" / "ca.key").read_bytes() == before
    assert (tmp_path / "p" / "ca.key").stat().st_mode & 0o777 == 0o600
    for name in ("Prod-EU", "x_y", "-a", "a" * 64, "a/b", "", "a b", "$(id)", 'q"'):
        code, _, err = run([ctl, "ca", "issue", "agent", "--dir", pki, "--cluster", name])
        assert code != 0 and len(err.strip().splitlines()) == 1, (name, err)
    assert run([ctl, "ca", "issue", "agent", "--dir", pki, "--cluster", "a" * 63])[0] == 0
    assert run([ctl, "ca", "issue", "agent", "--dir", pki, "--cluster", "9x"])[0] == 0
    for name in ("system:admin", ""):
        assert run([ctl, "ca", "issue", "user", "--dir", pki, "--name", name])[0] != 0, name


def test_config_ctl_kubeconfig_has_a_context_per_cluster(binaries, session_world, tmp_path):
    import yaml

    user = session_world.user("admin")
    out = tmp_path / "kc"
    session_world.ctl("kubeconfig", "--server", "https://127.0.0.1:6443", "--ca",
                      session_world.ca, "--cert", user.crt, "--key", user.key,
                      "--cluster", "c1", "--cluster", "c2", "--out", out)
    config = yaml.safe_load(out.read_text())
    servers = {c["cluster"]["server"] for c in config["clusters"]}
    assert {"https://127.0.0.1:6443/clusters/c1", "https://127.0.0.1:6443/clusters/c2"} <= servers
    assert {"c1", "c2"} <= {c["name"] for c in config["contexts"]}
    assert len(config["users"]) == 1
    assert out.stat().st_mode & 0o777 == 0o600
