"""Validators of a whole configuration: which attributes go together and which do not.

Paths are checked against the schema when the resource is first used: one that leads nowhere is an error of the provider,
not a rule that silently never holds. `within` says which objects a rule is about (`spec.nodes[*]`); it is then applied to
each of them that is there, and its paths start from the object. What is unknown may yet be null or not: a rule says
nothing that a later value could make wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from trimtab.terraform.framework import paths
from trimtab.terraform.framework.diagnostics import ERROR, Diagnostic
from trimtab.terraform.framework.paths import ROOT, Every, Path, find
from trimtab.terraform.framework.schema import clipped
from trimtab.terraform.framework.types import Type
from trimtab.terraform.framework.values import UNKNOWN


class ConfigValidator(ABC):
    """A rule over several paths."""

    def __init__(self, *paths_: str | Path, within: str | Path = ROOT) -> None:
        self.paths = tuple(map(paths.path, paths_))
        self.within = paths.path(within)
        if len(self.paths) < 2:
            raise ValueError(f"{type(self).__name__} needs two paths or more")
        if any(isinstance(step, Every) for path in self.paths for step in path.steps):
            raise ValueError("[*] belongs into `within`: a rule holds inside one object")

    def places(self) -> Iterator[Path]:
        """All paths of the rule from the root, for the check against the schema."""
        for path in self.paths:
            yield self.within.join(path)

    def check(self, config: Any, type_: Type) -> Iterator[Diagnostic]:
        for place, value in objects(config, self.within):
            if value is None or value is UNKNOWN:
                continue
            place = clipped(place, type_)
            found = [find(value, path) for path in self.paths]
            given = [
                path for path, item in zip(self.paths, found, strict=True) if item is not None and item is not UNKNOWN
            ]
            unknown = sum(1 for item in found if item is UNKNOWN)
            yield from self.judge(place, given, unknown)

    @abstractmethod
    def judge(self, place: Path, given: list[Path], unknown: int) -> Iterator[Diagnostic]:
        """`given`: those of the paths that have a value; `unknown`: how many may yet have one."""

    def _names(self, place: Path, these: tuple[Path, ...] | list[Path]) -> str:
        return ", ".join(str(place.join(path)) for path in these)

    def _shared(self, place: Path) -> Path | None:
        """The object that all paths are in, where it is one."""
        steps = list(self.paths[0].steps[:-1])
        for path in self.paths[1:]:
            while steps and tuple(steps) != path.steps[: len(steps)]:
                steps.pop()
        shared = place.join(Path(tuple(steps)))
        return shared if shared.steps else None


class AtLeastOneOf(ConfigValidator):
    def judge(self, place: Path, given: list[Path], unknown: int) -> Iterator[Diagnostic]:
        if not given and not unknown:
            text = f"At least one of these attributes must be set: {self._names(place, self.paths)}."
            yield Diagnostic(ERROR, "Missing attribute", text, self._shared(place))


class ExactlyOneOf(ConfigValidator):
    def judge(self, place: Path, given: list[Path], unknown: int) -> Iterator[Diagnostic]:
        rule = f"Exactly one of these attributes must be set: {self._names(place, self.paths)}."
        if len(given) > 1:
            for path in given:
                yield Diagnostic(ERROR, "Conflicting attributes", f"{rule} {len(given)} are set.", place.join(path))
        elif not given and not unknown:
            yield Diagnostic(ERROR, "Missing attribute", f"{rule} None is set.", self._shared(place))


class Conflicting(ConfigValidator):
    """At most one of them."""

    def judge(self, place: Path, given: list[Path], unknown: int) -> Iterator[Diagnostic]:
        if len(given) > 1:
            text = f"These attributes exclude each other: {self._names(place, given)}. Set one of them."
            for path in given:
                yield Diagnostic(ERROR, "Conflicting attributes", text, place.join(path))


class RequiredTogether(ConfigValidator):
    """All of them or none."""

    def judge(self, place: Path, given: list[Path], unknown: int) -> Iterator[Diagnostic]:
        if given and len(given) + unknown < len(self.paths):
            text = f"These attributes must be set together: {self._names(place, self.paths)}."
            yield Diagnostic(
                ERROR, "Missing attribute", f"{text} Only {self._names(place, given)} is set.", place.join(given[0])
            )


def objects(value: Any, where: Path) -> Iterator[tuple[Path, Any]]:
    """The values at a path with [*] in it, each with its own place. Elements of sets have the place of the set."""
    yield from _objects(value, where.steps, ROOT)


def _objects(value: Any, steps: tuple[paths.Step, ...], place: Path) -> Iterator[tuple[Path, Any]]:
    if not steps or value is None or value is UNKNOWN:
        yield place, value
        return
    step, rest = steps[0], steps[1:]
    if not isinstance(step, Every):
        yield from _objects(find(value, Path((step,))), rest, Path((*place.steps, step)))
    elif isinstance(value, dict):
        for key, element in value.items():
            yield from _objects(element, rest, place.key(key))
    else:
        for at, element in enumerate(value):
            yield from _objects(element, rest, place.index(at))
