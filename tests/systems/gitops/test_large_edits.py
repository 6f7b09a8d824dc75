"""What is large is changed in time: nothing else runs meanwhile, and everybody who may write an object can make it large."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from trimtab.model import yaml
from trimtab.systems.gitops.editing import apply_edits, edit_document
from trimtab.systems.gitops.merging import Base, merge
from trimtab.systems.gitops.parsing import Identity
from trimtab.systems.gitops.planning import FileEdit

COUNT = 400


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < 5


def thing(number: int, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, **more}


def edits(path: str, *, listed: bool) -> list[FileEdit]:
    """Every third goes, all others change."""
    found = []
    for number in range(COUNT):
        place = {"index": 0 if listed else number, "item": number if listed else -1}
        identity, before = Identity("", "ConfigMap", "", f"c{number}"), thing(number, data={"a": "1"})
        if number % 3:
            after = thing(number, data={"a": "2"})
            found.append(FileEdit(identity, "update", path, **place, before=before, document=after))
        else:
            found.append(FileEdit(identity, "delete", path, **place, before=before))
    return found


WANTED = [thing(number, data={"a": "2"}) for number in range(COUNT) if number % 3]


def test_all_documents_of_a_file_change() -> None:
    text = "# all\n" + "".join(f"---\n# {n}\n{yaml.dump(thing(n, data={'a': '1'}))}" for n in range(COUNT))
    data = apply_edits({"all.yaml": text.encode()}, edits("all.yaml", listed=False))["all.yaml"]
    assert data is not None
    assert list(yaml.load_all(data.decode())) == WANTED
    assert data.decode().startswith("# all\n---\n# 1\n")
    assert data.count(b"#") == len(WANTED) + 1


@pytest.mark.parametrize("path", ["all.yaml", "all.json"])
def test_all_items_of_a_list_change(path: str) -> None:
    document = {"apiVersion": "v1", "kind": "List", "items": [thing(n, data={"a": "1"}) for n in range(COUNT)]}
    text = json.dumps(document, indent=2) if path.endswith("json") else "# all\n" + yaml.dump(document, sort=False)
    data = apply_edits({path: text.encode()}, edits(path, listed=True))[path]
    assert data is not None
    assert yaml.load(data.decode()) == {**document, "items": WANTED}
    assert data.startswith(b"# all\n") is path.endswith("yaml")


def test_all_documents_of_a_file_go() -> None:
    text = "# all\n" + "".join(f"---\n{yaml.dump(thing(n))}" for n in range(3))
    gone = [FileEdit(Identity("", "ConfigMap", "", f"c{n}"), "delete", "all.yaml", n) for n in range(3)]
    assert apply_edits({"all.yaml": text.encode()}, gone) == {"all.yaml": None}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["a"] * 9000, ["b", *["a"] * 4500, "b", *["a"] * 4500, "b"]),
        ([f"a{n}" for n in range(9000)], [f"{'ab'[n % 2]}{n}" for n in range(9000)]),
        ({f"k{n}": "a" for n in range(12000)}, {f"k{n}": "a" for n in range(11999)} | {"k5": "b"}),
    ],
)
def test_a_long_list_or_mapping_changes(before: Any, after: Any) -> None:
    text = yaml.dump(thing(0, x=before)).encode()
    found = edit_document(text, "a.yaml", 0, thing(0, x=before), thing(0, x=after))
    assert yaml.load(found.decode())["x"] == after


def test_long_lists_of_named_items_are_merged() -> None:
    items = [{"name": f"n{number}"} for number in range(30_000)]
    was, git, live = (thing(0, x=value) for value in (items, [*items, {"name": "git"}], [{"name": "live"}, *items]))
    found = merge(Base(was, was), git, live)
    assert found.git is not None
    assert found.git["x"] == [{"name": "live"}, *items, {"name": "git"}]
