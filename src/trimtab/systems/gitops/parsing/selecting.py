"""Which kinds and names a sync is about: an include list and an exclude list.

An entry is `*`, `Kind`, `group/Kind` or `group/Kind/name`, with `*` and `?` in any of its words; a name may also follow a
kind of any group as `Kind/name` (a first word that begins with a capital letter is a kind). What is excluded is out.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from trimtab.systems.gitops.parsing.identity import Identity

CORE = "core"
"""How an entry names the group that has no name."""


class Entry(msgspec.Struct, frozen=True):
    """An entry, taken apart. Each word is a pattern."""

    group: str = "*"
    kind: str = "*"
    name: str = "*"

    def matches(self, identity: Identity) -> bool:
        return (
            fnmatchcase(identity.kind, self.kind)
            and (self.group == "*" or fnmatchcase(identity.group or CORE, self.group))
            and (self.name == "*" or fnmatchcase(identity.name, self.name))
        )


class Selection(msgspec.Struct, frozen=True):
    """What is in: included (everything, when nothing is said) and not excluded."""

    included: tuple[Entry, ...] = (Entry(),)
    excluded: tuple[Entry, ...] = ()

    def selects(self, identity: Identity) -> bool:
        return any(entry.matches(identity) for entry in self.included) and not any(
            entry.matches(identity) for entry in self.excluded
        )

    def kinds(self, known: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Of the (group, kind)s that are known those of which something may be selected."""
        return [
            (group, kind)
            for group, kind in known
            if any(_has_kind(entry, group, kind) for entry in self.included)
            and not any(entry.name == "*" and _has_kind(entry, group, kind) for entry in self.excluded)
        ]


class SelectionError(ValueError):
    """The lists cannot be meant; `field` and what is wrong, for every mistake."""

    def __init__(self, problems: Iterable[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{field}: {message}" for field, message in self.problems))


def selection(
    included: Iterable[str] = (),
    excluded: Iterable[str] = (),
    *,
    fields: tuple[str, str] = ("spec.includedResources", "spec.excludedResources"),
) -> Selection:
    """Read both lists. Raises SelectionError."""
    included, excluded = list(included) or ["*"], list(excluded)
    problems = []
    taken: list[list[Entry]] = [[], []]
    for number, (field, texts) in enumerate(zip(fields, (included, excluded), strict=True)):
        for place, text in enumerate(texts):
            try:
                taken[number].append(_entry(text))
            except ValueError as error:
                problems.append((f"{field}[{place}]", str(error)))
    if not problems:
        for place, text in enumerate(excluded):
            if taken[1][place] in taken[0]:
                problems.append(
                    (f"{fields[1]}[{place}]", f'"{text}" is in {fields[0]} too: keep it in one of the lists')
                )
    if problems:
        raise SelectionError(problems)
    return Selection(tuple(taken[0]), tuple(taken[1]))


def _entry(text: str) -> Entry:
    words = text.split("/")
    if text == "*":
        return Entry()
    if not all(words) or len(words) > 3 or any(c.isspace() for c in text):
        raise ValueError(f'"{text}" is no entry: write *, Kind, group/Kind or group/Kind/name')
    if len(words) == 1:
        return Entry(kind=words[0])
    if len(words) == 2 and words[0][0].isupper():
        return Entry(kind=words[0], name=words[1])
    return Entry(*words)


def _has_kind(entry: Entry, group: str, kind: str) -> bool:
    return fnmatchcase(kind, entry.kind) and (entry.group == "*" or fnmatchcase(group or CORE, entry.group))
