"""The storage as a service: its own API over HTTP, for clients that have the token. `wire` says what is spoken.

TLS is for whoever runs the application. A client that reads changes too slowly is held back by the connection, not by memory
here: the next batch is read when the last one is on its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from trimtab.hub.storage.contract import RowBatch, RowKey, RowQuery, RowWrite, Storage
from trimtab.hub.storage.wire import BLOBS, MAX_BODY, VERSION, ChangesQuery, Failure, IdsQuery, Line, failure_of
from trimtab.model.logs import log
from trimtab.storage.serve import application as blobs_application

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")

IDLE = 60.0
"""Seconds in which a client must take a batch, or send its request."""
FEW, LONG = 64, 8 << 20
"""Changes and bytes of a line of changes, but for one that is longer alone."""


def application(storage: Storage, *, token: Callable[[], str]) -> web.Application:
    """`token` is asked at each request, so that it can be renewed; while it is empty nobody gets in."""
    service = _Service(storage)
    app = web.Application(middlewares=[_authenticated(token), _typed_failures], client_max_size=MAX_BODY)
    routes = {
        "get": service.get,
        "list": service.list,
        "commit": service.commit,
        "changes": service.changes,
        "ids": service.ids,
        "names": service.names,
        "versions": service.versions,
        "organizations": service.add_organization,
    }
    app.add_routes([web.post(f"/{VERSION}/{name}", handler) for name, handler in routes.items()])
    app.router.add_get(f"/{VERSION}/horizon", service.horizon)
    app.router.add_get(f"/{VERSION}/organizations", service.organizations)
    app.router.add_get(f"/{VERSION}/ready", service.ready)
    app.add_subapp(BLOBS, blobs_application(storage.blobs, token=token))
    app.on_shutdown.append(service.stop)
    return app


class _Service:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._following: set[asyncio.Task[Any]] = set()

    async def get(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.get(await _body(request, RowKey)))

    async def list(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.list(await _body(request, RowQuery)))

    async def commit(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.commit(await _body(request, RowWrite)))

    async def ids(self, request: web.Request) -> web.StreamResponse:
        asked = await _body(request, IdsQuery)
        return _json(await self._storage.ids(asked.organization, asked.type, asked.project, asked.names))

    async def names(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.names(await _body(request, tuple[str, ...])))

    async def versions(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.versions(await _body(request, RowKey)))

    async def organizations(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.organizations())

    async def add_organization(self, request: web.Request) -> web.StreamResponse:
        await self._storage.add_organization(await _body(request, str))
        return web.Response(status=204)

    async def horizon(self, request: web.Request) -> web.StreamResponse:
        return _json(await self._storage.horizon())

    async def ready(self, request: web.Request) -> web.StreamResponse:
        await self._storage.ready()
        return web.Response(status=204)

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Headers go out before the first batch, so that a client knows that it is followed."""
        asked = await _body(request, ChangesQuery)
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
        await response.prepare(request)
        following = asyncio.current_task()
        assert following is not None  # noqa: S101 - a handler is one
        self._following.add(following)
        try:
            batches = self._storage.changes(asked.organization, asked.types, asked.since)
            async with contextlib.aclosing(batches):  # type: ignore[type-var]
                async for batch in batches:
                    for line in lines_of(batch):
                        await _send(response, line)
        except (ConnectionError, TimeoutError):
            pass  # the client has left, or takes nothing
        except Exception as error:
            code, failure = failure_of(error)
            if code == 500:
                log.exception("changes ended by a mistake")
            with contextlib.suppress(ConnectionError, TimeoutError):
                await _send(response, msgspec.json.encode(Line(failure=failure)))
        finally:
            self._following.discard(following)
        return response

    async def stop(self, app: web.Application) -> None:
        """Those who follow would otherwise hold up the end."""
        for task in [*self._following]:
            task.cancel()


def lines_of(batch: RowBatch) -> Iterator[bytes]:
    """The batch, in several when it is large: no line is longer than a client takes, however large rows are."""
    changes = batch.changes
    if len(changes) <= FEW:
        line = msgspec.json.encode(Line(batch=batch))
        if len(line) <= LONG or len(changes) < 2:
            yield line
            return
    half = len(changes) // 2
    yield from lines_of(RowBatch(revision=changes[half - 1].row.revision, changes=changes[:half]))
    yield from lines_of(RowBatch(revision=batch.revision, changes=changes[half:]))


async def _send(response: web.StreamResponse, line: bytes) -> None:
    async with asyncio.timeout(IDLE):
        await response.write(line + b"\n")


async def _body(request: web.Request, kind: type[T]) -> T:
    """ValueError says what is wrong with it."""
    async with asyncio.timeout(IDLE):
        content = await request.read()
    return msgspec.json.decode(content, type=kind)


def _json(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _authenticated(token: Callable[[], str]) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        wanted = token()
        # Digests of equal length: the comparison says nothing about the length of the token.
        if not wanted or not hmac.compare_digest(_hashed(given), _hashed(f"Bearer {wanted}")):
            return _failed(401, Failure(reason="Unauthorized", message="a valid token is needed"), close=True)
        return await handler(request)

    return middleware


@web.middleware
async def _typed_failures(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _failed(413, Failure(reason="TooLarge", message=f"a request has at most {MAX_BODY} bytes"), close=True)
    except web.HTTPException:
        raise
    except TimeoutError:
        return _failed(408, Failure(reason="Slow", message="the request did not come in time"), close=True)
    except Exception as error:
        code, failure = failure_of(error)
        if code == 500:
            log.exception("a request failed by a mistake", path=request.path)
        return _failed(code, failure)


def _failed(code: int, failure: Failure, *, close: bool = False) -> web.Response:
    response = web.Response(status=code, body=msgspec.json.encode(failure), content_type="application/json")
    if close:  # a body that nobody reads must not be waited for
        response.force_close()
    return response


def _hashed(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
