"""Kinds in several versions: hub and spokes, their convertors, and what they must not lose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from trimtab.model.conversion import ConversionFailed, Convertor, round_trip
from trimtab.model.crd import crds
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.resource import Resource, Spec
from trimtab.model.scheme import Scheme

GROUP = "ports.trimtab.dev"


class AreaSpec(Spec):
    width: int
    depth: int
    note: str = "none"


class Hub(Resource, group="ports", version="v2", kind="Berth", plural="berths"):
    spec: AreaSpec


class LineSpec(Spec):
    size: str
    note: str | UnsetType = UNSET


class Old(Resource, group="ports", version="v1", kind="Berth", plural="berths"):
    spec: LineSpec


class SidesSpec(Spec):
    sides: tuple[int, ...]
    note: str = "none"


class New(Resource, group="ports", version="v3", kind="Berth", plural="berths"):
    spec: SidesSpec


def old_to_hub(old: Old) -> Hub:
    width, _, depth = old.spec.size.partition("x")
    if not depth:
        raise ConversionFailed(f"spec.size: {old.spec.size} is no area")
    note = "none" if isinstance(old.spec.note, UnsetType) else old.spec.note
    return Hub(metadata=old.metadata, spec=AreaSpec(width=int(width), depth=int(depth), note=note))


def old_from_hub(hub: Hub) -> Old:
    return Old(metadata=hub.metadata, spec=LineSpec(size=f"{hub.spec.width}x{hub.spec.depth}", note=hub.spec.note))


OLD = Convertor(hub=Hub, spoke=Old, convert_to=old_to_hub, convert_from=old_from_hub)
NEW = Convertor(
    hub=Hub,
    spoke=New,
    convert_to=lambda new: Hub(spec=AreaSpec(width=new.spec.sides[0], depth=new.spec.sides[1], note=new.spec.note)),
    convert_from=lambda hub: New(spec=SidesSpec(sides=(hub.spec.width, hub.spec.depth), note=hub.spec.note)),
)


def berths() -> Scheme:
    scheme = Scheme()
    scheme.convert_by(OLD)
    scheme.convert_by(NEW)
    return scheme


def berth(version: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "uid": "u", "labels": {"k": "v"}}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Berth", "metadata": metadata, "spec": spec}


def test_a_spoke_becomes_the_hub_and_another_spoke_through_it() -> None:
    scheme, document = berths(), berth("v1", size="2x3")
    assert scheme.converted(document, f"{GROUP}/v2") == berth("v2", width=2, depth=3, note="none")
    assert scheme.converted(document, f"{GROUP}/v3") == berth("v3", sides=[2, 3], note="none")
    assert document == berth("v1", size="2x3")


def test_what_is_in_the_version_wanted_is_left_alone() -> None:
    document = berth("v1", size="wrong")
    assert berths().converted(document, f"{GROUP}/v1") is document


def test_metadata_stay_but_for_labels_and_annotations() -> None:
    scheme = Scheme()

    def to_hub(old: Old) -> Hub:
        metadata = ObjectMeta(name="other", uid="other", labels={"new": "l"}, annotations={"new": "a"})
        return old_to_hub(old).replace(metadata=metadata)

    scheme.convert_by(Convertor(hub=Hub, spoke=Old, convert_to=to_hub, convert_from=old_from_hub))
    made = scheme.converted(berth("v1", size="2x3"), f"{GROUP}/v2")
    assert made["metadata"] == {"name": "a", "uid": "u", "labels": {"new": "l"}, "annotations": {"new": "a"}}


@given(width=st.integers(0, 99), depth=st.integers(0, 99), note=st.text(max_size=9))
def test_nothing_is_lost_on_the_way_there_and_back(width: int, depth: int, note: str) -> None:
    scheme, document = berths(), berth("v2", width=width, depth=depth, note=note)
    assert round_trip(scheme, document, f"{GROUP}/v1") == document
    assert round_trip(scheme, document, f"{GROUP}/v3") == document


@pytest.mark.parametrize(
    ("document", "desired", "why"),
    [
        (berth("v1", size="2"), "v2", "spec.size: 2 is no area"),
        (berth("v1", size="axb"), "v2", f"the conversion of Berth from {GROUP}/v1 to {GROUP}/v2 failed"),
        (
            berth("v1", size=1),
            "v2",
            f"Berth of {GROUP}/v1 is of another shape: Expected `str`, got `int` - at `$.spec.size`",
        ),
        (berth("v1", size="2x3"), "v9", f"Berth of {GROUP}/v1 cannot be converted to {GROUP}/v9"),
        (berth("v1", size="2x3") | {"kind": "Ship"}, "v2", f"Ship of {GROUP}/v1 cannot be converted to {GROUP}/v2"),
        (berth("v1", size="2x3") | {"metadata": None}, "v2", f"an object of {GROUP}/v1 has no metadata"),
    ],
)
def test_what_cannot_be_converted_says_why(document: dict[str, Any], desired: str, why: str) -> None:
    with pytest.raises(ConversionFailed) as failure:
        berths().converted(document, f"{GROUP}/{desired}")
    assert str(failure.value) == why


class Ship(Resource, group="ports", version="v1", plural="ships"):
    spec: LineSpec


@pytest.mark.parametrize(
    ("convertor", "why"),
    [
        (Convertor(hub=Hub, spoke=Ship, convert_to=id, convert_from=id), "Hub and Ship are not versions of one kind"),
        (Convertor(hub=Old, spoke=New, convert_to=id, convert_from=id), "Hub is the hub of its kind, so Old cannot be"),
        (OLD, "Old has a convertor already, or is the hub"),
    ],
)
def test_a_kind_has_one_hub_and_a_spoke_one_convertor(convertor: Convertor, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        berths().convert_by(convertor)


def test_the_definition_has_all_versions_stores_the_hub_and_names_who_converts() -> None:
    (definition,) = crds(berths(), lambda hub: {"strategy": "Webhook", "for": hub.kind})
    versions = definition["spec"]["versions"]
    assert {version["name"]: version["storage"] for version in versions} == {"v1": False, "v2": True, "v3": False}
    assert definition["spec"]["conversion"] == {"strategy": "Webhook", "for": "Berth"}
