"""Server-side apply: merge a configuration into an object, and remember who said what.

Flow: check the configuration; merge it into the live object; take out what this manager said last time and nobody says
now; see whom the change takes fields from, which without force is a conflict; write down the new ownership. An apply
that changes nothing in the object leaves the time of the manager's entry as it is. The given documents are never
changed, and the result shares nothing with them.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Mapping
from typing import Any, NamedTuple, cast

from trimtab.model.document import same
from trimtab.model.errors import StatusError, bad_request
from trimtab.model.schema import Schema
from trimtab.server.apply.compare import Comparison, compare
from trimtab.server.apply.conflict import ConflictError, Conflicts, conflict_status
from trimtab.server.apply.elements import UnkeyedError
from trimtab.server.apply.empty import empty_object
from trimtab.server.apply.fieldset import FieldSet, difference, intersection, recursive_difference, union
from trimtab.server.apply.last_applied import KUBECTL, in_step, inherited
from trimtab.server.apply.managers import Manager, Managers, Owned, decode, encode
from trimtab.server.apply.merge import merge
from trimtab.server.apply.prune import named, prune, reconciled, remove
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
        "f:project": {},
        "f:resourceVersion": {},
        "f:selfLink": {},
        "f:uid": {},
    },
}

_IDENTITY = cast(FieldSet, _UNMANAGED["f:metadata"])


class Wanted(NamedTuple):
    """A document that must be shown in another version before an apply can go on."""

    document: dict[str, Any]
    api_version: str


Steps = Generator[Wanted, dict[str, Any], dict[str, Any]]
"""An apply that asks for conversions on its way: each is answered by `send`. Its result is the object."""


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

    Raises 409 with every conflict. The other arguments are those of `update_managed_fields`. Managers of other versions
    own the fields of the same names.
    """
    steps = applying(
        live,
        config,
        manager=manager,
        force=force,
        api_version=api_version,
        schema=schema,
        subresource=subresource,
        now=now,
        reset=reset,
        served=served,
    )
    try:
        next(steps)
    except StopIteration as end:
        return cast(dict[str, Any], end.value)
    raise AssertionError("nothing is converted without schemas of other versions")


