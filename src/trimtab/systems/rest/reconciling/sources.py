"""What references of an object lead to: Secrets and objects of its own namespace. Whoever is not there is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.client.protocol import Named
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.redacted import Redacted
from trimtab.runtime.changes import Request as Key
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.systems.rest.reconciling.board import Wanted
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.reconciling.subject import Subject
from trimtab.systems.rest.rendering import DEEPEST, Unanswerable


class ObjectSources:
    """Fulfils `rendering.Sources`."""

    def __init__(self, place: Place, subject: Subject, key: Key, wake: Callable[[Key], None]) -> None:
        self._place, self._subject, self._key, self._wake = place, subject, key, wake
        self._credentials = Credentials(place.client, cached=True, clock=place.clock)
        self.revealed: tuple[Redacted, ...] = ()
        """The secrets that were read, to keep them out of messages."""

    async def reveal(self) -> None:
        """Read every secret that the spec refers to, so that no text shows one: also where nothing is rendered."""
        read = set(_references(self._subject.body)) if not self.revealed else set()
        for name, key in sorted(read):
            await self.secret(name, key)

    async def secret(self, name: str, key: str) -> str | None:
        self._place.board.wait(Wanted(Secret.__name__, self._subject.namespace, name), self._wake, self._key)
        try:
            value = await self._credentials.resolve(SecretRef(name, self._subject.namespace, key))
        except CredentialError:
            return None
        self.revealed = (*self.revealed, value)
        return value.reveal()

    async def resource_id(self, kind: str, name: str, api_version: str) -> str | None:
        model = self._place.model
        self._place.board.wait(Wanted(kind, self._subject.namespace, name), self._wake, self._key)
        named = Named(api_version or f"{model.group}/{model.version}", kind)
        try:
            found = await self._place.client.find(named, name, self._subject.namespace)
        except StatusError as error:
            if error.code not in (403, 404):
                raise
            if not api_version:
                return None  # the kind is not served yet
            why = "there is no such kind here" if error.code == 404 else "we have no right to read objects of this kind"
            raise Unanswerable(f"{kind} of {api_version}: {why}") from None
        status = {} if found is None else found.raw.get("status") or {}
        if not status.get("resourceID") or not (status.get("sync") or {}).get("created"):
            return None
        return str(status["resourceID"])


def _references(value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Name and key of each Secret that is referred to."""
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        found = value.get("secretRef")
        if isinstance(found, dict) and found.get("name") and found.get("key"):
            yield str(found["name"]), str(found["key"])
        for each in value.values():
            yield from _references(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each, depth + 1)
