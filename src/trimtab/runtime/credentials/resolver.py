"""Credentials from Secrets, renewed by watch.

    password = await credentials.resolve(SecretRef("db", "prod", "password"))
    async for password in credentials.changed(ref, since=password): reconnect(password)

Flow: the first question for a Secret reads it, and begins to follow that one Secret (a watch of its name). From then on
answers come from what was seen, until the Secret was unused for `idle` seconds.

Guarantees: while the watch is down each answer is read from the server, so that a value is current or the caller gets
the failure. No error, log or repr shows a value.

Assumptions: in a controller the client reads from a cache that is kept current: say `cached=True`, and nothing is kept
here but what `changed` follows. Needs get, list and watch on the Secrets, which may be granted by name.

Caveats: a renewal is seen when its event arrives, so that a read just after a write may still give the old value.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Any, Self

from msgspec import UNSET, UnsetType

from trimtab.client.follow import follow
from trimtab.client.protocol import Client, EventType, Listing, Query
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Secret
from trimtab.model.redacted import Redacted
from trimtab.model.scheme import Untyped
from trimtab.runtime.credentials import types
from trimtab.runtime.credentials.types import (
    BasicAuth,
    CredentialError,
    DockerConfig,
    KeyMissing,
    Malformed,
    SecretNotFound,
    SecretRef,
)
from trimtab.runtime.outbound.tls import Tls

__all__ = [
    "BasicAuth",
    "CredentialError",
    "Credentials",
    "DockerConfig",
    "KeyMissing",
    "Malformed",
    "SecretNotFound",
    "SecretRef",
]

IDLE = 300.0
AGAIN = 30.0  # seconds until a watch that was refused is tried anew


class Credentials:
    """Resolves references to Secrets."""

    def __init__(self, client: Client, *, cached: bool = False, idle: float = IDLE, clock: Clock | None = None) -> None:
        self._client, self._cached, self._idle = client, cached, idle
        self._clock = clock or SystemClock()
        self._followed: dict[tuple[str, str], _Followed] = {}

    async def resolve(self, ref: SecretRef) -> Redacted:
        """The value of one key. CredentialError when there is none; StatusError or OSError when it cannot be asked."""
        return types.value(await self.resolve_all(ref), ref, ref.key)

    async def resolve_all(self, ref: SecretRef) -> Mapping[str, Redacted]:
        """All keys of the Secret."""
        if not self._cached:
            followed = self._following(ref)
            followed.used_at = self._clock.monotonic()
            if followed.current:
                return _values(followed.secret, ref)
        try:
            secret = await self._client.get(Secret, ref.name, ref.namespace)
        except StatusError as error:
            if error.code == 404:
                raise SecretNotFound(ref) from None
            raise
        return _values(secret, ref)

    async def basic_auth(self, ref: SecretRef) -> BasicAuth:
        """User and password, of the keys `username` and `password`."""
        return types.basic_auth(await self.resolve_all(ref), ref)

    async def docker_config(self, ref: SecretRef) -> DockerConfig:
        """Logins to registries, of the key `.dockerconfigjson` unless the reference names another."""
        return types.docker_config(await self.resolve_all(ref), ref)

    async def tls(self, ref: SecretRef) -> Tls:
        """A client certificate, of the keys `tls.crt` and `tls.key`, and `ca.crt` where it is there."""
        values = await self.resolve_all(ref)
        ca = values.get("ca.crt")
        return Tls(
            certificate=types.value(values, ref, "tls.crt").reveal_bytes(),
            key=types.value(values, ref, "tls.key"),
            ca=ca.reveal_bytes() if ca is not None else b"",
        )

    async def token(self, ref: SecretRef) -> Redacted:
        """A bearer token, of the key `token` unless the reference names another. Line ends around it are dropped."""
        found = types.value(await self.resolve_all(ref), ref, ref.key or "token")
        return Redacted(found.reveal_bytes().strip())

    async def changed(self, ref: SecretRef, since: Redacted | None = None) -> AsyncGenerator[Redacted | None, None]:
        """Each new value of the key, None while there is none. Without `since`, new is what differs from the first seen.

        Values that came and went while the caller was busy are skipped. StatusError when the Secret may not be watched.
        """
        known: Redacted | UnsetType | None = UNSET if since is None else since
        followed = self._following(ref)
        followed.users += 1
        try:
            while True:
                news = followed.news
                if followed.error is not None:
                    raise followed.error
                if followed.listed:
                    found = _found(followed.secret, ref)
                    if known is not UNSET and found != known:
                        known = found
                        yield found
                        continue
                    known = found
                await news.wait()
        finally:
            followed.users -= 1
            followed.used_at = self._clock.monotonic()

    @property
    def watched(self) -> int:
        """How many Secrets are followed."""
        return len(self._followed)

    async def close(self) -> None:
        followed = tuple(self._followed.values())
        self._followed.clear()
        for one in followed:
            one.fail(RuntimeError("the credentials are closed"), self._clock.monotonic())
            one.task.cancel()
        await asyncio.gather(*(one.task for one in followed), return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _following(self, ref: SecretRef) -> _Followed:
        place = (ref.namespace, ref.name)
        followed, now = self._followed.get(place), self._clock.monotonic()
        if followed is not None and followed.error is not None and now >= followed.failed_at + AGAIN:
            followed.task.cancel()
            followed = None
        if followed is None:
            followed = self._followed[place] = _Followed(now)
            followed.task = asyncio.create_task(self._live(followed, place))
        return followed

    async def _live(self, followed: _Followed, place: tuple[str, str]) -> None:
        """Follow one Secret until nobody uses it."""
        watching = asyncio.create_task(self._watch(followed, place))
        try:
            while (left := followed.used_at + self._idle - self._clock.monotonic()) > 0 or followed.users:
                await self._clock.sleep(left if left > 0 else self._idle)
        finally:
            if self._followed.get(place) is followed:
                del self._followed[place]
            watching.cancel()
            await asyncio.wait((watching,))

    async def _watch(self, followed: _Followed, place: tuple[str, str]) -> None:
        def failed(problem: Exception, pause: float) -> None:
            followed.current = False

        query = Query(namespace=place[0], fields=f"metadata.name={place[1]}")
        try:
            async for seen in follow(self._client, Secret, query, clock=self._clock, failed=failed, bookmarks=True):
                if isinstance(seen, Listing):
                    followed.see(seen.items[0] if seen.items else None)
                elif seen.type is EventType.BOOKMARK:
                    followed.current = True  # the watch is up again, and nothing happened meanwhile
                else:
                    followed.see(None if seen.type is EventType.DELETED else seen.object)
        except Exception as error:  # whoever waits for a change gets it
            followed.fail(error, self._clock.monotonic())


class _Followed:
    """One Secret as it was last seen."""

    task: asyncio.Task[None]

    def __init__(self, now: float) -> None:
        self.secret: Secret | Untyped | None = None
        self.listed = False  # seen at least once
        self.current = False  # and the watch is up
        self.error: Exception | None = None
        self.failed_at = now
        self.news = asyncio.Event()
        self.users = 0
        self.used_at = now

    def see(self, secret: Secret | Untyped | None) -> None:
        self.secret, self.listed, self.current = secret, True, True
        self._tell()

    def fail(self, error: Exception, now: float) -> None:
        self.error, self.failed_at, self.current = error, now, False
        self._tell()

    def _tell(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


def _values(secret: Secret | Untyped | None, ref: SecretRef) -> Mapping[str, Redacted]:
    if secret is None:
        raise SecretNotFound(ref)
    data = secret.raw.get("data") if isinstance(secret, Untyped) else secret.data
    if not isinstance(data, Mapping):
        return {}
    return {key: _decoded(key, value or "", ref) for key, value in data.items()}


def _decoded(key: str, value: Any, ref: SecretRef) -> Redacted:
    try:
        return Redacted(base64.b64decode(value, validate=True))
    except (ValueError, TypeError):  # not base64, not ASCII, not a text
        raise Malformed(ref, f"has a key {key!r} that is not base64; plain text belongs under stringData") from None


def _found(secret: Secret | Untyped | None, ref: SecretRef) -> Redacted | None:
    """For one who waits, a Secret that is not there, or not yet right, has no value."""
    try:
        return types.value(_values(secret, ref), ref, ref.key)
    except CredentialError:
        return None
