"""A body against its tree: which fields there are, of which types, and in which form secrets and references come.

Classes are inherited downwards. What is secret or never returned is never shown, nor anything below it. A type may contain
itself: the walk follows the value, and a value has a bounded depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.model import FieldClass, Model, Node
from trimtab.systems.rest.syncing.paths import Path, Wild, format_path
from trimtab.systems.rest.validating import scalars
from trimtab.systems.rest.validating.finding import Found, listed, meant

DEEPEST = 64

_TEXT = Node(type="string", min_length=1, max_length=253)
_SECRET = Node(
    type="object",
    properties={
        "secretRef": Node(type="object", properties={"name": _TEXT, "key": _TEXT}, required=("name", "key")),
    },
    required=("secretRef",),
)
_REFERENCE = Node(
    type="object",
    properties={
        "ref": Node(
            type="object", properties={"kind": _TEXT, "name": _TEXT, "apiVersion": _TEXT}, required=("kind", "name")
        )
    },
    required=("ref",),
)
_SILENT = (FieldClass.SECRET, FieldClass.WRITE_ONLY)


class Walk:
    """One look at a value. `lenient` asks for no required fields: of what exists, a spec need not say everything."""

    def __init__(self, model: Model, found: Found, *, lenient: bool = False) -> None:
        self._model = model
        self._found = found
        self._lenient = lenient
        self._filled = {model.identity.field, *model.overlay.body} - {""}

    def body(self, body: Mapping[str, Any]) -> None:
        """The spec, without the fields that are ours."""
        self._object(self._model.node(self._model.spec), body, ("spec",), (), silent=False)

    def value(self, node: Node, value: Any, path: Path, pattern: Path, *, silent: bool = False) -> None:
        """`pattern` is the place in the Model: the path below `spec` with [] for items and * for keys."""
        found = self._found
        if found.full:
            return
        if len(path) > DEEPEST:
            found.forbid(path, f"is nested deeper than {DEEPEST} levels")
            return
        node = self._model.node(node)
        if node.field is FieldClass.READ_ONLY:
            self._refuse_read_only(path, node.why)
            return
        if node.field is FieldClass.SECRET:
            self._secret(node, value, path)
            return
        silent = silent or node.field in _SILENT
        if value is None:
            if not node.nullable and node.type != "any":
                found.wrong(path, None, "must not be null; leave the field out to unset it", silent=silent)
            return
        if node.reference and isinstance(value, Mapping):
            self._form(_REFERENCE, value, path, silent=silent)
            return
        match node.type:
            case "object" | "map":
                if not isinstance(value, Mapping):
                    found.mistyped(path, value, "must be an object")
                elif node.type == "map":
                    self._map(node, value, path, pattern, silent=silent)
                else:
                    self._object(node, value, path, pattern, silent=silent)
            case "array":
                if not isinstance(value, list):
                    found.mistyped(path, value, "must be a list")
                else:
                    self._list(node, value, path, pattern, silent=silent)
            case kind if kind in scalars.SCALARS:
                scalars.check(node, value, path, found, silent=silent)

    def _object(self, node: Node, value: Mapping[str, Any], path: Path, pattern: Path, *, silent: bool) -> None:
        node, others = self._variant(node, value, path, silent=silent)
        for name, item in value.items():
            if self._found.full:
                return
            inner = node.properties.get(name)
            at, place = (*path, name), (*pattern, name)
            if inner is not None:
                self.value(inner, item, at, place, silent=silent)
            elif node.additional and node.items is not None:
                self.value(node.items, item, at, place, silent=silent)
            elif not node.additional and name != node.discriminator and name not in others:
                self._unknown(name, at, place, node.properties)
        if not self._lenient:
            for name in self._missing(node, value, pattern):
                self._found.require((*path, name))

    def _variant(
        self, node: Node, value: Mapping[str, Any], path: Path, *, silent: bool
    ) -> tuple[Node, frozenset[str]]:
        """The node that the discriminator names. When it names none: the fields that any variant has, of which nothing
        can be said."""
        if not node.discriminator or not node.variants:
            return node, frozenset()
        given = value.get(node.discriminator)
        if isinstance(given, str) and given in node.variants:
            chosen = self._model.variant(node, value)
            return msgspec.structs.replace(chosen, discriminator=node.discriminator, variants={}), frozenset()
        types = (self._model.node(self._model.types[name]) for name in set(node.variants.values()))
        others = frozenset(name for each in types for name in each.properties)
        at = (*path, node.discriminator)
        if given is None:
            if node.discriminator in node.required and not self._lenient:
                self._found.require(at, f"one of {listed(node.variants)}")
            base = tuple(name for name in node.required if name != node.discriminator)
            return msgspec.structs.replace(node, required=base), others
        if not isinstance(given, str):
            return node, others
        hint = meant(given, node.variants)
        text = f"must be one of {listed(node.variants)}" + (f"; {hint}" if hint else "")
        self._found.wrong(at, given, text, silent=silent)
        inner = {name: each for name, each in node.properties.items() if name != node.discriminator}
        return msgspec.structs.replace(node, properties=inner), others

    def _missing(self, node: Node, value: Mapping[str, Any], pattern: Path) -> Iterable[str]:
        for name in node.required:
            inner = node.properties.get(name)
            if name in value or format_path((*pattern, name)) in self._filled:
                continue
            if inner is None or inner.field is FieldClass.READ_ONLY:
                continue
            if inner.default is not None and inner.why == "overlay":
                continue  # rendering fills it
            yield name

    def _map(self, node: Node, value: Mapping[str, Any], path: Path, pattern: Path, *, silent: bool) -> None:
        if node.items is not None:
            for key, item in value.items():
                self.value(node.items, item, (*path, key), (*pattern, Wild.FIELD), silent=silent)

    def _list(self, node: Node, value: list[Any], path: Path, pattern: Path, *, silent: bool) -> None:
        found = self._found
        if node.min_items is not None and len(value) < node.min_items:
            found.wrong(path, len(value), f"must have at least {node.min_items} items")
        if node.max_items is not None and len(value) > node.max_items:
            found.wrong(path, len(value), f"must have at most {node.max_items} items")
        if node.items is None:
            return
        for at, item in enumerate(value):
            self.value(node.items, item, (*path, at), (*pattern, Wild.ITEM), silent=silent)
        if not silent:
            self._repeated(node, value, path)

    def _repeated(self, node: Node, value: list[Any], path: Path) -> None:
        """Two items of one identity: nobody could tell which one is meant."""
        seen = set()
        for at, item in enumerate(value):
            identity: tuple[str, ...]
            if node.keys and isinstance(item, Mapping) and all(key in item for key in node.keys):
                identity = tuple(repr(item[key]) for key in node.keys)
            elif node.unordered and isinstance(item, str | int | float):
                identity = (repr(item),)
            else:
                continue
            if identity in seen:
                shown = {key: item[key] for key in node.keys} if isinstance(item, Mapping) else item
                self._found.duplicate((*path, at), shown)
            seen.add(identity)

    def _secret(self, node: Node, value: Any, path: Path) -> None:
        if value is None and node.nullable:
            return
        if not isinstance(value, Mapping):
            said = "is a secret: give {secretRef: {name: …, key: …}}, a key of a Secret in the same namespace"
            self._found.forbid(path, said)
            return
        self._form(_SECRET, value, path, silent=True)

    def _form(self, node: Node, value: Mapping[str, Any], path: Path, *, silent: bool) -> None:
        """A form of ours: all of it is asked for, always."""
        Walk(self._model, self._found)._object(node, value, path, (), silent=silent)

    def _unknown(self, name: str, path: Path, pattern: Path, known: Mapping[str, Node]) -> None:
        why = self._model.read_only.get(format_path(pattern))
        if why is not None:
            self._refuse_read_only(path, why)
            return
        hint = meant(name, known)
        self._found.forbid(path, f"unknown field; {hint}" if hint else f"unknown field; {_fields(known)}")

    def _refuse_read_only(self, path: Path, why: str) -> None:
        because = f" ({why})" if why else ""
        self._found.forbid(path, f"is read-only{because}: the service sets it, see status.observed")


def _fields(known: Mapping[str, Node]) -> str:
    return f"there are {', '.join(sorted(known)[:16])}" if known else "there are none here"
