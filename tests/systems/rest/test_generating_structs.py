"""Typed structs of generated kinds: they import, type-check, and work with the client on both servers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from tests.systems.rest.generating_kit import TEXT, define, disk, machine
from trimtab.client.api import ApiClient
from trimtab.model.objectmeta import ObjectMeta
from trimtab.model.scheme import Scheme
from trimtab.systems.rest.generating.references import ObjectKey, Reference, SecretKey, SecretValue
from trimtab.systems.rest.generating.structs import structs
from trimtab.systems.rest.model import Model, Node
from trimtab.systems.rest.state import Policy


def imported(folder: Path, *models: Model) -> ModuleType:
    """The module, as a program has it that was given the file."""
    name = f"kinds_{uuid.uuid4().hex[:8]}"
    path = folder / f"{name}.py"
    path.write_text(structs(models))
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def kinds(tmp_path: Path) -> Iterator[ModuleType]:
    module = imported(tmp_path, machine(), disk())
    yield module
    del sys.modules[module.__name__]


def test_a_type_checker_finds_nothing_wrong(tmp_path: Path) -> None:
    path = tmp_path / "kinds.py"
    path.write_text(structs([machine(), disk()]))
    cache = Path(__file__).parents[3] / ".mypy_cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert ran.returncode == 0, ran.stdout + ran.stderr


async def test_objects_go_to_the_server_and_come_back(client: ApiClient, namespace: str, kinds: ModuleType) -> None:
    await define(client, machine(), disk())
    made = kinds.Machine(
        metadata=ObjectMeta(name="web", namespace=namespace),
        spec=kinds.MachineSpec(
            sku=kinds.MachineSku(tier="Large", capacity=3),
            subnet_id=Reference(ref=ObjectKey(kind="Subnet", name="front")),
            subnets=("/subnets/a",),
            password=SecretValue(secret_ref=SecretKey(name="web", key="password")),
            tree=kinds.Group(title="a", parts=(kinds.Group(title="b", parts=(kinds.Group(title="c"),)),)),
            animal=kinds.Animal(species="cat", name="tom", lives=9, habitat=True),
            class_="first",
            x_odd_name="yes",
            policy=Policy(drift="report"),
            rules=(kinds.MachineRules(name="a", port=1),),
        ),
    )
    await client.create(made)
    found = await client.get(kinds.Machine, "web", namespace)
    assert found.spec.replace(policy=UNSET) == made.spec.replace(policy=UNSET)
    assert found.spec.policy.drift == "report"
    await client.patch(found, found.replace(spec=found.spec.replace(location="west")))
    again = await client.get(kinds.Machine, "web", namespace)
    assert again.spec.location == "west"
    assert again.raw["spec"]["x-odd.name"] == "yes"


def test_only_what_is_meant_is_sent(kinds: ModuleType) -> None:
    obj = kinds.Disk(metadata=ObjectMeta(name="a"), spec=kinds.DiskSpec(size=1, resource_id="/x"))
    assert Scheme().document(obj) == {
        "apiVersion": "zoo.rest.trimtab.dev/v1",
        "kind": "Disk",
        "metadata": {"name": "a"},
        "spec": {"size": 1, "resourceID": "/x"},
    }


def test_what_a_kind_needs_is_said_and_not_asked_for(kinds: ModuleType) -> None:
    lean = kinds.Disk(spec=kinds.DiskSpec(resource_id="/it"))
    assert Scheme().document(lean)["spec"] == {"resourceID": "/it"}, "what exists is taken over by saying little"
    assert '    """Needed at creation."""' in structs([disk()])


def small(kind: str, **properties: Node) -> Model:
    plural = kind.lower() + "s"
    return msgspec.structs.replace(disk(), kind=kind, plural=plural, spec=Node(type="object", properties=properties))


def with_types(model: Model, **types: Node) -> Model:
    return msgspec.structs.replace(model, types=types)


def classes(text: str) -> list[str]:
    return [line.removeprefix("class ").partition("(")[0] for line in text.splitlines() if line.startswith("class ")]


def test_a_type_of_several_kinds_is_one_class() -> None:
    sku = Node(type="object", properties={"tier": TEXT})
    kinds = [with_types(small(kind, sku=Node(ref="Sku")), Sku=sku) for kind in ("A", "B")]
    assert classes(structs(kinds)) == ["ASpec", "Sku", "BSpec", "A", "B"]


def test_a_type_that_differs_is_one_class_a_kind_and_so_is_what_leads_to_it() -> None:
    def model(kind: str, inner: Node) -> Model:
        outer = Node(type="object", properties={"inner": Node(ref="Inner")})
        types = {"Outer": outer, "Inner": Node(type="object", properties={"x": inner}), "Same": outer_less}
        return with_types(small(kind, outer=Node(ref="Outer"), same=Node(ref="Same")), **types)

    outer_less = Node(type="object", properties={"tier": TEXT})
    found = classes(structs([model("A", TEXT), model("B", Node(type="integer"))]))
    assert found == ["ASpec", "AOuter", "Same", "AInner", "BSpec", "BOuter", "BInner", "A", "B"]


def test_names_that_python_or_another_class_has_are_changed(tmp_path: Path) -> None:
    odd = {
        "replace": TEXT,
        "str": TEXT,
        "field": TEXT,
        "a-b": TEXT,
        "a_b": TEXT,
        "1st": TEXT,
        "$ref": TEXT,
        "日本": TEXT,
    }
    types = {"Policy": Node(type="object", properties=odd), "class": Node(type="object", properties={"x": TEXT})}
    model = with_types(small("A", policies=Node(ref="Policy"), other=Node(ref="class")), **types)
    module = imported(tmp_path, model)
    document: dict[str, Any] = {"metadata": {}, "spec": {"policies": dict.fromkeys(odd, "x"), "other": {"x": "y"}}}
    found = msgspec.convert(document, module.A)
    assert Scheme().document(found)["spec"] == document["spec"]
    del sys.modules[module.__name__]


def test_texts_of_a_document_stay_texts(tmp_path: Path) -> None:
    evil = 'ends """\nimport os\\ and "'
    model = small("A", x=Node(type="string", description=evil, enum=('"', "\\", "\n")))
    module = imported(tmp_path, msgspec.structs.replace(model, description=evil))
    assert not hasattr(module, "os")
    assert msgspec.convert({"x": "\n"}, module.ASpec).x == "\n"
    del sys.modules[module.__name__]


def test_a_list_that_holds_itself_ends(tmp_path: Path) -> None:
    types = {"Nest": Node(type="array", items=Node(ref="Nest"))}
    module = imported(tmp_path, with_types(small("A", nest=Node(ref="Nest")), **types))
    assert msgspec.convert({"nest": [[], [[]]]}, module.ASpec).nest == ((), ((),))
    del sys.modules[module.__name__]
