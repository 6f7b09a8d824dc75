"""The schema of a kind, as its server publishes it, becomes the shape that Terraform sees.

Input is OpenAPI v3: references are followed, and a definition that contains itself ends as JSON where it does. What types
cannot say is found in the rules: `self == oldSelf` never changes, a sum of `has(…)` is a choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.terraform.kinds.definition import (
    BOOL,
    DURATION,
    INT_OR_STRING,
    INTEGER,
    JSON,
    KEYED,
    LIST,
    MAP,
    NOTHING,
    NUMBER,
    OBJECT,
    QUANTITY,
    SET,
    STRING,
    TIME,
    Choice,
    Field,
    Shape,
)
from trimtab.terraform.kinds.hints import NO_HINTS, Hints
from trimtab.terraform.kinds.naming import META_ARGUMENTS, NO_NAMES, OWN_ARGUMENTS, field_names
from trimtab.terraform.kinds.patterns import takes_durations, takes_quantities

Schema = Mapping[str, Any]

DEEPEST = 24
"""Objects in objects; deeper ones are JSON."""
REFERENCE = "#/components/schemas/"

OBJECT_META = ".meta.v1.ObjectMeta"
TEMPLATE_META = frozenset({"annotations", "finalizers", "labels", "name", "namespace"})
"""What the metadata of a template may say; the rest is a server's own."""
ORDERED = frozenset({"initContainers", "env"})
"""Keyed lists of pods whose order means something all the same: they stay lists."""
SECRETS = {"Secret": frozenset({"data", "stringData"})}
WRITTEN_ONLY = {"Secret": frozenset({"stringData"})}
"""Taken from users and never shown again."""

_CHOICE = re.compile(r"\(has\(self\.(\w+)\) \? 1 : 0\)")
_SUM = re.compile(r"^\(has\(self\.\w+\) \? 1 : 0\)(?: \+ \(has\(self\.\w+\) \? 1 : 0\))+ (==|<=) 1$")
_EITHER = re.compile(r"^has\(self\.(\w+)\) != has\(self\.(\w+)\)$")


class Shaper:
    """Shapes schemas of one OpenAPI document, whose definitions they may refer to."""

    def __init__(
        self, definitions: Mapping[str, Schema], kept: Mapping[tuple[str, ...], Mapping[str, str]] | None = None
    ) -> None:
        self._definitions = definitions
        self._kept = kept or {}

    def kept(self, path: tuple[str, ...]) -> Mapping[str, str]:
        """The names that fields of the object there have already."""
        return self._kept.get(path, NO_NAMES)

    def root(self, schema: Schema, *, kind: str, native: bool, hints: Hints = NO_HINTS) -> Shape:
        """The fields of a kind at its root, without metadata, which is alike for all (see `metadata`)."""
        whole = self._resolved(schema)
        properties = {
            wire: inner
            for wire, inner in (whole.get("properties") or {}).items()
            if wire not in ("apiVersion", "kind", "metadata")
        }
        reserved = META_ARGUMENTS | OWN_ARGUMENTS
        names = field_names([wire for wire in properties if wire != "status"], reserved, self.kept(()))
        names["status"] = "status"
        required = frozenset(whole.get("required") or ())
        walk = _Walk(self, hints)
        fields = []
        for wire in sorted(properties):
            field = walk.field(names[wire], wire, properties[wire], required, (wire,), within=())
            if native and wire in SECRETS.get(kind, ()):
                field = replace(field, sensitive=True, write_only=wire in WRITTEN_ONLY.get(kind, ()))
            fields.append(computed(field) if wire == "status" else field)
        return Shape(OBJECT, fields=tuple(fields), choices=_choices(whole))

    def _resolved(self, schema: Schema) -> Schema:
        return self.resolved(schema)[0]

    def resolved(self, schema: Schema) -> tuple[Schema, tuple[str, ...]]:
        """The schema with its references followed, and their names. What stands beside one says more than it."""
        followed: list[str] = []
        while True:
            if reference := schema.get("$ref"):
                name = str(reference).removeprefix(REFERENCE)
                beside = {word: value for word, value in schema.items() if word != "$ref"}
                inner: Schema = self._definitions.get(name, {})
            elif len(schema.get("allOf") or ()) == 1 and "properties" not in schema:
                name = ""
                beside = {word: value for word, value in schema.items() if word != "allOf"}
                inner = schema["allOf"][0]
            else:
                return schema, tuple(followed)
            if name in followed:
                return {}, tuple(followed)
            if name:
                followed.append(name)
            schema = {**inner, **beside}


