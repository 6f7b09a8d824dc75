"""A write that changes nothing but the times of managers changes nothing."""

from __future__ import annotations

from typing import Any

from trimtab.model.document import same


def with_old_times(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """`new`, with the managedFields of `old` when the two differ in nothing but their times; then it equals `old`.

    To be called on what is about to be stored, after admission and defaulting, which may have undone a change.
    """
    ours, theirs = new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not ours or not theirs or len(ours) != len(theirs) or ours == theirs:
        return new
    if any(_timeless(a) != _timeless(b) for a, b in zip(ours, theirs, strict=True)):
        return new
    settled = new | {"metadata": new["metadata"] | {"managedFields": theirs}}
    return settled if same(settled, old) else new


def _timeless(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "time"}
