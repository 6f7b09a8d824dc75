"""Names in generated code: never a keyword, never one that is taken in the same class."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable

IN_CLASSES = frozenset(
    {"plain", "one", "many", "mapped", "dataclass", "str", "bool", "int", "float", "list", "dict", "self"}
)
"""What the body of a generated class says itself."""

IN_HINTS = frozenset({"Any", "Decimal", "Unknown"})

IN_MODULES = IN_HINTS | {
    "SCHEMA", "BOOL", "DYNAMIC", "NUMBER", "STRING", "WHOLE", "Attribute", "Block", "Context", "Create", "DataSource", "Delete",
    "ListOf", "MapOf", "Nested", "ObjectOf", "Read", "ReadData", "Resource", "Schema", "SetOf", "Update",
}  # fmt: skip
"""What a generated module imports or defines beside its two classes."""


def field_names(names: Iterable[str]) -> dict[str, str]:
    """The fields of a class, by attribute: `class` is class_."""
    return _distinct(sorted(names), lambda name: f"{name}_" if _taken(name) else name)


def class_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """The classes of nested attributes, by attribute: `node_pools` is NodePools. A class lives in the one above it, so that
    two of one name meet only inside one object."""
    return _distinct(sorted(names), camel, IN_HINTS.union(taken))


def module_names(resources: Iterable[str], data_sources: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """The modules of resources and of data sources: each a file of its own that an import statement can name."""
    modules = _distinct(sorted(resources), lambda name: f"{name}_" if _taken(name) else name)
    return modules, _distinct(sorted(data_sources), lambda name: f"{name}_data", modules.values())


def top_names(name: str, suffix: str) -> tuple[str, str]:
    """The class of a module's values and the one to subclass: `ship` has Ship and ShipResource."""
    number, first = 1, camel(name)
    top = first
    while {top, f"{top}{suffix}"} & IN_MODULES:
        number += 1
        top = f"{first}{number}"
    return top, f"{top}{suffix}"


def camel(name: str) -> str:
    joined = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return joined if joined.isidentifier() and not keyword.iskeyword(joined) else f"Of{joined}"


def _taken(name: str) -> bool:
    return keyword.iskeyword(name) or name.startswith("__") or name in IN_CLASSES


def _distinct(names: list[str], wanted: Callable[[str], str], taken: Iterable[str] = ()) -> dict[str, str]:
    used = set(taken)
    made: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (wanted(name) != name, name)):
        first = chosen = wanted(name)
        number = 2
        while chosen in used:
            chosen, number = f"{first}{number}", number + 1
        used.add(chosen)
        made[name] = chosen
    return {name: made[name] for name in names}
