"""Names of objects for what exists: the service's own as far as Kubernetes takes it, and each only once.

An object that stands for a resource already keeps its name, so that what is imported again is the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 200
_OTHER = re.compile(r"[^a-z0-9]+")


class Names:
    """`known` are the objects that are there: kind and name → resource ID."""

    def __init__(self, known: Mapping[tuple[str, str], str] | None = None) -> None:
        self._taken = {place: identifier.casefold() for place, identifier in (known or {}).items()}
        self._of = {(kind, identifier): name for (kind, name), identifier in self._taken.items() if identifier}

    def name(self, kind: str, identifier: str, wish: str, parent: str = "") -> str:
        """One that is free: after the service's own name, then with the parent's before it, then with a number."""
        key = (kind, identifier.casefold())
        if key not in self._of:
            own = dns_label(wish) or dns_label(kind)
            base = f"{parent}-{own}"[-LONGEST:].strip("-") if parent else own
            name, number = own, 2
            while (kind, name) in self._taken:
                name, number = (base, number) if name == own != base else (f"{base}-{number}", number + 1)
            self._of[key] = name
            self._taken[kind, name] = key[1]
        return self._of[key]


def dns_label(text: str) -> str:
    """Small letters, digits and dashes; "" when nothing is left."""
    return _OTHER.sub("-", text.casefold()).strip("-")[:LONGEST].strip("-")
