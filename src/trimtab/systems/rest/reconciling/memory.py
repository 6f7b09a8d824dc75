"""Between what the status holds and what the algebra of `syncing` works on. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.state import Sync
from trimtab.systems.rest.syncing.known import digest

Body = dict[str, Any]

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DIGEST = "sha256:"
SHORTEST = 4
"""Characters of a secret; what is shorter is in every text."""


def applied(sync: Sync) -> Body | None:
    """The body that was last applied, None when none was. Text that is none of ours counts as lost."""
    if not sync.last_applied:
        return None
    try:
        found = msgspec.json.decode(sync.last_applied)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def known(sync: Sync) -> dict[str, Any]:
    """The differences that are known, as `syncing` has them."""
    made: dict[str, Any] = {}
    for path, said in sync.known_differences.items():
        if not said or said.startswith(_DIGEST):
            made[path] = {"digest": said} if said else {"missing": True}
            continue
        try:
            made[path] = {"value": msgspec.json.decode(said)}
        except msgspec.DecodeError:
            continue  # none of ours: a difference that is not known shows as drift, and is looked at
    return made


def remembered(
    sync: Sync, body: Mapping[str, Any], differences: Mapping[str, Any], hidden: Collection[str] = ()
) -> Sync:
    """With a body that was applied and what differs from it. What repeats a hidden value is kept as a digest."""
    return msgspec.structs.replace(
        sync,
        last_applied=text(body),
        known_differences={path: _said(found, hidden) for path, found in sorted(differences.items())},
    )


def in_flight(sync: Sync) -> Body | None:
    """The body of a write that is not settled."""
    return applied(msgspec.structs.replace(sync, last_applied=sync.applying))


def _said(found: Mapping[str, Any], hidden: Collection[str]) -> str:
    if "value" not in found:
        return str(found.get("digest", ""))
    said = text(found["value"])
    return digest(found["value"]) if repeats(said, hidden) else said


def repeats(said: str, hidden: Collection[str]) -> bool:
    """Whether a text shows a value that must not be seen."""
    return any(value in said or text(value)[1:-1] in said for value in hidden if len(value) >= SHORTEST)


def text(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def without_nulls(value: Any) -> Any:
    """A status is written by a merge patch, in which a null says that there is nothing."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value
