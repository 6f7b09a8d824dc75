"""The merge of values. Each side has its own base: a server adds defaults, so the two are never quite the same.

What a side changed since its base goes to the other. Where both changed the same thing differently there is a conflict.
Mappings are merged by key. Lists whose items all have a unique name are merged by it; other lists are one value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from trimtab.model.document import same
from trimtab.systems.gitops.merging.arranging import NotMergeable, arrange

DEFAULT_KEYS = ("name", "key", "id")
"""What may name the items of a list, in this order."""


class Absent(Enum):
    """No value: null is one."""

    ABSENT = "absent"

    def __bool__(self) -> bool:
        return False


ABSENT = Absent.ABSENT
MISSING = msgspec.UNSET


class FieldConflict(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that both sides changed. UNSET is a field that is not there. An empty path is the whole document."""

    path: str
    base: Any = MISSING
    git: Any = MISSING
    system: Any = MISSING


Keys = Callable[[str], Sequence[str] | None]
"""For the path of a list what names its items; () for a list that is one value, None where nothing is known."""


class Sides(NamedTuple):
    """One field as it is, and was at the last sync, on both sides."""

    base_git: Any
    git: Any
    base_system: Any
    system: Any


class Outcome(NamedTuple):
    """One field as it is to be on both sides."""

    git: Any
    system: Any


class Mode(Enum):
    """Whose changes count.

    BOTH: those of both sides. MEET: there is no base; what only the system says is its own and stays there. IMPOSE: those of
    Git, and where the system changed what Git says, it is changed back."""

    BOTH = "both"
    MEET = "meet"
    IMPOSE = "impose"


class FieldMerge:
    """One merge. `winner` decides conflicts ("git", "system"); with "" both sides keep what they have."""

    def __init__(
        self,
        winner: str = "",
        keys: Keys | None = None,
        ignored: Callable[[str], bool] | None = None,
        mode: Mode = Mode.BOTH,
    ) -> None:
        self._mode = mode
        self._winner = winner
        self._keys = keys
        self._ignored = ignored
        self.conflicts: list[FieldConflict] = []

    def merge(self, sides: Sides, path: str = "") -> Outcome:
        base_git, git, base_system, system = sides
        if self._ignored is not None and path and self._ignored(path):
            return Outcome(git, system)
        git_changed = not same(git, base_git)
        system_changed = not same(system, base_system)
        if not git_changed and not system_changed:
            return Outcome(git, system)
        if _maps(sides):
            return self._mappings(sides, path)
        key = self._key(sides, path)
        if key:
            try:
                return self._lists(sides, path, key)
            except NotMergeable:
                pass
        return self._values(sides, path, git_changed, system_changed)

    def _values(self, sides: Sides, path: str, git_changed: bool, system_changed: bool) -> Outcome:
        _, git, _, system = sides
        if same(git, system):
            return Outcome(git, system)
        if not system_changed:
            return Outcome(git, git)
        if not git_changed:
            if self._mode is Mode.BOTH:
                return Outcome(system, system)
            return Outcome(git, system if git is ABSENT else git)
        base = sides.base_git if sides.base_git is not ABSENT else sides.base_system
        self.conflicts.append(FieldConflict(path, *(MISSING if v is ABSENT else v for v in (base, git, system))))
        if self._winner == "git":
            return Outcome(git, git)
        if self._winner == "system":
            return Outcome(system, system)
        return Outcome(git, system)

    def _mappings(self, sides: Sides, path: str) -> Outcome:
        maps = [side if isinstance(side, dict) else {} for side in sides]
        to_git: dict[str, Any] = {}
        to_system: dict[str, Any] = {}
        for name in _names(maps[1], maps[3], maps[0], maps[2]):
            outcome = self.merge(Sides(*(m.get(name, ABSENT) for m in maps)), _below(path, name))
            if outcome.git is not ABSENT:
                to_git[name] = outcome.git
            if outcome.system is not ABSENT:
                to_system[name] = outcome.system
        return Outcome(_kept(to_git, sides.git), _kept(to_system, sides.system))

    def _key(self, sides: Sides, path: str) -> str:
        """What names the items of all four lists; "" when nothing does, or they are not lists."""
        if not (isinstance(sides.git, list) and isinstance(sides.system, list)):
            return ""
        lists = [side for side in sides if side is not ABSENT]
        if not all(isinstance(side, list) for side in lists):
            return ""
        told = self._keys(path) if self._keys is not None else None
        for key in DEFAULT_KEYS if told is None else told:
            if all(is_keyed(side, key) for side in lists):
                return key
        return ""

    def _lists(self, sides: Sides, path: str, key: str) -> Outcome:
        maps = [{item[key]: item for item in side} if isinstance(side, list) else {} for side in sides]
        noted = len(self.conflicts)
        to_git: dict[Any, Any] = {}
        to_system: dict[Any, Any] = {}
        for name in _names(maps[1], maps[3], maps[0], maps[2]):
            outcome = self.merge(Sides(*(m.get(name, ABSENT) for m in maps)), f"{path}[{key}={name}]")
            if outcome.git is not ABSENT:
                to_git[name] = outcome.git
            if outcome.system is not ABSENT:
                to_system[name] = outcome.system
        orders = [list(m) for m in maps]
        try:
            git_order, system_order = arrange(
                orders[0],
                orders[1],
                orders[2],
                orders[3],
                to_git,
                to_system,
                git_leads=self._mode is not Mode.BOTH,
            )
        except NotMergeable:
            del self.conflicts[noted:]  # the list as a whole is what both changed
            raise
        return Outcome([to_git[name] for name in git_order], [to_system[name] for name in system_order])


def _maps(sides: Sides) -> bool:
    """Whether a value is merged by key. A mapping that one side never had is looked into, so that only what changed in it
    is told; one that a side added or took away is one value."""
    base_git, git, base_system, system = sides
    if any(side is not ABSENT and not isinstance(side, dict) for side in sides):
        return False
    if git is not ABSENT and system is not ABSENT:
        return True
    if git is ABSENT and base_git is ABSENT:
        return system is not ABSENT and base_system is not ABSENT
    if system is ABSENT and base_system is ABSENT:
        return git is not ABSENT and base_git is not ABSENT
    return False


def _kept(found: dict[str, Any], before: Any) -> Any:
    return ABSENT if not found and before is ABSENT else found


def _names(*maps: dict[Any, Any]) -> list[Any]:
    seen: dict[Any, None] = {}
    for mapping in maps:
        seen.update(dict.fromkeys(mapping))
    return list(seen)


def is_keyed(items: list[Any], key: str) -> bool:
    names = [item.get(key) if isinstance(item, dict) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _below(path: str, name: str) -> str:
    plain = name.replace("_", "").replace("-", "").isalnum()
    word = name if plain else f"[{msgspec.json.encode(name).decode()}]"
    return word if not path else f"{path}.{word}" if plain else f"{path}{word}"
