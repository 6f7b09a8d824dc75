"""Everything that has a say in a write, in order: webhooks, then functions of our own systems that change it; then what
may only refuse it.

Policies (roles, bindings, webhook configurations, admission policies) are followed by watch and kept ready, so that a
request asks memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from trimtab.model import admission as model
from trimtab.model.errors import not_found
from trimtab.model.logs import log
from trimtab.model.scheme import Scheme
from trimtab.server import resolving
from trimtab.server.admission.functions import Functions
from trimtab.server.admission.policies import BINDINGS as BINDING
from trimtab.server.admission.policies import POLICIES as POLICY
from trimtab.server.admission.policies import Policies
from trimtab.server.admission.policy_params import Params
from trimtab.server.admission.policy_rights import check_params
from trimtab.server.admission.request import AdmissionRequest, Operation
from trimtab.server.admission.webhook_client import WebhookClient
from trimtab.server.admission.webhook_forms import Forms, unborn
from trimtab.server.admission.webhook_match import GROUP as ADMISSION
from trimtab.server.admission.webhooks import Webhooks
from trimtab.server.auth.escalation import check_escalation
from trimtab.server.auth.rbac import GROUP as RBAC
from trimtab.server.auth.signers import GROUP as CERTIFICATES
from trimtab.server.auth.signers import check_signer
from trimtab.server.quota.limits import Limits
from trimtab.server.registry import Served
from trimtab.store.contract import Change, Entry, Gone, Key, Op, Query, StoreError

if TYPE_CHECKING:
    from trimtab.server.core import Server

POLICIES = (
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("", "limitranges"),
)
CREDENTIALS = ("serviceaccounts", "secrets", "pods")
PAUSE = 1.0
"""Seconds before another try, when policies cannot be read."""
HOME = "trimtab-system"
"""Where the functions that are declared here are served on a cluster."""


class Admission:
    def __init__(self, server: Server, declared: Sequence[model.Admission], scheme: Scheme) -> None:
        self._server = server
        self._since: dict[str, int] = {}
        self._forms = Forms(server.registry)
        own = frozenset(admission.path for admission in declared)
        self.webhook_client = WebhookClient(self._resolve)
        self._webhooks = Webhooks(
            self.webhook_client,
            self._namespace_labels,
            equivalents=self._forms.equivalents,
            convert=self._forms.convert,
            authorize=server.authorizer.authorize,
            asked_here=lambda service: service.namespace == HOME and service.path in own,
        )
        self._functions = Functions(declared, scheme, server.registry, self._forms)
        self._limits = Limits()
        self._policies = Policies(
            Params(server.registry),
            self._namespace_labels,
            self._namespace,
            equivalents=self._forms.equivalents,
            convert=self._forms.convert,
            authorize=server.authorizer.authorize,
            judging=server.judging,
        )

    def mutates(self, request: AdmissionRequest) -> bool:
        """Hot: without webhooks and functions it costs nothing."""
        return self._webhooks.mutates(request) or self._functions.mutates(request) or self._limits.concerns(request)

    async def mutate(self, request: AdmissionRequest) -> dict[str, Any]:
        """The object as webhooks and functions leave it: the same one when none changed it. Empty for a deletion, which
        they may only refuse."""
        if self._limits.concerns(request):
            request = msgspec.structs.replace(request, object=self._limits.filled(request))
        shown = unborn(self._forms.shown(request))
        mutated = await self._webhooks.mutate(shown)
        if self._functions.mutates(request):
            left = None if shown.object is None else mutated
            mutated = await self._functions.mutate(msgspec.structs.replace(shown, object=left)) or {}
        if request.object is None or mutated == shown.object:
            return request.object or {}
        return self._forms.taken(request, mutated)

    async def validate(self, request: AdmissionRequest) -> None:
        """Raises when the write must not be."""
        if request.kind.group == RBAC and request.object is not None:
            check_escalation(
                self._server.authorizer,
                request.user,
                request.kind.plural,
                request.object,
                request.old,
                namespace=request.namespace,
                name=request.name if request.operation is Operation.UPDATE else "",
            )
        elif request.kind.group == CERTIFICATES and request.object is not None:
            check_signer(
                self._server.authorizer, request.user, request.subresource, request.object, request.old, request.name
            )
        elif request.kind.group == ADMISSION and request.object is not None:
            check_params(self._server.authorizer, self._server.registry, self._policies, request)
        if self._limits.concerns(request):
            self._limits.check(request)
        if self._functions.validates(request):
            await self._functions.validate(self._forms.shown(request))
        if self._policies.validates(request):
            await self._policies.validate(self._forms.shown(request))
        if self._webhooks.validates(request):
            await self._webhooks.validate(self._forms.shown(request))

    async def close(self) -> None:
        await self._webhooks.close()

    async def _namespace_labels(self, name: str) -> Mapping[str, str] | None:
        entry = await self._server.store.get(Key("namespaces", "", name))
        return entry.labels if entry is not None else None

    async def _namespace(self, name: str) -> dict[str, Any]:
        entry = await self._server.store.get(Key("namespaces", "", name))
        if entry is None:
            raise not_found("namespaces", "", name)
        document: dict[str, Any] = orjson.loads(entry.value)
        return document

    async def _resolve(self, namespace: str, name: str, port: int) -> tuple[str, int]:
        """Where a port of a Service is served: the first ready address of its Endpoints."""
        return (await resolving.addresses(self._server.store, namespace, name, port))[0]

    async def load(self) -> None:
        for served in self._followed():
            page = await self._server.store.list(Query(resource=served.strategy.storage))
            self._since[served.kind.resource] = page.revision
            for entry in page.entries:
                self._observe(served, entry)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for served in self._followed():
                tasks.create_task(self._follow(served))
            for resource in CREDENTIALS:
                tasks.create_task(self._follow_credentials(resource))

    def _followed(self) -> list[Served]:
        found = (self._server.registry.of_resource(group, plural) for group, plural in POLICIES)
        return [served for served in found if served is not None]

    async def _follow(self, served: Served) -> None:
        query = Query(resource=served.strategy.storage)
        missed = False
        while True:
            try:
                if missed:
                    await self._relist(served)
                missed = True  # whatever ends the watch
                async with aclosing(self._server.store.watch(query, self._since[served.kind.resource])) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            self._changed(served, change)
                        self._since[served.kind.resource] = batch.revision
            except Gone:
                continue
            except StoreError as error:
                log.warning("policies cannot be followed now", kind=query.resource, error=str(error))
                await self._server.clock.sleep(PAUSE)

    async def _relist(self, served: Served) -> None:
        """Changes were missed: what is not there any more must be forgotten too."""
        page = await self._server.store.list(Query(resource=served.strategy.storage))
        self._since[served.kind.resource] = page.revision
        documents = [served.decode(entry) for entry in page.entries]
        if served.kind.group == RBAC:
            self._server.authorizer.replace(served.kind.plural, documents)
        elif not served.kind.group:
            self._limits.replace(documents)
        else:
            self._holder(served).replace(served.kind.plural, documents)

    async def _follow_credentials(self, resource: str) -> None:
        authenticator = self._server.authenticator
        if authenticator is None:
            return
        while True:
            try:
                query = Query(resource=resource)
                async with aclosing(self._server.store.watch(query, self._server.store.revision)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            authenticator.changed(*change.entry.key)
            except Gone:
                authenticator.changed_unknown()
            except StoreError as error:
                log.warning("credentials cannot be followed now", kind=resource, error=str(error))
                authenticator.changed_unknown()
                await self._server.clock.sleep(PAUSE)

    def _observe(self, served: Served, entry: Entry) -> None:
        if served.kind.group == RBAC:
            self._server.authorizer.upsert(served.kind.plural, served.decode(entry))
        elif not served.kind.group:
            self._limits.upsert(served.decode(entry))
        else:
            self._holder(served).upsert(served.kind.plural, served.decode(entry))

    def _changed(self, served: Served, change: Change) -> None:
        if change.op is Op.PUT:
            self._observe(served, change.entry)
        elif served.kind.group == RBAC:
            self._server.authorizer.remove(served.kind.plural, change.entry.key.namespace, change.entry.key.name)
        elif not served.kind.group:
            self._limits.remove(change.entry.key.namespace, change.entry.key.name)
        else:
            self._holder(served).remove(served.kind.plural, change.entry.key.name)

    def _holder(self, served: Served) -> Webhooks | Policies:
        return self._policies if served.kind.plural in (POLICY, BINDING) else self._webhooks
