"""`trimtab up` is read without the parser of the command line, and means the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import environment
from trimtab.cli.commands_running import up
from trimtab.cli.quick import arguments


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRIMTAB_DATA_DIR", raising=False)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("", {}),
        ("--port 0", {"port": 0}),
        ("--port=0 --data-dir=/x", {"port": 0, "data_dir": Path("/x")}),
        ("--tls-host a --tls-host b --host ::1", {"tls_host": ["a", "b"], "host": "::1"}),
        ("--log-format json", {"log_format": "json"}),
    ],
)
def test_plain_options_are_read(words: str, given: dict[str, Any]) -> None:
    assert arguments(up, words.split()) == given


@pytest.mark.parametrize("words", ["--help", "-h", "--port", "--port x", "--nothing 1", "x", "--port --host", "--"])
def test_all_else_is_left_to_the_parser(words: str) -> None:
    assert arguments(up, words.split()) is None


def test_the_environment_counts_less_than_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_DATA_DIR", "/from/environment")
    assert arguments(up, []) == {"data_dir": Path("/from/environment")}
    assert arguments(up, ["--data-dir", "/given"]) == {"data_dir": Path("/given")}


def test_a_server_does_not_carry_the_parsers_weight(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code = (
        "import atexit, sys; from trimtab.cli import main; "
        "atexit.register(lambda: print([n for n in ('pydantic', 'rich', 'aiohttp') if n in sys.modules])); "
        f"sys.argv = ['trimtab', 'up', '--port', '0', '--data-dir', {str(tmp_path / 'file' / 'x')!r}]; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (1, "[]\n"), done.stderr
