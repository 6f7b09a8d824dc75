"""A test that lacks something is skipped at a desk, and fails where nothing may be left out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.needs import lacks, needs

ABSENT = "a-program-that-nobody-has"


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "TRIMTAB_REQUIRE_PEERS"):
        monkeypatch.delenv(name, raising=False)


def outcome(asks: Callable[[], object]) -> tuple[str, str]:
    """What becomes of a test that asks so, and what it says. A skip in here must not skip the test that looks at it."""
    try:
        asks()
    except pytest.skip.Exception as skipped:
        return "skipped", str(skipped)
    except pytest.fail.Exception as failed:
        return "failed", str(failed)
    return "goes on", ""


def test_what_is_here_is_enough() -> None:
    assert outcome(lambda: needs("sh", Path(__file__))) == ("goes on", "")


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_at_a_desk_it_is_skipped(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CI", value)
    assert outcome(lambda: needs("sh", ABSENT, hint="install it")) == ("skipped", f"needs {ABSENT}: install it")


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("CI", "1"), ("TRIMTAB_REQUIRE_PEERS", "1")])
def test_where_nothing_may_be_left_out_it_fails(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert outcome(lambda: needs(ABSENT)) == ("failed", f"needs {ABSENT}")
    assert outcome(lambda: lacks("no network")) == ("failed", "no network")


def test_a_file_and_an_account_can_be_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    absent = tmp_path / "nothing.jar"
    assert outcome(lambda: needs(absent, root=True)) == ("skipped", f"needs {absent}, root")
