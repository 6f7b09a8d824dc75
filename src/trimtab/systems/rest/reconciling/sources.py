"""What references of an object lead to: Secrets and objects of its own namespace. Whoever is not there is waited for."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.client.protocol import Named
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.redacted import Redacted
from trimtab.runtime.changes import Request as Key
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.systems.rest.reconciling.board import Wanted
from trimtab.systems.rest.reconciling.place import Place
from trimtab.systems.rest.reconciling.subject import Subject


class ObjectSources:
    """Fulfils `rendering.Sources`."""

    def __init__(self, place: Place, subject: Subject, key: Key, wake: Callable[[Key], None]) -> None:
        self._place, self._subject, self._key, self._wake = place, subject, key, wake
        self._credentials = Credentials(place.client, cached=True, clock=place.clock)
        self.revealed: tuple[Redacted, ...] = ()
        """The secrets that were read, to keep them out of messages."""

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
            if error.code != 404:
                raise
            return None  # the kind is not served
        status = {} if found is None else found.raw.get("status") or {}
        if not status.get("resourceID") or not (status.get("sync") or {}).get("created"):
            return None
        return str(status["resourceID"])
