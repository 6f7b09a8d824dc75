"""Whether an object fits into a quota, and what the quota says afterwards. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.model.kind import Kind
from trimtab.model.quantity import Quantity
from trimtab.server.quota.amounts import Amounts, added, amounts_of, listed, only
from trimtab.server.quota.scopes import in_scope
from trimtab.server.quota.usage import is_pod, names_used, unsaid

Document = Mapping[str, Any]


class TooMuch(Exception):  # noqa: N818 - it reads as what happened
    """Why an object is refused."""


def concerns(quota: Document, kind: Kind, document: Document) -> bool:
    """Whether a quota is for this object, by what it limited when it was last counted."""
    hard = (quota.get("status") or {}).get("hard") or {}
    return bool(names_used(kind, hard)) and in_scope(quota.get("spec") or {}, kind, document)


def charged(quota: Document, kind: Kind, document: Document, increase: Amounts) -> dict[str, Quantity] | None:
    """What is used with this increase; None when that is as before. Raises TooMuch."""
    name, status = quota["metadata"]["name"], quota.get("status") or {}
    hard, used = amounts_of(status.get("hard")), amounts_of(status.get("used"))
    wanted = names_used(kind, hard)
    if is_pod(kind) and (why := unsaid(document, wanted)):
        raise TooMuch(f"failed quota: {name}: {why}")
    if wanted - used.keys():
        raise TooMuch(f"status unknown for quota: {name}, resources: {','.join(sorted(wanted))}")
    asked = {resource: amount for resource, amount in only(increase, hard.keys()).items() if amount}
    if not asked:
        return None
    after = added(used, asked)
    over = [resource for resource in asked if after[resource] > hard[resource]]
    if over:
        requested, before, limited = (listed(only(amounts, over)) for amounts in (asked, used, hard))
        raise TooMuch(f"exceeded quota: {name}, requested: {requested}, used: {before}, limited: {limited}")
    return after
