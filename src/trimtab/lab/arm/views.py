"""What a read shows of a resource: its body without secrets, with what the service does to values.

The truth is not touched, so that a switch that is turned at run time shows at once.
"""

from __future__ import annotations

import re
from typing import Any

from trimtab.lab.arm.behaviour import Normalise
from trimtab.lab.arm.resources import Resource
from trimtab.lab.arm.schemas import Field, Schema

REGIONS = {
    "westus": "West US",
    "westus2": "West US 2",
    "westus3": "West US 3",
    "eastus": "East US",
    "eastus2": "East US 2",
    "centralus": "Central US",
    "westeurope": "West Europe",
    "northeurope": "North Europe",
    "uksouth": "UK South",
    "germanywestcentral": "Germany West Central",
}
MASK = "***"


def view(resource: Resource, normalise: Normalise, *, etags: bool) -> dict[str, Any]:
    """The body of a read."""
    route = resource.route
    field = route.schema
    written = route.operations["PUT"].body if "PUT" in route.operations else None
    shown: dict[str, Any] = _shown(resource.body, field, written, normalise)
    known = field.schema.properties if field else {}
    facts: dict[str, Any] = {
        "id": _id(resource.id.path, normalise),
        "name": resource.id.name,
        "type": resource.id.type.upper() if normalise.uppercase_type else resource.id.type,
    }
    if normalise.child_names and resource.id.type.count("/") > 1:
        facts["name"] = "/".join(resource.id.path.split("/")[-3::2])
    if etags and ("etag" in known or "eTag" in known):
        facts["etag" if "etag" in known else "eTag"] = resource.etag
    shown = {**facts, **{name: value for name, value in shown.items() if name not in facts}}
    if normalise.region and isinstance(shown.get("location"), str):
        shown["location"] = _region(shown["location"], normalise.region)
    if normalise.sku and isinstance(shown.get("sku"), dict):
        shown["sku"] = _sku(shown["sku"])
    for path in normalise.hidden:
        _hide(shown, path.split("."))
    return shown


def _shown(value: Any, field: Field | None, written: Field | None, normalise: Normalise) -> Any:
    schema = field.schema if field else None
    if isinstance(value, dict):
        return _object(value, schema, written.schema if written else None, normalise)
    if isinstance(value, list):
        inner = schema.items if schema else None
        return [_shown(each, inner, written.schema.items if written else None, normalise) for each in value]
    if isinstance(value, str):
        return _text(value, schema, field.format if field else "", normalise)
    return value


def _object(
    value: dict[str, Any], schema: Schema | None, written: Schema | None, normalise: Normalise
) -> dict[str, Any]:
    schema = schema.of(value) if schema else None
    written = written.of(value) if written else None
    shown: dict[str, Any] = {}
    for name, each in value.items():
        field = schema.properties.get(name, schema.additional) if schema else None
        given = written.properties.get(name, written.additional) if written else None
        # what only the body of a PUT has, a read does not have
        hidden = any(one is not None and one.write_only for one in (field, given))
        hidden = hidden or (schema is not None and field is None and given is not None and not schema.open)
        if hidden and normalise.secrets != "show":
            if normalise.secrets != "omit" and isinstance(each, str):
                shown[name] = MASK if normalise.secrets == "mask" else ""
            continue
        if each is None and normalise.nulls != "keep":
            kind = field.schema.type if field else ""
            if normalise.nulls == "empty" and kind in ("object", "array"):
                shown[name] = [] if kind == "array" else {}
            continue
        if each in ([], {}) and normalise.empties == "drop":
            continue
        shown[name] = _shown(each, field, given, normalise)
    if normalise.empties == "fill" and schema is not None:
        for name, field in schema.properties.items():
            if field.schema.type == "array" and name not in shown and not field.write_only:
                shown[name] = []
    return shown


def _text(value: str, schema: Schema | None, form: str, normalise: Normalise) -> str:
    if normalise.ids and value.lower().startswith("/subscriptions/"):
        return _id(value, normalise)
    if normalise.enums and schema is not None and schema.enum:
        if normalise.enums == "document":
            return next((str(each) for each in schema.enum if str(each).lower() == value.lower()), value)
        return value.lower() if normalise.enums == "lower" else value.upper()
    if normalise.slashes and form != "arm-id" and not value.lower().startswith("/subscriptions/"):
        return value.strip("/") or value
    return value


def _id(path: str, normalise: Normalise) -> str:
    if not normalise.ids:
        return path

    def changed(match: re.Match[str]) -> str:
        return match[1] + (match[2].upper() if normalise.ids == "upper" else match[2].lower())

    return re.sub(r"(?i)(/resourceGroups/)([^/]+)", changed, path)


def _region(value: str, wanted: str) -> str:
    name = value.replace(" ", "").lower()
    return name if wanted == "name" else REGIONS.get(name, value)


def _sku(sku: dict[str, Any]) -> dict[str, Any]:
    name = str(sku.get("name", ""))
    capital = name[:1].upper() + name[1:]
    tier = capital.partition("_")[0] if "_" in capital else "Standard"
    return {**sku, **({"name": capital} if name else {}), "tier": sku.get("tier") or tier}


def _hide(shown: Any, path: list[str]) -> None:
    if isinstance(shown, list):
        for each in shown:
            _hide(each, path)
    elif isinstance(shown, dict) and path:
        if len(path) == 1:
            shown.pop(path[0], None)
        else:
            _hide(shown.get(path[0]), path[1:])
