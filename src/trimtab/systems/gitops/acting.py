"""As whom a sync acts, and what it may touch.

With `spec.serviceAccount` it is that account of its namespace, by impersonation, and RBAC decides. Without one it is the
account of this system, which may do much; so then the sync itself is confined: to namespaced kinds, in its own namespace, and to
no kind by which one could get more rights. The rule is here and not in RBAC because the account serves all namespaces.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UnsetType

from trimtab.client.api import ApiClient
from trimtab.client.artifacts import Uploading
from trimtab.client.bodies import Body
from trimtab.client.transport import Batching, Call, Reply, Transport
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Scheme
from trimtab.systems.gitops.kinds import GitSync, Repository
from trimtab.systems.gitops.parsing import Identity, Problem, SourceDocument

FORBIDDEN_GROUPS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "rbac.authorization.k8s.io",
    }
)
FORBIDDEN_KINDS = frozenset(
    {
        ("", "Endpoints"),
        ("", "LimitRange"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "ResourceQuota"),
        ("", "ServiceAccount"),
    }
    | {("discovery.k8s.io", "EndpointSlice")}
)
"""What the role `edit` does not have either: whoever may write a GitSync gets nothing by it."""
TOKEN_SECRET = "kubernetes.io/service-account-token"  # noqa: S105 - a type, no token
MANAGER = "gitops"

Is = Callable[[str], bool]


class WithLineage:
    """A transport whose calls ask for lineage, where `keeps` says of a path that objects there keep it."""

    def __init__(self, transport: Transport, keeps: Is) -> None:
        self._transport, self._keeps = transport, keeps

    async def call(self, call: Call) -> Reply:
        return await self._transport.call(self._with(call))

    def stream(self, call: Call, inactivity: float) -> AsyncGenerator[bytes, None]:
        return self._transport.stream(self._with(call), inactivity)

    @property
    def batches(self) -> bool:
        return isinstance(self._transport, Batching) and self._transport.batches

    async def batch(self, calls: Sequence[Call]) -> list[Reply | StatusError]:
        if not isinstance(self._transport, Batching):
            raise TypeError("the transport below carries no batches")
        return await self._transport.batch([self._with(call) for call in calls])

    async def upload(self, call: Call, body: Body) -> Reply:
        """As the body is read, where the transport below can: a server takes no large one at once."""
        if isinstance(self._transport, Uploading):
            return await self._transport.upload(self._with(call), body)
        data = b"".join([piece async for piece in body.pieces()])
        return await self._transport.call(msgspec.structs.replace(self._with(call), body=data))

    async def close(self) -> None:
        """The transport below is others' too."""

    def _with(self, call: Call) -> Call:
        if not self._keeps(call.path):
            return call
        return msgspec.structs.replace(call, query={**call.query, "includeLineage": "true"})


class Actors:
    """Clients by whom they act as, kept while this process lives."""

    def __init__(self, client: ApiClient, keeps: Is) -> None:
        self._client, self._keeps = client, keeps
        self._transports: dict[str, Transport] = {}
        self._clients: dict[str, ApiClient] = {}

    @property
    def own(self) -> ApiClient:
        """The client of this system's own account. What it reads comes from no cache."""
        return self._client

    def of(self, sync: GitSync) -> ApiClient:
        """The client that a sync acts by. It knows no classes: objects come as they are."""
        account = account_of(sync)
        if account not in self._clients:
            transport = self._impersonating(account) if account else self._client.transport
            self._clients[account] = ApiClient(WithLineage(transport, self._keeps), Scheme())
        return self._clients[account]

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.close()
        self._transports.clear()
        self._clients.clear()

    def _impersonating(self, account: str) -> Transport:
        if account not in self._transports:
            self._transports[account] = impersonating(self._client.transport, account)
        return self._transports[account]


def account_of(sync: GitSync) -> str:
    """The user name of its service account; "" without one."""
    name = sync.spec.service_account
    return "" if isinstance(name, UnsetType) else f"system:serviceaccount:{sync.namespace}:{name}"


def impersonating(transport: Transport, user: str) -> Transport:
    """The same server, as someone else. Whoever we were by impersonation before, we are no more: the server checks that the
    identity behind may impersonate this user."""
    from trimtab.client.http import HttpTransport

    if not isinstance(transport, HttpTransport):
        raise TypeError(f"cannot act as {user} over {type(transport).__name__}")
    config = transport.config
    kept = tuple(header for header in config.headers if not header[0].lower().startswith("impersonate-"))
    return HttpTransport(msgspec.structs.replace(config, headers=(*kept, ("Impersonate-User", user))))


def outside(sync: GitSync, documents: tuple[SourceDocument, ...]) -> list[Problem]:
    """The documents that a confined sync must not apply. None for one with a service account: the server decides."""
    if account_of(sync):
        return []
    found = []
    for document in documents:
        why = forbidden(document.identity, document.document, sync.namespace)
        if why:
            found.append(Problem(document.path, document.line, why))
    return found


def relied_on(syncs: Iterable[GitSync], repositories: Iterable[Repository]) -> dict[tuple[str, str], str]:
    """Those that act as an account and what they follow and trust, by kind and name, and which of them does: whoever writes it
    says what they apply, or where it goes. SyncConflicts are told by what their names begin with."""
    logins = {each.name: each.spec.secret_ref for each in repositories}
    found: dict[tuple[str, str], str] = {}
    for sync in syncs:
        if account_of(sync):
            spec = sync.spec
            named = [each.repository for each in (spec, spec.destination) if not isinstance(each, UnsetType)]
            keys = [logins.get(name) for name in named]
            keys += () if isinstance(spec.verify, UnsetType) else (spec.verify.ssh, spec.verify.pgp)
            keys += () if isinstance(spec.sign, UnsetType) else (spec.sign.secret_ref,)
            found |= {("GitSync", sync.name): sync.name, ("SyncConflict", sync.name[:200]): sync.name}
            found |= {("Repository", name): sync.name for name in named}
            found |= {("Secret", key.name): sync.name for key in keys if key}
    return found


HINT = "; give the GitSync a serviceAccount that may"


def forbidden(identity: Identity, document: Mapping[str, Any], namespace: str) -> str:
    """Why a confined sync may not touch an object; "" when it may."""
    hint = HINT
    if not identity.namespace:
        return f"{identity} is of the whole cluster, and this sync keeps to its namespace{hint}"
    if identity.namespace != namespace:
        return f'{identity} is in "{identity.namespace}", and this sync keeps to "{namespace}"{hint}'
    if identity.group in FORBIDDEN_GROUPS or (identity.group, identity.kind) in FORBIDDEN_KINDS:
        return f"{identity} could give rights or take limits away, which this sync must not{hint}"
    if (identity.group, identity.kind) == ("", "Secret") and document.get("type") == TOKEN_SECRET:
        return f"{identity} would hold the token of an account, which this sync must not make{hint}"
    spec = document.get("spec")
    if identity.kind == "GitSync" and isinstance(spec, dict) and spec.get("serviceAccount"):
        return f"{identity} would act as another account, which this sync must not grant{hint}"
    return ""
