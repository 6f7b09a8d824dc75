"""From an object to its URL and back. A resource ID is the path of the resource below the endpoint, with every parameter
in it and without a query: `/subscriptions/…/virtualMachineScaleSets/web`, `/1.0/profiles/web`. Pure.

What fills a parameter is the user's: it is encoded, so that a name with a slash or dots never leads to another path. An
ID is the user's too: it counts only when it fits the template, and what is asked for is the template filled anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from trimtab.systems.rest.model import Call, Model

_PARAMETER = re.compile(r"\{([^{}]+)\}")
_SAFE = "~!$&'()*+,;=:@"
_DECODINGS = 4  # some servers decode more than once


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
            if climbs(given):
                raise AddressError(name, f"the parameter {name} may not be {given!r}: it would lead to another path")
            return quote(given, safe=_SAFE)
        if climbs(given) or "?" in given or "#" in given:
            raise AddressError(name, f"the parameter {name} may not hold '..', '?' or '#'")
        return given.strip("/")

    return _PARAMETER.sub(value, path)


def resource_id(model: Model, values: Mapping[str, str]) -> str:
    return fill(model, resource_path(model), values)


def parsed(model: Model, identifier: str) -> dict[str, str] | None:
    """The parameters in a resource ID; None when it is no ID of this kind. Fixed segments match in any case, as ARM's do."""
    return matched(resource_path(model), identifier, frozenset(p.name for p in model.parameters if not p.encode))


def matched(template: str, identifier: str, whole: frozenset[str] = frozenset()) -> dict[str, str] | None:
    """`whole` are parameters that may span several segments, and stay as they are written."""
    pattern, names = _pattern(template, whole)
    hit = pattern.fullmatch(identifier.rstrip("/"))
    if hit is None or not is_plain(identifier):
        return None
    return {name: value if name in whole else unquote(value) for name, value in zip(names, hit.groups(), strict=True)}


def above(path: str, identifier: str) -> str:
    """The template of the parent that has this ID: our path begins as its path does."""
    segments = len([part for part in identifier.split("/") if part])
    return "/" + "/".join([part for part in path.split("/") if part][:segments])


def normalized(model: Model, identifier: str) -> str:
    """The one way to write an ID of this kind; "" when it is none."""
    values = parsed(model, identifier)
    return "" if values is None else resource_id(model, values)


def canonical(identifier: str) -> str:
    """The same for all ways to write an ID: for comparing, where the kind is not known. Never to be sent."""
    segments = identifier.rstrip("/").split("/")
    return "/".join(quote(unquote(segment), safe=_SAFE) for segment in segments).lower()


def is_plain(identifier: str) -> bool:
    """Whether it is a path alone, which leads nowhere but down."""
    return not climbs(identifier) and "?" not in identifier and "#" not in identifier


def climbs(value: str) -> bool:
    """Whether it has a segment of dots, however it is encoded."""
    for _ in range(_DECODINGS):
        if any(part in (".", "..") for part in value.replace("\\", "/").split("/")):
            return True
        value, before = unquote(value), value
        if value == before:
            break
    return False


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
    """The URL of a call for the resource with this ID, with its query. AddressError."""
    own = parsed(model, identifier)
    known = {**(values or {}), **(own or {})}
    if own is None and identifier and call.path == resource_path(model):  # of an earlier definition of the kind
        if not is_plain(identifier):
            raise AddressError("resourceID", f"{identifier!r} is no ID of a {model.kind}")
        return identifier + query_of(call, known)
    return fill(model, call.path, known) + query_of(call, known)


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
