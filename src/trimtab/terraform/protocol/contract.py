"""What a provider is to the protocol: a thing that answers a method's request.

Requests and answers are plain dicts keyed by the field names of Terraform's protocol 6: messages are dicts, repeated fields
lists, maps dicts, enums ints, bytes bytes. An absent field is an absent key; nothing is filled in. `Encoded` may stand
where a message may, so that a large schema that was encoded once is sent as it is.
"""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Encoded", "InvalidRequest", "Message", "ProviderServer", "Unimplemented"]


class Encoded:
    """A message that is in its wire form already."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoded) and other.data == self.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __repr__(self) -> str:
        return f"Encoded({len(self.data)} bytes)"


Message = dict[str, Any]


class Unimplemented(Exception):  # noqa: N818
    """This server has no such method; Terraform is told so and does without."""


class InvalidRequest(Exception):  # noqa: N818
    """The request says what no client may say; it gets gRPC's INVALID_ARGUMENT, and the server lives on."""


class ProviderServer(Protocol):
    """Safe to call from many threads at once: Terraform runs ten operations side by side."""

    def call(self, method: str, request: Message) -> Message | Encoded:
        """`method` is the bare name, such as "PlanResourceChange". Raises Unimplemented for one it does not know."""

    def stop(self) -> None:
        """Terraform was interrupted: calls that run should end soon. Returns at once."""
