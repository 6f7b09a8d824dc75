"""Who owns what after a create, an update or a patch: the writer owns what it changed, and the others no longer do.

A write that changes nothing leaves every entry as it is, its time included; one that only removes fields takes them
from their owners and gives nothing to the writer.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from trimtab.model.schema import Schema
from trimtab.server.apply.compare import Comparison, compare
from trimtab.server.apply.empty import empty_object
from trimtab.server.apply.fieldset import FieldSet, difference, recursive_difference, union
from trimtab.server.apply.managers import Manager, Managers, Owned, cap, check, decode, encode
from trimtab.server.apply.types import Root, root_type

# What writes through a door cannot set, unless the kind says otherwise.
RESET: dict[str, FieldSet] = {"": {"f:status": {}}, "status": {"f:spec": {}}}


class View(NamedTuple):
    """What was and what is to be, in another version of the kind."""

    schema: Schema
    old: dict[str, Any]
    new: dict[str, Any]


def update_managed_fields(
    live: dict[str, Any] | None,
    new: dict[str, Any],
    *,
    manager: str,
    api_version: str,
    schema: Schema,
    subresource: str = "",
    now: str,
    reset: FieldSet | None = None,
    served: Container[str] | None = None,
    views: Mapping[str, View] | None = None,
) -> list[dict[str, Any]]:
    """`metadata.managedFields` of `new`, which is about to replace `live` (None: it is created). None left: [].

    Entries that did not change are shared with those of `live`.

    `now` is RFC 3339 in seconds. `reset` are the fields that this door does not write ({} for a kind without a status
    subresource). Entries of versions that are not `served` are dropped. `views` has both objects by the apiVersions of
    other entries: a manager owns fields in the version in which it wrote them.
    """
    managers = _managers(live, new, subresource)
    created = live is None or not (live.get("metadata") or {}).get("uid")
    if not managers and not created:
        return []  # the object is not tracked, or was asked not to be
    try:
        managers = updated(
            managers,
            empty_object(api_version, new.get("kind", "")) if live is None else live,
            new,
            writer=Manager(manager or "unknown", "Update", api_version, subresource),
            kind=root_type(schema),
            now=now,
            reset=RESET.get(subresource, {}) if reset is None else reset,
            served=served,
            views=views,
        )
    except RecursionError:
        return []  # as the API does with an object that it cannot track
    return encode(managers)


def updated(
    managers: Managers,
    old: dict[str, Any],
    new: dict[str, Any],
    *,
    writer: Manager,
    kind: Root,
    now: str,
    reset: FieldSet,
    served: Container[str] | None = None,
    views: Mapping[str, View] | None = None,
) -> Managers:
    """The managers after `writer` made `new` of `old`."""
    comparison = compare(kind, old, new)
    if reset:
        comparison = comparison.without(reset)
    others = {version: _compared(view, reset) for version, view in (views or {}).items()}
    result: Managers = {}
    for manager, owned in managers.items():
        if served is not None and owned.api_version not in served:
            continue
        fields = disowned(owned.fields, others.get(owned.api_version, comparison))
        if fields is owned.fields:
            result[manager] = owned
        elif fields:
            result[manager] = Owned(fields, owned.api_version, owned.time)
    if taken := union(comparison.modified, comparison.added):
        before = result.get(writer)
        fields = union(taken, before.fields) if before else taken
        result[writer] = Owned(fields, writer.api_version, now)
    return cap(result)


def _compared(view: View, reset: FieldSet) -> Comparison:
    comparison = compare(root_type(view.schema), view.old, view.new)
    return comparison.without(reset) if reset else comparison


def disowned(fields: FieldSet, changes: tuple[FieldSet, FieldSet, FieldSet]) -> FieldSet:
    """What remains of a manager's fields when someone else made these changes.

    What was modified or removed goes with all below it: such children are left only by a schema under which the field
    was not atomic yet.
    """
    added, modified, removed = changes
    for gone in (modified, removed):
        if gone:
            fields = recursive_difference(fields, gone)
    return difference(fields, added) if added else fields


def _managers(live: dict[str, Any] | None, new: dict[str, Any], subresource: str) -> Managers:
    """The entries to go on from: those that the client sent if they are sound, else those of the live object."""
    stored = ((live or {}).get("metadata") or {}).get("managedFields") or []
    sent = (new.get("metadata") or {}).get("managedFields")
    if subresource or sent is None or sent == stored:
        return decode(stored)
    if sent in ([], [{}]):
        return {}
    try:
        return decode(check(sent)) or decode(stored)
    except (ValueError, TypeError, OverflowError):
        return decode(stored)
