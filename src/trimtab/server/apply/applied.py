"""Server-side apply: merge a configuration into an object, and remember who said what.

Flow: check the configuration; merge it into the live object; take out what this manager said last time and nobody says
now; see whom the change takes fields from, which without force is a conflict; write down the new ownership. An apply
that changes nothing in the object leaves the time of the manager's entry as it is. The given documents are never
changed, and the result shares nothing with them.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, cast

from trimtab.model.errors import StatusError, bad_request
from trimtab.model.schema import Schema
from trimtab.server.apply.compare import compare
from trimtab.server.apply.conflict import ConflictError, Conflicts, conflict_status
from trimtab.server.apply.elements import UnkeyedError
from trimtab.server.apply.empty import empty_object
from trimtab.server.apply.fieldset import FieldSet, difference, intersection, recursive_difference, union
from trimtab.server.apply.last_applied import KUBECTL, in_step, inherited
from trimtab.server.apply.managers import Manager, Managers, Owned, decode, encode
from trimtab.server.apply.merge import merge
from trimtab.server.apply.prune import prune, reconciled
from trimtab.server.apply.typed import fields_of, problems
from trimtab.server.apply.types import Root, root_type
from trimtab.server.apply.update import RESET, disowned, updated
from trimtab.server.patch.detached import detached
from trimtab.server.patch.failures import bounded

_BEFORE_FIRST_APPLY = "before-first-apply"
_UNMANAGED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:clusterName": {},
        "f:creationTimestamp": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:name": {},
        "f:namespace": {},
        "f:resourceVersion": {},
        "f:selfLink": {},
        "f:uid": {},
    },
}


def apply(
    live: dict[str, Any] | None,
    config: dict[str, Any],
    *,
    manager: str,
    force: bool,
    api_version: str,
    schema: Schema,
    subresource: str = "",
    now: str,
    reset: FieldSet | None = None,
    served: Container[str] | None = None,
) -> dict[str, Any]:
    """The object after the apply, its managedFields included; equal to `live` when nothing changed.

    Raises 409 with every conflict. The other arguments are those of `update_managed_fields`.
    """
    kind = root_type(schema)
    with bounded():
        _check(kind, config, api_version)
    reset = RESET.get(subresource, {}) if reset is None else reset
    empty = empty_object(api_version, config.get("kind", ""))
    old = _without_managed_fields(live) if live is not None else empty
    managers = decode(((live or {}).get("metadata") or {}).get("managedFields") or [])
    if served is not None:
        managers = {who: owned for who, owned in managers.items() if owned.api_version in served}
    if not managers and live is not None:
        before = Manager(_BEFORE_FIRST_APPLY, "Update", api_version, subresource)
        managers = updated({}, empty, old, writer=before, kind=kind, now=now, reset=reset)

    applier = Manager(manager, "Apply", "", subresource)
    intent = _Intent(kind, old, config, managers, applier, api_version, now, reset)
    try:
        try:
            applied, managers = intent.carried_out(force)
        except ConflictError as failure:
            rest = failure.conflicts
            if manager == KUBECTL and (allowed := inherited(kind, old, api_version)):
                rest = failure.without(allowed)
            if rest:
                raise conflict_status(rest) from None
            applied, managers = intent.carried_out(True)
    except UnkeyedError as problem:
        raise StatusError(500, "", f"failed to create typed live object ({_described(old)}): {problem}") from None
    if manager == KUBECTL:
        applied = in_step(applied, config)
    return cast(dict[str, Any], detached(_with_managed_fields(applied, managers)))


class _Intent:
    """One apply: what was, what is to be, and who says so."""

    def __init__(
        self,
        kind: Root,
        old: dict[str, Any],
        config: dict[str, Any],
        managers: Managers,
        applier: Manager,
        api_version: str,
        now: str,
        reset: FieldSet,
    ) -> None:
        self.kind = kind
        self.old = old
        self.config = config
        self.applier = applier
        self.api_version = api_version
        self.now = now
        self.reset = reset
        self.managers = {
            who: Owned(reconciled(kind, owned.fields), owned.api_version, owned.time) for who, owned in managers.items()
        }

    def carried_out(self, force: bool) -> tuple[dict[str, Any], Managers]:
        """The new object and its managers. Raises ConflictError when it may not take a field."""
        kind, old = self.kind, self.old
        new = merge(kind, old, self.config)
        fields = recursive_difference(fields_of(kind, self.config), self.reset)
        fields = difference(fields, _UNMANAGED)
        last = self.managers.get(self.applier)
        if last:
            others_fields = [owned.fields for who, owned in self.managers.items() if who != self.applier]
            new = prune(kind, new, last.fields, fields, [fields, *others_fields]) or {}

        comparison = compare(kind, old, new).without(self.reset)
        taken = union(comparison.modified, comparison.added)
        others: Managers = {}
        conflicts: Conflicts = {}
        for who, owned in self.managers.items():
            if who == self.applier:
                continue
            if conflict := intersection(owned.fields, taken):
                conflicts[who] = conflict
            if rest := disowned(owned.fields, comparison):
                others[who] = Owned(rest, owned.api_version, owned.time)
        if conflicts and not force:
            raise ConflictError(conflicts)

        unchanged = new == old
        time = (last.time if last else None) if unchanged else self.now
        if fields:
            others[self.applier] = Owned(fields, self.api_version, time)
        return old if unchanged else new, others


def _check(kind: Root, config: dict[str, Any], api_version: str) -> None:
    if config.get("apiVersion") != api_version:
        raise bad_request(f"invalid object type: {_kind_of(config)}")
    metadata = config.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    found = problems(kind, config)
    if found:
        text = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        raise StatusError(500, "", f"failed to create typed patch object ({_described(config)}): {text}")


def _described(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_kind_of(document)}"


def _kind_of(document: dict[str, Any]) -> str:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    return f"{group}/{version}, Kind={document.get('kind', '')}"


def _without_managed_fields(document: dict[str, Any]) -> dict[str, Any]:
    metadata = document.get("metadata") or {}
    return document | {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _with_managed_fields(document: dict[str, Any], managers: Managers) -> dict[str, Any]:
    metadata = dict(document.get("metadata") or {})
    if managers:
        metadata["managedFields"] = encode(managers)
    return document | {"metadata": metadata}
