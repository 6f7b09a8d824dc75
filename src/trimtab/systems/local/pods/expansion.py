"""`$(NAME)` in commands, arguments and values, as Kubernetes expands it.

A name that is not known stays as it is written; `$$` is a dollar, so that `$$(NAME)` is the text `$(NAME)`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`text` with its references replaced, once: what a value brings is not looked at again."""

    def put(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else variables.get(name, found[0])

    return _REFERENCE.sub(put, text)


_REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")
