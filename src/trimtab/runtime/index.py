"""Indexes of a cache: which objects have a value. A key function is the user's own, and its mistakes stop nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from trimtab.client.entries import Entry
from trimtab.model.logs import log
from trimtab.model.scheme import Untyped
from trimtab.runtime.changes import Change, Request

if TYPE_CHECKING:
    from trimtab.runtime.cache import Cache

Keys = Callable[[Any], Iterable[str]]
"""What an index files an object under."""


class Index(msgspec.Struct, frozen=True):
    """Finds objects by a value in them: `Index("secret", lambda rule: [rule.spec.secret])`."""

    name: str
    keys: Keys


class Filed:
    """One index of one cache: requests by value."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.values: dict[str, dict[Request, None]] = {}
        self._of: dict[Request, tuple[str, ...]] = {}
        self._written: dict[Request, tuple[str, tuple[str, ...]]] = {}

    def refile(self, cache: Cache, change: Change) -> None:
        request = change.request
        self._written.pop(request, None)
        for value in self._of.pop(request, ()):
            group = self.values[value]
            group.pop(request, None)
            if not group:
                del self.values[value]
        if change.after is None:
            return
        keys = self._of[request] = self.keys_of(cache, change.after)
        for value in keys:
            self.values.setdefault(value, {})[request] = None

    def keys_of_written(self, cache: Cache, request: Request, entry: Entry) -> tuple[str, ...]:
        """Of a write of our own that the watch has not told yet. It is asked for at every look until then, and read once."""
        known = self._written.get(request)
        if known is None or known[0] != entry.revision:
            known = self._written[request] = (entry.revision, self.keys_of(cache, entry))
        return known[1]

    def keys_of(self, cache: Cache, entry: Entry) -> tuple[str, ...]:
        """Empty for an object that does not fit its class, as a key function is written for those that do; and for one
        on which the function fails: its mistake must not stop the watch."""
        obj = cache.decode(entry)
        if cache.typed and isinstance(obj, Untyped):
            return ()
        try:
            return tuple(dict.fromkeys(self.index.keys(obj)))
        except Exception:
            log.exception(
                "an index failed on an object", index=self.index.name, object=f"{entry.namespace}/{entry.name}"
            )
            return ()
