"""What the bench of the generic reconciler takes for granted, on documents of the project."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]
RECORDINGS = Path(__file__).parent / "documents" / "recordings"
COMPUTE = ROOT / "examples" / "rest" / "compute.json"


def of_bench(name: str) -> ModuleType:
    file = ROOT / "bench" / name
    spec = importlib.util.spec_from_file_location(f"bench_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_document_is_enough_to_read_our_recording_without_false_drift() -> None:
    recordings = of_bench("recordings.py")
    found = recordings.measure(RECORDINGS, recordings.compiled(ROOT / "bench" / "recorded"))
    assert (found.rereads, found.exact, found.knobs, found.ours) == (3, 3, 2, 0)


def test_both_resolvers_look_up_the_same_references() -> None:
    generate = of_bench("peers/rest_generate.py")
    assert generate.resolve([COMPUTE]) == generate.referencing([COMPUTE]) > 100


def test_kinds_are_counted() -> None:
    generate = of_bench("peers/rest_generate.py")
    assert generate.kinds([COMPUTE, COMPUTE]) == 2 * generate.kinds([COMPUTE]) > 0
