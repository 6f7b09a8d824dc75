"""Names that a snapshot gave stay, whatever the server serves later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.hints import BRANCHES
from trimtab.terraform.kinds.precomputing import taken
from trimtab.terraform.kinds.promises import promises
from trimtab.terraform.kinds.snapshot import Kinds, Snapshot, write_snapshot

VERBS = ["create", "delete", "get", "list", "patch", "watch"]
TEXT = {"type": "string"}
EITHER = [{"rule": "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1"}]
Kind = tuple[str, str, str]
"""Group, kind, plural."""
ODD, LATER = ("awk.example.com", "Odd", "odds"), ("awk.aaa.com", "Odd", "odds")


def of(*wires: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(wires, TEXT)}


def serving(*kinds: Kind, spec: dict[str, Any] | None = None, categories: tuple[str, ...] = ()) -> Callable[[str], Any]:
    """A server of these kinds, all with the same spec."""
    groups = {group for group, _, _ in kinds}

    def get(path: str) -> Any:
        if path == "/api/v1":
            return {"resources": []}
        if path == "/apis":
            version = {"version": "v1"}
            return {"groups": [{"name": one, "preferredVersion": version, "versions": [version]} for one in groups]}
        group = path.split("/")[-2]
        here = [(kind, plural) for of, kind, plural in kinds if of == group]
        if path.startswith("/apis"):
            told = {"namespaced": True, "verbs": VERBS, "categories": categories}
            return {"resources": [{"name": plural, "kind": kind, **told} for kind, plural in here]}
        schemas = {
            kind: {
                "type": "object",
                "properties": {"spec": spec or of("size")},
                "x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": kind}],
            }
            for kind, _ in here
        }
        return {"components": {"schemas": schemas}}

    return get


def named(get: Callable[[str], Any], before: list[Definition] | None = None) -> dict[tuple[str, str], tuple[str, str]]:
    made = definitions(get, promised=promises(Kinds(before or [])))
    return {(one.group, one.kind): (one.name, one.plural_name) for one in made}


def test_a_kind_of_the_same_name_in_a_group_that_comes_later_gets_another_type() -> None:
    before = definitions(serving(ODD))
    assert named(serving(ODD, LATER), before) == {
        ("awk.example.com", "Odd"): ("awk_odd", "awk_odds"),
        ("awk.aaa.com", "Odd"): ("awk_aaa_odd", "awk_aaa_odds"),
    }


def test_a_kind_that_is_called_as_the_plural_of_another_does_not_take_its_data_source() -> None:
    ren, rens = ("ren.example.com", "Ren", "rens"), ("ren.example.com", "Rens", "renses")
    names = named(serving(ren, rens), definitions(serving(ren)))
    assert names["ren.example.com", "Ren"] == ("ren_ren", "ren_rens")
    assert names["ren.example.com", "Rens"][0] == "ren_rens_2"


def test_the_plural_of_one_kind_is_never_another_kind() -> None:
    names = named(serving(("a.example.com", "Means", "means"), ("a.example.com", "MeansList", "meanslists")))
    assert names["a.example.com", "Means"] == ("a_means", "a_means_list_2")
    assert names["a.example.com", "MeansList"][0] == "a_means_list"


def test_fields_that_come_later_take_no_attribute_at_any_depth() -> None:
    def within(*wires: str) -> dict[str, Any]:
        inner = of(*wires)
        return {"type": "object", "properties": {**inner["properties"], "rows": {"type": "array", "items": inner}}}

    before = definitions(serving(ODD, spec=within("FooBar")))
    now = definitions(serving(ODD, spec=within("FooBar", "fooBar")), promised=promises(Kinds(before)))
    names = promises(Kinds(now)).fields["awk.example.com", "Odd"]
    for path in (("spec",), ("spec", "rows", "*")):
        assert (names[path]["FooBar"], names[path]["fooBar"]) == ("foo_bar", "foo_bar_2")


def test_the_type_of_a_branch_stays_with_its_kind() -> None:
    spec = {**of("a", "b"), "x-kubernetes-validations": EITHER}
    before = definitions(serving(ODD, spec=spec, categories=(BRANCHES,)))
    now = definitions(serving(ODD, LATER, spec=spec, categories=(BRANCHES,)), promised=promises(Kinds(before)))
    assert {(one.name, one.group) for one in now if one.branch} == {
        ("a_odd", "awk.example.com"),
        ("b_odd", "awk.example.com"),
    }


def test_the_name_of_a_kind_that_is_gone_is_free() -> None:
    assert named(serving(LATER), definitions(serving(ODD))) == {("awk.aaa.com", "Odd"): ("awk_odd", "awk_odds")}


def test_a_snapshot_gives_the_same_bytes_when_it_is_taken_again_after_itself(tmp_path: Path) -> None:
    get = serving(ODD, LATER, spec=of("FooBar", "fooBar", "foo_bar"))
    write_snapshot(tmp_path / "kinds", taken(get))
    assert taken(get, promised=promises(Snapshot(tmp_path / "kinds"))) == (tmp_path / "kinds").read_bytes()
