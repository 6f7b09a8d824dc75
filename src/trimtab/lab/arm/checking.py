"""What a resource provider says against a body: all that real ones refuse, and no more.

Types are looked at loosely: a number may be a string of digits, as JSON libraries of real providers take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.lab.arm.behaviour import Behaviour
from trimtab.lab.arm.schemas import Field, Schema

DEPTH = 60


class ArmError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def check_put(body: Any, taken: Field | None, shown: Field | None, live: Any, behaviour: Behaviour) -> dict[str, Any]:
    """The body without what the provider does not look at. `live` is what a read shows now, None for a creation;
    `taken` is the schema of the body, `shown` that of a read."""
    if not isinstance(body, dict):
        raise ArmError(400, "InvalidRequestContent", "The request content was invalid: the body must be a JSON object.")
    if taken is None:
        return dict(body)
    cleaned = _object(body, taken.schema, shown.schema if shown else None, live, "", behaviour, 0)
    _required(cleaned, taken.schema, "", 0)
    return cleaned


def check_patch(body: Any, taken: Field | None, shown: Field | None, live: Any, behaviour: Behaviour) -> dict[str, Any]:
    """As `check_put`, but what may be written is only what the document of the PATCH names, and nothing is required."""
    if not isinstance(body, dict):
        raise ArmError(400, "InvalidRequestContent", "The request content was invalid: the body must be a JSON object.")
    if taken is None:
        return dict(body)
    return _patchable(body, taken.schema, shown.schema if shown else None, live, "", behaviour, 0)


def _object(
    body: Mapping[str, Any], taken: Schema, shown: Schema | None, live: Any, path: str, behaviour: Behaviour, depth: int
) -> dict[str, Any]:
    taken = taken.of(body)
    shown = shown.of(body) if shown else None
    before = live if isinstance(live, dict) else {}
    cleaned: dict[str, Any] = {}
    for name, value in body.items():
        here = f"{path}.{name}" if path else name
        field = _named(taken, name)
        seen = _named(shown, name) if shown else None
        if field is not None and not field.read_only:
            # what no read shows is not compared
            if field.create_only and not field.write_only and live is not None and behaviour.create_only == "reject":
                _unchanged(here, value, before.get(name))
            cleaned[name] = _value(value, field, seen, before.get(name), here, behaviour, depth)
        elif (field or seen) is not None:
            _same(here, value, before.get(name), behaviour)
        elif taken.additional is not None:
            cleaned[name] = _value(value, taken.additional, None, before.get(name), here, behaviour, depth)
        elif taken.open or behaviour.unknown == "keep":
            cleaned[name] = value
        elif behaviour.unknown == "reject":
            message = f"Could not find member '{name}' on object of type 'ResourceDefinition'. Path '{here}'."
            raise ArmError(400, "InvalidRequestContent", f"The request content was invalid: '{message}'")
    return cleaned


def _value(value: Any, field: Field, seen: Field | None, live: Any, path: str, behaviour: Behaviour, depth: int) -> Any:
    schema = field.schema
    if value is None or depth > DEPTH:
        return value
    if not _fits(value, schema.type):
        raise ArmError(
            400,
            "InvalidRequestContent",
            f"Error converting value {value!r:.80} to type '{schema.type}'. Path '{path}'.",
        )
    if isinstance(value, dict) and (schema.properties or schema.additional):
        return _object(value, schema, seen.schema if seen else None, live, path, behaviour, depth + 1)
    if isinstance(value, list) and schema.items is not None:
        inner = seen.schema.items if seen else None
        return [
            _value(each, schema.items, inner, _alike(each, live), f"{path}[{at}]", behaviour, depth + 1)
            for at, each in enumerate(value)
        ]
    if schema.enum and not schema.open_enum and not any(_equal(value, each) for each in schema.enum):
        allowed = ", ".join(map(str, schema.enum))
        raise ArmError(400, "InvalidParameter", f"The value '{value}' of '{path}' is not one of {allowed}.")
    return value


def _patchable(
    body: Mapping[str, Any], taken: Schema, shown: Schema | None, live: Any, path: str, behaviour: Behaviour, depth: int
) -> dict[str, Any]:
    taken = taken.of(body)
    before = live if isinstance(live, dict) else {}
    cleaned: dict[str, Any] = {}
    for name, value in body.items():
        here = f"{path}.{name}" if path else name
        field = _named(taken, name)
        seen = _named(shown, name) if shown else None
        if field is None and (taken.additional or taken.open):
            cleaned[name] = value
        elif field is None or field.read_only:
            if (seen is not None and seen.read_only) or field is not None:
                _same(here, value, before.get(name), behaviour)
            elif behaviour.patch_unknown == "reject":
                raise ArmError(400, "InvalidRequestContent", f"The property '{here}' cannot be patched.")
        elif isinstance(value, dict) and field.schema.properties and depth < DEPTH:
            inner = seen.schema if seen else None
            cleaned[name] = _patchable(value, field.schema, inner, before.get(name), here, behaviour, depth + 1)
        else:
            if seen is not None and seen.create_only and behaviour.create_only == "reject":
                _unchanged(here, value, before.get(name))
            cleaned[name] = _value(value, field, seen, before.get(name), here, behaviour, depth)
    return cleaned


def _required(body: Mapping[str, Any], schema: Schema, path: str, depth: int) -> None:
    schema = schema.of(body)
    for name in schema.required:
        field = _named(schema, name)
        if (field is None or not field.read_only) and body.get(name) is None:
            here = f"{path}.{name}" if path else name
            code = "LocationRequired" if here == "location" else "InvalidParameter"
            raise ArmError(400, code, f"Required parameter '{here}' is missing (null).")
    for name, value in body.items():
        field = _named(schema, name)
        here = f"{path}.{name}" if path else name
        if field is None or depth > DEPTH:
            continue
        if isinstance(value, dict):
            _required(value, field.schema, here, depth + 1)
        elif isinstance(value, list) and field.schema.items is not None:
            for at, each in enumerate(value):
                if isinstance(each, dict):
                    _required(each, field.schema.items.schema, f"{here}[{at}]", depth + 1)


def _same(path: str, value: Any, live: Any, behaviour: Behaviour) -> None:
    """A read-only field may be sent back as it is."""
    if behaviour.read_only == "reject" and value is not None and not _within(value, live):
        raise ArmError(
            400, "InvalidRequestContent", f"The property '{path}' is read-only and cannot be set to {value!r:.80}."
        )


def _unchanged(path: str, value: Any, live: Any) -> None:
    if value is None or _equal(value, live):
        return
    if path == "location":
        message = f"The resource already exists in location '{live}'. It cannot be created in location '{value}'."
        raise ArmError(409, "InvalidResourceLocation", message)
    raise ArmError(409, "PropertyChangeNotAllowed", f"Changing property '{path}' is not allowed.")


def _within(value: Any, live: Any) -> bool:
    """Whether a value says nothing that is not so."""
    if isinstance(value, dict):
        return all(_within(each, live.get(name) if isinstance(live, dict) else None) for name, each in value.items())
    if isinstance(value, list):
        return not value or (isinstance(live, list) and len(value) <= len(live))
    return value is None or _equal(value, live)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.replace(" ", "").rstrip("/").lower() == other.replace(" ", "").rstrip("/").lower()
    return bool(one == other)


def _alike(value: Any, live: Any) -> Any:
    """The item of a list that has the same name."""
    if isinstance(value, dict) and isinstance(live, list) and "name" in value:
        return next((each for each in live if isinstance(each, dict) and _equal(each.get("name"), value["name"])), None)
    return None


def _named(schema: Schema, name: str) -> Field | None:
    found = schema.properties.get(name)
    if found is not None:
        return found
    lower = name.lower()
    return next((field for known, field in schema.properties.items() if known.lower() == lower), None)


def _fits(value: Any, kind: str) -> bool:
    if kind in ("object", "array"):
        return isinstance(value, dict if kind == "object" else list)
    if kind in ("integer", "number"):
        digits = isinstance(value, str) and value.lstrip("-").replace(".", "", 1).isdigit()
        return digits or (isinstance(value, int | float) and not isinstance(value, bool))
    if kind == "boolean":
        return isinstance(value, bool) or (isinstance(value, str) and value.lower() in ("true", "false"))
    return kind != "string" or not isinstance(value, dict | list)
