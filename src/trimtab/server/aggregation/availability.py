"""Whether the API server behind an APIService answers, in the words of the real aggregator."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import orjson

from trimtab.server import resolving
from trimtab.server.aggregation.remote import MAX_DOCUMENT, OURSELVES, Remote, bounded, failures, shown, told, why
from trimtab.server.aggregation.services import ApiService
from trimtab.server.strategy import Document
from trimtab.store.contract import Store

ATTEMPTS = 5
PATIENCE = 5.0  # seconds


class Verdict(NamedTuple):
    """The condition `Available`, and what the server said it serves (an APIResourceList)."""

    status: str
    reason: str
    message: str
    resources: Document | None = None

    def write(self, document: Document, now: str) -> None:
        """Into the status. The time is that of the last change between True and False."""
        conditions = document.setdefault("status", {}).get("conditions") or []
        old = next((each for each in conditions if each.get("type") == "Available"), None)
        since = old["lastTransitionTime"] if old is not None and old.get("status") == self.status else now
        made = {
            "type": "Available",
            "status": self.status,
            "lastTransitionTime": since,
            "reason": self.reason,
            "message": self.message,
        }
        kept = [each for each in conditions if each is not old]
        document["status"]["conditions"] = (
            [*kept, made] if old is None else [made if c is old else c for c in conditions]
        )


async def check(store: Store, remote: Remote, service: ApiService) -> Verdict:
    """Look for the Service and its Endpoints, then ask what must be served. Never raises because of the other side."""
    where = f'service/{service.service} in "{service.namespace}"'
    found = await resolving.document(store, "services", service.namespace, service.service)
    if found is None:
        return Verdict("False", "ServiceNotFound", f"{where} is not present")
    spec = found.get("spec") or {}
    if spec.get("type", "ClusterIP") == "ClusterIP":
        name = next((each.get("name", "") for each in spec.get("ports") or () if each["port"] == service.port), None)
        if name is None:
            return Verdict("False", "ServicePortError", f"{where} is not listening on port {service.port}")
        endpoints = await resolving.document(store, "endpoints", service.namespace, service.service)
        if endpoints is None:
            return Verdict("False", "EndpointsNotFound", f"cannot find endpoints for {where}")
        if not resolving.ready(endpoints, name):
            message = f'endpoints for {where} have no addresses with port name "{name}"'
            return Verdict("False", "MissingEndpoints", message)
    try:
        addresses = (await remote.addresses(service))[:ATTEMPTS]
    except LookupError as error:
        return Verdict("False", "FailedDiscoveryCheck", str(error.args[0]))
    answers = await asyncio.gather(*(_asked(remote, service, address) for address in addresses))
    good = next((answer for answer in answers if not isinstance(answer, str)), None)
    if good is None:
        return Verdict("False", "FailedDiscoveryCheck", str(answers[-1]))
    return Verdict("True", "Passed", "all checks passed", good)


async def _asked(remote: Remote, service: ApiService, address: resolving.Address) -> Document | str:
    """What it serves, or what is wrong. Its certificate is not judged: that is said to each request."""
    url = shown(address, service.path)
    try:
        async with asyncio.timeout(PATIENCE):
            headers = [("Accept", "application/json"), *told(OURSELVES)]
            response = await remote.send(service, address, "GET", service.path, headers, verified=False)
            async with response:
                if not 200 <= response.status < 300:
                    return f"failing or missing response from {url}: bad status from {url}: {response.status}"
                document = orjson.loads(await bounded(response, MAX_DOCUMENT))
    except Exception as error:
        if not isinstance(error, (*failures(), ValueError)):
            raise
        return f'failing or missing response from {url}: Get "{url}": {why(error)}'
    return document if isinstance(document, dict) else {}
