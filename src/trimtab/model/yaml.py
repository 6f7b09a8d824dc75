"""YAML as Kubernetes reads it: YAML 1.1 words (`yes`, `on`), and times that stay text. Only what JSON can say comes out.

A key that occurs twice in one mapping is refused: one of the two is a mistake, and nobody can tell which.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any


class YamlError(ValueError):
    """The text is not YAML; the message names the line."""


def load(text: str) -> Any:
    """The one document in a text."""
    return next(load_all(text), None)


def load_all(text: str) -> Iterator[Any]:
    """The documents in a text, in order."""
    from ruamel.yaml.error import YAMLError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from list(_reader().load_all(text))
    except RecursionError:
        raise YamlError("nested too deeply") from None
    except (YAMLError, ValueError) as error:
        raise YamlError(_told(error)) from None


def dump(value: Any) -> str:
    """A document as kubectl writes it: keys sorted, block style."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 4096
    yaml.version = (1, 1)  # so that words that are not text to older readers are quoted
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().removeprefix("%YAML 1.1\n---\n")


def _reader() -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import SafeConstructor

    class Constructor(SafeConstructor):
        """Times are text: only the schema of a field knows what it is."""

    Constructor.add_constructor("tag:yaml.org,2002:timestamp", Constructor.construct_yaml_str)
    Constructor.add_constructor("tag:yaml.org,2002:binary", Constructor.construct_yaml_str)
    yaml = YAML(typ="safe", pure=True)
    yaml.Constructor = Constructor
    yaml.version = (1, 1)
    return yaml


def _told(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)