class _Walk:
    """One walk down a kind's schema."""

    def __init__(self, shaper: Shaper, hints: Hints) -> None:
        self._shaper, self._hints = shaper, hints

    def field(
        self,
        name: str,
        wire: str,
        schema: Schema,
        required: frozenset[str],
        path: tuple[str, ...],
        within: tuple[str, ...],
    ) -> Field:
        whole, _ = self._shaper.resolved(schema)
        shape = self.shape(schema, path, within)
        hint = self._hints.at(path)
        default = whole.get("default", NOTHING)
        if default is None or "read_only" in hint or (default == {} and not _defaults_within(shape)):
            default = NOTHING  # an empty object by default is as good as none
        secret = whole.get("format") == "password" or "sensitive" in hint
        made = Field(
            name=name,
            wire=wire,
            shape=shape,
            required=wire in required and default is NOTHING,
            sensitive=secret,
            write_only="write_only" in hint,
            replace=_is_frozen(whole),
            default=default,
            description=_said(whole),
        )
        return computed(made) if "read_only" in hint or whole.get("readOnly") is True else made

    def shape(self, schema: Schema, path: tuple[str, ...], within: tuple[str, ...]) -> Shape:
        whole, names = self._shaper.resolved(schema)
        if len(path) > DEEPEST or any(name in within for name in names):
            return Shape(JSON)
        if any(name.endswith(OBJECT_META) for name in names):
            kept = {wire: inner for wire, inner in whole["properties"].items() if wire in TEMPLATE_META}
            whole = {**whole, "properties": kept}
        within = (*within, *names)
        if whole.get("x-kubernetes-embedded-resource"):
            return Shape(JSON)
        if whole.get("x-kubernetes-int-or-string") or _scalars(whole) == {"integer", "string"}:
            return Shape(QUANTITY if takes_quantities(str(whole.get("pattern", ""))) else INT_OR_STRING)
        if whole.get("format") == "quantity" or _scalars(whole) == {"number", "string"}:
            return Shape(QUANTITY)
        match whole.get("type"):
            case "string":
                return _text(whole)
            case "integer":
                return Shape(INTEGER, values=tuple(whole.get("enum") or ()))
            case "number":
                return Shape(NUMBER)
            case "boolean":
                return Shape(BOOL)
            case "array":
                return self._array(whole, path, within)
            case "object":
                return self._object(whole, path, within)
        return self._object(whole, path, within) if "properties" in whole else Shape(JSON)

    def _object(self, schema: Schema, path: tuple[str, ...], within: tuple[str, ...]) -> Shape:
        properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        if properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
            names = field_names(properties, kept=self._shaper.kept(path))
            required = frozenset(schema.get("required") or ())
            fields = (
                self.field(names[wire], wire, inner, required, (*path, wire), within)
                for wire, inner in properties.items()
            )
            return Shape(OBJECT, fields=tuple(sorted(fields, key=_by_name)), choices=_choices(schema), atomic=atomic)
        if isinstance(values, Mapping) and values and not properties:
            return Shape(MAP, items=_collected(self.shape(values, (*path, "*"), within)), atomic=atomic)
        return Shape(JSON)

    def _array(self, schema: Schema, path: tuple[str, ...], within: tuple[str, ...]) -> Shape:
        items = self.shape(schema.get("items") or {}, (*path, "*"), within)
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        kind = schema.get("x-kubernetes-list-type")
        if kind == "set" and items.form in _SCALARS:
            return Shape(SET, items=items)
        if kind != "map" or items.form != OBJECT or any(items.field(key) is None for key in keys):
            return Shape(LIST, items=_collected(items))
        key = items.field(keys[0])
        if len(keys) == 1 and key and key.shape.form in (STRING, INTEGER) and path[-1] not in ORDERED:
            rest = tuple(field for field in items.fields if field.wire != keys[0])
            return Shape(KEYED, items=replace(items, fields=rest), keys=keys, key_form=key.shape.form)
        return Shape(LIST, items=items, keys=keys)


