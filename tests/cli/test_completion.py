"""`trimtab completion`: what a shell offers, asked of the real shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Program, config_map
from tests.needs import needs
from trimtab.testing.embedded import TrimtabServer


def offered(program: Program, *words: str) -> list[str]:
    """What bash offers for the last word."""
    ran = program("completion", "bash")
    assert ran.code == 0
    script = program.folder / "completion.bash"
    script.write_text(ran.out)
    quoted = " ".join(f"'{word}'" for word in ("trimtab", *words))
    ask = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _trimtab; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    env = {**program.env, "PATH": f"{Path(PROGRAM).parent}{os.pathsep}{program.env['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", ask],
        capture_output=True,
        text=True,
        env=env,
        cwd=program.folder,
        check=True,
        timeout=30,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_commands_and_their_commands_are_offered(bare: Program) -> None:
    assert {"up", "get", "backup", "hub"} <= set(offered(bare, ""))
    assert offered(bare, "desc") == ["describe"]
    assert "artifacts" in offered(bare, "hub", "")
    assert "__complete" not in offered(bare, "")


def test_options_are_those_of_the_command(bare: Program) -> None:
    assert offered(bare, "get", "--all-n") == ["--all-namespaces"]
    assert offered(bare, "backup", "--with") == ["--with-keys"]
    assert offered(bare, "up", "--all-n") == []


def test_kinds_and_names_are_asked_of_the_server(trimtab_server: TrimtabServer, bare: Program) -> None:
    bare.env["KUBECONFIG"] = str(trimtab_server.kubeconfig)
    assert bare("apply", "-f", "-", stdin=config_map("completes-me")).code == 0
    assert offered(bare, "get", "configm") == ["configmaps"]
    assert offered(bare, "get", "cm", "completes") == ["completes-me"]
    assert offered(bare, "describe", "cm/completes") == ["cm/completes-me"]
    assert "kube-public" in offered(bare, "get", "-n", "kube-p")
    assert offered(bare, "get", "-n", "kube-public", "cm", "") == ["kube-root-ca.crt"]


def test_another_kubeconfig_is_asked_over_tls(trimtab_server: TrimtabServer, bare: Program) -> None:
    (bare.folder / "other.yaml").write_text(trimtab_server.kubeconfig.read_text())
    bare.env["KUBECONFIG"] = str(bare.folder / "other.yaml")
    assert offered(bare, "get", "configm") == ["configmaps"]
    assert offered(bare, "get", "ns", "kube-p") == ["kube-public"]
    assert len(offered(bare, "get", "--context", "")) == 1


def test_without_a_server_there_is_silence(bare: Program) -> None:
    assert offered(bare, "get", "c") == []
    assert offered(bare, "get", "cm", "") == []


def test_asking_imports_nothing_of_the_command_line(trimtab_server: TrimtabServer, bare: Program) -> None:
    code = (
        "import sys; from trimtab.cli import completing; completing.run(['kinds'])\n"
        "heavy = [n for n in ('typer', 'asyncio', 'msgspec', 'ssl', 'trimtab.cli.app') if n in sys.modules]\n"
        "print(heavy)"
    )
    env = {**bare.env, "KUBECONFIG": str(trimtab_server.kubeconfig)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.endswith("[]\n")
    assert "configmaps\n" in done.stdout


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_read_their_scripts(shell: str, bare: Program) -> None:
    needs(shell)
    (bare.folder / "script").write_text(bare("completion", shell).out)
    subprocess.run([shell, "-n", "script"], cwd=bare.folder, check=True, timeout=30)


def test_a_shell_that_is_not_known_is_refused(bare: Program) -> None:
    ran = bare("completion", "tcsh")
    assert ran.code == 2
    assert "bash, zsh, fish" in ran.err


def test_names_that_a_shell_would_run_are_neither_run_nor_offered(trimtab_server: TrimtabServer, bare: Program) -> None:
    bare.env["KUBECONFIG"] = str(trimtab_server.kubeconfig)
    hostile = ("$(touch ran)", "`touch ran`", "a;touch ran", "--all", "a b", "*", "plain:role")
    for name in hostile:
        role = f"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: '{name}'}}\nrules: []\n"
        assert bare("apply", "-f", "-", stdin=role).code == 0
    names = offered(bare, "get", "clusterroles", "")
    assert "plain:role" in names
    assert not set(names) & {"$(touch", "`touch", "a;touch", "--all", "a", "*"}
    assert offered(bare, "get", "clusterroles/plain") == ["clusterroles/plain:role"]
    assert not list(bare.folder.glob("**/ran"))


def test_the_script_itself_runs_no_word_of_the_server(bare: Program) -> None:
    """Also with a server that offers what ours would not."""
    fake = bare.folder / "bin"
    fake.mkdir()
    (fake / "trimtab").write_text("#!/bin/sh\nprintf '%s\\n' '$(touch ran)' '`touch ran`' 'fine' '*'\n")
    (fake / "trimtab").chmod(0o755)
    script = bare.folder / "script"
    script.write_text(bare("completion", "bash").out)
    ask = (
        f"source {script}; COMP_WORDS=(trimtab get cm ''); COMP_CWORD=3; _trimtab; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    env = {**bare.env, "PATH": f"{fake}{os.pathsep}{bare.env['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", ask], capture_output=True, text=True, env=env, cwd=bare.folder, check=True, timeout=30
    )
    assert "fine" in done.stdout.split("\n")
    assert not (bare.folder / "ran").exists()
