"""What a server says, without the secrets that it quotes: Terraform's errors end in logs and in terminals that many see.

At an attribute that is sensitive or only written all that is quoted goes. Everywhere else the secrets that were sent go,
wherever they are: a rule of the whole object may tell of any of its fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from trimtab.terraform.framework.paths import Name, Path
from trimtab.terraform.kinds.definition import OBJECT, Shape

HIDDEN = "(sensitive value)"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def hidden(shape: Shape, path: Path | None, message: str, body: Any) -> str:
    """The message without secrets. `path` is the attribute that it is about, `body` the document that was sent."""
    if path is not None and _is_secret(shape, path):
        message = _QUOTED.sub(HIDDEN, message)
    for text in sorted(set(_secrets(shape, body)), key=len, reverse=True):
        for spelling in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
            message = re.sub(rf"(?<!\w){re.escape(spelling)}(?!\w)", HIDDEN, message)
    return message


def _is_secret(shape: Shape, path: Path) -> bool:
    for step in path.steps:
        if isinstance(step, Name):
            field = next((field for field in shape.fields if field.name == step.name), None)
            if field is None or field.sensitive or field.write_only:
                return field is not None
            shape = field.shape
        else:
            shape = shape.items or shape
    return False


def _secrets(shape: Shape | None, document: Any, secret: bool = False) -> Iterator[str]:
    if isinstance(document, dict) and shape is not None and shape.form == OBJECT:
        for field in shape.fields:
            yield from _secrets(field.shape, document.get(field.wire), secret or field.sensitive or field.write_only)
    elif isinstance(document, dict | list):
        for item in document.values() if isinstance(document, dict) else document:
            yield from _secrets(shape and shape.items, item, secret)
    elif secret and document not in (None, "") and not isinstance(document, bool):
        yield str(document)
