"""Credentials from programs: run without a shell, kept until they expire, and their failures told."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from trimtab.client import exec_plugin
from trimtab.client.config import ConfigError, load
from trimtab.client.exec_plugin import ExecCredentials, Plugin, read_credential

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


def credential(version: str = V1, **status: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": "ExecCredential", "status": status}


def program(folder: Path, script: str) -> str:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def plugin(command: str, *args: str, **more: Any) -> Plugin:
    return Plugin(command=command, args=args, interactive="Never", source="kubeconfig: exec", **more)


def counting(folder: Path, answer: dict[str, Any]) -> tuple[str, Path]:
    """A program that answers, and a file with a line for each run."""
    (folder / "answer").write_text(json.dumps(answer))
    return program(folder, f"echo run >> {folder}/runs; cat {folder}/answer"), folder / "runs"


async def test_a_token_is_asked_for_once_while_it_holds(tmp_path: Path) -> None:
    command, runs = counting(tmp_path, credential(token="t"))
    credentials = ExecCredentials(plugin(command))
    for _ in range(3):
        assert (await credentials.current()).authorization == "Bearer t"
    assert runs.read_text() == "run\n"


async def test_a_token_is_asked_for_again_before_it_expires(tmp_path: Path) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    command, runs = counting(tmp_path, credential(token="t", expirationTimestamp="2026-01-01T01:00:00Z"))
    credentials = ExecCredentials(plugin(command), now=lambda: now)
    await credentials.current()
    now += timedelta(minutes=59)
    await credentials.current()
    assert runs.read_text() == "run\n"
    now += timedelta(seconds=55)
    await credentials.current()
    assert runs.read_text() == "run\nrun\n"


async def test_a_refused_token_is_asked_for_again(tmp_path: Path) -> None:
    command, runs = counting(tmp_path, credential(token="t"))
    credentials = ExecCredentials(plugin(command))
    old = await credentials.current()
    assert credentials.refused(old)
    await credentials.current()
    assert credentials.refused(old), "by a call that was sent before"
    await credentials.current()
    assert runs.read_text() == "run\nrun\n"


async def test_arguments_are_not_read_by_a_shell(tmp_path: Path) -> None:
    command = program(tmp_path, f'printf "%s" "$1" > {tmp_path}/argument; exit 1')
    with pytest.raises(ConfigError):
        await ExecCredentials(plugin(command, "$(touch x); `y` *")).current()
    assert (tmp_path / "argument").read_text() == "$(touch x); `y` *"


async def test_a_plugin_hears_what_is_wanted_and_gets_its_environment(tmp_path: Path) -> None:
    command = program(
        tmp_path,
        f'printf "%s" "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; printf "%s" "$EXTRA" > {tmp_path}/extra; exit 1',
    )
    asked = plugin(command, api_version=V1BETA1, env={"EXTRA": "more"}, cluster={"server": "https://s"})
    with pytest.raises(ConfigError):
        await ExecCredentials(asked).current()
    info = json.loads((tmp_path / "info").read_text())
    assert info == {
        "apiVersion": V1BETA1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://s"}},
    }
    assert (tmp_path / "extra").read_text() == "more"


def test_a_certificate_may_be_answered() -> None:
    answer = credential(clientCertificateData="cert", clientKeyData="key")
    found, expires = read_credential(json.dumps(answer).encode(), plugin("x"))
    assert (found.certificate, found.key, found.authorization, expires) == (b"cert", b"key", "", None)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"", "answered no ExecCredential"),
        (b"[" * 100000, "answered no ExecCredential"),
        (json.dumps(credential(V1BETA1, token="t")).encode(), "v1beta1 ExecCredential, not"),
        (json.dumps(credential()).encode(), "neither a token nor a certificate"),
        (json.dumps(credential(clientKeyData="k")).encode(), "a key without a certificate"),
        (json.dumps(credential(token="t", expirationTimestamp="soon")).encode(), "answered no ExecCredential"),
    ],
)
def test_a_wrong_answer_is_told(answer: bytes, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_credential(answer, plugin("x"))


async def test_a_program_that_fails_is_told_by_its_exit_code(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kubeconfig: exec: .*plugin failed with exit code 7"):
        await ExecCredentials(plugin(program(tmp_path, "exit 7"))).current()


async def test_a_program_that_is_missing_is_told_with_the_hint(tmp_path: Path) -> None:
    missing = plugin(str(tmp_path / "none"), install_hint="get it at the shop")
    with pytest.raises(ConfigError, match=r"(?s)cannot be run: No such file.*get it at the shop"):
        await ExecCredentials(missing).current()


async def test_a_program_that_says_too_much_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "MAX_OUTPUT", 1000)
    with pytest.raises(ConfigError, match="wrote more than 1000 bytes"):
        await ExecCredentials(plugin(program(tmp_path, "while :; do echo yyyyyyyyyyyyyyyy; done"))).current()


async def test_a_program_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "PATIENCE", 0.2)
    with pytest.raises(ConfigError, match=r"did not answer within 0\.2 s"):
        await ExecCredentials(plugin(program(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"))).current()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_a_kubeconfig_names_a_program_beside_it(tmp_path: Path) -> None:
    counting(tmp_path, credential(token="from plugin"))
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://s"}}],
        "users": [
            {"name": "u", "user": {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"}}}
        ],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    credentials = load(tmp_path / "kubeconfig").credentials
    assert credentials is not None
    assert (await credentials.current()).authorization == "Bearer from plugin"


def test_no_secret_is_in_a_repr() -> None:
    assert "hush" not in repr(ExecCredentials(plugin("x", "hush", env={"K": "hush"})))