def applying(
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
    versions: Mapping[str, Schema] | None = None,
) -> Steps:
    """The same as `apply`, for a kind whose `versions`, all of them by apiVersion, have other fields: what each manager
    owns is looked at in the version in which it wrote. Entries of versions that are not among them are dropped."""
    kind = root_type(schema)
    with bounded():
        _check(kind, config, api_version)
    reset = RESET.get(subresource, {}) if reset is None else reset
    empty = empty_object(api_version, config.get("kind", ""))
    old = _without_managed_fields(live) if live is not None else empty
    managers = decode(((live or {}).get("metadata") or {}).get("managedFields") or [])
    kept = served if versions is None else versions
    if kept is not None:
        managers = {who: owned for who, owned in managers.items() if owned.api_version in kept}
    if not managers and live is not None:
        before = Manager(_BEFORE_FIRST_APPLY, "Update", api_version, subresource)
        managers = updated({}, empty, old, writer=before, kind=kind, now=now, reset=reset)

    applier = Manager(manager, "Apply", "", subresource)
    intent = _Intent(kind, old, config, managers, applier, api_version, now, reset, versions)
    try:
        try:
            applied, managers = yield from intent.carried_out(force)
        except ConflictError as failure:
            rest = failure.conflicts
            if manager == KUBECTL and (allowed := inherited(kind, old, api_version)):
                rest = failure.without(allowed)
            if rest:
                raise conflict_status(rest) from None
            applied, managers = yield from intent.carried_out(True)
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
        versions: Mapping[str, Schema] | None,
    ) -> None:
        self.kind = kind
        self.old = old
        self.config = config
        self.applier = applier
        self.api_version = api_version
        self.now = now
        self.reset = reset
        self.versions = versions
        self.managers = {
            who: Owned(reconciled(self._root(owned), owned.fields), owned.api_version, owned.time)
            for who, owned in managers.items()
        }

    def _root(self, owned: Owned) -> Root:
        return self.kind if self.versions is None else root_type(self.versions[owned.api_version])

    def carried_out(self, force: bool) -> Generator[Wanted, dict[str, Any], tuple[dict[str, Any], Managers]]:
        """The new object and its managers. Raises ConflictError when it may not take a field."""
        kind, old = self.kind, self.old
        new = merge(kind, old, self.config)
        fields = recursive_difference(fields_of(kind, self.config), self.reset)
        fields = difference(fields, _UNMANAGED)
        last = self.managers.get(self.applier)
        others = {who: owned for who, owned in self.managers.items() if who != self.applier}
        if last and self._is_foreign(last, *others.values()):
            new = yield from self._pruned(new, last, fields, others)
        elif last:
            new = prune(kind, new, last.fields, fields, [fields, *(owned.fields for owned in others.values())]) or {}
        if others:  # who is alone takes nothing from anyone
            compared = {self.api_version: compare(kind, old, new).without(self.reset)}
            for version in {owned.api_version for owned in others.values()} - compared.keys():
                if self.versions is None:
                    compared[version] = compared[self.api_version]
                    continue
                before, after = (yield Wanted(old, version)), (yield Wanted(new, version))
                compared[version] = compare(root_type(self.versions[version]), before, after).without(self.reset)
            others = self._left_to(others, compared, force)

        unchanged = same(new, old)
        time = (last.time if last else None) if unchanged else self.now
        if fields:
            others[self.applier] = Owned(fields, self.api_version, time)
        return old if unchanged else new, others

    def _is_foreign(self, *owners: Owned) -> bool:
        return self.versions is not None and any(owned.api_version != self.api_version for owned in owners)

    def _pruned(
        self, merged: dict[str, Any], last: Owned, fields: FieldSet, others: Managers
    ) -> Generator[Wanted, dict[str, Any], dict[str, Any]]:
        """What `prune` does, where those who own fields wrote in several versions: what the applier said last goes in the
        version in which it said it, and what others own comes back in each of theirs."""
        assert self.versions is not None  # noqa: S101 - asked before
        at = self.api_version
        owned: dict[str, FieldSet] = {at: fields}
        for other in others.values():
            owned[other.api_version] = union(owned.get(other.api_version, {}), other.fields)
        start = merged if last.api_version == at else (yield Wanted(merged, last.api_version))
        root = self._root(last)
        whole, rest, at = start, remove(root, start, named(root, last.fields)) or {}, last.api_version
        first = (version for version in owned if version == last.api_version)
        for version in (*first, *(version for version in owned if version != last.api_version)):
            kind = root_type(self.versions[version])
            if version != at:
                whole, rest = (yield Wanted(whole, version)), (yield Wanted(_typed(rest, whole), version))
            kept = union(named(kind, fields_of(kind, rest)), named(kind, owned[version]))
            rest, at = remove(kind, whole, difference(named(kind, fields_of(kind, whole)), kept)) or {}, version
        if at != last.api_version:
            rest = yield Wanted(_typed(rest, whole), last.api_version)
        gone = difference(named(root, fields_of(root, start)), named(root, fields_of(root, rest)))
        left = remove(root, start, intersection(gone, named(root, last.fields))) or {}
        return left if last.api_version == self.api_version else (yield Wanted(_typed(left, start), self.api_version))

    def _left_to(self, others: Managers, compared: Mapping[str, Comparison], force: bool) -> Managers:
        """What other managers own after this change, each by the comparison in its version. Raises ConflictError."""
        left: Managers = {}
        conflicts: Conflicts = {}
        for who, owned in others.items():
            comparison = compared[owned.api_version]
            if conflict := intersection(owned.fields, union(comparison.modified, comparison.added)):
                conflicts[who] = conflict
            if rest := disowned(owned.fields, comparison):
                left[who] = Owned(rest, owned.api_version, owned.time)
        if conflicts and not force:
            raise ConflictError(conflicts)
        return left


def _typed(document: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """What is left of an object still says which one it is: nobody could convert it otherwise."""
    known = {name: value for name, value in (whole.get("metadata") or {}).items() if "f:" + name in _IDENTITY}
    metadata = known | (document.get("metadata") or {})
    return document | {"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": metadata}


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
