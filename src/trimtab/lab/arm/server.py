"""The emulator as a server on loopback, and the hand that reaches into it from a test.

    async with ArmEmulator(documents=[Path("compute.json")]) as arm:
        arm.behave("Microsoft.Network/virtualNetworks", put="merge")
        … requests to arm.url …
        assert arm.log.writes == 1

Run as a process it takes orders over HTTP, below /_lab/ (see `orders`).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import msgspec
from aiohttp import web

from trimtab.lab.arm import documents, orders, service, writing
from trimtab.lab.arm.behaviour import USUAL, Behaviour
from trimtab.lab.arm.checking import ArmError
from trimtab.lab.arm.events import Events, Form
from trimtab.lab.arm.faults import PAGE, Dropped, ErrorInside, Fault, Faults, Html, Refused, Truncated
from trimtab.lab.arm.log import Asked, Log
from trimtab.lab.arm.resources import Resource, Resources, parse
from trimtab.lab.arm.throttling import Throttle
from trimtab.lab.arm.world import Answer, Ask, World
from trimtab.model.clock import Clock, SystemClock

JSON = "application/json; charset=utf-8"
LARGEST = 16 << 20


class ArmEmulator:
    """Serves between `async with` and its end. With `token` every request must bear it; with `subscriptions` there are
    no others. `documents` are files or what was read from them."""

    def __init__(
        self,
        documents: Iterable[Path | Mapping[str, Any]] = (),
        *,
        behaviour: Behaviour = USUAL,
        token: str = "",
        subscriptions: Iterable[str] | None = None,
        address: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._world = World(_routes(documents), self._clock, behaviour)
        self._token = token
        self._subscriptions = None if subscriptions is None else {each.lower() for each in subscriptions}
        self._address, self._port = address, port
        self._faults = Faults()
        self._throttle = Throttle(self._clock)
        self._runner: web.ServerRunner | None = None
        self.log = Log()
        self.events = Events(self._clock)
        self._world.told.append(self.events.tell)
        self.url = ""

    @property
    def resources(self) -> Resources:
        """Bodies by ID, whatever its case: the truth, with secrets."""
        return self._world.resources

    @property
    def requests(self) -> list[Asked]:
        return self.log.requests

    def view(self, path: str) -> dict[str, Any]:
        """What a read of it shows."""
        return self._world.view(self._known(path))

    def behave(self, whom: str = "", behaviour: Behaviour | None = None, **changes: Any) -> Behaviour:
        """Change how a type behaves, or one resource by its ID, or with "" all that have no behaviour of their own."""
        kind = parse(whom).type if whom.startswith("/") else whom
        new = msgspec.structs.replace(behaviour or self._world.behaviour(kind, whom.lower()), **changes)
        new = msgspec.convert(msgspec.structs.asdict(new), Behaviour)  # a wrong word is told of here
        self._world.behave(new, whom)
        return new

    def put(self, path: str, body: Mapping[str, Any]) -> None:
        """Someone else makes a resource, or writes it anew, at once. Its resource group is made when there is none."""
        identity = parse(path)
        group = f"/subscriptions/{identity.subscription}/resourceGroups/{identity.group}"
        if identity.group and identity.key != group.lower() and group not in self.resources:
            self.put(group, {"location": str(body.get("location", "westus"))})
        route = self._world.routes.find(path)
        if route is None:
            raise KeyError(f"the documents have no {path}")
        made = writing.with_defaults(msgspec.convert(msgspec.to_builtins(body), dict[str, Any]), route.schema)
        made = writing.with_facts(made, route, identity, self._clock.now())
        writing.set_state(made, route.schema, "Succeeded")
        placed = self._world.place(self._world.identity(path, route), route, made)
        self._world.gather_above(placed)
        self._world.tell("Write", "Success", placed.id.path)

    def change(self, path: str, mutate: Callable[[dict[str, Any]], Any]) -> None:
        """Someone else changes a resource: `mutate` does it to the body, in place."""
        known = self._known(path)
        mutate(known.body)
        self._world.touched(known)
        self._world.tell("Write", "Success", known.id.path)

    def scale(self, path: str, capacity: int) -> None:
        """An autoscaler's hand."""
        self.change(path, lambda body: body.setdefault("sku", {}).update(capacity=capacity))

    def remove(self, path: str) -> None:
        """Someone else deletes a resource, with all that is below it."""
        self._world.remove(self._known(path).id)

    def finish(self) -> None:
        """End every operation that is under way."""
        for underway in list(self._world.monitors.values()):
            underway.end()

    def fault(self, fault: Fault, method: str = "", path: str = "", *, times: int = 1) -> None:
        """The next requests that fit get this. `path` is a regular expression, searched for in the path."""
        self._faults.add(method, path, fault, times)

    def clear_faults(self) -> None:
        self._faults.clear()

    def throttle(self, subscription: str, retry_after: int = 5) -> None:
        """429 for all of a subscription, until `unthrottle`."""
        self._throttle.close(subscription, retry_after)

    def unthrottle(self, subscription: str) -> None:
        self._throttle.open(subscription)

    async def subscribe(self, url: str, form: Form = "event-grid", headers: Mapping[str, str] | None = None) -> None:
        """Tell this URL of every change from now on. Raises HandshakeFailed."""
        await self.events.subscribe(url, form, headers)

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._serve, access_log=None), shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._address, self._port)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = self._world.url = f"http://{self._address}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.events.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    def _known(self, path: str) -> Resource:
        known = self._world.resources.find(path)
        if known is None:
            raise KeyError(f"there is no {path}")
        return known

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = request.raw_path.partition("?")[0]
        path = unquote(raw) if "%" in raw else raw
        if path.startswith("/_lab/"):
            return await orders.obey(self, request, path)
        body: Any = None
        broken = False
        if request.body_exists:
            content = await request.content.read(LARGEST)
            try:
                body = msgspec.json.decode(content) if content else None
            except msgspec.DecodeError:
                broken = True
        ask = Ask(method=request.method, path=path, query=request.query, headers=_lower(request), body=body)
        verb, kind = service.verb(self._world, ask)
        fault = self._faults.next(ask.method, path)
        answer = self._answered(ask, fault, broken)
        cut = isinstance(fault, Dropped)
        self._note(ask, request.query_string, verb, kind, 0 if cut else answer.status)
        if cut:
            return _cut(request)
        if isinstance(fault, Truncated):
            return await _partly(request, answer, fault.after)
        return _response(answer)

    def _answered(self, ask: Ask, fault: Fault | None, broken: bool) -> Answer:
        try:
            self._authorised(ask)
            headers = self._counted(ask)
        except ArmError as error:
            return _refusal(error)
        if isinstance(fault, Refused):
            wait = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
            return _refusal(ArmError(fault.status, fault.code, fault.message, wait))
        if isinstance(fault, ErrorInside):
            return Answer(status=200, body=service.error_body(fault.code, fault.message))
        if isinstance(fault, Dropped | Html) and not fault.after_effect:
            return _page(fault) if isinstance(fault, Html) else Answer(status=0)
        if broken:
            return _refusal(ArmError(400, "InvalidRequestContent", "The request content was invalid: it is no JSON."))
        answer = service.answer(self._world, ask)
        if isinstance(fault, Html):
            return _page(fault)
        answer.headers = {**answer.headers, **headers}
        return answer

    def _authorised(self, ask: Ask) -> None:
        given = ask.headers.get("authorization", "")
        if self._token and not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            code = "AuthenticationFailed" if not given else "InvalidAuthenticationToken"
            raise ArmError(401, code, "The access token is not valid.", {"WWW-Authenticate": 'Bearer realm="lab"'})
        subscription = _subscription(ask.path)
        if self._subscriptions is not None and subscription and subscription not in self._subscriptions:
            raise ArmError(404, "SubscriptionNotFound", f"The subscription '{subscription}' could not be found.")

    def _counted(self, ask: Ask) -> dict[str, str]:
        subscription = _subscription(ask.path)
        return self._throttle.take(subscription, ask.method, self._world.behaviour().limits) if subscription else {}

    def _note(self, ask: Ask, query: str, verb: service.Verb, kind: str, status: int) -> None:
        told = {
            name: value for name, value in ask.headers.items() if name in ("if-match", "if-none-match", "content-type")
        }
        self.log.add(
            Asked(
                method=ask.method,
                path=ask.path,
                query=query,
                verb=verb,
                type=kind,
                status=status,
                at=self._clock.now(),
                body=ask.body,
                headers=told,
            )
        )


def _routes(given: Iterable[Path | Mapping[str, Any]]) -> documents.Routes:
    return documents.read([documents.BUILT_IN, *given])


def _lower(request: web.BaseRequest) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _subscription(path: str) -> str:
    parts = path.split("/", 3)
    return parts[2].lower() if len(parts) > 2 and parts[1].lower() == "subscriptions" else ""


def _refusal(error: ArmError) -> Answer:
    return Answer(status=error.status, body=service.error_body(error.code, error.message), headers=error.headers)


def _page(fault: Html) -> Answer:
    return Answer(status=fault.status, body=PAGE, headers={"Content-Type": "text/html"})


def _response(answer: Answer) -> web.Response:
    headers = answer.headers
    if answer.body and "Content-Type" not in headers:
        headers = {**headers, "Content-Type": JSON}
    return web.Response(status=answer.status, body=answer.body or None, headers=headers)


async def _partly(request: web.BaseRequest, answer: Answer, after: int) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers={**answer.headers, "Content-Type": JSON})
    response.content_length = max(len(answer.body), after + 1)
    await response.prepare(request)
    await response.write(answer.body[:after])
    return _cut(request)


def _cut(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.close()
    return web.Response()
