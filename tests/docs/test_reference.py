"""The reference is what the docstrings say now, and says something of every public name."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """The program that makes the reference."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_up_to_date(reference: ModuleType) -> None:
    made = reference.written()
    kept = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in made.keys() | kept.keys() if made.get(name) != kept.get(name))
    assert stale == [], "python scripts/reference.py renews them"


def test_every_public_name_says_what_it_is_for(reference: ModuleType) -> None:
    assert reference.undocumented() == []


def test_every_module_of_the_runtime_has_a_page(reference: ModuleType) -> None:
    source = ROOT / "src" / "trimtab"
    files = {path for room in ("runtime", "storage", "testing") for path in (source / room).rglob("*.py")}
    shown = {part for page in reference.pages() for part in page.parts}
    assert {path for path in files - shown if path.parent.parent != source} == set()
    assert {path.name for path in files - shown} <= {"__init__.py"}
