"""Reference pages of generated kinds, and the least object that each begins with."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.systems.rest.generating_kit import GROUP, TEXT, define, disk, machine
from trimtab.client.api import ApiClient
from trimtab.model.scheme import Untyped
from trimtab.systems.rest.generating import docs as page
from trimtab.systems.rest.generating.docs import docs
from trimtab.systems.rest.generating.example import example
from trimtab.systems.rest.model import Call, Calls, Export, FieldClass, Identity, Model, Node


def section(text: str, kind: str) -> list[str]:
    return text.partition(f"\n## {kind}\n")[2].partition("\n## ")[0].splitlines()


def test_a_page_says_how_each_kind_is_managed() -> None:
    lines = section(docs([machine(), disk()]), "Machine")
    assert "A machine that has one of everything." in lines
    assert "`machines.zoo.rest.trimtab.dev`, version `v1`; at `/groups/{group}/machines/{machine}`." in lines
    verbs = "create (PUT), read (GET), update (PUT), patch (PATCH), delete (DELETE), list (GET)"
    assert f"- Managed by: {verbs}." in lines
    assert "- Needs in `spec.parameters`: `group`." in lines
    assert "- `spec.bodyPolicy` is the service's `policy`." in lines
    assert "- `status.joined.instanceView` comes from `instanceView`, every 30 s." in lines
    assert "- `kubectl scale` sets `.spec.sku.capacity`." in lines


def test_and_what_it_is_a_part_of() -> None:
    text = docs([machine(), disk()])
    assert "- A part of: [Machine](#machine), named in `spec.parent`." in section(text, "Disk")
    assert "| [Disk](#disk) | Machine | create (PUT), read (GET) |" in text


def test_and_what_may_be_done_with_each_field() -> None:
    lines = section(docs([machine()]), "Machine")
    assert "| `spec.location` | string | create-only | x-ms-mutability |  |" in lines
    assert '| `spec["x-odd.name"]` | string | writable | default |  |' in lines
    assert "| `spec.keys.*` | string | secret | x-ms-secret |  |" in lines
    assert "| `spec.animal.lives` (of cat) | integer | writable | default |  |" in lines
    assert "| `status.observed.id` |  | read-only | built-in |  |" in lines


def test_and_what_is_exported() -> None:
    export = Export(to="Secret", name="{name}-keys", data={"primary": "keys[0]"})
    lines = section(docs([replace(disk(), exports=(export,))]), "Disk")
    assert "- `primary` go to the Secret `{name}-keys`." in lines


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        (Identity(parameter="disk"), "`spec.name`, which is `{disk}` of its path"),
        (Identity(server=True, answer="header:Location"), "an ID that the service gives (`header:Location`)"),
        (Identity(), "its path alone: there is one of it"),
    ],
)
def test_and_how_it_is_known(identity: Identity, said: str) -> None:
    assert f"- Known by: {said}." in section(docs([replace(disk(), identity=identity)]), "Disk")


def test_texts_of_a_document_do_not_break_the_page() -> None:
    evil = Node(type="string", description="a | b\n\n<script>alert(1)</script> " + "x" * 300)
    (row,) = [r for r in docs([small(evil=evil)]).splitlines() if "spec.evil" in r]
    assert "a \\| b &lt;script>" in row
    assert row.endswith("… |")


def test_a_long_table_ends_and_says_where_the_rest_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "ROWS", 3)
    text = docs([small(**{f"field{n}": TEXT for n in range(10)})])
    assert "spec.field2" in text
    assert "spec.field3" not in text
    assert "`trimtab rest explain Disk` lists all" in text


def small(required: tuple[str, ...] = (), **properties: Node) -> Model:
    return replace(disk(), parent="", spec=Node(type="object", properties=properties, required=required))


def test_an_example_has_what_is_needed_and_nothing_else() -> None:
    assert example(machine()) == {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Machine",
        "metadata": {"name": "my-machine"},
        "spec": {"parameters": {"group": "text"}, "sku": {"tier": "Small"}},
    }
    assert example(disk())["spec"] == {"parent": {"name": "my-machine"}, "size": 0}


@pytest.mark.parametrize(
    ("node", "value"),
    [
        (Node(type="string", min_length=6), "textxx"),
        (Node(type="string", max_length=2), "te"),
        (Node(type="string", default="usual"), "usual"),
        (Node(type="integer", minimum=3.0), 3),
        (Node(type="number", maximum=-1.5), -1.5),
        (Node(type="boolean"), False),
        (Node(type="map", items=TEXT), {}),
        (Node(type="array", items=TEXT), []),
        (Node(type="array", items=TEXT, min_items=1), ["text"]),
        (Node(type="string", field=FieldClass.SECRET), {"secretRef": {"name": "my-disk", "key": "it"}}),
        (Node(type="object", required=("a",), properties={"a": TEXT, "b": TEXT}), {"a": "text"}),
        (Node(type="any"), "text"),
    ],
)
def test_its_values_are_the_first_that_fit(node: Node, value: Any) -> None:
    assert example(small(("it",), it=node))["spec"] == {"it": value}


def test_of_a_union_it_has_the_first_variant() -> None:
    pet = Node(ref="Animal")
    assert example(replace(small(("pet",), pet=pet), types=machine().types))["spec"]["pet"] == {
        "species": "cat",
        "name": "text",
        "lives": 0,
    }


def test_a_type_that_needs_itself_ends() -> None:
    loop = Node(type="object", properties={"next": Node(ref="Loop")}, required=("next",))
    made = example(replace(small(("loop",), loop=Node(ref="Loop")), types={"Loop": loop}))
    assert made["spec"] == {"loop": {"next": {}}}


async def test_servers_take_the_examples(client: ApiClient, namespace: str) -> None:
    await define(client, machine(), disk())
    for model in (machine(), disk()):
        made = example(model)
        await client.create(Untyped({**made, "metadata": {**made["metadata"], "namespace": namespace}}))


def test_a_kind_without_reads_is_at_the_path_of_its_creation() -> None:
    model = replace(disk(), calls=Calls(create=Call(method="POST", path="/disks")))
    assert "at `/disks`." in docs([model])
