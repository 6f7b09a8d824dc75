"""Defining a generated kind at the API server: its CRD, the rights on it, and the webhook that judges its objects.

Where the home does not let us (`--manage-crds`), someone applies what `trimtab rest generate` prints, and we only look
whether the kind is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from trimtab.client.protocol import Client, Named, Query, Ref
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.apply import apply
from trimtab.runtime.objects import uncached
from trimtab.runtime.rights import RBAC
from trimtab.systems.rest.generating.cluster import cluster, webhook_of
from trimtab.systems.rest.generating.crd import crd
from trimtab.systems.rest.model import Model

MANAGER = "trimtab-rest"
CRD = Named("apiextensions.k8s.io/v1", "CustomResourceDefinition")
OURS = "rest.trimtab.dev/service"
PATIENCE = 30.0


class NotDefined(Exception):  # noqa: N818 - it reads as what is wrong
    """The kind is not served."""


class Defining:
    def __init__(self, *, manage: bool, webhooks: bool = False) -> None:
        """`webhooks`: the API server asks us over the network; beside the embedded one, admission is in it."""
        self._manage, self._webhooks = manage, webhooks

    async def define(self, client: Client, model: Model, kinds: Sequence[Model]) -> None:
        """The kind is served when this returns. Raises NotDefined."""
        if self._manage:
            await self._apply(client, model, kinds)
        await _served(client, model, patient=self._manage)

    async def _apply(self, client: Client, model: Model, kinds: Sequence[Model]) -> None:
        direct = uncached(client)
        wanted = crd(model)
        there = await _find(direct, CRD, wanted["metadata"]["name"])
        if there is None or OURS in (there.metadata.labels or {}):
            await apply(direct, Untyped(wanted), manager=MANAGER, current=there)
        for document in cluster(sorted(kinds, key=lambda each: each.plural), model.service):
            if document["kind"] != "ValidatingWebhookConfiguration" or self._webhooks:
                await apply(direct, Untyped(document), manager=MANAGER)

    async def undefine(self, client: Client, plural: str, group: str, service: str) -> None:
        """Take away the CRD, if it is ours, and with the last kind of a service, which is named then, what was granted
        for it. No object of the kind is left."""
        if not self._manage:
            return
        await _remove(client, CRD, f"{plural}.{group}")
        if service:
            for kind, name in granted(service):
                await _remove(client, kind, name)


async def _remove(client: Client, kind: Named, name: str) -> None:
    there = await _find(uncached(client), kind, name)
    if there is not None and OURS in (there.metadata.labels or {}):
        await client.delete(Ref(kind, name))


def granted(service: str) -> list[tuple[Named, str]]:
    """What `cluster` makes for a service."""
    role, binding = Named(RBAC, "ClusterRole"), Named(RBAC, "ClusterRoleBinding")
    name = f"trimtab:rest:{service}"
    webhook = Named("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    return [
        (binding, name),
        (role, name),
        (role, f"{name}:view"),
        (role, f"{name}:edit"),
        (webhook, webhook_of(service)),
    ]


async def _find(client: Client, kind: Named, name: str) -> Any:
    try:
        return await client.get(kind, name)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


async def _served(client: Client, model: Model, *, patient: bool) -> None:
    kind = Named(f"{model.group}/{model.version}", model.kind)
    try:
        async with asyncio.timeout(PATIENCE if patient else 1.0):
            while not await _answers(client, kind):  # noqa: ASYNC110 - the server says by no watch when it serves it
                await asyncio.sleep(0.1)
    except TimeoutError:
        why = f"{model.kind} of {kind.api_version} is not served here: apply what `trimtab rest generate` prints"
        raise NotDefined(why) from None


async def _answers(client: Client, kind: Named) -> bool:
    try:
        await uncached(client).list(kind, Query(metadata_only=True, fields="metadata.name=none"))
    except StatusError as error:
        if error.code == 403:
            return False  # the rights come with the same documents
        if error.code not in (404, 429, 503):
            raise
        return False
    return True
