"""Is it alive, is it ready, and its numbers: what a kubelet and a Prometheus ask of a process, over plain HTTP.

`/healthz` and `/readyz` run their checks and answer as Kubernetes does: `ok`, or 500 with the checks that failed; `?verbose`
lists all, `?exclude=name` leaves one out, `/readyz/name` runs one alone and tells its reason. `/metrics` is the exposition.

It stands on asyncio's streams and not on a web framework: three fixed paths, one short GET for each connection, each bounded
in bytes, time and number. aiohttp.web has no time limit for a slow request and would have to be loaded.

Slow clients lose. The head of a request must be there within two seconds, and when there are too many connections, the one
that we have waited for longest makes room: a probe is answered however many others hang.

There is no authentication. It listens on loopback unless told otherwise, and the list of checks withholds reasons.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from trimtab.model.logs import log
from trimtab.runtime.metrics import CONTENT_TYPE, Metrics
from trimtab.runtime.tasks import ended

MAX_REQUEST = 8 * 1024
MAX_CONNECTIONS = 256
BACKLOG = 64  # accepted at once; a connection must outlive a few such rounds, or a flood ends it before it is read
HEAD_TIMEOUT = 2.0

Check = Callable[[], Awaitable[None] | None]
"""Raises, with the reason, when something is wrong. It runs on the event loop and must not block it."""


class HealthServer:
    """`async with HealthServer(port=8081, checks={...}) as server: server.port`. Checks may be added while it runs."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        checks: Mapping[str, Check] | None = None,
        ready: Mapping[str, Check] | None = None,
        metrics: Metrics | None = None,
        timeout: float = 5.0,
    ) -> None:
        self._host = host
        self._port = port
        self._checks = {"healthz": {} if checks is None else checks, "readyz": {} if ready is None else ready}
        self._metrics = metrics
        self._timeout = timeout
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._waiting: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}  # for their clients; longest first

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, self._host, self._port, limit=MAX_REQUEST, backlog=BACKLOG
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            await ended(*self._connections)
            await self._server.wait_closed()
            self._server = None

    @property
    def port(self) -> int:
        """That which it listens on: the one given, or with 0 the one the system chose."""
        if self._server is None:
            raise RuntimeError("the health server is not running: enter it first")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS and not self._make_room():
            writer.transport.abort()
            return
        connection = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections[connection] = writer
        self._waiting[writer] = connection
        connection.add_done_callback(self._ended)

    def _make_room(self) -> bool:
        """Whether there was one to give up. Those whose checks are running stay."""
        slowest = next(iter(self._waiting), None)
        if slowest is None:
            return False
        self._waiting.pop(slowest).cancel()
        return True

    def _ended(self, connection: asyncio.Task[None]) -> None:
        writer = self._connections.pop(connection)
        self._waiting.pop(writer, None)
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(min(HEAD_TIMEOUT, self._timeout)):
                head = await reader.readuntil(b"\r\n\r\n")
            connection = self._waiting.pop(writer)
            answer = await self._answer(head)
            self._waiting[writer] = connection
            async with asyncio.timeout(self._timeout):
                writer.write(answer)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            log.debug(
                "a client of the health server was too slow or too large, or went away", error=type(error).__name__
            )

    async def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            return _response(Answer(HTTPStatus.BAD_REQUEST, "this is an HTTP/1.1 server\n"))
        if method not in ("GET", "HEAD"):
            return _response(Answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are served here\n"))
        return _response(await self._route(target), body=method == "GET")

    async def _route(self, target: str) -> Answer:
        try:
            url = urlsplit(target)
        except ValueError:
            return Answer(HTTPStatus.BAD_REQUEST, "this is no address\n")
        group, _, name = url.path.strip("/").partition("/")
        if group == "metrics" and not name and self._metrics is not None:
            return _exposition(self._metrics)
        checks = self._checks.get(group)
        if checks is None:
            return NOT_FOUND
        checks = dict(checks) or {"ping": _ping}
        if name:
            return await self._one(name, checks)
        query = parse_qs(url.query, keep_blank_values=True)
        return await self._all(group, checks, query.get("exclude", []), verbose="verbose" in query)

    async def _one(self, name: str, checks: Mapping[str, Check]) -> Answer:
        if name not in checks:
            return NOT_FOUND
        reason = await self._failure(checks[name])
        if reason is None:
            return Answer(HTTPStatus.OK, "ok")
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {reason}\n")

    async def _all(self, group: str, checks: Mapping[str, Check], excluded: list[str], *, verbose: bool) -> Answer:
        asked = sorted(name for name in checks if name not in excluded)
        reasons = await asyncio.gather(*(self._failure(checks[name]) for name in asked))
        failed = {name: reason for name, reason in zip(asked, reasons, strict=True) if reason is not None}
        lines = [_line(name, name in excluded, name in failed) for name in sorted(checks)]
        unknown = ",".join(f'"{name}"' for name in excluded if name not in checks)
        if unknown:
            lines.append(f"warn: some health checks cannot be excluded: no matches for {unknown}\n")
        if failed:
            log.info("a health check failed", group=group, failed=failed)
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "".join([*lines, f"{group} check failed\n"]))
        return Answer(HTTPStatus.OK, "".join([*lines, f"{group} check passed\n"]) if verbose else "ok")

    async def _failure(self, check: Check) -> str | None:
        """Why the check failed, or None when it is fine."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                outcome = check()
                if inspect.isawaitable(outcome):
                    await outcome
        except Exception as error:  # a check may fail in any way; each is an answer
            return f"no answer within {self._timeout:g} s" if limit.expired() else str(error) or type(error).__name__
        return None


class Answer(msgspec.Struct, frozen=True):
    """What a request gets."""

    status: HTTPStatus
    body: str | bytes
    content_type: str = "text/plain; charset=utf-8"


NOT_FOUND = Answer(HTTPStatus.NOT_FOUND, "404 page not found\n")


def _exposition(metrics: Metrics) -> Answer:
    try:
        return Answer(HTTPStatus.OK, metrics.render(), CONTENT_TYPE)
    except Exception:  # of a collector that a controller registered
        log.exception("the metrics could not be collected")
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the metrics could not be collected; the log says why\n")


def _line(name: str, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{name} excluded: ok\n"
    return f"[-]{name} failed: reason withheld\n" if failed else f"[+]{name} ok\n"


def _ping() -> None:
    """The check of a process that has none: it answers."""


def _response(answer: Answer, *, body: bool = True) -> bytes:
    content = answer.body.encode() if isinstance(answer.body, str) else answer.body
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(content)}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (content if body else b"")
