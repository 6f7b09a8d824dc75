"""Reads of resources that nobody touched are no drift: on traffic that was recorded with ARM, and on a recording of ours."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from trimtab.systems.rest.model import Call, Calls, Comparator, FieldClass, Identity, Model, Node
from trimtab.systems.rest.syncing.settling import settle

ROOT = Path(__file__).parents[3]
OURS = Path(__file__).parent / "documents" / "recordings"
RECORDED = ROOT.parent / "shared" / "data" / "arm-recordings"
SPECIFICATIONS = ROOT.parent / "shared" / "data" / "azure-specs"

TEXT = Node(type="string")
NET = Node(type="object", properties={"name": TEXT, "properties": Node(type="object", properties={"prefix": TEXT})})
MODEL = Model(
    group="demo.rest.trimtab.dev",
    version="v1",
    kind="Net",
    plural="nets",
    service="demo",
    spec=Node(
        type="object",
        properties={
            "location": Node(type="string", field=FieldClass.CREATE_ONLY, compare=Comparator.LOCATION),
            "tags": Node(type="map", items=TEXT),
            "properties": Node(
                type="object",
                properties={
                    "mode": Node(type="string", compare=Comparator.CASELESS),
                    "path": TEXT,
                    "prefix": TEXT,
                    "addresses": Node(type="array", items=TEXT),
                    "nets": Node(type="array", keys=("name",), items=NET),
                    "token": Node(type="string", field=FieldClass.SECRET),
                },
            ),
        },
    ),
    calls=Calls(create=Call(method="PUT", path="/subscriptions/{subscriptionId}/providers/Microsoft.Demo/nets/{name}")),
    identity=Identity(parameter="name"),
)


@pytest.fixture(scope="module")
def recordings() -> ModuleType:
    """The bench's own count."""
    spec = importlib.util.spec_from_file_location("bench_recordings", ROOT / "bench" / "recordings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_no_method_but_ours_is_without_false_drift(recordings: ModuleType) -> None:
    found = recordings.measure(OURS, lambda _: MODEL)
    assert (found.baselines, found.rereads) == (2, 3)
    assert found.exact == 3
    assert found.knobs == 2
    assert found.ours == 0


def test_the_baseline_is_neither_a_poll_nor_a_read_on_the_way(recordings: ModuleType) -> None:
    modes = {look.baseline["properties"].get("mode") for look in recordings.looks(OURS)}
    assert modes == {"Fast", None}


def test_what_the_service_answers_instead_is_known_and_small(recordings: ModuleType) -> None:
    look = next(look for look in recordings.looks(OURS) if look.url.endswith("/nets/main?2024-01-01"))
    assert settle(MODEL, look.sent, look.baseline, previous=None).known == {
        "properties.addresses": {"value": ["10.0.0.0/8", "fd00::/8"]},
        "properties.path": {"value": "a"},
        "tags": {"value": {}},
    }


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ('"FAST"', '"slow"', "properties.mode"),
        ('"10.1.0.0/16"', '"10.9.0.0/16"', "properties.nets[name=front].properties.prefix"),
        ('"fd00::/8"', '"fd01::/8"', "properties.addresses"),
        ('"path": "a"', '"path": "b"', "properties.path"),
    ],
)
def test_what_another_hand_changes_in_a_recording_is_drift(
    recordings: ModuleType, old: str, new: str, path: str
) -> None:
    look = [look for look in recordings.looks(OURS) if look.url.endswith("/nets/main?2024-01-01")][-1]
    text = json.dumps(look.live)
    assert old in text
    assert list(recordings.drifted(MODEL, look._replace(live=json.loads(text.replace(old, new))))) == [path]


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings of ARM are not here (../shared/data/arm-recordings)")
@pytest.mark.skipif(
    not SPECIFICATIONS.is_dir(), reason="the documents of ARM are not here (../shared/data/azure-specs)"
)
def test_recorded_traffic_of_arm_has_no_false_drift(recordings: ModuleType) -> None:
    found = recordings.measure(RECORDED, recordings.compiled(SPECIFICATIONS))
    assert found.rereads > 100
    assert found.exact > found.knobs > 0
    assert found.ours == 0
