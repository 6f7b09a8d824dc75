"""Values as YAML text, always the same for the same value: what names a thing comes first, all else is sorted.

Words that YAML 1.1 reads as something else than text (`yes`, `1e3`) are quoted; texts of several lines are blocks.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

FIRST = ("apiVersion", "kind", "metadata", "name", "project", "namespace", "description", "labels", "annotations")


def arranged(value: Any) -> Any:
    """A value with its keys in the order in which they are written."""
    if isinstance(value, dict):
        first = [name for name in FIRST if name in value]
        rest = sorted(name for name in value if name not in FIRST)
        return {name: arranged(value[name]) for name in (*first, *rest)}
    if isinstance(value, (list, tuple)):
        return [arranged(inner) for inner in value]
    return value


def block(value: Any, indent: int = 0, step: int = 2, dashes: int = 0) -> str:
    """A mapping or a list as lines, each with its end, indented. `step`: how far a mapping is set in from its key;
    `dashes`: how far a list is."""
    return "\n".join(_lines(arranged(value), indent, step, dashes)) + "\n"


def _lines(value: Any, indent: int, step: int, dashes: int) -> list[str]:
    pad = " " * indent
    if isinstance(value, dict) and value:
        found = []
        for name, inner in value.items():
            key = f"{pad}{scalar(name)}:"
            if is_inline(inner):
                found.append(f"{key} {scalar(inner)}")
            elif isinstance(inner, str):
                found.append(f"{key} {literal(inner, indent + step)}")
            else:
                inset = dashes if isinstance(inner, list) else step
                found += [key, *_lines(inner, indent + inset, step, dashes)]
        return found
    if isinstance(value, list) and value:
        found = []
        for inner in value:
            if is_inline(inner):
                found.append(f"{pad}- {scalar(inner)}")
            elif isinstance(inner, str):
                found.append(f"{pad}- {literal(inner, indent + 2)}")
            else:
                first, *rest = _lines(inner, indent + 2, step, dashes)
                found += [f"{pad}- {first.lstrip(' ')}", *rest]
        return found
    return [pad + scalar(value)]


def scalar(value: Any, style: str = "", *, flow: bool = False) -> str:
    """A value that takes no lines of its own; texts are quoted as `style` was, where that can say them."""
    if isinstance(value, str):
        if style == '"':
            return _quoted(value)
        if style == "'" and value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        if not value.isprintable():
            return _quoted(value)
        if not flow and _PLAIN.fullmatch(value) and not _MAYBE_OTHER.match(value):
            return value
    return flowing(value) if flow else _dump([value], flow=False)[2:].rstrip("\n")


def _quoted(value: str) -> str:
    """In double quotes; characters that cannot be seen are escaped."""
    return '"' + "".join(_SIGNS.get(c) or (c if c.isprintable() else _escaped(ord(c))) for c in value) + '"'


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SIGNS = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def flowing(value: Any) -> str:
    """A value in one line, as it stands in a flow collection."""
    return _dump([arranged(value)], flow=True).strip()[1:-1]


def is_inline(value: Any) -> bool:
    """Whether a value is written behind its key."""
    if isinstance(value, str):
        return "\n" not in value or not _is_blockable(value)
    return not isinstance(value, (dict, list)) or not value


def literal(value: str, indent: int) -> str:
    """A text of several lines as a block: its sign, and the lines."""
    chomp = "" if value.endswith("\n") and not value.endswith("\n\n") else "+" if value.endswith("\n") else "-"
    lines = value.split("\n") if not value.endswith("\n") else value[:-1].split("\n")
    return f"|{chomp}\n" + "\n".join(" " * indent + line if line else "" for line in lines)


def _dump(value: Any, *, flow: bool) -> str:
    import yaml

    text = yaml.dump(
        value, Dumper=_dumper(), default_flow_style=flow, allow_unicode=True, sort_keys=False, width=1_000_000
    )
    return str(text)


@cache
def _dumper() -> Any:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = None
        if not value.isprintable():
            style = '"'
        elif value and _MAYBE_OTHER.match(value) and _reads_otherwise(value):
            style = "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*")
_NUMBER = re.compile(r"[-+]?[0-9._]+([eE][-+]?[0-9]+)?")
_MAYBE_OTHER = re.compile(r"[-+.0-9yYnNtTfFoO~]")


def _reads_otherwise(value: str) -> bool:
    from trimtab.model import yaml

    if len(value) > 64:
        return bool(_NUMBER.fullmatch(value))
    try:
        return bool(yaml.load(value) != value)
    except yaml.YamlError:
        return True


def _is_blockable(value: str) -> bool:
    """Whether a block can say a text exactly, and any reader reads it so."""
    if not value.strip("\n") or value.startswith((" ", "\n", "\t")):
        return False
    return all(line.isprintable() and not line.endswith(" ") for line in value.split("\n"))
