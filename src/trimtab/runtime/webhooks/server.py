"""Admission functions and conversions, served to an API server over HTTPS.

Flow: POST /validate/<name>, /mutate/<name> (AdmissionReview v1) and /convert (ConversionReview v1). What a system
declares is all there is; `manifest.configurations` makes the documents that point an API server here.

Guarantees: a body is at most 3 MiB; at most 64 are worked on at once, and 128 are on their way or wait for their turn.
Who is slow loses: the head of a request has 10 s, its body 3 s, and when there are too many, the body that is on its way
for longest makes room. What is no review is a 400. A function that fails is a 500 that says which one and no more, so the
API server refuses the write (failurePolicy Fail). `stop` lets requests under way finish.

Caveats: who may connect is for the network and the TLS context to say (`certificates.serving_context` can ask for a
client's certificate): the functions answer anyone who reaches them, by what any caller claims.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trimtab.model.admission import Admission, AdmissionFailed, Reader, ask
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.scheme import Scheme
from trimtab.runtime.webhooks.convert import Conversion, conversions_of, converted
from trimtab.runtime.webhooks.manifest import path_of
from trimtab.runtime.webhooks.review import Asked, BadReview, answer, kind_of, read_review, request_of

if TYPE_CHECKING:
    from aiohttp import web

MAX_BODY = 3 * 1024 * 1024
MAX_AT_ONCE = 64
MAX_HELD = 128
PATIENCE = 10.0
BODY_PATIENCE = 3.0


class WebhookServer:
    """Listens from `start` to `stop`. `tls` may change its certificate under way."""

    def __init__(
        self,
        functions: Sequence[Admission],
        *,
        tls: ssl.SSLContext,
        reader: Reader,
        scheme: Scheme | None = None,
        conversions: Sequence[Conversion] = (),
        host: str = "127.0.0.1",
        port: int = 9443,
        patience: float = PATIENCE,
    ) -> None:
        self._scheme = scheme or Scheme()
        self._reader = reader
        self._functions = {path_of(function): function for function in functions}
        if len(self._functions) != len(functions):
            raise ValueError("two admission functions have the same name")
        self._conversions = conversions_of(conversions, self._scheme)
        self._tls = tls
        self._host = host
        self._port = port
        self._patience = patience
        self._reading: dict[asyncio.Timeout, None] = {}  # bodies on their way; the first came first
        self._queued = 0
        self._working = asyncio.Semaphore(MAX_AT_ONCE)
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None

    async def start(self) -> int:
        """Listen; returns the port, which the system chooses when it was 0."""
        from aiohttp import web

        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=self._patience)
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._connected, self._host, self._port, ssl=self._tls, ssl_handshake_timeout=self._patience
        )
        self._port = self._listener.sockets[0].getsockname()[1]
        return self._port

    async def stop(self) -> None:
        """Take no more connections, finish what is under way."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._runner is None or self._runner.server is None:
            return
        opened = [connection.transport for connection in self._runner.server.connections]
        await self._runner.cleanup()
        self._runner = None
        for transport in opened:  # API servers keep idle connections, and may not answer our goodbye
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0)  # the loop lets go of their sockets in its next round

    def _connected(self) -> web.RequestHandler:
        from trimtab.runtime.webhooks.connection import Connection

        assert self._runner is not None and self._runner.server is not None  # noqa: S101, PT018 - we listen
        return Connection(self._runner.server, self._patience)

    async def _handle(self, request: web.Request) -> web.Response:
        from aiohttp import web

        from trimtab.runtime.webhooks.connection import Connection

        assert isinstance(request.protocol, Connection)  # noqa: S101 - we make no others
        with request.protocol.asking():
            if request.method != "POST":
                raise web.HTTPMethodNotAllowed(request.method, ("POST",))
            function = self._functions.get(request.path)
            if function is None and not (request.path == "/convert" and self._conversions):
                raise web.HTTPNotFound
            body = await self._body(request)
            async with self._turn():
                try:
                    answered = (
                        converted(self._conversions, body) if function is None else await self._judge(function, body)
                    )
                except BadReview as error:
                    raise web.HTTPBadRequest(text=f"{error}\n") from None
                except AdmissionFailed as error:
                    log.error("an admission function failed", function=request.path, exc_info=error)
                    raise web.HTTPInternalServerError(text=f"{error}\n") from None
            return web.Response(body=answered, content_type="application/json")

    async def _body(self, request: web.Request) -> bytes:
        """Read before it is its turn, so that who sends nothing keeps nobody from work."""
        from aiohttp import web

        if len(self._reading) + self._queued >= MAX_HELD and not self._make_room():
            raise web.HTTPServiceUnavailable(text="too many reviews wait for their turn: try again later\n")
        limit = asyncio.timeout(min(BODY_PATIENCE, self._patience))
        try:
            async with limit:
                self._reading[limit] = None
                return await request.read()  # 413 when it is too large
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        finally:
            self._reading.pop(limit, None)

    def _make_room(self) -> bool:
        """Whether there was one to give up."""
        slowest = next(iter(self._reading), None)
        if slowest is None:
            return False
        del self._reading[slowest]
        if not slowest.expired():
            slowest.reschedule(0.0)
        return True

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        self._queued += 1
        try:
            await self._working.acquire()
        finally:
            self._queued -= 1
        try:
            yield
        finally:
            self._working.release()

    async def _judge(self, function: Admission, body: bytes) -> bytes:
        asked = read_review(body)
        request = request_of(asked, self._kind(function, asked))
        return answer(asked, await ask(function, request, self._reader, self._scheme))

    def _kind(self, function: Admission, asked: Asked) -> Kind:
        resource = asked.resource
        for kind in function.matched(self._scheme):
            if (kind.group, kind.version, kind.plural) == (resource.group, resource.version, resource.resource):
                return kind
        if resource.group.endswith(function.suffixes(self._scheme)):
            return kind_of(asked)
        raise BadReview(f"{function.name} does not judge {resource.resource} of {resource.group}/{resource.version}")
