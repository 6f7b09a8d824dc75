"""YAML as Kubernetes reads it: YAML 1.1 words (`yes`, `on`), and times that stay text. Only what JSON can say comes out.

The parser is libyaml's, by PyYAML: one written in Python would hold the server up for seconds with a body of a megabyte.
A key that occurs twice in one mapping is refused: one of the two is a mistake, and nobody can tell which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

MAX_DEPTH = 250


class YamlError(ValueError):
    """The text is not YAML; the message names the line."""


def load(text: str, *, nodes: int | None = None) -> Any:
    """The one document in a text. More than `nodes` are refused: YAML is slow to read."""
    return next(load_all(text, nodes=nodes), None)


def load_all(text: str, *, nodes: int | None = None) -> Iterator[Any]:
    """The documents in a text, in order."""
    import yaml

    try:
        _check_size(yaml.parse(text, Loader=_loader()), nodes)
        yield from list(yaml.load_all(text, Loader=_loader()))
    except RecursionError:
        raise YamlError("nested too deeply") from None
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(_told(error)) from None


def dump(value: Any) -> str:
    """A document as kubectl writes it: keys sorted, block style; words that YAML 1.1 does not read as text are quoted."""
    import yaml

    class Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True  # what is written twice is meant twice

    def text(dumper: Any, value: str) -> Any:
        read_otherwise = value in "yYnN" or _INT.match(value) or _FLOAT.match(value)  # by kubectl's reader
        style = "'" if value and read_otherwise else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Plain.add_representer(str, text)
    return str(yaml.dump(value, Dumper=Plain, default_flow_style=False, allow_unicode=True, width=4096))


def _check_size(events: Iterator[Any], nodes: int | None) -> None:
    """Refuse deep nesting before anything is composed: the composer is written in C, and its stack has an end."""
    depth = 0
    for count, event in enumerate(events):
        if nodes is not None and count > nodes:
            raise YamlError(f"line {event.start_mark.line + 1}: too large for YAML: send it as JSON")
        name = type(event).__name__
        if name in ("SequenceStartEvent", "MappingStartEvent"):
            depth += 1
            if depth > MAX_DEPTH:
                raise YamlError(f"line {event.start_mark.line + 1}: nested deeper than {MAX_DEPTH} levels")
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            depth -= 1


@cache
def _loader() -> Any:
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            mapping = super().construct_mapping(node, deep=True)
            if len(mapping) != len(node.value):
                self._refuse_duplicate(node)
            return mapping

        def _refuse_duplicate(self, node: Any) -> None:
            seen = set()
            for key, _ in node.value:
                name = self.construct_object(key, deep=True)
                if name in seen:
                    raise yaml.constructor.ConstructorError(None, None, f'found duplicate key "{name}"', key.start_mark)
                seen.add(name)

    # As go-yaml resolves plain scalars: no times, no numbers to the base of 60.
    numbers = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    Loader.yaml_implicit_resolvers = {
        first: [(tag, regexp) for tag, regexp in found if tag not in (*numbers, "tag:yaml.org,2002:timestamp")]
        for first, found in base.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
    Loader.bool_values = {**base.bool_values, "y": True, "n": False}
    Loader.add_implicit_resolver(numbers[0], _INT, list("-+0123456789"))
    Loader.add_implicit_resolver(numbers[1], _FLOAT, list("-+0123456789."))
    return Loader


_INT = re.compile(r"^[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"
)


def _told(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
