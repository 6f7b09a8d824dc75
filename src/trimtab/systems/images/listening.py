"""What registries tell of pushes: `POST /{namespace}/{registry}` with the notification envelope of distribution.

Flow: the token that came is compared with the one in the Secret that the Registry names; tags that were pushed, of
repositories that the Registry selects, are added to its annotation `pushed`, all of an envelope in one write; the
controller sees them there and lists just these.

Guarantees: 200 is answered only when it is written, for a registry keeps an event until then and tells it again. Whoever
has no valid token learns nothing, not even whether there is such a Registry: 401. What is no envelope is 400, one that is
too large 413, one that is too slow 408, and it is 503 when the API cannot be asked or others write all the time. Tokens are
in no answer and in no log.

Assumptions: events that we have no use for (pulls, blobs, odd names, other repositories) are taken and forgotten, for a
registry would tell an event that is refused for ever, and none after it.

Caveats: without `tls` it speaks HTTP, and tokens are readable on the network: then it belongs on loopback, or behind a
proxy. Needs get and patch on Registries; get, list and watch on Secrets.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import ssl
from collections.abc import Iterable

import msgspec
from aiohttp import web
from msgspec import UnsetType

from trimtab.client.protocol import Client
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.model.redacted import Redacted
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.runtime.webhooks.connection import Connection
from trimtab.runtime.webhooks.receiver import Receiver
from trimtab.systems.images.kinds import Registry
from trimtab.systems.images.registry.references import BadReference, endpoint, is_repository, is_tag, repository_of
from trimtab.systems.images.runs.claim import with_pushed

MAX_BYTES = 1 << 20
MAX_EVENTS = 1000
MAX_AT_ONCE = 32
PATIENCE = 10.0
TRIES = 10
MEDIA_TYPE = re.compile(r"application/vnd\.docker\.distribution\.events\.v[12]\+json")

Pushed = dict[str, tuple[str, ...]]


class Target(msgspec.Struct, frozen=True):
    repository: str = ""
    tag: str = ""


class Event(msgspec.Struct, frozen=True):
    action: str = ""
    target: Target = Target()


class Envelope(msgspec.Struct, frozen=True):
    """As distribution 2 and 3 send it; what is not needed here is skipped."""

    events: tuple[Event, ...]


class Listener:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        client: Client,
        credentials: Credentials,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._client, self._credentials = client, credentials
        self._host, self._port, self._tls = host, port, tls
        self._clock, self._patience = clock or SystemClock(), patience
        self._under_way = 0
        self._receiver: Receiver | None = None

    async def start(self) -> int:
        """Listen; returns the port, which the system chooses when it was 0."""
        application = web.Application(client_max_size=MAX_BYTES)
        application.router.add_post("/{namespace}/{registry}", self._handle)
        self._receiver = Receiver(application, self._host, self._port, self._tls, self._patience)
        return await self._receiver.start()

    async def stop(self) -> None:
        """Take no more connections, finish what is under way."""
        if self._receiver is not None:
            await self._receiver.stop()
            self._receiver = None

    async def _handle(self, request: web.Request) -> web.Response:
        assert isinstance(request.protocol, Connection)  # noqa: S101 - we make no others
        with request.protocol.asking():
            if self._under_way >= MAX_AT_ONCE:
                return _answer(503, "too many at once: tell it again later")
            self._under_way += 1
            try:
                return await self._answered(request)
            finally:
                self._under_way -= 1

    async def _answered(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["registry"]
        given = _token(request.headers.get("Authorization", ""))
        try:
            registry = await self._known(namespace, name, given)
            if registry is None:
                return _answer(401, "no Registry of this name takes this token")
            told = pushed(registry, envelope(request.content_type, await self._body(request)))
            if told:
                await self._write(registry, told)
        except Refused as error:
            return _answer(error.status, str(error))
        except (StatusError, OSError) as error:
            why = f"{error.code} {error.reason}" if isinstance(error, StatusError) else type(error).__name__
            log.warning("a registry's word of pushes could not be kept", namespace=namespace, registry=name, why=why)
            return _answer(503, "it could not be kept: tell it again later")
        if told:
            log.info("a registry told of pushes", namespace=namespace, registry=name, repositories=sorted(told)[:20])
        return _answer(200, "kept" if told else "nothing to keep")

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._patience):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise Refused(413, f"an envelope has at most {MAX_BYTES} bytes") from None
        except TimeoutError:
            raise Refused(408, "the envelope took too long") from None

    async def _known(self, namespace: str, name: str, given: Redacted) -> Registry | None:
        """The Registry, when the token is its own."""
        if not given or not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            return None
        registry = await self._found(namespace, name)
        if registry is None or isinstance(registry.spec.notifications, UnsetType):
            return None
        ref = SecretRef(registry.spec.notifications.token_secret, namespace)
        try:
            wanted = await self._credentials.token(ref)
        except CredentialError as error:
            log.warning("the token of a registry's notifications is missing", registry=name, why=str(error))
            return None
        return registry if wanted and _same(given, wanted) else None

    async def _found(self, namespace: str, name: str) -> Registry | None:
        try:
            return await self._client.get(Registry, name, namespace)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    async def _write(self, registry: Registry, told: Pushed) -> None:
        """Add it, whoever else writes the Registry meanwhile. The last conflict is raised."""
        held: Registry | None = registry
        for left in reversed(range(TRIES)):
            if held is None or held.metadata.uid != registry.metadata.uid:
                return  # deleted since: nobody is left to tell
            annotations = with_pushed(held.metadata.annotations or {}, told)
            metadata = msgspec.structs.replace(held.metadata, annotations=annotations)
            try:
                await self._client.patch(held, held.replace(metadata=metadata))
                return
            except StatusError as error:
                if error.code == 404:
                    return
                if error.code != 409 or not left:
                    raise
            await self._clock.sleep(0.01 * (TRIES - left))
            held = await self._found(registry.namespace, registry.name)


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """What came is no envelope that we take."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def envelope(media_type: str, body: bytes) -> Envelope:
    """The envelope that came. Refused."""
    if not MEDIA_TYPE.fullmatch(media_type):
        raise Refused(400, "the media type is not application/vnd.docker.distribution.events.v1+json")
    try:
        found = msgspec.json.decode(body, type=Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Refused(400, "the body is no envelope of events") from None
    if len(found.events) > MAX_EVENTS:
        raise Refused(413, f"an envelope has at most {MAX_EVENTS} events")
    return found


def pushed(registry: Registry, envelope: Envelope) -> Pushed:
    """The tags that were pushed to repositories which the Registry selects."""
    selected = _selected(registry)
    told: dict[str, set[str]] = {}
    for event in envelope.events:
        repository, tag = event.target.repository, event.target.tag
        if event.action != "push" or not is_tag(tag) or not is_repository(repository):
            continue
        if selected is None or repository in selected:
            told.setdefault(repository, set()).add(tag)
    return {repository: tuple(sorted(tags)) for repository, tags in sorted(told.items())}


def _selected(registry: Registry) -> set[str] | None:
    """The repositories that it names; None when it names none, which means all."""
    spec = registry.spec
    if not spec.repositories:
        return None
    try:
        place = endpoint(spec.uri, plain_http=spec.plain_http)
        return {repository_of(name, place) for name in spec.repositories}
    except BadReference:  # it was refused, or is older than the rule: its condition says so
        return set()


def _token(header: str) -> Redacted:
    """That of `Authorization: Bearer …`; empty where there is none."""
    scheme, _, rest = header.partition(" ")
    return Redacted(rest.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else b"")


def _same(given: Redacted, wanted: Redacted) -> bool:
    """By digests of equal length, so that the time it takes does not tell of the token's length."""
    hashed: Iterable[bytes] = (hashlib.sha256(each.reveal_bytes()).digest() for each in (given, wanted))
    return hmac.compare_digest(*hashed)


def _answer(status: int, text: str) -> web.Response:
    response = web.Response(status=status, text=f"{text}\n")
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        response.headers["Retry-After"] = "1"
    if status >= 400:  # a body that nobody reads must not be waited for
        response.force_close()
    return response


_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
