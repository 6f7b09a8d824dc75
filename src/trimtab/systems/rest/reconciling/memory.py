"""Between what the status holds and what the algebra of `syncing` works on. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.systems.rest.state import Sync

Body = dict[str, Any]

_ENCODER = msgspec.json.Encoder(order="deterministic")


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
    for path, text in sync.known_differences.items():
        try:
            made[path] = {"value": msgspec.json.decode(text)} if text else {"missing": True}
        except msgspec.DecodeError:
            continue
    return made


def remembered(sync: Sync, body: Mapping[str, Any], differences: Mapping[str, Any]) -> Sync:
    """With a body that was applied and what differs from it."""
    return msgspec.structs.replace(
        sync,
        last_applied=text(body),
        known_differences={
            path: text(found["value"]) if "value" in found else "" for path, found in sorted(differences.items())
        },
    )


def text(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def without_nulls(value: Any) -> Any:
    """A status is written by a merge patch, in which a null says that there is nothing."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value
