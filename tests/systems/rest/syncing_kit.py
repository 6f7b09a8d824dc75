"""A kind to compare and write, services that keep it in the ways that real ones do, and bodies for both."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
from hypothesis import strategies as st

from trimtab.systems.rest.model import Call, Calls, Comparator, FieldClass, Identity, Model, Node, Overlay, Writer

KEY = b"an installation's own key"
ARM = "/subscriptions/{subscriptionId}/providers/Microsoft.Demo/widgets/{widgetName}"
PLAIN = "/widgets/{widgetName}"

TEXT = Node(type="string")
NUMBER = Node(type="integer")

RULE = Node(
    type="object",
    required=("name",),
    properties={
        "name": TEXT,
        "port": NUMBER,
        "note": TEXT,
        "disk": Node(type="string", field=FieldClass.CREATE_ONLY),
        "count": Node(type="integer", field=FieldClass.INITIAL),
        "password": Node(type="string", field=FieldClass.SECRET),
    },
)

PROPERTIES = Node(
    type="object",
    properties={
        "mode": Node(type="string", compare=Comparator.CASELESS),
        "note": TEXT,
        "size": Node(type="integer", default=10),
        "secret": Node(type="string", field=FieldClass.SECRET),
        "create": Node(type="string", field=FieldClass.WRITE_ONLY),
        "net": Node(
            type="object", properties={"a": TEXT, "b": TEXT, "deep": Node(type="object", properties={"c": TEXT})}
        ),
        "rules": Node(type="array", keys=("name",), items=RULE),
        "hosts": Node(type="array", unordered=True, items=TEXT),
        "steps": Node(
            type="array", items=Node(type="object", properties={"x": NUMBER, "key": RULE.properties["password"]})
        ),
        "extra": Node(type="any"),
    },
)


def kind(
    *,
    path: str = ARM,
    patch: Writer = Writer.PATCH,
    tags_patch: bool = True,
    overlay: Overlay | None = None,
    update: bool = True,
    properties: dict[str, Node] | None = None,
    etag: str = "etag",
) -> Model:
    """`patch` is NONE for a service without PATCH; `tags_patch` alone is what most ARM resources have."""
    below = Writer.CREATE | Writer.UPDATE | (patch if not tags_patch else Writer.NONE)
    spec = Node(
        type="object",
        properties={
            "location": Node(
                type="string",
                field=FieldClass.CREATE_ONLY,
                compare=Comparator.LOCATION,
                writers=Writer.CREATE | Writer.UPDATE,
            ),
            "tags": Node(type="map", items=TEXT),
            "sku": Node(
                type="object",
                writers=below,
                properties={
                    "name": Node(type="string", compare=Comparator.CASELESS),
                    "capacity": Node(type="integer", field=FieldClass.INITIAL),
                },
            ),
            "properties": msgspec.structs.replace(
                PROPERTIES, writers=below, properties={**PROPERTIES.properties, **(properties or {})}
            ),
        },
    )
    return Model(
        group="demo.rest.trimtab.dev",
        version="v1",
        kind="Widget",
        plural="widgets",
        service="demo",
        spec=spec,
        read_only={"id": "readOnly", "etag": "readOnly", "properties.provisioningState": "readOnly"},
        calls=Calls(
            create=Call(method="PUT", path=path),
            read=Call(method="GET", path=path),
            update=Call(method="PUT", path=path) if update else None,
            patch=Call(method="PATCH", path=path) if patch else None,
            delete=Call(method="DELETE", path=path),
        ),
        identity=Identity(parameter="widgetName"),
        overlay=overlay or Overlay(),
        etag=etag,
    )


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """The service answers 400."""


DEFAULT = ("default", "size", 10)


class Service:
    """One resource of a service. `put`: replace or merge. `forgets`: what makes a merging PUT and a PATCH forget a field:
    null, empty or default. `whole_tags`: a PATCH replaces tags, as ARM's does."""

    def __init__(
        self, model: Model, state: dict[str, Any], *, put: str, forgets: str = "null", mask: Any = None
    ) -> None:
        self.model = model
        self.state = copy.deepcopy(state)
        self.writes = 0
        self._put = put
        self._forgets = forgets
        self._mask = mask
        self._whole_tags = model.calls.create.path == ARM

    def read(self) -> dict[str, Any]:
        """With what a service adds of its own, and without its secrets."""
        found = copy.deepcopy(self.state)
        found["id"], found["etag"] = "/widgets/one", f'"{self.writes}"'
        below = found.setdefault("properties", {})
        if isinstance(below, dict):
            below["provisioningState"] = "Succeeded"
            for name in ("secret", "create"):
                self._hide(below, name)
            for item in [*self._list(below, "rules"), *self._list(below, "steps")]:
                item["state"] = "ok"
                self._hide(item, "password")
                self._hide(item, "key")
        return found

    def write(self, verb: str, body: dict[str, Any]) -> None:
        self._refuse(body)
        body = copy.deepcopy(body)
        self.writes += 1
        if verb == "patch" and self._whole_tags and "tags" in body:
            self.state["tags"] = {}
        if verb == "update" and self._put == "replace":
            self.state = body
        else:
            self.state = self._merged(self.state, body)

    def _merged(self, state: Any, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        merged = dict(state) if isinstance(state, dict) else {}
        for name, value in body.items():
            if value is None:
                if self._forgets == "null":
                    merged.pop(name, None)
            elif (self._forgets == "empty" and value in ("", [], {})) or (self._forgets, name, value) == DEFAULT:
                merged.pop(name, None)
            else:
                merged[name] = self._merged(merged.get(name), value)
        return merged

    def _refuse(self, body: dict[str, Any]) -> None:
        below = body.get("properties") or {}
        items = [*self._list(below, "rules"), *self._list(below, "steps")]
        if {"id", "etag"} & body.keys() or "provisioningState" in below or any("state" in item for item in items):
            raise Refused("a read-only field was sent")
        for value in (below.get("secret"), *(item.get("password") for item in items)):
            if value in ("***", "<redacted>"):
                raise Refused("a mask was sent as a secret")

    def _hide(self, fields: dict[str, Any], name: str) -> None:
        if name in fields:
            if self._mask is None:
                del fields[name]
            else:
                fields[name] = self._mask

    @staticmethod
    def _list(fields: Any, name: str) -> list[dict[str, Any]]:
        items = fields.get(name) if isinstance(fields, dict) else None
        return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


_NAMES = st.sampled_from(["a", "b", "c", "d.e"])
_TEXT = st.sampled_from(["x", "y", "z"])
_RULE = st.fixed_dictionaries(
    {}, optional={"port": st.integers(1, 3), "note": _TEXT, "password": _TEXT, "count": st.integers(1, 3)}
)
_ANY = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), _TEXT),
    lambda below: st.one_of(st.lists(below, max_size=2), st.dictionaries(_NAMES, below, max_size=2)),
    max_leaves=4,
)

BODIES = st.fixed_dictionaries(
    {"location": st.just("westus")},
    optional={
        "tags": st.dictionaries(_NAMES, _TEXT, max_size=3),
        "sku": st.fixed_dictionaries({}, optional={"name": _TEXT, "capacity": st.integers(1, 3)}),
        "properties": st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["on", "off"]),
                "note": st.one_of(_TEXT, st.none()),
                "size": st.integers(1, 3),
                "secret": st.sampled_from(["hunter2", "swordfish"]),
                "create": _TEXT,
                "net": st.fixed_dictionaries(
                    {}, optional={"a": _TEXT, "b": _TEXT, "deep": st.fixed_dictionaries({}, optional={"c": _TEXT})}
                ),
                "rules": st.dictionaries(_NAMES, _RULE, max_size=3).map(
                    lambda rules: [{"name": name, "disk": f"of {name}", **rule} for name, rule in rules.items()]
                ),
                "hosts": st.lists(_TEXT, max_size=3, unique=True),
                "steps": st.lists(st.fixed_dictionaries({"x": st.integers(0, 2)}, optional={"key": _TEXT}), max_size=2),
                "extra": _ANY,
            },
        ),
    },
)
"""What specs say. The names in them are few, so that bodies meet."""
