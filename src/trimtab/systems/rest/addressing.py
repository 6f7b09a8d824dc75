"""From an object to its URL and back. A resource ID is the path of the resource below the endpoint, with every parameter
in it and without a query: `/subscriptions/…/virtualMachineScaleSets/web`, `/1.0/profiles/web`. Pure.

What fills a parameter is the user's: it is encoded, so that a name with a slash or dots never leads to another path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from trimtab.systems.rest.model import Call, Model

_PARAMETER = re.compile(r"\{([^{}]+)\}")


class AddressError(Exception):
    """A parameter without a value, or with one that cannot be in a path. `parameter` names it."""

    def __init__(self, parameter: str, why: str) -> None:
        self.parameter = parameter
        super().__init__(why)


def parameters_of(path: str) -> tuple[str, ...]:
    """In the order of the path."""
    return tuple(_PARAMETER.findall(path))


def resource_path(model: Model) -> str:
    """The template of the resource's own URL: that of the call that speaks to one."""
    calls = model.calls
    own = calls.read or calls.update or calls.patch or calls.delete
    return own.path if own is not None else calls.create.path


def fill(model: Model, path: str, values: Mapping[str, str]) -> str:
    """The path with its parameters. Raises AddressError."""
    encode = {parameter.name: parameter.encode for parameter in model.parameters}

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        given = values.get(name, "")
        if not given:
            raise AddressError(name, f"the parameter {name} of {path} has no value")
        if encode.get(name, True):
            if given in (".", ".."):
                raise AddressError(name, f"the parameter {name} may not be {given!r}: it would lead to another path")
            return quote(given, safe="~!$&'()*+,;=:@")
        if any(part in ("..", ".") for part in given.split("/")) or "?" in given or "#" in given:
            raise AddressError(name, f"the parameter {name} may not hold '..', '?' or '#'")
        return given.strip("/")

    return _PARAMETER.sub(value, path)


def resource_id(model: Model, values: Mapping[str, str]) -> str:
    return fill(model, resource_path(model), values)


def parsed(model: Model, identifier: str) -> dict[str, str] | None:
    """The parameters in a resource ID; None when it is no ID of this kind. Fixed segments match in any case, as ARM's do."""
    return matched(resource_path(model), identifier, frozenset(p.name for p in model.parameters if not p.encode))


def matched(template: str, identifier: str, whole: frozenset[str] = frozenset()) -> dict[str, str] | None:
    """`whole` are parameters that may span several segments."""
    pattern, names = _pattern(template, whole)
    hit = pattern.fullmatch(identifier.rstrip("/"))
    if hit is None:
        return None
    return {name: unquote(value) for name, value in zip(names, hit.groups(), strict=True)}


@lru_cache(maxsize=4096)
def _pattern(template: str, whole: frozenset[str]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Every look at an object asks for it."""
    pattern, last = "", 0
    for found in _PARAMETER.finditer(template):
        pattern += re.escape(template[last : found.start()])
        pattern += r"(.+?)" if found.group(1) in whole else r"([^/]+)"
        last = found.end()
    pattern += re.escape(template[last:])
    return re.compile(pattern.rstrip("/"), re.IGNORECASE), parameters_of(template)


def url_of(model: Model, call: Call, identifier: str, values: Mapping[str, str] | None = None) -> str:
    """The URL of a call for the resource with this ID, with its query."""
    known = {**(values or {}), **(parsed(model, identifier) or {})}
    path = identifier if call.path == resource_path(model) and identifier else fill(model, call.path, known)
    return path + query_of(call, known)


def query_of(call: Call, values: Mapping[str, str]) -> str:
    """A parameter without a value is left out."""
    pairs = []
    for name, template in call.query.items():
        names = parameters_of(template)
        if any(not values.get(each) for each in names):
            continue
        text = _PARAMETER.sub(lambda found: values[found.group(1)], template)
        pairs.append(f"{quote(name, safe='$')}={quote(text, safe='')}")
    return "?" + "&".join(pairs) if pairs else ""
