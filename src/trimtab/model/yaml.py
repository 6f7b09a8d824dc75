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


def load_each(text: str, *, nodes: int) -> Iterator[tuple[int, Any]]:
    """The documents in a text, each with the line that it begins at, one by one: those before an error are had.

    What an alias stands for counts each time that it is used, so few lines cannot unfold to more than `nodes` nodes.
    Keys that are no text are left so, for a caller who tells where they are."""
    import yaml

    try:
        if _depth_at_most(text) > MAX_DEPTH:
            _check_size(yaml.parse(text, Loader=_loader()), None)
        has_aliases = "&" in text and "*" in text
        loader = _loader(names_keys=False)(text)
        try:
            while loader.check_node():
                node = loader.get_node()
                if has_aliases and _unfolded(node, {}) > nodes:
                    raise YamlError(f"line {node.start_mark.line + 1}: unfolds to more than {nodes} nodes")
                yield node.start_mark.line + 1, loader.construct_document(node)
        finally:
            loader.dispose()
    except RecursionError:
        raise YamlError("nested too deeply") from None
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(_told(error)) from None


def dump(value: Any, *, sort: bool = True) -> str:
    """A document as kubectl writes it: keys sorted, or as they come; block style; words that YAML 1.1 does not read as text
    are quoted."""
    import yaml

    class Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True  # what is written twice is meant twice

    def text(dumper: Any, value: str) -> Any:
        read_otherwise = value in "yYnN" or _INT.match(value) or _FLOAT.match(value)  # by kubectl's reader
        style = "'" if value and read_otherwise else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Plain.add_representer(str, text)
    return str(yaml.dump(value, Dumper=Plain, default_flow_style=False, allow_unicode=True, width=4096, sort_keys=sort))


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


def _depth_at_most(text: str) -> int:
    """A cheap bound on nesting: a block collection begins right of the one around it (a list in a mapping may not), and
    before anything else in its line; a flow collection has a bracket."""
    block = max((len(run) for run in _LEADING.findall(text)), default=0)
    return 2 * (block + 2) + text.count("[") + text.count("{")


def _unfolded(node: Any, sizes: dict[int, int]) -> int:
    """How many nodes there are when every alias is written out. A node that contains itself has no size."""
    known = sizes.get(id(node))
    if known is not None:
        if known == 0:
            raise YamlError(f"line {node.start_mark.line + 1}: an alias stands for what contains it")
        return known
    if isinstance(node.value, str):
        return 1
    sizes[id(node)] = 0
    total = 1
    for child in node.value:
        if isinstance(child, tuple):
            total += _unfolded(child[0], sizes) + _unfolded(child[1], sizes)
        else:
            total += _unfolded(child, sizes)
    sizes[id(node)] = total
    return total


@cache
def _loader(*, names_keys: bool = True) -> Any:
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type]
        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            self._name_keys(node)  # those that came by a merge

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            if not isinstance(node, yaml.MappingNode):
                return super().construct_mapping(node, deep=True)  # which refuses it
            self._name_keys(node)
            if any(key.tag == _MERGE for key, _ in node.value):
                self._refuse_duplicate(node)  # before the merge: an own key may cover one that comes by it
                return super().construct_mapping(node, deep=True)
            mapping = super().construct_mapping(node, deep=True)
            if len(mapping) != len(node.value):
                self._refuse_duplicate(node)
            return mapping

        def _name_keys(self, node: Any) -> None:
            """Keys are text in JSON. As kubectl does: `y` is the key "true", `007` is "7"."""
            if names_keys and any(key.tag not in _AS_IS for key, _ in node.value):
                node.value = [(self._named(key), value) for key, value in node.value]

        def _named(self, key: Any) -> Any:
            if key.tag in _AS_IS:
                return key
            found = self.construct_object(key, deep=True)
            if not isinstance(found, bool | int | float):
                raise yaml.constructor.ConstructorError(None, None, "found a key that is no text", key.start_mark)
            text = str(found).lower() if isinstance(found, bool) else str(found).removesuffix(".0")
            return yaml.ScalarNode(_TEXT, text, key.start_mark, key.end_mark)

        def _refuse_duplicate(self, node: Any) -> None:
            seen = set()
            for key, _ in node.value:
                name = key.value if key.tag == _MERGE else self.construct_object(key, deep=True)
                if isinstance(name, list | dict | set):
                    raise yaml.constructor.ConstructorError(None, None, "found a key that is no text", key.start_mark)
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
    for tag in (*numbers, "tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp"):
        Loader.add_constructor(tag, _telling(Loader.yaml_constructors[tag]))
    return Loader


def _telling(construct: Any) -> Any:
    """PyYAML's own constructors do not say what they stumble over: a tag may stand before any value."""
    from yaml.constructor import ConstructorError

    def constructed(loader: Any, node: Any) -> Any:
        try:
            return construct(loader, node)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            sort = node.tag.rpartition(":")[2]
            raise ConstructorError(None, None, f"{str(node.value)[:80]!r} is no {sort}", node.start_mark) from None

    return constructed


_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_AS_IS = (_TEXT, _MERGE, "tag:yaml.org,2002:value")
"""Keys that stand for themselves, and those that PyYAML itself sees to."""
_LEADING = re.compile(r"^[ \t\-?:]+", re.MULTILINE)
_INT = re.compile(r"^[-+]?(0b_*[01][01_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|0o_*[0-7][0-7_]*|0[0-7_]*|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"
)


def _told(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
