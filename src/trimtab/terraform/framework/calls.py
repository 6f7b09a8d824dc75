"""What all calls share: reading their values, running the provider's code, and telling what went wrong.

Whatever the provider's code raises becomes a diagnostic; what a peer sends that no Terraform would is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from trimtab.terraform.framework.context import Context
from trimtab.terraform.framework.diagnostics import ERROR, Diagnostic, Failed
from trimtab.terraform.framework.encoding import dynamic_value, read_dynamic
from trimtab.terraform.framework.offers import Offer
from trimtab.terraform.framework.paths import Path
from trimtab.terraform.framework.placing import source_path
from trimtab.terraform.framework.shaping import Misfit, shaped
from trimtab.terraform.framework.types import Type
from trimtab.terraform.protocol.contract import InvalidRequest

Message = dict[str, Any]


def received(request: Message, field: str, type_: Type) -> Any:
    """A value of the request; null where it was not sent."""
    try:
        return read_dynamic(request.get(field), type_)
    except Misfit as misfit:
        raise InvalidRequest(f"{field}: {misfit}") from None


def received_object(request: Message, field: str, type_: Type) -> dict[str, Any]:
    value = received(request, field, type_)
    if not isinstance(value, dict):
        raise InvalidRequest(f"{field} must be an object")
    return value


def is_null(request: Message, field: str) -> bool:
    """Whether there is nothing, without reading what there is."""
    message = request.get(field) or {}
    return message.get("msgpack") in (None, b"", b"\xc0") and message.get("json") in (None, b"", b"null")


def sent(value: Any, type_: Type) -> Message:
    """A DynamicValue of a value that the framework has made or checked."""
    return dynamic_value(value, type_)


def fitted(value: Any, type_: Type, what: str) -> Any:
    """What the provider's code returned; Failed, with the place, where it is not of its type."""
    try:
        return shaped(value, type_)
    except Misfit as misfit:
        place = misfit.path if misfit.path.steps else None
        raise Failed(f"The provider returned {what} that does not fit its schema", str(misfit), place) from None


def private_of(data: bytes | None) -> dict[str, Any]:
    """Private state. What another provider wrote, or an older one, is nothing that we could use."""
    if not data:
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def private_bytes(private: dict[str, Any]) -> bytes:
    return json.dumps(private, separators=(",", ":"), sort_keys=True).encode() if private else b""


@contextlib.contextmanager
def guarded(context: Context) -> Iterator[None]:
    """The provider's code: what it raises ends the operation and is told."""
    try:
        yield
    except Failed as failed:
        context.diagnostics.items.append(failed.diagnostic)
    except InvalidRequest:
        raise
    except Exception as error:
        import traceback  # half of what this package costs to load, and rarely used

        context.log("error", "the provider failed", traceback=traceback.format_exc())
        context.error("The provider failed", f"{type(error).__name__}: {error}")


def told(context: Context, offer: Offer[Any] | None = None) -> list[Message]:
    """The diagnostics, each with a place that Terraform can find."""
    messages = []
    for item in context.diagnostics.items:
        message = item.message()
        if offer is not None and item.path is not None:
            message["attribute"] = source_path(offer.schema, item.path)
        messages.append(message)
    return messages


def faults(context: Context, summary: str, found: Iterator[tuple[Path, str]]) -> None:
    """At most ten: more of them say nothing more."""
    for _, (place, text) in zip(range(10), found, strict=False):
        context.diagnostics.items.append(Diagnostic(ERROR, summary, f"{place} {text}.", place))
