"""Questions that an API server beside another asks that one: may this user do this, whose token is this, is there such a
namespace.

Guarantees: nothing is allowed that the cluster did not allow within the last ten seconds; a cluster that does not answer
allows nothing. Equal questions that are asked at the same time are asked once. Tokens are kept as digests only.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import orjson

from trimtab.client.api import ApiClient
from trimtab.client.transport import FAILURES, Call, document_of
from trimtab.model.clock import Clock, SystemClock
from trimtab.model.errors import StatusError, forbidden, not_found, unauthorized
from trimtab.model.kind import Kind
from trimtab.model.logs import log
from trimtab.server.auth.identity import ANONYMOUS, MASTERS, MAX_TOKEN, User
from trimtab.server.auth.rbac import Attributes, Authorizer, Decision
from trimtab.server.auth.request_header import RequestHeader
from trimtab.server.wire import Incoming

KEPT = 10.0
NAMESPACE_KEPT = 1.0
MAX_KEPT = 10_000
HEALTH = ("/healthz", "/livez", "/readyz")
"""What a kubelet asks, which has no name."""

REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"

T = TypeVar("T")


class Kept(Generic[T]):
    """Answers, for a while; and the questions that are being asked now."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._answers: dict[Hashable, tuple[T, float]] = {}
        self._asking: dict[Hashable, asyncio.Task[T]] = {}

    def get(self, key: Hashable) -> T | None:
        found = self._answers.get(key)
        return found[0] if found is not None and self._clock.monotonic() < found[1] else None

    async def ask(self, key: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        """What is known, or what the question brings. A failure is everybody's who waits, and is not kept."""
        if (known := self.get(key)) is not None:
            return known
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(self._answered(key, question))
            asking.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(asking)

    async def _answered(self, key: Hashable, question: Callable[[], Awaitable[T]]) -> T:
        asked = self._clock.monotonic()  # an answer is as old as its question
        answer = await question()
        if len(self._answers) >= MAX_KEPT:
            self._answers.clear()
        self._answers[key] = (answer, asked + self._seconds)
        return answer

    def _done(self, key: Hashable, task: asyncio.Task[T]) -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may wait any more


class DelegatedAuthorizer(Authorizer):
    """Asks the cluster by SubjectAccessReview. `system:masters` may do all, and everybody may ask how we are."""

    def __init__(self, client: ApiClient, *, clock: Clock | None = None) -> None:
        super().__init__()
        self._client = client
        self._kept: Kept[Decision] = Kept(clock or SystemClock(), KEPT)

    def authorize(self, attributes: Attributes) -> Decision | Awaitable[Decision]:  # type: ignore[override]
        """As `Deciding` has it."""
        user = attributes.user
        if MASTERS in user.groups or about_health(attributes.path):
            return Decision(True)
        key = (
            user.name,
            user.uid,
            user.groups,
            tuple(sorted(user.extra.items())),
            attributes.verb,
            attributes.group,
            attributes.version,
            attributes.resource,
            attributes.subresource,
            attributes.namespace,
            attributes.name,
            attributes.path,
        )
        known = self._kept.get(key)
        return known if known is not None else self._kept.ask(key, lambda: self._review(attributes))

    async def _review(self, attributes: Attributes) -> Decision:
        status = (await _asked(self._client, REVIEWS, access_review(attributes))).get("status") or {}
        allowed = status.get("allowed") is True and status.get("denied") is not True
        return Decision(allowed, str(status.get("reason") or ""))


def about_health(path: str) -> bool:
    return path.startswith(HEALTH) and "/" + path.split("/")[1] in HEALTH


def access_review(attributes: Attributes) -> dict[str, Any]:
    """The SubjectAccessReview that asks for this."""
    user = attributes.user
    spec: dict[str, Any] = {"user": user.name}
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if attributes.path:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    else:
        fields = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
        spec["resourceAttributes"] = {name: value for name in fields if (value := getattr(attributes, name))}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


class Identities:
    """Who is asking: whom the front proxy names, else whose token the cluster knows. Nobody else."""

    def __init__(self, client: ApiClient, proxy: RequestHeader, *, clock: Clock | None = None) -> None:
        self._client = client
        self._proxy = proxy
        self._kept: Kept[User] = Kept(clock or SystemClock(), KEPT)

    async def __call__(self, incoming: Incoming) -> User:
        """StatusError 401 for everybody who is neither, but for questions about our health."""
        user = self._proxy.user(incoming.peer, incoming.proxied)
        if user is not None:
            return user
        scheme, _, token = incoming.headers.get(b"authorization", b"").decode("latin-1").strip().partition(" ")
        if scheme.lower() == "bearer" and token and len(token) <= MAX_TOKEN:
            digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
            return await self._kept.ask(digest, lambda: self._review(token))
        if about_health(incoming.path):
            return ANONYMOUS
        raise unauthorized()

    async def _review(self, token: str) -> User:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = (await _asked(self._client, TOKENS, review)).get("status") or {}
        user = status.get("user") or {}
        if status.get("authenticated") is not True or not user.get("username"):
            raise unauthorized()
        extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
        return User(user["username"], user.get("uid") or "", tuple(user.get("groups") or ()), extra)


class ClusterNamespaces:
    """Namespaces as the cluster has them. Their life cycle is the cluster's business."""

    def __init__(self, client: ApiClient, *, clock: Clock | None = None) -> None:
        self._client = client
        self._kept: Kept[str] = Kept(clock or SystemClock(), NAMESPACE_KEPT)

    async def check_create(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        phase = await self._kept.ask(namespace, lambda: self._phase(namespace))
        if phase == "Terminating":
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(kind.plural, kind.group, name, why)
            message = f"namespace {namespace} is being terminated"
            causes = [{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]
            error.details = {**(error.details or {}), "causes": causes}
            raise error

    async def check_delete(self, kind: Kind, name: str) -> None:
        """Everything of ours may go."""

    async def _phase(self, namespace: str) -> str:
        try:
            found = await _asked(self._client, f"/api/v1/namespaces/{quote(namespace, safe='')}")
        except StatusError as error:
            if error.code == 404:
                raise not_found("namespaces", "", namespace) from None
            raise
        if (found.get("metadata") or {}).get("deletionTimestamp"):
            return "Terminating"
        return str((found.get("status") or {}).get("phase") or "Active")


async def _asked(client: ApiClient, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
    """The cluster's answer. That it does not answer, or does not let us ask, is a 503 of ours, never a yes."""
    body = orjson.dumps(document) if document is not None else b""
    try:
        reply = await client.transport.call(Call(method="POST" if body else "GET", path=path, body=body))
        return document_of(reply.body)
    except FAILURES as error:
        if isinstance(error, StatusError) and error.code == 404 and not body:
            raise
        log.error("the cluster did not answer a question of the hub", path=path, error=str(error))
        why = f"the cluster's API server does not tell what the hub must know ({path}): {error}"
        raise StatusError(503, "ServiceUnavailable", why, {"retryAfterSeconds": 1}) from None
