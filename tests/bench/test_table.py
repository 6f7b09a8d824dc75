"""The table in the docs is of one run, whole."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from table import asked

PARTS = ("reads", "size")


def test_some_parts_do_not_replace_the_table_of_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--only", "reads", "--docs"])
    with pytest.raises(SystemExit):
        asked(argparse.ArgumentParser(), PARTS)
    assert "--docs replaces the whole table, so it goes not with --only" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--docs"], ["--docs", "--only", "size", "reads"], ["--only", "size"]])
def test_all_parts_go_into_the_docs_and_some_on_the_screen(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    assert asked(argparse.ArgumentParser(), PARTS).docs is ("--docs" in words)
