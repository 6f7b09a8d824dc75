"""What a changed spec leaves behind: routes and rules that are no longer wanted, and VirtualServices no longer driven.

To be called when what is wanted instead is live: traffic moves before routes go. Workloads and Services are not touched
here; when a canary goes is the run's decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.client.protocol import Client, Query
from trimtab.model.istio import DestinationRule, VirtualService
from trimtab.runtime.objects import uid_of
from trimtab.runtime.owners import controller_of
from trimtab.systems.delivery.kinds.canary import CanaryDeployment
from trimtab.systems.delivery.objects.driving import release
from trimtab.systems.delivery.objects.enforcing import Key, remove
from trimtab.systems.delivery.objects.grounds import Confirm, unasked
from trimtab.systems.delivery.objects.routing import MEMORY


async def tidy(
    client: Client, canary: CanaryDeployment, desired: Iterable[Mapping[str, Any]], *, confirm: Confirm = unasked
) -> tuple[Key, ...]:
    """Remove our VirtualServices and DestinationRules that are not among `desired`, and give back VirtualServices of
    others that the spec does not name any more. Those that there were. `confirm` is awaited before each."""
    wanted = {(document["kind"], document["metadata"]["name"]) for document in desired}
    tidied: list[Key] = []
    for kind in (VirtualService, DestinationRule):
        for found in (await client.list(kind, Query(namespace=canary.namespace))).items:
            key = (kind.__name__, found.name)
            holder = controller_of(found)
            if holder is not None and holder.uid == uid_of(canary) and key not in wanted:
                await confirm()
                await remove(client, canary, kind, found.name)
                tidied.append(key)
            elif (
                kind is VirtualService
                and MEMORY + canary.name in (found.metadata.annotations or {})
                and found.name != canary.spec.virtual_service.name
            ):
                await confirm()
                await release(client, canary, found.name)
                tidied.append(key)
    return tuple(tidied)
