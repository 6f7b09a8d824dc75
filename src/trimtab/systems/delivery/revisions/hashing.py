"""The revision of a pod template: the same for whoever says the same, and for every release of this program.

A template stands in a resource as its user wrote it; no server has filled it. So what a server would fill in is dropped
where it is written out, and empty fields with it: a template says the same with its defaults and without. Whatever is
not known here counts as it is.

What goes into the hash must never change (the tests hold fixed values): it would look like a change to all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.systems.delivery.kinds import TrackedConfig
from trimtab.systems.delivery.revisions.shapes import PLAIN, TEMPLATE, Shape, thousandths

PREFIX = "v1:"
MAX_DEPTH = 64


def revision_of(template: Mapping[str, Any], configs: Sequence[TrackedConfig] = ()) -> str:
    """Of a template before its configs are pinned, and of what is in them. ValueError when it is nested too deeply."""
    tracked = sorted({(config.kind, config.name, config.checksum) for config in configs})
    return PREFIX + digest({"configs": tracked, "template": canonical(template, TEMPLATE)})


def short(revision: str) -> str:
    """The first 12 digits: for names and labels."""
    return revision.rpartition(":")[2][:12]


def digest(value: Any) -> str:
    """SHA-256 of canonical JSON, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any, shape: Shape = PLAIN, depth: int = 0) -> Any:
    """The one form of all that say the same."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if shape.quantity:
        amount = thousandths(value)
        return value if amount is None else f"{amount}m"
    if isinstance(value, Mapping):
        return _struct(value, shape, depth)
    if isinstance(value, list | tuple):
        return [canonical(item, shape, depth + 1) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _struct(value: Mapping[str, Any], shape: Shape, depth: int) -> dict[str, Any]:
    given = value if shape.adjust is None else shape.adjust(value)
    if shape.free:
        each = shape.below.get("*", PLAIN)
        return {name: canonical(inner, each, depth + 1) for name, inner in given.items() if inner is not None}
    said = {}
    for name, inner in given.items():
        reduced = canonical(inner, shape.below.get(name, PLAIN), depth + 1)
        if reduced is None or (_is_empty(reduced) and name not in shape.kept):
            continue
        if not any(type(reduced) is type(default) and reduced == default for default in shape.defaults.get(name, ())):
            said[name] = reduced
    return said


def _is_empty(value: Any) -> bool:
    """False and 0 are values."""
    return isinstance(value, str | Mapping | list) and not value
