"""Any change of any document in any layout reads back as what was meant, and other documents keep their bytes."""

from __future__ import annotations

import json
from typing import Any

import yaml as pyyaml
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from trimtab.model import yaml
from trimtab.systems.gitops.editing import delete_document, edit_document, new_file
from trimtab.systems.gitops.merging import normal, same

WORDS = st.sampled_from(["a", "b", "name", "x-1", "yes", "1", "a b", "é"])
TEXTS = st.one_of(
    st.sampled_from(
        ["", "yes", "1e3", "0x1", "null", "a: b", "- a", "# c", "it's", 'say "x"', "l1\nl2\n", " s", "e\n\n"]
    ),
    st.text(max_size=8),
).filter(lambda text: text.encode("utf-8", "replace").decode() == text and "\x85" not in text)
SCALARS = st.one_of(st.booleans(), st.integers(-5, 1000), st.sampled_from([0.5, 1e20]), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.dictionaries(WORDS, inner, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=10,
)
SPECS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=4)


def document(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "thing"}, "spec": spec}


@st.composite
def edits(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = draw(SPECS)
    return document(spec), document(_edited(draw, spec))


def _edited(draw: st.DrawFn, value: Any) -> Any:
    if draw(st.integers(0, 4)) == 0:
        return draw(VALUES)
    if isinstance(value, dict):
        found = {name: _edited(draw, inner) for name, inner in value.items() if draw(st.integers(0, 4))}
        return found | draw(st.dictionaries(WORDS, VALUES, max_size=1))
    if isinstance(value, list):
        found_items = [_edited(draw, inner) for inner in value if draw(st.integers(0, 4))]
        if draw(st.booleans()):
            found_items.insert(draw(st.integers(0, len(found_items))), draw(VALUES))
        return found_items
    return value


LAYOUTS = st.sampled_from(["ours", "block", "flow", "mixed", "wide", "json"])


def laid_out(value: dict[str, Any], layout: str) -> str:
    if layout == "ours":
        return new_file(value).decode()
    if layout == "json":
        return json.dumps(value, indent=1) + "\n"
    flow = {"block": False, "flow": True, "mixed": None, "wide": False}[layout]
    indent = 4 if layout == "wide" else 2
    dumper: Any = pyyaml.SafeDumper
    return str(pyyaml.dump(value, Dumper=dumper, default_flow_style=flow, indent=indent, width=30, allow_unicode=True))


@settings(max_examples=70, deadline=None)
@given(edits(), LAYOUTS)
def test_an_edit_says_what_was_meant(pair: tuple[dict[str, Any], dict[str, Any]], layout: str) -> None:
    before, after = pair
    text = laid_out(before, layout)
    try:
        assume(same(yaml.load(text), before))
    except yaml.YamlError:
        reject()  # other writers write what our reader refuses, or reads otherwise
    around = "# first\na: 1 # one\n---\n" + text + "---\n# last\nb:\n  - x   # kept\n"
    found = edit_document(around.encode(), "a.yaml", 1, normal(before), normal(after)).decode()
    assert same(list(yaml.load_all(found))[1], normal(after))
    assert found.startswith("# first\na: 1 # one\n---\n")
    assert found.endswith("---\n# last\nb:\n  - x   # kept\n")
    taken_out = delete_document(found.encode(), "a.yaml", 1)
    assert taken_out == b"# first\na: 1 # one\n---\n# last\nb:\n  - x   # kept\n"


@settings(max_examples=40, deadline=None)
@given(SPECS)
def test_a_new_file_reads_as_its_document(spec: dict[str, Any]) -> None:
    written = new_file(document(spec))
    assert same(yaml.load(written.decode()), document(spec))
    assert new_file(yaml.load(written.decode())) == written


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefg"), st.integers(0, 9), min_size=2), st.data())
def test_comments_stay_when_values_change(values: dict[str, int], data: st.DataObject) -> None:
    text = "".join(f"# about {name}\n{name}: {value}  # {name}\n\n" for name, value in values.items())
    name = data.draw(st.sampled_from(sorted(values)))
    after = {**values, name: values[name] + 1}
    found = edit_document(text.encode(), "a.yaml", 0, dict(values), after).decode()
    assert found == text.replace(f"\n{name}: {values[name]} ", f"\n{name}: {after[name]} ")
    less = {key: value for key, value in values.items() if key != name}
    found = edit_document(text.encode(), "a.yaml", 0, dict(values), less).decode()
    assert found == text.replace(f"{name}: {values[name]}  # {name}\n", "")
