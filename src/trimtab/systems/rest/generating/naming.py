"""Names of an API as names of Python: of classes, of fields, and texts that can be docstrings."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import textwrap
from collections.abc import Iterable

_WORDS = re.compile(r"[A-Z]+(?![a-z])s?|[A-Z]?[a-z]+|[0-9]+")
_TAKEN = frozenset(
    {"replace", "field", *keyword.kwlist, *(name for name in dir(builtins) if name.islower() and name.isalpha())}
) - {"type", "id", "format", "filter", "hash", "max", "min", "range", "set", "all", "any", "input", "object", "license"}
"""Words of the language, and what the body of a class needs itself."""
WIDTH = 112


def pascal(name: str) -> str:
    """`virtual-machine.sku` → `VirtualMachineSku`; what is one word already stays as it is."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", name) if part]
    made = "".join(part[0].upper() + part[1:] for part in parts)
    return made if made and not made[0].isdigit() else f"T{made}"


def snake(name: str) -> str:
    """`subnetIDs` → `subnet_ids`, `x-odd.name` → `x_odd_name`, `class` → `class_`."""
    words = [word.lower() for part in re.split(r"[^A-Za-z0-9]+", name) for word in _WORDS.findall(part)]
    made = "_".join(words) or "field"
    if made[0].isdigit():
        made = f"n{made}"
    return f"{made}_" if made in _TAKEN else made


def camel(name: str) -> str:
    """What a struct with `rename="camel"` makes of a field's name."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def quoted(text: str, indent: int = 4) -> str:
    """Inside of a docstring."""
    plain = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    safe = plain.replace("\\", "\\\\").replace('"""', "'''")
    wrapped = textwrap.fill(safe, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return f"{wrapped} " if wrapped.endswith('"') else wrapped


def literal(value: str | int) -> str:
    """A constant in Python's words."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


class Names:
    """Gives each thing one name of its own."""

    def __init__(self, *taken: Iterable[str]) -> None:
        self._taken = {name for names in taken for name in names} | set(keyword.kwlist)
        self._given: dict[str, str] = {}

    def given(self, thing: str, wish: str) -> str:
        """The wish, or the wish with a number when another thing has it."""
        if thing not in self._given:
            name, number = wish, 2
            while name in self._taken:
                name, number = f"{wish}{number}", number + 1
            self._taken.add(name)
            self._given[thing] = name
        return self._given[thing]
