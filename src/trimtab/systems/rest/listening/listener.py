"""The door: `POST /{service}` with events, of whoever has the token that the RestService names.

Flow: token → body → events → objects → wakes; and the two handshakes: Event Grid's validation event gets its code back,
and CloudEvents' OPTIONS gets leave for its origin.

Guarantees: whoever has no valid token learns nothing, not even whether there is such a service: 401. 200 means that the
objects are woken, or will be within a second. What is no event is 400 or 415, too much of it 413, too often 429, too slow
408; and it is 503 when the API cannot be asked or what is there is still being listed: a sender tells it again. Tokens are in
no answer and in no log. No URL that comes in an event is ever called.

Caveats: without `tls` it speaks HTTP, and tokens are readable on the network: then it belongs on loopback, or behind a
proxy. Needs get, list and watch on RestServices, RestDefinitions and the Secrets with the tokens; get, list, watch and patch
on the generated kinds.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import random
import re
import ssl

from aiohttp import web
from msgspec import UNSET

from trimtab.client.api import ApiClient
from trimtab.client.protocol import Query
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.model.redacted import Redacted
from trimtab.runtime.credentials import CredentialError, Credentials, SecretRef
from trimtab.runtime.limits import TokenBucket
from trimtab.runtime.webhooks.connection import Connection
from trimtab.runtime.webhooks.receiver import Receiver
from trimtab.systems.rest.kinds import RestService
from trimtab.systems.rest.listening.events import Refused, Told, told
from trimtab.systems.rest.listening.finding import Finder
from trimtab.systems.rest.listening.waking import Waker

MAX_BYTES = 1 << 20
MAX_AT_ONCE = 32
RATE, BURST = 50.0, 200
"""Requests a second of one service, and at once."""
COMPLAINTS = 1 / 60
"""Lines a second about a token that is missing."""
PATIENCE = 10.0


class Listener:
    """Listens from `start` to `stop`."""

    def __init__(
        self,
        client: ApiClient,
        credentials: Credentials,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        patience: float = PATIENCE,
        objects: Query = Query(),  # noqa: B008 - frozen
    ) -> None:
        self._clock = clock or SystemClock()
        self._credentials = credentials
        self._host, self._port, self._tls, self._patience = host, port, tls, patience
        self._finder = Finder(client, clock=self._clock, chance=chance, objects=objects)
        self._waker = Waker(client, self._clock)
        self._buckets: dict[str, TokenBucket] = {}
        self._under_way = 0
        self._receiver: Receiver | None = None

    async def start(self) -> int:
        """Listen; returns the port, which the system chooses when it was 0."""
        await self._finder.start()
        application = web.Application(client_max_size=MAX_BYTES)
        application.router.add_post("/{service}", self._handle)
        application.router.add_route("OPTIONS", "/{service}", self._handle)
        self._receiver = Receiver(application, self._host, self._port, self._tls, self._patience)
        return await self._receiver.start()

    async def stop(self) -> None:
        """Take no more connections, finish what is under way, wake who is to be woken."""
        if self._receiver is not None:
            await self._receiver.stop()
            self._receiver = None
        await self._waker.close()
        await self._finder.stop()

    async def supervise(self) -> None:
        """Waits until what it follows ends by a mistake of ours, and raises that."""
        await self._finder.supervise()

    async def _handle(self, request: web.Request) -> web.Response:
        assert isinstance(request.protocol, Connection)  # noqa: S101 - we make no others
        with request.protocol.asking():
            if self._under_way >= MAX_AT_ONCE:
                return _answer(503, "too many at once: tell it again later")
            self._under_way += 1
            try:
                return await self._answered(request)
            except Refused as error:
                return _answer(error.status, str(error))
            except (StatusError, OSError, TimeoutError) as error:
                why = f"{error.code} {error.reason}" if isinstance(error, StatusError) else type(error).__name__
                log.warning("word of a change could not be kept", service=request.match_info["service"], why=why)
                return _answer(503, "it could not be kept: tell it again later")
            finally:
                self._under_way -= 1

    async def _answered(self, request: web.Request) -> web.Response:
        service = await self._known(request)
        if service is None:
            return _answer(401, "no service of this name takes this token")
        if not self._may(service.name, RATE, BURST):
            return _answer(429, "too many at once: tell it again later")
        if request.method == "OPTIONS":
            return _leave(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = told(request.content_type, headers, await self._body(request))
        if found.validation:
            log.info("a sender of events was let in", service=service.name)
            return web.json_response({"validationResponse": found.validation})
        return await self._woken(service, found)

    async def _woken(self, service: RestService, found: Told) -> web.Response:
        try:
            async with asyncio.timeout(self._patience):
                await self._finder.listed(service.name)
        except TimeoutError:
            raise Refused(503, "what is there is still being listed: tell it again later") from None
        targets = dict.fromkeys(target for each in found.subjects for target in self._finder.find(service, each))
        await self._waker.wake(targets)
        return _answer(200, "kept" if targets else "nothing to keep")

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._patience):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise Refused(413, f"a body has at most {MAX_BYTES} bytes") from None
        except TimeoutError:
            raise Refused(408, "the body took too long") from None

    def _may(self, whom: str, rate: float, burst: int) -> bool:
        bucket = self._buckets.setdefault(whom, TokenBucket(rate, burst, self._clock))
        if bucket.reserve() <= 0:
            return True
        bucket.put_back()
        return False

    async def _known(self, request: web.Request) -> RestService | None:
        """The service, when the token is its own. Who has none costs no question to the API."""
        given = _token(request)
        service = self._finder.service(request.match_info["service"])
        wanted = Redacted(b"") if service is None else await self._wanted(service)
        is_same = _same(given, wanted)  # also where there is none: it takes as long
        return service if wanted and is_same else None

    async def _wanted(self, service: RestService) -> Redacted:
        """Empty where there is none."""
        notifications = service.spec.notifications
        secret = None if notifications is UNSET else notifications.token_secret
        if secret is None or secret.namespace is UNSET:  # admission refuses it
            return Redacted(b"")
        try:
            return await self._credentials.token(SecretRef(secret.name, secret.namespace))
        except CredentialError as error:
            if self._may("", COMPLAINTS, 1):  # anyone may ask, as often as they like
                log.warning("the token of a service's notifications is missing", service=service.name, why=str(error))
            return Redacted(b"")


def _token(request: web.Request) -> Redacted:
    """That of `Authorization: Bearer …`, of `aeg-sas-key`, or of the query; empty where there is none."""
    scheme, _, rest = request.headers.get("Authorization", "").partition(" ")
    given = rest.strip() if scheme.lower() == "bearer" else ""
    given = given or request.headers.get("aeg-sas-key", "").strip()
    given = given or request.query.get("token", "") or request.query.get("access_token", "")
    return Redacted(given.encode("utf-8", "surrogateescape"))


def _same(given: Redacted, wanted: Redacted) -> bool:
    """By digests of equal length, so that the time it takes does not tell of the token's length."""
    one, other = (hashlib.sha256(each.reveal_bytes()).digest() for each in (given, wanted))
    return hmac.compare_digest(one, other)


def _leave(request: web.Request) -> web.Response:
    """The handshake of CloudEvents' webhooks: the origin may send, so often a minute."""
    origin = request.headers.get("WebHook-Request-Origin", "")
    if not _ORIGIN.fullmatch(origin):
        raise Refused(400, "WebHook-Request-Origin names who asks")
    asked = request.headers.get("WebHook-Request-Rate", "")
    most = int(RATE * 60)
    rate = min(int(asked), most) if asked.isascii() and asked.isdigit() and len(asked) < 10 and int(asked) else most
    headers = {"WebHook-Allowed-Origin": origin, "WebHook-Allowed-Rate": str(rate), "Allow": "POST"}
    return web.Response(status=200, headers=headers)


def _answer(status: int, text: str) -> web.Response:
    response = web.Response(status=status, text=f"{text}\n")
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if status in (429, 503):
        response.headers["Retry-After"] = "1"
    if status >= 400:  # a body that nobody reads must not be waited for
        response.force_close()
    return response


_ORIGIN = re.compile(r"[A-Za-z0-9*]([-.:A-Za-z0-9]{0,251}[A-Za-z0-9])?")
