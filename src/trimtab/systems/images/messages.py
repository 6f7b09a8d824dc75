"""What controllers ask workers for. A message names what to work on and holds no secret; the truth is in the resources.

A handler may see a message twice, late, or for what is gone: it looks first, and does nothing where nothing is to do.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

CATALOG = "images.catalog"
SBOMS = "images.sbom"
SCANS = "images.scan"


class Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    namespace: str
    registry: str
    registry_uid: str = ""


class CreateCatalog(Message, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """List a registry for a run. `type` and `job` are what the request came from; `only` names pushed tags."""

    type: str
    job: str
    job_uid: str
    run: str
    only: dict[str, list[str]] | None = None


class GenerateSBOM(Message, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Make the SBOM of an Image."""

    image: str
    image_uid: str
    run: str


class ScanSBOM(Message, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Make the report of an SBOM. `run` is empty where a schedule asks."""

    sbom: str
    sbom_uid: str
    run: str = ""


M = TypeVar("M", bound=Message)


class Unreadable(ValueError):  # noqa: N818 - it reads as what happened
    """A message of another version, or of nobody we know."""


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(payload: bytes, kind: type[M]) -> M:
    try:
        return msgspec.json.decode(payload, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"the message is no {kind.__name__}: {error}") from None
