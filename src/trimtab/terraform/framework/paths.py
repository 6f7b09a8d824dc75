"""Where something is inside a configuration, a plan or a state.

A path is a tuple of steps: an attribute by its name, an element of a list by its index, of a map by its key. Elements of
a set have no name, so that a path into one ends at the set. Terraform turns a path into a line of the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trimtab.terraform.framework.values import UNKNOWN


@dataclass(frozen=True, slots=True)
class Name:
    """A step to an attribute or a block."""

    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """A step to an element of a list."""

    index: int


@dataclass(frozen=True, slots=True)
class Key:
    """A step to an element of a map."""

    key: str


@dataclass(frozen=True, slots=True)
class Every:
    """A step to all elements of a collection, in the paths of config validators only."""


Step = Name | Index | Key | Every


@dataclass(frozen=True, slots=True)
class Path:
    steps: tuple[Step, ...] = ()

    def name(self, name: str) -> Path:
        return Path((*self.steps, Name(name)))

    def index(self, index: int) -> Path:
        return Path((*self.steps, Index(index)))

    def key(self, key: str) -> Path:
        return Path((*self.steps, Key(key)))

    def every(self) -> Path:
        return Path((*self.steps, Every()))

    def join(self, other: Path) -> Path:
        return Path((*self.steps, *other.steps))

    def message(self) -> dict[str, Any]:
        """The protocol's AttributePath."""
        steps: list[dict[str, Any]] = []
        for step in self.steps:
            match step:
                case Name(name):
                    steps.append({"attribute_name": name})
                case Index(index):
                    steps.append({"element_key_int": index})
                case Key(key):
                    steps.append({"element_key_string": key})
                case Every():
                    break
        return {"steps": steps}

    def __str__(self) -> str:
        text = ""
        for step in self.steps:
            match step:
                case Name(name):
                    text += f".{name}" if text else name
                case Index(index):
                    text += f"[{index}]"
                case Key(key):
                    text += f'["{key}"]'
                case Every():
                    text += "[*]"
        return text


ROOT = Path()

_PART = re.compile(
    r"""\.?(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<index>\d+)\]|\["(?P<key>[^"]*)"\]|(?P<every>\[\*\])"""
)


def path(text: str | Path) -> Path:
    """Of `spec.nodes[0].role`, `spec.pools["a"].size` or `spec.nodes[*].role`; ValueError for anything else."""
    if isinstance(text, Path):
        return text
    steps: list[Step] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if (
            part is None
            or (part["name"] is None and at == 0)
            or (part["name"] is not None and (at > 0) != (text[at] == "."))
        ):
            raise ValueError(f"not a path: {text!r}")
        if part["name"] is not None:
            steps.append(Name(part["name"]))
        elif part["index"] is not None:
            steps.append(Index(int(part["index"])))
        elif part["key"] is not None:
            steps.append(Key(part["key"]))
        else:
            steps.append(Every())
        at = part.end()
    return Path(tuple(steps))


def find(value: Any, where: Path) -> Any:
    """What is there: None where a parent is null or an element is missing, UNKNOWN where a parent is unknown."""
    for step in where.steps:
        if value is None or value is UNKNOWN:
            return value
        match step:
            case Name(name):
                value = value.get(name) if isinstance(value, dict) else None
            case Key(key):
                value = value.get(key) if isinstance(value, dict) else None
            case Index(index):
                value = value[index] if isinstance(value, list) and index < len(value) else None
            case Every():
                raise ValueError(f"{where} is not one place")
    return value
