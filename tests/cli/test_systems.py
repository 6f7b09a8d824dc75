"""Operators in files, as the commands load them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import msgspec
import pytest

from trimtab.cli.systems import NoSystem, load, operator
from trimtab.systems.rest import system as rest

TEXT = """
from trimtab.model.kubernetes import ConfigMap
from trimtab.runtime import Controller, System

class Quiet(Controller[ConfigMap]):
    async def reconcile(self, request): ...
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_file_may_be_called_as_a_module_of_the_standard_library(written: Path) -> None:
    (written / "secrets.py").write_text(TEXT)
    assert operator(written / "secrets.py").name == "secrets"
    assert importlib.import_module("secrets").token_hex(4)


def test_two_of_one_name_are_refused(written: Path) -> None:
    for folder in ("a", "b"):
        (written / folder).mkdir()
        (written / folder / "quiet.py").write_text(TEXT)
    with pytest.raises(NoSystem, match='two systems are called "quiet"'):
        load("none", [written / "a" / "quiet.py", written / "b" / "quiet.py"])


@pytest.mark.parametrize(
    ("file", "name"), [("My Operator.py", "my-operator"), ("x" * 49 + "_y.py", "x" * 49), ("_.py", "operator")]
)
def test_a_file_names_its_system(written: Path, file: str, name: str) -> None:
    (written / file).write_text(TEXT)
    assert operator(written / file).name == name


def test_a_system_of_a_file_knows_where_it_is_from(written: Path) -> None:
    path = written / "own.py"
    path.write_text(TEXT + "SYSTEM = System(name='other', reconciles=(Quiet,))")
    assert (operator(path).name, operator(path).source) == ("other", str(path))


def test_a_system_without_its_extra_is_left_out_and_missed_only_by_who_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking = msgspec.structs.replace(rest.SYSTEM, requires=("json", "nowhere_to_be_found"))
    monkeypatch.setattr(rest, "SYSTEM", lacking)
    assert "rest" not in [system.name for system in load("all")]
    with pytest.raises(NoSystem, match=r'"rest" needs nowhere_to_be_found: pip install "trimtab\[rest\]"'):
        load("rest")


def test_a_file_that_only_has_the_name_of_an_installed_system_does_not_take_its_place(written: Path) -> None:
    (written / "discovery.py").write_text(TEXT)
    with pytest.raises(NoSystem, match='two systems are called "discovery"'):
        load("discovery", [written / "discovery.py"])
