"""Every requirement of the hub and of its Terraform provider has a test that names it, by `@pytest.mark.row(N)`.

Agents that reach private repositories are left out of row 52; its repositories are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = range(1, 72)


def rows_of(source: str) -> Iterator[int]:
    """The rows that the tests of a module show: marks on test functions, on their classes, or of the whole module."""
    for node in ast.walk(ast.parse(source)):
        functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        if isinstance(node, functions) and node.name.lower().startswith("test"):
            marks = node.decorator_list
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            marks = [each for each in ast.walk(node.value) if isinstance(each, ast.Call)]
        else:
            continue
        for mark in marks:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.row":
                yield from (argument.value for argument in mark.args if isinstance(argument, ast.Constant))  # type: ignore[misc]


@pytest.fixture(scope="module")
def shown() -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text()
        if "mark.row" in source and path != Path(__file__):
            for row in rows_of(source):
                found.setdefault(row, []).append(str(path.relative_to(TESTS)))
    return found


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_shown_by_a_test(shown: dict[int, list[str]], row: int) -> None:
    assert shown.get(row), f"no test is marked with row({row})"


def test_no_test_shows_a_row_that_is_none(shown: dict[int, list[str]]) -> None:
    assert not {row: shown[row] for row in shown if row not in ROWS}


def test_rows_are_found_where_marks_can_be() -> None:
    source = """
import pytest
pytestmark = [pytest.mark.row(1), pytest.mark.slow]
@pytest.mark.row(2)
class TestThings:
    @pytest.mark.slow
    @pytest.mark.row(3)
    @pytest.mark.row(4)
    async def test_one(self): ...
@pytest.mark.row(5)
def helper(): ...
# @pytest.mark.row(6)
"""
    assert sorted(rows_of(source)) == [1, 2, 3, 4]
