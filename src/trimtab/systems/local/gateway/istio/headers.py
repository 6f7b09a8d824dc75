"""Headers that a route, or one of its destinations, sets, adds and removes."""

from __future__ import annotations

import re

from trimtab.systems.local.gateway.istio.policies import HOST
from trimtab.systems.local.gateway.istio.reading import TOKEN, Document, Fields

_APPEND = {"set": "OVERWRITE_IF_EXISTS_OR_ADD", "add": "APPEND_IF_EXISTS_OR_ADD"}
_AUTHORITY = ("host", ":authority")
MANY = 500


def headers(fields: Fields) -> tuple[Document, str]:
    """Envoy's fields for Istio's Headers, and the authority that it sets, if any."""
    made: Document = {}
    authority = ""
    for side in ("request", "response"):
        part = fields.part(side)
        added: list[Document] = []
        for verb, action in _APPEND.items():
            values = part.part(verb)
            for name in values.names()[:MANY]:
                value = values.text(name)
                if side == "request" and name.lower() in _AUTHORITY and verb == "set":
                    if HOST.fullmatch(value):
                        authority = value
                    else:
                        values.refuse("is no host", name)
                elif _may_change(values, name) and _may_be_value(values, name, value):
                    added.append({"header": {"key": name, "value": value}, "append_action": action})
        removed = [name for name in part.texts("remove") if _may_change(part, name)]
        part.rest()
        if added:
            made[f"{side}_headers_to_add"] = added
        if removed:
            made[f"{side}_headers_to_remove"] = removed
    fields.rest()
    return made, authority


def _may_change(fields: Fields, name: str) -> bool:
    if name.lower() in _AUTHORITY or not TOKEN.fullmatch(name):
        fields.refuse("is no header that can be changed", name[:80])
        return False
    return True


def _may_be_value(fields: Fields, name: str, value: str) -> bool:
    """RFC 9110, 5.5; and a per cent sign begins what Envoy fills in."""
    if _CONTROL.search(value):
        fields.refuse("has control characters", name)
    elif "%" in _FILLED.sub("", value):
        fields.refuse("has a per cent sign that begins nothing Envoy can fill in: write %% for the sign itself", name)
    else:
        return True
    return False


_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FILLED = re.compile(r"%%|%[A-Z][A-Z0-9_]*(\([^%()]*\))?(:[0-9]{1,6})?%")
