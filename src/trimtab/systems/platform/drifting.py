"""Whether an object on a cluster is another than what was applied: the cluster itself is asked, by an apply that is not done.

Its answer knows of defaults, of what others own, and of values that are written in two ways. A cluster that cannot answer
without doing it (a webhook with side effects) is judged by what was declared: all of that must be there.
"""

from __future__ import annotations

from typing import Any

from trimtab.client.api import ApiClient
from trimtab.model.document import equal
from trimtab.model.errors import StatusError
from trimtab.model.scheme import Untyped
from trimtab.runtime.inventory.plan import Step

MANAGER = "platform.trimtab.dev"
BOOKKEEPING = ("managedFields", "resourceVersion", "generation")


async def differs(target: ApiClient, step: Step) -> bool:
    """Whether applying what is declared would change what is there."""
    if step.declared is None or step.live is None:
        return True
    metadata = {**step.declared["metadata"], "uid": step.live["metadata"]["uid"]}
    meant = Untyped({**step.declared, "metadata": metadata})
    try:
        would = await target.apply(meant, manager=MANAGER, force=True, dry_run=True)
    except StatusError as error:
        if error.code not in (400, 409, 422):
            raise
        return not within(step.declared, step.live)
    return not equal(essence(dict(would.raw or {})), essence(step.live))


def essence(document: dict[str, Any]) -> dict[str, Any]:
    """Without what a server keeps for itself."""
    metadata = {name: value for name, value in document["metadata"].items() if name not in BOOKKEEPING}
    return {**document, "metadata": metadata}


def within(declared: Any, live: Any) -> bool:
    """Whether all that is declared is so; more may be there. What is empty need not be."""
    if isinstance(declared, dict):
        if not isinstance(live, dict):
            return not declared
        return all(within(value, live.get(name)) for name, value in declared.items())
    if isinstance(declared, list):
        if not isinstance(live, list):
            return not declared
        return len(declared) <= len(live) and all(any(within(item, held) for held in live) for item in declared)
    return declared is None or equal(declared, live)
