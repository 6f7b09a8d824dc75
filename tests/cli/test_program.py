"""The program as a whole: where it finds a server, what it says when there is none, and what it imports."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Program, config_map, environment
from trimtab import __version__
from trimtab.testing.embedded import TrimtabServer
from trimtab.testing.ports import free_ports

COMMANDS = [
    "up",
    "get",
    "apply",
    "delete",
    "describe",
    "wait",
    "tree",
    "events",
    "crds",
    "version",
    "backup",
    "restore",
    "completion",
]


def test_help_names_all_commands_and_the_exit_codes(bare: Program) -> None:
    ran = bare("--help")
    assert ran.code == 0
    assert all(f"  {command} " in ran.out for command in COMMANDS)
    assert "124 out of time" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help_with_an_example(bare: Program, command: str) -> None:
    ran = bare(command, "--help")
    assert ran.code == 0
    assert f"Example:  trimtab {command}" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        ("nothing",),
        ("get",),
        ("get", "--nothing"),
        ("delete", "cm", "a", "--timeout", "x"),
        ("up", "--log-format", "xml"),
    ],
)
def test_wrong_usage_has_its_exit_code(bare: Program, words: tuple[str, ...]) -> None:
    assert bare(*words).code == 2


def test_versions_are_of_both_sides(trimtab: Program) -> None:
    assert trimtab("version", "--client").out == f"client  {__version__}\n"
    ours, theirs = trimtab("version").lines
    assert ours == f"client  {__version__}"
    assert theirs.startswith("server  v1.")


# where the server is


def test_without_a_server_it_says_how_to_start_one(bare: Program) -> None:
    ran = bare("get", "cm")
    assert ran.code == 1
    assert "`trimtab up`" in ran.err


def test_a_server_that_does_not_answer_is_asked_about(bare: Program) -> None:
    address = f"https://127.0.0.1:{free_ports(1)[0]}"
    document = {
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    bare.write("kubeconfig", json.dumps(document))
    ran = bare("get", "cm", "--kubeconfig", "kubeconfig")
    assert ran.code == 1
    assert (
        ran.err
        == f"error: {address} does not answer: Connection refused; is it running? `trimtab up` starts a server\n"
    )


def test_the_kubeconfig_of_this_folder_is_found(trimtab_server: TrimtabServer, bare: Program) -> None:
    bare.write(".trimtab/kubeconfig", trimtab_server.kubeconfig.read_text())
    assert bare("get", "ns", "default", "-o", "name").out == "namespace/default\n"


def test_an_option_wins_over_the_environment(trimtab: Program, trimtab_server: TrimtabServer) -> None:
    trimtab.env["KUBECONFIG"] = "nowhere"
    assert trimtab("get", "ns").code == 1
    assert trimtab("get", "ns", "--kubeconfig", str(trimtab_server.kubeconfig)).code == 0
    ran = trimtab("get", "ns", "--kubeconfig", str(trimtab_server.kubeconfig), "--context", "other")
    assert 'there is no context named "other"' in ran.err


def test_a_socket_is_a_server(trimtab_server: TrimtabServer, bare: Program) -> None:
    document = {
        "clusters": [
            {"name": "c", "cluster": {"server": f"unix://{trimtab_server.kubeconfig.with_name('trimtab.sock')}"}}
        ],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    bare.write("kubeconfig", json.dumps(document))
    assert bare("get", "ns", "default", "-o", "name", "--kubeconfig", "kubeconfig").code == 0


def test_a_refusal_has_its_exit_code(trimtab: Program) -> None:
    config = Path(trimtab.env["KUBECONFIG"])
    document = json.loads(config.read_text())
    document["users"][0]["user"]["as"] = "nobody"
    config.write_text(json.dumps(document))
    ran = trimtab("get", "cm")
    assert ran.code == 4
    assert 'User "nobody" cannot list resource "configmaps"' in ran.err


# terminals and pipes


def test_a_reader_that_leaves_is_no_failure(trimtab: Program) -> None:
    command = f"{PROGRAM} get cm -A -o json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=trimtab.env, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("{", "")


def test_a_terminal_gets_colours_and_a_table_that_changes_in_place(trimtab: Program) -> None:
    trimtab("apply", "-f", "-", stdin=config_map("one", labels="{a: b}"))
    terminal, other = pty.openpty()
    env = {**trimtab.env, "TERM": "xterm"}
    with trimtab.installed("get", "cm", "-l", "a=b", "-w", stdout=other, stderr=other, stdin=other, env=env) as watch:
        os.close(other)
        seen = _until(terminal, "one")
        trimtab("apply", "-f", "-", stdin=config_map("two", labels="{a: b}"))
        seen += _until(terminal, "two")
        watch.terminate()
    os.close(terminal)
    assert "\033[1m" in seen, "bold"
    assert "\033[2K" in seen, "lines are drawn again"


@pytest.mark.parametrize(("settings", "coloured"), [({"TERM": "xterm"}, True), ({"NO_COLOR": "1"}, False)])
def test_states_are_coloured_on_a_terminal(trimtab: Program, settings: dict[str, str], coloured: bool) -> None:
    terminal, other = pty.openpty()
    env = {**{name: value for name, value in trimtab.env.items() if name != "NO_COLOR"}, **settings}
    with trimtab.installed("get", "ns", "default", stdout=other, env=env):
        os.close(other)
        seen = _until(terminal, "Active")
    os.close(terminal)
    assert ("\033[32mActive" in seen) is coloured


def _until(terminal: int, word: str) -> str:
    seen = ""
    while word not in seen:
        seen += os.read(terminal, 4096).decode()
    return seen


# what is imported


def test_the_command_line_imports_nothing_heavy() -> None:
    heavy = "rich", "aiohttp", "asyncio", "structlog", "msgspec", "trimtab.server", "trimtab.client", "trimtab.store"
    code = f"import sys, trimtab.cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    assert done.stdout == "[]\n"
