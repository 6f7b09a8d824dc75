"""From what Git says, what is live and what we synced last, to a plan. Pure; every rule about what may be deleted is here
or in `guarding`.

Only what is in the inventory is ever pruned. What another sync owns is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any

from trimtab.systems.gitops.layout import Folded, path_for
from trimtab.systems.gitops.merging import Base, FieldConflict, Merged, impose, merge, normal, same
from trimtab.systems.gitops.parsing import Identity, Parsed, Selection, SourceDocument
from trimtab.systems.gitops.planning.guarding import guarded
from trimtab.systems.gitops.planning.judging import (
    Known,
    is_going,
    is_secret,
    is_settled,
    is_the_servers,
    opted_out,
    without_values,
    written,
)
from trimtab.systems.gitops.planning.plan import (
    PRUNE,
    Action,
    Conflict,
    FileEdit,
    Options,
    Plan,
    Refusal,
    Step,
)

Fields = Callable[[Identity, str], bool]
"""Whether a field of a document, by its path (`spec.containers[name=web].image`), is one of some."""

DEFAULTS = Options()

Paths = Callable[[Identity, Collection[str]], str]
"""Where a new document is written, given the paths that are taken."""


def plan(
    parsed: Parsed,
    live: Mapping[Identity, dict[str, Any]],
    inventory: Mapping[Identity, Known],
    options: Options = DEFAULTS,
    *,
    owners: Mapping[Identity, str] | None = None,
    refuse: Callable[[Identity], str] | None = None,
    paths: Paths | None = None,
    taken: Iterable[str] = (),
    ignored: Fields | None = None,
    hidden: Fields | None = None,
    settled: Container[Identity] = frozenset(),
    touched: Container[Identity] = frozenset(),
    needed: Callable[[Identity], bool] | None = None,
) -> Plan:
    """`live`: every object that Git or the inventory names, and, when the system is written to Git, those that may be new
    there. `owners`: who else (by name) owns an object. `refuse`: why this sync may not touch one, or "".
    `taken`: the paths of the revision, so that a new file has its own. `ignored`: fields that stay as they are on both sides.
    `hidden`: fields whose values are not shown in conflicts; those of Secrets never are. `settled`: objects with which there
    is nothing to do unless their document changed. `touched`: objects whose files were changed in the system. `needed`:
    whether the sync itself could not go on without an object."""
    planner = _Planner(
        parsed,
        live,
        inventory,
        options,
        owners or {},
        refuse,
        paths,
        {*taken},
        ignored,
        hidden,
        settled,
        touched,
        needed,
    )
    return planner.plan()


class _Planner:
    def __init__(
        self,
        parsed: Parsed,
        live: Mapping[Identity, dict[str, Any]],
        inventory: Mapping[Identity, Known],
        options: Options,
        owners: Mapping[Identity, str],
        refuse: Callable[[Identity], str] | None,
        paths: Paths | None,
        taken: set[str],
        ignored: Fields | None,
        hidden: Fields | None,
        settled: Container[Identity],
        touched: Container[Identity],
        needed: Callable[[Identity], bool] | None,
    ) -> None:
        self._settled, self._touched = settled, touched
        self._needed = needed or (lambda identity: False)
        self._parsed = parsed
        self._live = live
        self._inventory = inventory
        self._options = options
        self._owners = owners
        self._refuse = refuse
        self._ignored = ignored
        self._hidden = hidden
        self._paths = paths or (lambda identity, taken: path_for(identity, root=options.root, taken=taken))
        self._taken = taken | {document.path for document in parsed.documents} | {*parsed.artifacts}
        self._folded: Folded | None = None  # nobody asks, mostly
        self._steps: dict[Action, list[Step]] = {action: [] for action in Action}
        self._edits: list[FileEdit] = []
        self._conflicts: list[Conflict] = []
        self._refused: list[Refusal] = []

    def plan(self) -> Plan:
        desired = {document.identity: document for document in self._parsed.documents}
        chosen = self._options.selection
        every = chosen == Selection()
        for identity, document in desired.items():
            if every or chosen.selects(identity):
                self._desired(document)
        for identity in sorted(set(self._inventory) - set(desired)):
            self._gone_from_git(identity)
        if self._options.system_to_git and not self._parsed.problems:
            for identity in sorted(set(self._live) - set(desired) - set(self._inventory)):
                self._new_in_system(identity)
        steps = self._steps
        return guarded(
            Plan(
                create=tuple(steps[Action.CREATE]),
                update=tuple(steps[Action.UPDATE]),
                unchanged=tuple(steps[Action.UNCHANGED]),
                adopt=(*steps[Action.ADOPT], *steps[Action.OWN]),
                prune=tuple(steps[Action.PRUNE]),
                keep=tuple(steps[Action.KEEP]),
                forget=tuple(steps[Action.FORGET]),
                write_back=tuple(self._edits),
                conflicts=tuple(self._conflicts),
                refused=tuple(self._refused),
            ),
            self._parsed,
            len(self._inventory),
            self._options,
            uid=lambda identity: self._inventory[identity].uid if identity in self._inventory else "",
        )

    def _desired(self, source: SourceDocument) -> None:
        identity = source.identity
        reason = self._not_ours(identity)
        if reason:
            self._refused.append(Refusal(identity, source.path, reason))
            return
        live, entry = self._live.get(identity), self._inventory.get(identity)
        if entry is not None and not entry.uid and entry.base.git is None:
            entry = None  # we were about to make it, and nobody knows how far that came
        if is_settled(source, live, entry, known=identity in self._settled):
            self._step(Action.UNCHANGED, source, live, "", document=source.document)
        elif live is None:
            self._not_live(source, entry)
        elif is_going(live):
            self._step(
                Action.KEEP, source, live, "is being deleted in the system; it is looked at again when it is gone"
            )
        elif self._options.system_to_git and self._options.git_to_system:
            self._both_ways(source, live, entry)
        elif self._options.system_to_git:
            self._put_back(source, live, entry)
        elif self._options.git_to_system:
            found = impose(
                entry.base if entry is not None else None, source.document, live, ignored=self._ignoring(identity)
            )
            self._to_system(source, live, entry, found, "differs from Git")
        else:
            self._step(Action.KEEP, source, live, "stays as it is: both directions are off")

    def _not_live(self, source: SourceDocument, entry: Known | None) -> None:
        if not self._options.git_to_system:
            if entry is not None and self._options.system_to_git:
                self._edit("delete", source, None, None, "was deleted in the system")
            return
        if entry is None or not entry.uid or not self._options.system_to_git:
            reason = "is new in Git" if entry is None or not entry.uid else "was deleted in the system"
            self._step(Action.CREATE, source, None, reason)
            return
        found = merge(entry.base, source.document, None, policy=self._options.policy)
        if found.conflicts:
            self._conflict(source.identity, source.path, found.conflicts, entry.base, source.document, None)
        elif found.to_git:
            self._edit("delete", source, None, None, "was deleted in the system", found.resolved)
        else:
            self._step(Action.CREATE, source, None, "was deleted in the system, and changed in Git", found.resolved)

    def _both_ways(self, source: SourceDocument, live: dict[str, Any], entry: Known | None) -> None:
        base = entry.base if entry is not None else None
        policy = self._options.policy
        found = merge(base, source.document, live, policy=policy, ignored=self._ignoring(source.identity))
        if found.conflicts:
            self._conflict(source.identity, source.path, found.conflicts, base or Base(), source.document, live)
            return
        if found.to_git:
            self._edit("update", source, found.git, live, "changed in the system", found.resolved)
        if entry is None or entry.unowned or found.to_system:
            self._to_system(source, live, entry, found, "changed in Git")
        elif not found.to_git:  # one that is written to Git is not the same on both sides before it is written
            self._step(Action.UNCHANGED, source, live, "")

    def _put_back(self, source: SourceDocument, live: dict[str, Any], entry: Known | None) -> None:
        """The system is the only source: Git is to say what it said when both were the same, and what the system changed
        since."""
        document, ignored = source.document, self._ignoring(source.identity)
        if entry is None or entry.base.git is None:
            met = merge(None, document, live, policy="system", ignored=ignored)
            base, reason = Base(met.git, met.system), "differs from the system, which wins"
        else:
            base, reason = entry.base, "changed in Git, where the system wins"
        found = merge(base, base.git, live, policy="system", ignored=ignored)
        if found.git is None or same(found.git, normal(document)):
            self._step(Action.UNCHANGED, source, live, "")
            return
        is_news = entry is not None and found.to_git
        self._edit("update", source, found.git, live, "changed in the system" if is_news else reason, found.resolved)

    def _to_system(
        self, source: SourceDocument, live: dict[str, Any], entry: Known | None, found: Merged, reason: str
    ) -> None:
        if entry is None:
            action = Action.ADOPT
            reason = "exists, and differs from Git" if found.to_system else "exists, and says the same"
        elif found.to_system:
            action = Action.UPDATE
        else:
            action = Action.OWN if entry.unowned else Action.UNCHANGED
            reason = "came from the system, and is not marked as ours yet"
        self._step(action, source, live, reason if action is not Action.UNCHANGED else "", found.resolved, found.git)

    def _gone_from_git(self, identity: Identity) -> None:
        entry, live, options = self._inventory[identity], self._live.get(identity), self._options
        reason = self._not_ours(identity)
        if not options.selection.selects(identity):
            self._gone(Action.FORGET, identity, live, "is no longer selected")
        elif reason:
            self._gone(Action.FORGET, identity, live, reason)
        elif live is None:
            self._gone(Action.FORGET, identity, live, "is gone from Git and from the system")
        elif is_going(live):
            self._gone(Action.KEEP, identity, live, "is being deleted in the system")
        elif not entry.uid:
            self._gone(Action.FORGET, identity, live, "is not known to be ours: its sync was cut off")
        elif not entry.digest:
            self._gone(Action.FORGET, identity, live, "was never in Git")
        elif live.get("metadata", {}).get("uid", entry.uid) != entry.uid:
            self._gone(Action.FORGET, identity, live, "is another object than the one that was synced")
        elif not options.git_to_system:
            self._gone_where_the_system_wins(identity, live, entry)
        elif not options.prune:
            self._gone(Action.KEEP, identity, live, "is gone from Git, and prune is off")
        elif opted_out(live) or opted_out(entry.base.git):
            self._gone(Action.KEEP, identity, live, f"is gone from Git, and its annotation {PRUNE} is false")
        elif self._needed(identity):
            self._gone(Action.KEEP, identity, live, "is gone from Git, and this sync cannot do without it")
        elif not options.system_to_git:
            self._gone(Action.PRUNE, identity, live, "is gone from Git")
        else:
            self._deleted_or_edited(identity, live, entry)

    def _gone_where_the_system_wins(self, identity: Identity, live: dict[str, Any], entry: Known) -> None:
        if self._options.system_to_git and not is_the_servers(identity, live):
            said = merge(entry.base, entry.base.git, live, policy="system").git if entry.base.git is not None else None
            self._write_new(identity, live, "is gone from Git, where the system wins", said=said, place=entry.path)
        else:
            self._gone(Action.KEEP, identity, live, "is gone from Git, which does not go to the system")

    def _deleted_or_edited(self, identity: Identity, live: dict[str, Any], entry: Known) -> None:
        base = Base(entry.base.git) if identity in self._touched else entry.base
        found = merge(base, None, live, policy=self._options.policy)
        if found.conflicts:
            self._conflict(identity, entry.path, found.conflicts, entry.base, None, live)
        elif found.to_system:
            self._gone(Action.PRUNE, identity, live, "is gone from Git", found.resolved)
        else:
            self._write_new(identity, live, "changed in the system, and gone from Git", found.resolved)

    def _new_in_system(self, identity: Identity) -> None:
        live = self._live[identity]
        if not self._options.selection.selects(identity) or is_the_servers(identity, live):
            return
        if is_going(live) or self._not_ours(identity):
            return
        self._write_new(identity, live, "is new in the system")

    def _write_new(
        self,
        identity: Identity,
        live: dict[str, Any],
        reason: str,
        resolved: tuple[FieldConflict, ...] = (),
        said: dict[str, Any] | None = None,
        place: str = "",
    ) -> None:
        """`said`: what Git is to say of it, where that is less than all. `place`: where it was, and is again unless that is
        taken."""
        if is_secret(identity):
            self._refused.append(Refusal(identity, "", "a Secret is not written to Git"))
            return
        if self._folded is None:
            self._folded = Folded(map(str.casefold, self._taken))
        path = place if place and place.casefold() not in self._folded else self._paths(identity, self._folded)
        self._folded.add(path.casefold())
        self._edits.append(
            FileEdit(
                identity, "create", path, document=written(live, said), live=live, reason=reason, resolved=resolved
            )
        )

    def _ignoring(self, identity: Identity) -> Callable[[str], bool] | None:
        ignored = self._ignored
        return None if ignored is None else lambda path: ignored(identity, path)

    def _not_ours(self, identity: Identity) -> str:
        owner = self._owners.get(identity)
        if owner is not None:
            return f"belongs to {owner}"
        return self._refuse(identity) if self._refuse is not None else ""

    def _step(
        self,
        action: Action,
        source: SourceDocument,
        live: dict[str, Any] | None,
        reason: str,
        resolved: tuple[FieldConflict, ...] = (),
        document: dict[str, Any] | None = None,
    ) -> None:
        self._steps[action].append(
            Step(
                source.identity,
                action,
                source.path,
                source.index,
                source.item,
                source.digest,
                document if document is not None else normal(source.document),
                live,
                reason,
                self._shown(source.identity, resolved),
            )
        )

    def _gone(
        self,
        action: Action,
        identity: Identity,
        live: dict[str, Any] | None,
        reason: str,
        resolved: tuple[FieldConflict, ...] = (),
    ) -> None:
        path = self._inventory[identity].path
        step = Step(identity, action, path, live=live, reason=reason, resolved=self._shown(identity, resolved))
        self._steps[action].append(step)

    def _edit(
        self,
        action: str,
        source: SourceDocument,
        document: dict[str, Any] | None,
        live: dict[str, Any] | None,
        reason: str,
        resolved: tuple[FieldConflict, ...] = (),
    ) -> None:
        if document is not None and is_secret(source.identity):
            self._refused.append(Refusal(source.identity, source.path, "a Secret is not written to Git"))
            return
        before = normal(source.document)
        self._edits.append(
            FileEdit(
                source.identity,
                action,
                source.path,
                source.index,
                source.item,
                before,
                document,
                live,
                reason,
                self._shown(source.identity, resolved),
            )
        )

    def _shown(self, identity: Identity, fields: tuple[FieldConflict, ...]) -> tuple[FieldConflict, ...]:
        """Conflicts are for people to read: what is secret is in them without its value."""
        return tuple(
            without_values(field)
            if is_secret(identity) or (self._hidden is not None and self._hidden(identity, field.path))
            else field
            for field in fields
        )

    def _conflict(
        self,
        identity: Identity,
        path: str,
        fields: tuple[FieldConflict, ...],
        base: Base,
        git: dict[str, Any] | None,
        live: dict[str, Any] | None,
    ) -> None:
        self._conflicts.append(Conflict(identity, path, self._shown(identity, fields), base, git, live))
