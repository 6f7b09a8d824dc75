"""From a spec to the body that is wanted."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.systems.rest.model import Call, Calls, FieldClass, Identity, Model, Node
from trimtab.systems.rest.rendering import Unresolved, render

TEXT = Node(type="string")


class Known:
    """Sources that know what they were given."""

    def __init__(self, secrets: dict[str, str] | None = None, ids: dict[str, str] | None = None) -> None:
        self._secrets, self._ids = secrets or {}, ids or {}

    async def secret(self, name: str, key: str) -> str | None:
        return self._secrets.get(f"{name}/{key}")

    async def resource_id(self, kind: str, name: str, api_version: str) -> str | None:
        return self._ids.get(f"{kind}/{name}")


def model(properties: dict[str, Node], **changes: Any) -> Model:
    return Model(
        group="x.rest.trimtab.dev",
        version="v1",
        kind="Thing",
        plural="things",
        service="x",
        spec=Node(type="object", properties=properties),
        calls=Calls(create=Call(method="PUT", path="/things/{name}")),
        identity=Identity(parameter="name"),
        **changes,
    )


async def test_a_reference_to_a_secret_becomes_its_value() -> None:
    kind = model({"login": Node(type="object", properties={"password": Node(type="string", field=FieldClass.SECRET)})})
    body = {"login": {"password": {"secretRef": {"name": "db", "key": "word"}}}}
    assert await render(kind, body, Known({"db/word": "open"})) == {"login": {"password": "open"}}


async def test_a_reference_to_an_object_becomes_its_id_also_in_lists() -> None:
    kind = model({"nets": Node(type="array", items=Node(type="string", reference="*"))})
    body = {"nets": [{"ref": {"kind": "Net", "name": "a"}}, "/nets/b"]}
    assert await render(kind, body, Known(ids={"Net/a": "/nets/a"})) == {"nets": ["/nets/a", "/nets/b"]}


async def test_all_that_is_missing_is_told_at_once() -> None:
    secret, reference = Node(type="string", field=FieldClass.SECRET), Node(type="string", reference="*")
    kind = model({"word": secret, "net": reference})
    body = {"word": {"secretRef": {"name": "db", "key": "word"}}, "net": {"ref": {"kind": "Net", "name": "a"}}}
    with pytest.raises(Unresolved) as raised:
        await render(kind, body, Known())
    assert [missing.path for missing in raised.value.missing] == ["word", "net"]


async def test_a_default_of_the_overlay_fills_what_the_spec_leaves_out() -> None:
    kind = model({"size": Node(type="integer", default=5, fill=True), "other": Node(type="integer", default=7)})
    assert await render(kind, {}, Known()) == {"size": 5}
    assert await render(kind, {"size": 1}, Known()) == {"size": 1}


async def test_a_renamed_field_goes_by_the_services_name_with_what_it_refers_to() -> None:
    kind = model({"bodyPolicy": Node(type="string", field=FieldClass.SECRET)}, renamed={"bodyPolicy": "policy"})
    body = {"bodyPolicy": {"secretRef": {"name": "db", "key": "word"}}}
    assert await render(kind, body, Known({"db/word": "open"})) == {"policy": "open"}


async def test_what_no_schema_knows_goes_as_it_is() -> None:
    kind = model({"any": Node()})
    body = {"any": {"secretRef": {"name": "db"}, "list": [{"ref": 1}]}, "unknown": None}
    assert await render(kind, body, Known()) == body
