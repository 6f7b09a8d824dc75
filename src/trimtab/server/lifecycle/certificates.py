"""Certificate requests that were approved are signed; those that nobody needs any more go.

One signer is at home here, `kubernetes.io/kube-apiserver-client`: its certificates make their holder a user of this server.
Those of kubelets fail, because there are no nodes. Signers of other names belong to others.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from trimtab.model.clock import format_time, parse_time
from trimtab.model.errors import StatusError
from trimtab.model.logs import log
from trimtab.server.builtin.certificates import APPROVED, DENIED, FAILED, GROUP
from trimtab.server.builtin.problems import at, items
from trimtab.server.registry import Served
from trimtab.server.strategy import Document
from trimtab.store.contract import Gone, Op, Query, StoreError

if TYPE_CHECKING:
    from datetime import datetime

    from trimtab.server.core import Server

CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELETS = ("kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet")
PERIOD = 3600.0
PAUSE = 1.0
DONE, PENDING = timedelta(hours=1), timedelta(hours=24)
NO_NODES = "this server has no nodes: it signs no certificates of kubelets"


class Certificates:
    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def _served(self) -> Served:
        served = self._server.registry.of_resource(GROUP, "certificatesigningrequests")
        assert served is not None  # noqa: S101 - a built-in kind
        return served

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._clean())

    async def _follow(self) -> None:
        """Sign whatever is approved, now and from now on."""
        served = self._served
        query = Query(resource=served.strategy.storage)
        while True:
            try:
                page = await self._server.store.list(query)
                for entry in page.entries:
                    await self.judge(served.decode(entry))
                async with aclosing(self._server.store.watch(query, page.revision)) as batches:
                    async for batch in batches:
                        for change in batch.changes:
                            if change.op is Op.PUT:
                                await self.judge(served.decode(change.entry))
            except Gone:
                continue  # changes were missed: all of them are looked at again
            except (StoreError, StatusError) as error:
                log.warning("certificate requests cannot be signed now", error=str(error))
                await self._server.clock.sleep(PAUSE)

    async def judge(self, request: Document) -> None:
        """Sign one request, or say why it cannot be, if it is ours and its turn has come."""
        if not waits(request):
            return
        signer, name = at(request, "spec", "signerName"), request["metadata"]["name"]
        if signer in KUBELETS:
            await self._change(name, partial(self._fail, NO_NODES))
        elif signer == CLIENT and self._server.authority is not None:
            await self._sign(name, request)

    async def _sign(self, name: str, request: Document) -> None:
        from trimtab.server.auth.signing import RequestError, client_usage_problem, read_request, signed

        spec = request["spec"]
        try:
            if problem := client_usage_problem(spec.get("usages") or ()):
                raise RequestError(problem)
            assert self._server.authority is not None  # noqa: S101 - asked before
            wanted, now = read_request(spec.get("request") or ""), self._server.clock.now()
            certificate = signed(
                self._server.authority(), wanted, spec.get("usages") or (), spec.get("expirationSeconds"), now
            )
        except RequestError as error:
            await self._change(name, partial(self._fail, str(error)))
            return
        await self._change(name, partial(_issue, base64.b64encode(certificate).decode()))

    async def _change(self, name: str, change: partial[None]) -> None:
        await self._server.acts.modify(self._served, "", name, change, subresource="status")

    def _fail(self, why: str, request: Document) -> None:
        if not waits(request):
            return
        now = format_time(self._server.clock.now())
        condition = {"type": FAILED, "status": "True", "reason": "SignerValidationFailure", "message": why}
        condition |= {"lastUpdateTime": now, "lastTransitionTime": now}
        request["status"]["conditions"] = [*items(request, "status", "conditions"), condition]

    async def _clean(self) -> None:
        while True:
            try:
                await self.sweep()
            except (StoreError, StatusError) as error:
                log.warning("old certificate requests cannot be removed now", error=str(error))
            await self._server.clock.sleep(PERIOD)

    async def sweep(self) -> int:
        """Remove what is old; returns how many."""
        served, now = self._served, self._server.clock.now()
        page = await self._server.store.list(Query(resource=served.strategy.storage))
        old = [entry.key.name for entry in page.entries if outlived(served.decode(entry), now)]
        for name in old:
            try:
                await self._server.acts.remove(served, "", name)
            except StatusError as error:
                if error.code != 404:
                    raise
        return len(old)


def _issue(certificate: str, request: Document) -> None:
    if waits(request):
        request["status"]["certificate"] = certificate


def waits(request: Document) -> bool:
    """Whether a request is approved, and neither issued nor failed."""
    types = {condition.get("type") for condition in items(request, "status", "conditions")}
    approved = APPROVED in types and not types & {DENIED, FAILED}
    return approved and not at(request, "status", "certificate") and not request["metadata"].get("deletionTimestamp")


def outlived(request: Document, now: datetime) -> bool:
    """Whether nobody needs it: issued, denied or failed for an hour, unanswered for a day, or its certificate has ended."""
    conditions = items(request, "status", "conditions")
    if not conditions:
        return parse_time(request["metadata"]["creationTimestamp"]) < now - PENDING
    certificate = at(request, "status", "certificate")
    for condition in conditions:
        ends = condition.get("type") in (DENIED, FAILED) or (condition.get("type") == APPROVED and certificate)
        updated = condition.get("lastUpdateTime")
        if ends and updated and parse_time(updated) < now - DONE:
            return True
    return bool(certificate) and _expired(certificate, now)


def _expired(certificate: str, now: datetime) -> bool:
    from cryptography import x509

    from trimtab.server.auth.signing import decoded

    try:
        return x509.load_pem_x509_certificate(decoded(certificate)).not_valid_after_utc < now
    except ValueError:
        return False  # of another signer, in a form of its own
