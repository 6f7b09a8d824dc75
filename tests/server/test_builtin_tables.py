"""The committed tables say what the packages say that they were made from, and cost nothing before they are used."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from trimtab.server.builtin import reviews, strategies, tables
from trimtab.server.builtin.tables import DEFINITIONS

SCRIPT = Path(__file__).parents[2] / "scripts" / "builtin_tables.py"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("builtin_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["builtin_tables"] = module
    spec.loader.exec_module(module)
    return module


def test_the_tables_agree_with_the_packages() -> None:
    script = generator()
    try:
        fresh = script.generate()
    except (LookupError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"kubernetes-validate or the Go modules are not here: {error}")
    for name, data in fresh.items():
        committed = (script.TARGET / name).read_bytes()
        assert script.content(name, committed) == script.content(name, data), f"{name}: run {SCRIPT.name}"


def test_every_reference_leads_to_a_definition() -> None:
    missing = {other for name in DEFINITIONS for other in DEFINITIONS.references(name) if other not in DEFINITIONS}
    assert not missing


def test_every_kind_has_a_definition_of_its_own() -> None:
    for strategy in (*strategies(), *reviews()):
        known = DEFINITIONS[strategy.definition]["x-kubernetes-group-version-kind"]
        kind = strategy.kind
        assert {"group": kind.group, "version": kind.version, "kind": kind.kind} in known


def test_merge_keys_are_kept() -> None:
    containers = DEFINITIONS["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_prose_is_apart_and_complete() -> None:
    prose = tables.descriptions()["io.k8s.api.core.v1.Container"]
    assert prose["fields"]["image"].startswith("Container image name.")
    assert prose["required"] == ["name"]


def test_a_field_that_takes_few_words_says_which() -> None:
    name = "io.k8s.api.apps.v1.DeploymentStrategy"
    assert DEFINITIONS[name]["properties"]["type"]["enum"] == ["Recreate", "RollingUpdate"]
    prose = tables.descriptions()[name]["fields"]["type"]
    assert ' - `"Recreate"` Kill all existing pods before creating new ones.' in prose.split("\n")


def test_naming_the_kinds_reads_no_schema() -> None:
    script = """
import sys
from trimtab.server.builtin import strategies
from trimtab.server.builtin import tables
assert len(strategies()) == 37
assert tables._lines.cache_info().currsize == 0
assert "google.protobuf" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
