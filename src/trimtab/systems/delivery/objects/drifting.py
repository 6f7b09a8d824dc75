"""What others changed in an object of ours, and who did. Pure.

Drift is what our apply changed in the live object although we wanted the same before: so neither defaults nor other
spellings of the server are drift, and neither is what others own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trimtab.model.document import equal

Document = Mapping[str, Any]
Path = tuple[str | int, ...]
LIMIT = 5
"""Fields that are told of one object."""
TEXT = 80
_PRIVATE = frozenset({"annotations", "args", "command", "data", "env", "headers"})
"""Values under these may be secrets: they are not shown."""
HIDDEN, ABSENT = "value hidden", "absent"


class Drift(msgspec.Struct, frozen=True):
    """One field that was put back. No field: the object was gone. `found` and `wanted` are for people to read."""

    kind: str
    name: str
    field: str = ""
    found: str = ""
    wanted: str = ""
    manager: str = ""

    def __str__(self) -> str:
        who = f" by {self.manager}" if self.manager else ""
        if not self.field:
            return f"{self.kind} {self.name} was deleted{who}"
        return f"{self.kind} {self.name}: {self.field} was {self._change()}{who}"

    def _change(self) -> str:
        """What was done to the field; with its values where they tell more than that."""
        hidden = f" ({HIDDEN})" if HIDDEN in (self.found, self.wanted) else ""
        if self.found != self.wanted and not hidden:
            return f"{self.found}, not {self.wanted}"
        return ("removed" if self.found == ABSENT else "added" if self.wanted == ABSENT else "changed") + hidden


def drifts(live: Document, after: Document, wanted: Document, manager: str) -> list[Drift]:
    """What the apply of `wanted` changed between `live` and `after`: the first few fields. `manager` is who we are."""
    told: list[Drift] = []
    kind, name = str(wanted.get("kind", "")), str((wanted.get("metadata") or {}).get("name", ""))
    for path in _changed(live, after, wanted):
        if len(told) == LIMIT:
            break
        told.append(
            Drift(kind, name, _written(path), _shown(live, path), _shown(after, path), _writer(live, path, manager))
        )
    return told


def _changed(live: Document, after: Document, wanted: Document) -> Iterator[Path]:
    for path in _differences({"spec": live.get("spec")}, {"spec": after.get("spec")}, ()):
        # A field that is gone was someone's addition to what we own as a whole; one that is there and not wanted is
        # someone else's, and newer than what we read.
        if _has(wanted, path) or (not _has(after, path) and _has(wanted, path[:-1])):
            yield path
    before, now = live.get("metadata") or {}, after.get("metadata") or {}
    for field in ("labels", "annotations"):
        for name in (wanted.get("metadata") or {}).get(field) or ():
            if (before.get(field) or {}).get(name) != (now.get(field) or {}).get(name):
                yield ("metadata", field, name)
    uids = {owner.get("uid") for owner in (wanted.get("metadata") or {}).get("ownerReferences") or ()}
    if uids - {owner.get("uid") for owner in before.get("ownerReferences") or ()}:
        yield ("metadata", "ownerReferences")


def _differences(one: Any, other: Any, path: Path) -> Iterator[Path]:
    """The deepest places where they differ. A list of another length differs as a whole."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in (*one, *(name for name in other if name not in one)):
            if name not in one or name not in other:
                yield (*path, name)
            else:
                yield from _differences(one[name], other[name], (*path, name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (inner, beside) in enumerate(zip(one, other, strict=True)):
            yield from _differences(inner, beside, (*path, at))
    elif not equal(one, other):
        yield path


def _writer(live: Document, path: Path, manager: str) -> str:
    """Who owns the field now, by the newest entry; else who wrote anything since we did."""
    entries = [entry for entry in (live.get("metadata") or {}).get("managedFields") or () if isinstance(entry, Mapping)]
    entries = [entry for entry in entries if entry.get("subresource") != "status"]
    ours = [e for e in entries if e.get("manager") == manager and e.get("operation") == "Apply"]
    others = sorted((e for e in entries if e not in ours), key=lambda e: str(e.get("time", "")), reverse=True)
    for entry in others:
        if _owns(entry.get("fieldsV1"), live, path):
            return str(entry.get("manager", ""))
    since = max((str(entry.get("time", "")) for entry in ours), default="")
    return next((str(e.get("manager", "")) for e in others if str(e.get("time", "")) >= since), "")


def _owns(fields: Any, value: Any, path: Path) -> bool:
    if not isinstance(fields, Mapping):
        return False
    if not [key for key in fields if key != "."]:
        return True  # all of it
    if not path:
        return True
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        inner = value.get(step) if isinstance(value, Mapping) else None
        return f"f:{step}" in fields and _owns(fields[f"f:{step}"], inner, rest)
    item = value[step] if isinstance(value, list) and step < len(value) else None
    return any(_is_key(key, item) and _owns(fields[key], item, rest) for key in fields)


def _is_key(key: str, item: Any) -> bool:
    """Whether a key of FieldsV1 names this item of a list."""
    try:
        said = msgspec.json.decode(key[2:].encode())
    except msgspec.DecodeError:
        return False
    if key.startswith("k:") and isinstance(said, dict) and isinstance(item, Mapping):
        return all(item.get(name) == value for name, value in said.items())
    return key.startswith("v:") and bool(said == item)


def _has(document: Any, path: Path) -> bool:
    return _at(document, path) is not _NOWHERE


def _at(document: Any, path: Path) -> Any:
    for step in path:
        inside = (
            isinstance(document, Mapping) and step in document
            if isinstance(step, str)
            else isinstance(document, list) and step < len(document)
        )
        if not inside:
            return _NOWHERE
        document = document[step]
    return document


_NOWHERE = object()


def _written(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")[:256]


def _shown(document: Document, path: Path) -> str:
    value = _at(document, path)
    if value is _NOWHERE or value is None:
        return ABSENT
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if not _PRIVATE.isdisjoint(path):
        return HIDDEN
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
