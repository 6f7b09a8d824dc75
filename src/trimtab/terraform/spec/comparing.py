"""What a change of schemas means for those who have configurations and state: a machine's check of the promise to them.

The promise is semantic versioning. What makes a configuration wrong, or a plan replace or change something by itself, is a
major change; what is new and may be left out is a minor one; words are a patch. A type or an attribute may only go after a
release in which it was deprecated, so that everyone was warned.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.attributes import Attribute, Nested
from trimtab.terraform.framework.blocks import Block
from trimtab.terraform.framework.defaults import NONE
from trimtab.terraform.framework.modifiers import RequiresReplace
from trimtab.terraform.framework.schema import Schema
from trimtab.terraform.framework.validators import OneOf
from trimtab.terraform.spec.reading import Spec


class Level(enum.IntEnum):
    PATCH = 0
    MINOR = 1
    MAJOR = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Change:
    where: str
    what: str
    level: Level
    warned: bool = True
    """False: it breaks configurations that nothing warned of before."""


def compare(old: Spec, new: Spec) -> list[Change]:
    """All changes, by place."""
    found = [*_body(old.provider, new.provider, "provider")]
    for before, after, prefix in (
        (old.resources, new.resources, ""),
        (old.data_sources, new.data_sources, "data."),
    ):
        for name in sorted({*before, *after}):
            where = f"{prefix}{new.name}_{name}"
            if name not in after:
                found.append(_gone(where, "the type", before[name].deprecated))
            elif name not in before:
                found.append(Change(where, "the type is new", Level.MINOR))
            else:
                found += _words(where, before[name], after[name])
                found += _body(before[name], after[name], where)
    return found


def level(changes: list[Change]) -> Level | None:
    """What the next version must be, at least; None: nothing changed."""
    return max((each.level for each in changes), default=None)


def _body(old: Schema | Block, new: Schema | Block, where: str) -> Iterator[Change]:
    yield from _attributes(old.attributes, new.attributes, where)
    for name in sorted({*old.blocks, *new.blocks}):
        here = f"{where}.{name}"
        if name not in new.blocks:
            yield _gone(here, "the block", old.blocks[name].deprecated)
        elif name not in old.blocks:
            yield Change(here, "the block is new", Level.MINOR)
        elif old.blocks[name].nesting != new.blocks[name].nesting:
            yield Change(
                here, f"{old.blocks[name].nesting} became {new.blocks[name].nesting}", Level.MAJOR, warned=False
            )
        else:
            yield from _words(here, old.blocks[name], new.blocks[name])
            yield from _body(old.blocks[name], new.blocks[name], here)


def _attributes(old: Mapping[str, Attribute], new: Mapping[str, Attribute], where: str) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        here = f"{where}.{name}"
        if name not in new:
            yield _gone(here, "the attribute", old[name].deprecated)
        elif name not in old:
            required = new[name].required
            what = "the attribute is new" + (", and required" if required else "")
            yield Change(here, what, Level.MAJOR if required else Level.MINOR, warned=not required)
        else:
            yield from _attribute(old[name], new[name], here)


def _attribute(old: Attribute, new: Attribute, where: str) -> Iterator[Change]:
    if isinstance(old.type, Nested) and isinstance(new.type, Nested) and old.type.nesting == new.type.nesting:
        yield from _attributes(old.type.attributes, new.type.attributes, where)
    elif old.value_type() != new.value_type() or isinstance(old.type, Nested) != isinstance(new.type, Nested):
        yield Change(where, "its type changed", Level.MAJOR, warned=False)
    yield from _who(old, new, where)
    if old.default != new.default and old.default is not NONE:
        yield Change(where, "its default changed", Level.MAJOR, warned=False)
    elif old.default != new.default:
        yield Change(where, "it has a default", Level.MINOR)
    if _replaces(new) and not _replaces(old):
        yield Change(where, "a change of it now needs a new object", Level.MAJOR, warned=False)
    lost = sorted(map(str, _choices(old) - _choices(new))) if _choices(new) else []
    if lost or (_choices(new) and not _choices(old)):
        yield Change(where, f"it may no longer be {', '.join(lost) or 'anything'}", Level.MAJOR, warned=False)
    elif _choices(new) - _choices(old) or (_choices(old) and not _choices(new)):
        yield Change(where, "it may be more", Level.MINOR)
    if old.sensitive != new.sensitive:
        yield Change(where, f"it is {'' if new.sensitive else 'no longer '}sensitive", Level.MINOR)
    yield from _words(where, old, new)


def _who(old: Attribute, new: Attribute, where: str) -> Iterator[Change]:
    if new.required and not old.required:
        yield Change(where, "it is required now", Level.MAJOR, warned=False)
    elif (old.required or old.optional) and not (new.required or new.optional):
        yield Change(where, "it can no longer be set", Level.MAJOR, warned=bool(old.deprecated))
    elif (old.required, old.optional) != (new.required, new.optional):
        yield Change(where, "it may be left out, or set", Level.MINOR)
    if old.computed and not new.computed:
        yield Change(where, "it is no longer computed", Level.MAJOR, warned=False)


def _words(where: str, old: Any, new: Any) -> Iterator[Change]:
    if new.deprecated and not old.deprecated:
        yield Change(where, f"deprecated: {new.deprecated}", Level.MINOR)
    if old.description != new.description or (old.deprecated and old.deprecated != new.deprecated):
        yield Change(where, "its description changed", Level.PATCH)


def _gone(where: str, what: str, deprecated: str) -> Change:
    told = "" if deprecated else ", and was not deprecated before"
    return Change(where, f"{what} is gone{told}", Level.MAJOR, warned=bool(deprecated))


def _replaces(attribute: Attribute) -> bool:
    return any(isinstance(each, RequiresReplace) for each in attribute.modifiers)


def _choices(attribute: Attribute) -> set[Any]:
    return {choice for each in attribute.validators if isinstance(each, OneOf) for choice in each.choices}
