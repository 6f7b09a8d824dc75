"""From a spec to the body that is wanted: references become IDs, secrets become values, defaults of the overlay are filled.

What it reads besides the spec it reads through `Sources`, so that a reconcile and a command render alike. What is missing
is told as a whole (`Unresolved`): each reference that has no answer yet, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from trimtab.systems.rest.model import FieldClass, Model, Node

DEEPEST = 64


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A reference without an answer. `kind` is "" for a Secret."""

    path: str
    why: str
    kind: str = ""
    name: str = ""


class Unresolved(Exception):  # noqa: N818 - it reads as what is wrong
    """Some references have no answer yet."""

    def __init__(self, missing: list[Missing]) -> None:
        self.missing = tuple(missing)
        super().__init__("; ".join(f"{each.path}: {each.why}" for each in missing[:5]))


class Unanswerable(Exception):  # noqa: N818 - it reads as what is wrong
    """A reference that leads where nothing can be read. The text says why."""


class Sources(Protocol):
    """What references lead to."""

    async def secret(self, name: str, key: str) -> str | None:
        """The value, None when there is none."""
        ...

    async def resource_id(self, kind: str, name: str, api_version: str) -> str | None:
        """The ID of what an object stands for, None while there is none. Raises Unanswerable."""
        ...


async def render(model: Model, body: Mapping[str, Any], sources: Sources) -> dict[str, Any]:
    """The body with all values. Raises Unresolved."""
    missing: list[Missing] = []
    rendered = await _Renderer(model, sources, missing).value(model.spec, dict(body), "", 0)
    if missing:
        raise Unresolved(missing)
    return named(model, rendered)


def named(model: Model, body: Mapping[str, Any]) -> dict[str, Any]:
    """Under the names of the service, where the spec has others."""
    return {model.renamed.get(name, name): value for name, value in body.items()}


class _Renderer:
    def __init__(self, model: Model, sources: Sources, missing: list[Missing]) -> None:
        self._model, self._sources, self._missing = model, sources, missing

    async def value(self, node: Node | None, value: Any, path: str, depth: int) -> Any:
        if depth > DEEPEST:
            return value
        node = None if node is None else self._model.node(node)
        if isinstance(value, Mapping):
            if node is not None and node.field is FieldClass.SECRET and "secretRef" in value:
                return await self._secret(value["secretRef"], path)
            if node is not None and node.reference and set(value) == {"ref"}:
                return await self._reference(value["ref"], path)
            return await self._object(node, value, path, depth)
        if isinstance(value, list):
            items = None if node is None else node.items
            return [await self.value(items, item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
        return value

    async def _object(self, node: Node | None, value: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
        if node is None:
            return dict(value)
        if node.discriminator:
            node = self._model.variant(node, value)
        made = {}
        for name, item in value.items():
            below = node.properties.get(name, node.items if node.type == "map" else None)
            made[name] = await self.value(below, item, f"{path}.{name}" if path else name, depth + 1)
        for name, below in node.properties.items():
            if name not in made and below.fill:
                made[name] = below.default
        return made

    async def _secret(self, ref: Any, path: str) -> str:
        name, key = str(ref.get("name", "")), str(ref.get("key", ""))
        value = await self._sources.secret(name, key)
        if value is None:
            self._missing.append(Missing(path=path, name=name, why=f"there is no key {key!r} in a Secret {name!r}"))
            return ""
        return value

    async def _reference(self, ref: Any, path: str) -> str:
        kind, name = str(ref.get("kind", "")), str(ref.get("name", ""))
        why = f"{kind} {name!r} is not there, or has no ID yet"
        try:
            found = await self._sources.resource_id(kind, name, str(ref.get("apiVersion", "")))
        except Unanswerable as error:
            found, why = None, str(error)
        if found is None:
            self._missing.append(Missing(path=path, kind=kind, name=name, why=why))
            return ""
        return found
