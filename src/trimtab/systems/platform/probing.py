"""What a cluster tells of itself: its version, whether it is well, and which one it is."""

from __future__ import annotations

from trimtab.client.api import ApiClient
from trimtab.client.transport import FAILURES, Call, document_of
from trimtab.model.errors import StatusError
from trimtab.model.kubernetes import Namespace
from trimtab.runtime.objects import uid_of
from trimtab.systems.platform.faults import Fault, of_call

VERSION_MAX = 64


async def probe(target: ApiClient) -> tuple[str, str]:
    """The version of its Kubernetes, and the uid that tells it from others. Fault when it does not answer, or not well."""
    try:
        version = document_of((await target.transport.call(Call(method="GET", path="/version"))).body)
        await _healthy(target)
        return str(version.get("gitVersion") or "")[:VERSION_MAX], await _uid(target)
    except FAILURES as error:
        raise of_call(error) from None


async def _healthy(target: ApiClient) -> None:
    """Fault when its API says of itself that it is not well. One that does not say is."""
    try:
        await target.transport.call(Call(method="GET", path="/readyz", accept="*/*"))
    except StatusError as error:
        if error.code >= 500:
            raise Fault("NotHealthy", f"its API says that it is not ready: {error.message}") from None


async def _uid(target: ApiClient) -> str:
    """Of a namespace that every cluster has; "" for one that does not have or does not show it."""
    try:
        return uid_of(await target.get(Namespace, "kube-system"))
    except StatusError as error:
        if error.code not in (403, 404):
            raise
        return ""
