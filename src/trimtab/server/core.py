"""The API server without its wires: a request with a user goes in, an answer comes out.

Order of a request: authorize → find the kind → verb → admission → backend. `door.py` authenticates and carries bytes;
`local.py` calls `handle` from the same process. Everything the server does by itself (`lifecycle/`) runs as a task here.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from trimtab.model import admission as functions
from trimtab.model import backoff
from trimtab.model.clock import Clock, SystemClock, format_time
from trimtab.model.errors import StatusError, bad_request, internal, method_not_supported
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.model.scheme import Scheme
from trimtab.model.selectors import FieldSelector
from trimtab.server import body, builtin, deletes, negotiate, patches, reads, tables, watches, writes
from trimtab.server.actor import ACTOR
from trimtab.server.acts import Acts
from trimtab.server.admission.chain import Admission
from trimtab.server.aggregation.aggregator import Aggregator
from trimtab.server.aggregation.remote import FrontProxyPair
from trimtab.server.auth.deciding import decided
from trimtab.server.auth.identity import Authenticator
from trimtab.server.auth.rbac import Attributes, Authorizer, denial
from trimtab.server.auth.tokens import TokenKey
from trimtab.server.broadcast import Broadcasts
from trimtab.server.conversion.choice import Converters
from trimtab.server.discovery import Discovery
from trimtab.server.http import Answer, Request, Response, Stream, error_response
from trimtab.server.judging import Judging
from trimtab.server.lifecycle.certificates import Certificates
from trimtab.server.lifecycle.definitions import Definitions
from trimtab.server.lifecycle.expiry import Expiry
from trimtab.server.lifecycle.garbage import Garbage
from trimtab.server.lifecycle.namespaces import Namespaces
from trimtab.server.lifecycle.policies import PolicyStatus
from trimtab.server.lifecycle.quotas import QuotaStatus
from trimtab.server.lifecycle.roles import Roles
from trimtab.server.metrics import Metrics
from trimtab.server.negotiate import As, Form
from trimtab.server.options import is_watching
from trimtab.server.present import present
from trimtab.server.quota.ledger import Ledger
from trimtab.server.registry import Registry, Served
from trimtab.server.reviews import NOT_ALLOWED, REVIEWED, Reviews
from trimtab.server.roots import Roots
from trimtab.server.strategy import Document
from trimtab.server.subresources import Subresources
from trimtab.server.target import Target, parse
from trimtab.store.contract import Store, StoreError, Unavailable, Unwritable

if TYPE_CHECKING:
    from trimtab.server.audit.trail import Auditor
    from trimtab.server.auth.certificates import Issuer

EVENT_TTL = 3600.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # before another try of what the server does by itself
LARGE_BODY = 64 * 1024  # YAML of this size is read beside the loop


class Tenancy(Protocol):
    """Who knows which namespaces there are."""

    async def check_create(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse to create in a namespace that is not there, or is going."""
        ...

    async def check_delete(self, kind: Kind, name: str) -> None: ...


