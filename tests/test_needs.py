"""A test that lacks something is skipped at a desk, and fails where nothing may be left out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.needs import lacks, needs

ABSENT = "a-program-that-nobody-has"


@pytest.fixture(autouse=True)
def desk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "TRIMTAB_REQUIRE_PEERS"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_here_is_enough() -> None:
    needs("sh", Path(__file__))


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_at_a_desk_it_is_skipped(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CI", value)
    with pytest.raises(pytest.skip.Exception, match=f"needs {ABSENT}: install it"):
        needs("sh", ABSENT, hint="install it")


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("CI", "1"), ("TRIMTAB_REQUIRE_PEERS", "1")])
def test_where_nothing_may_be_left_out_it_fails(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(pytest.fail.Exception, match=f"needs {ABSENT}"):
        needs(ABSENT)
    with pytest.raises(pytest.fail.Exception, match="no network"):
        lacks("no network")


def test_a_file_and_an_account_can_be_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match=r"nothing\.jar, root"):
        needs(tmp_path / "nothing.jar", root=True)