def metadata(*, place: str, hub: bool, versioned: bool) -> Field:
    """An object's metadata, as far as users have a say in it."""
    text = Shape(STRING)
    words = Shape(MAP, items=text)
    fields = [
        Field("annotations", "annotations", words, description="For programs and people; nothing is selected by them."),
        Field("labels", "labels", words, description="By which objects are selected."),
        Field("name", "name", text, required=True, replace=True, description="The name, unique in its place."),
        Field("uid", "uid", text, computed=True, description="Tells it from earlier and later objects of the name."),
    ]
    if versioned:
        says = "Changes with every write, those that nothing else shows too."
        fields.append(Field("resource_version", "resourceVersion", text, computed=True, description=says))
    if hub:
        fields.append(Field("description", "description", text, description="What it is for."))
    if place:
        says = f"The {place} that it is in; the provider's when none is given."
        fields.append(Field(place, "namespace", text, replace=True, description=says))
    shape = Shape(OBJECT, fields=tuple(sorted(fields, key=_by_name)))
    return Field("metadata", "metadata", shape, required=True, description="What is said of every object.")


def computed(field: Field) -> Field:
    """The field, with all that is in it, as the system's own."""
    shape = field.shape
    items = shape.items
    if items is not None and items.fields:
        items = replace(items, fields=tuple(computed(one) for one in items.fields), choices=())
    fields = tuple(computed(one) for one in shape.fields)
    inside = Shape(shape.form, fields, items, shape.keys, shape.key_form)
    return Field(
        field.name, field.wire, inside, computed=True, sensitive=field.sensitive, description=field.description
    )


def _text(schema: Schema) -> Shape:
    if schema.get("format") == "date-time":
        return Shape(TIME)
    if takes_durations(str(schema.get("pattern", ""))):
        return Shape(DURATION)
    return Shape(STRING, values=tuple(schema.get("enum") or ()))


def _collected(items: Shape) -> Shape:
    """Items of a list or map. Objects may be in one collection, not in a collection of collections."""
    inner = items
    while inner.items is not None:
        inner = inner.items
    return Shape(JSON) if items.items is not None and inner.form == OBJECT else items


def _choices(schema: Schema) -> tuple[Choice, ...]:
    known = schema.get("properties") or {}
    found = []
    for rule in schema.get("x-kubernetes-validations") or ():
        text = str(rule.get("rule", ""))
        if summed := _SUM.match(text):
            found.append(Choice(tuple(_wire(name) for name in _CHOICE.findall(text)), required=summed[1] == "=="))
        elif either := _EITHER.match(text):
            found.append(Choice((_wire(either[1]), _wire(either[2]))))
    found += _exclusive(schema.get("oneOf") or ())
    return tuple(choice for choice in found if all(wire in known for wire in choice.wires))


def _exclusive(branches: Sequence[Schema]) -> list[Choice]:
    """`oneOf` branches that require one field each."""
    named = [tuple(branch.get("required") or ()) for branch in branches]
    if len(named) < 2 or any(len(names) != 1 for names in named):
        return []
    return [Choice(tuple(names[0] for names in named))]


def _scalars(schema: Schema) -> set[str]:
    """The types of a value that is of one of several: Kubernetes says so of quantities, and of numbers or names."""
    if "type" in schema:
        return set()
    return {str(branch.get("type")) for branch in schema.get("oneOf") or () if isinstance(branch, Mapping)}


def _wire(name: str) -> str:
    """A field as CEL names it, as documents do."""
    if re.fullmatch(r"__[a-z]+__", name):
        return name.strip("_")
    for word, sign in (("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("__underscores__", "__")):
        name = name.replace(word, sign)
    return name


def _is_frozen(schema: Schema) -> bool:
    rules = schema.get("x-kubernetes-validations") or ()
    return any(str(rule.get("rule", "")).replace(" ", "") in ("self==oldSelf", "oldSelf==self") for rule in rules)


def _defaults_within(shape: Shape) -> bool:
    return any(field.default is not NOTHING for field in shape.fields)


def _said(schema: Schema) -> str:
    return " ".join(str(schema.get("description") or "").split())


def _by_name(field: Field) -> str:
    return field.name


_SCALARS = frozenset({STRING, INTEGER, NUMBER, BOOL, INT_OR_STRING, QUANTITY, DURATION, TIME})