class Server:
    """All of the API over one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        authorizer: Authorizer | None = None,
        authenticator: Authenticator | None = None,
        token_key: TokenKey | None = None,
        issuer: str = "",
        audiences: tuple[str, ...] = (),
        ca: str = "",
        address: str = "",
        event_ttl: float = EVENT_TTL,
        admission: Sequence[functions.Admission] = (),
        scheme: Scheme | None = None,
        beside: Tenancy | None = None,
        authority: Callable[[], Issuer] | None = None,
        front_proxy: FrontProxyPair | None = None,
        managed: bool = True,
    ) -> None:
        """`admission` are functions that are asked about writes; `scheme` knows the kinds that they name. With `beside` it
        is an API server beside another, which has the built-in kinds, the namespaces and the life cycles. `authority` is the CA
        that signs certificate requests; without one they wait for somebody else. By `front_proxy` servers behind this one
        know it. Without `managed` it does only what kube-apiserver does: namespaces are not furnished or emptied, no garbage
        is collected, no roles are aggregated, no certificates are signed, no quotas are counted."""
        self.store = store
        self.clock = clock or SystemClock()
        self.authorizer = authorizer or Authorizer()
        self.authenticator = authenticator
        self.token_key = token_key
        self.issuer = issuer
        self.audiences = audiences or (issuer,)
        self.audit: Auditor | None = None  # None: nothing is told of requests
        self.metrics = Metrics()
        self.judging = Judging()
        self.acts = Acts(self)
        self.broadcasts = Broadcasts()
        self.registry = Registry()
        self.admission = Admission(self, admission, scheme or Scheme())
        self.aggregator = Aggregator(self, front_proxy)
        self.converters = Converters(scheme or Scheme(), self.admission.webhook_client)
        self.discovery = Discovery(self.registry, address, self.aggregator)
        self.roots = Roots(self)
        self.subresources = Subresources(self)
        self.reviews = Reviews(self)
        self.beside = beside
        self.namespaces: Tenancy = beside or Namespaces(self, ca)
        self.definitions = Definitions(self)
        self.garbage = Garbage(self)
        self.expiry_task = Expiry(self)
        self.roles = Roles(self)
        self.certificates = Certificates(self)
        self.authority = authority
        self.policy_status = PolicyStatus(self)
        self.quotas = Ledger(self)
        self.quota_status = QuotaStatus(self, self.quotas)
        self.ca = ca
        self.event_ttl = event_ttl
        self._managed = managed
        self.ready = False
        self._epoch = self.clock.now().timestamp() - self.clock.monotonic()
        self._second, self._timestamp = 0, ""
        self._tasks: set[asyncio.Task[Any]] = set()
        if beside is None:
            self._register_builtin()

    def _register_builtin(self) -> None:
        by_storage: dict[str, Served] = {}
        for strategy in (*builtin.strategies(), *builtin.reviews()):
            stored = by_storage.get(strategy.storage)
            served = Served(strategy, self.store, stored=stored)
            by_storage.setdefault(strategy.storage, served)
            self.registry.add(served)

    async def start(self) -> None:
        """Bring what is stored to life: policies, definitions, and the tasks that keep them so."""
        if isinstance(self.namespaces, Namespaces):
            await self._start_life(self.namespaces)
        self.ready = True

    async def _start_life(self, namespaces: Namespaces) -> None:
        await self.admission.load()
        await self.definitions.load()
        await self.quota_status.load()
        await self.roots.seed()
        await self.aggregator.start()
        own: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = [
            ("policies", self.admission.run),
            ("definitions", self.definitions.run),
            ("expiry", self.expiry_task.run),
            ("aggregator", self.aggregator.run),
        ]
        if self._managed:
            own += [
                ("namespaces", namespaces.run),
                ("garbage", self.garbage.run),
                ("roles", self.roles.run),
                ("certificates", self.certificates.run),
                ("policy status", self.policy_status.run),
                ("quota status", self.quota_status.run),
            ]
        for name, task in own:
            self.spawn(self._forever(task, name), name)

    async def stop(self) -> None:
        self.ready = False
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.admission.close()
        await self.aggregator.close()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a task of the server's own. Its failure is logged, never lost."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the server failed", task=task.get_name(), exc_info=error)

    async def _forever(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Whatever happens: a failure of an hour must not be one for as long as the server lives."""
        while True:
            try:
                await work()
                log.error("a task of the server ended, and begins anew", task=name)
            except Exception:
                log.exception("a task of the server failed, and begins anew", task=name)
            await self.clock.sleep(FIRST_PAUSE)

    async def insist(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Until it is done: what a disk or a service refuses now it may take later."""
        for failures in itertools.count():
            try:
                await work()
                return
            except (StoreError, StatusError) as error:
                pause = backoff.pause(failures, FIRST_PAUSE, LONGEST_PAUSE, random)
                log.warning("the server will try again", task=name, error=str(error), again_in=round(pause, 1))
                await self.clock.sleep(pause)

    async def handle(self, request: Request) -> Answer:
        """Answer one request. Never raises: a failure is a Status."""
        try:
            return await self._handle(request)
        except StatusError as error:
            return _in_form(request, error_response(error))
        except Unwritable as error:  # the store has said it in the log
            if error.full:
                why = f"the disk of the server is full: {error}"
                return error_response(StatusError(507, "InsufficientStorage", why, {}))
            return error_response(StatusError(500, "InternalError", f"the disk of the server fails: {error}", {}))
        except Unavailable as error:
            if not self.store.trouble:
                log.error("the store is not available", error=str(error))
            why = f"the store cannot take or give data now: {error}"
            return error_response(StatusError(503, "ServiceUnavailable", why, {"retryAfterSeconds": 5}))
        except Exception as error:
            log.exception("a request failed", method=request.method, path=request.path)
            if request.trail is not None:
                request.trail.panicked(type(error).__name__)
            return error_response(internal(type(error).__name__))

    async def _handle(self, request: Request) -> Answer:
        ACTOR.set(request.user.name)
        if self.aggregator.services and (service := self.aggregator.find(request.path)) is not None:
            return await self.aggregator.forward(request, service)
        target = parse(request.path)
        if target is None:
            return await self.roots.handle(request)
        watching = request.method == "GET" and (
            target.watch or ("watch" in request.query and is_watching(request.query))
        )
        verb = target.verb("GET" if request.method == "HEAD" else request.method, watching)
        name = target.name or (_selected_name(request) if verb in ("list", "watch") else "")
        await self._authorize(request, verb, target, name)
        served = self.registry.find(target.group, target.version, target.resource)
        if served is None or (target.namespace and not served.kind.namespaced and not _is_itself(target)):
            return self._unknown(target.group)
        if request.method == "HEAD" and served.strategy.native:
            raise NOT_ALLOWED
        if served.with_lineage is not None and _asks_for_lineage(request):
            await self._authorize(request, "lineage", target, name)
            served = served.with_lineage
        if not served.kind.namespaced:
            target = target._replace(namespace="")
        elif not target.namespace and (target.name or request.method not in ("GET", "HEAD")):
            if served.strategy.native and not target.name:
                raise NOT_ALLOWED
            return self._unknown(target.group)
        if target.name:
            _check_name(target.name)
        if served.kind.deprecation:
            request.warn(served.kind.deprecation)
        if served.strategy.storage in REVIEWED:
            return await self.reviews.handle(request, served, target, verb)
        if target.subresource:
            return await self.subresources.handle(request, served, target, verb)
        if verb not in served.strategy.verbs:
            raise method_not_supported(served.kind.plural, served.kind.group, verb)
        return await self.dispatch(request, served, target, verb)

    def _unknown(self, group: str) -> Response:
        """Nothing is here. Groups of built-in kinds say it in a Status, others in the words of a plain web server."""
        if any(served.kind.group == group and served.strategy.native for served in self.registry):
            raise StatusError(404, "NotFound", "the server could not find the requested resource", {})
        return Response(code=404, body=b"404 page not found\n", media=b"text/plain; charset=utf-8")

    async def authorize(self, request: Request, target: Target, watching: bool) -> None:
        """What goes on to another server is judged as if it were ours."""
        verb = target.verb("GET" if request.method == "HEAD" else request.method, watching)
        name = target.name or (_selected_name(request) if verb in ("list", "watch") else "")
        await self._authorize(request, verb, target, name)

    async def authorize_create(self, request: Request, target: Target) -> None:
        """An update or an apply that makes an object is a creation, too."""
        name, namespace = target.name, target.namespace
        attributes = Attributes(
            request.user, "create", target.group, target.version, target.resource, namespace=namespace, name=name
        )
        decision = await decided(self.authorizer, attributes)
        if not decision.allowed:
            raise denial(attributes, decision.reason)

    async def _authorize(self, request: Request, verb: str, target: Target, name: str) -> None:
        attributes = Attributes(
            request.user,
            verb,
            target.group,
            target.version,
            target.resource,
            target.subresource,
            target.namespace,
            name,
        )
        decision = await decided(self.authorizer, attributes)
        if request.trail is not None:
            request.trail.decided(decision)
        if not decision.allowed:
            raise denial(attributes, decision.reason)

    async def dispatch(self, request: Request, served: Served, target: Target, verb: str) -> Answer:
        form = negotiate.form(request.header(b"accept"), request.header(b"user-agent"), request.query.get("pretty"))
        if len(request.body) > LARGE_BODY and b"yaml" in request.headers.get(b"content-type", b""):
            request.parsed = await asyncio.to_thread(body.from_json_or_yaml, request.body, served.kind.kind)
        if verb == "watch":
            return await watches.watch(self, request, served, target, form)
        if verb == "list":
            listed = await reads.list_(self, request, served, target, form)
            return listed if isinstance(listed, Stream) else present(listed, form)
        if verb == "get":
            response = await reads.get(self, request, served, target, form)
        elif verb == "create":
            if target.name:
                raise NOT_ALLOWED
            if served.strategy.terminating:
                refusal = method_not_supported(served.kind.plural, served.kind.group, verb)
                refusal.message = "create not allowed while custom resource definition is terminating"
                raise refusal
            response = await writes.create(self, request, served, target)
        elif verb == "update":
            if not target.name:
                raise NOT_ALLOWED if served.strategy.native else bad_request("name must be provided")
            response = await writes.update(self, request, served, target)
        elif verb == "patch":
            if not target.name:
                raise NOT_ALLOWED
            response = await patches.patch(self, request, served, target)
        elif verb == "delete":
            response = await deletes.delete(self, request, served, target)
        else:
            return present(await deletes.delete_collection(self, request, served, target), form)
        return self.shape(request, response, served, form)

    def shape(self, request: Request, response: Response, served: Served, form: Form) -> Response:
        """One object in the form that was asked for."""
        if form.as_ is As.OBJECT:
            return present(response, form)
        if b'"kind":"Status"' in response.body[:32]:
            return present(response, form)
        return present(self._transformed(request, response, served, form), form)

    def _transformed(self, request: Request, response: Response, served: Served, form: Form) -> Response:
        if form.as_ is As.METADATA:
            return Response(code=response.code, body=tables.metadata_only(response.body, form.version))
        include = tables.include_object(request.query.get("includeObject"))
        revision = orjson.loads(response.body)["metadata"].get("resourceVersion", "")
        made = tables.table(served, [response.body], {"resourceVersion": revision}, include, form.version, self.clock)
        return Response(code=response.code, body=made)

    def timestamp(self) -> str:
        """Now, as metadata has it. Made once a second."""
        now = self.clock.now()
        second = int(now.timestamp())
        if second != self._second:
            self._second, self._timestamp = second, format_time(now)
        return self._timestamp

    def verbs(self, served: Served) -> tuple[str, ...]:
        return served.strategy.verbs

    def deletable(self, served: Served, document: Document) -> bool:
        """Whether nothing holds a deleted object any more."""
        return not document["metadata"].get("finalizers") and not served.strategy.held(document)

    def expiry(self, served: Served) -> float | None:
        """When an object of this kind goes by itself: events do, an hour after their last write."""
        if served.strategy.storage != "events":
            return None
        return self.steady() + self.event_ttl

    def steady(self) -> float:
        """Now, as far as expiry is concerned: the wall clock as it was at the start, and the time since. A clock that is set
        takes nothing away before its time."""
        return self._epoch + self.clock.monotonic()


def _is_itself(target: Target) -> bool:
    """A namespace is in itself: rights in it are rights to it. To no other: `/namespaces/a/namespaces/b` is nothing."""
    return target.resource == "namespaces" and target.namespace == target.name


def _selected_name(request: Request) -> str:
    """Who lists or watches one object by its name asks for that object, and is authorized for it."""
    selector = request.query.get("fieldSelector", "")
    if "metadata.name" not in selector:
        return ""
    try:
        return FieldSelector.parse(selector).exact("metadata.name") or ""
    except StatusError:
        return ""  # refused when it is read


def _asks_for_lineage(request: Request) -> bool:
    given = request.query.get("includeLineage", "false")
    if given not in ("true", "1", "false", "0"):
        raise bad_request(f'includeLineage: Invalid value: "{given}": must be true or false')
    return given in ("true", "1")


def _in_form(request: Request, response: Response) -> Response:
    """A refusal in YAML for those who read YAML."""
    if b"yaml" not in request.headers.get(b"accept", b""):
        return response
    return present(response, negotiate.form(request.header(b"accept"), "", None))


def _check_name(name: str) -> None:
    """Names that cannot be a segment of a path are refused before anyone looks for them (apimachinery path segments)."""
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    for char in "/%":
        if char in name:
            raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '{char}'")
