"""The whole file of a server's kinds: definitions, and the schema that Terraform asks for, encoded ahead of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trimtab.terraform.framework.serving import FrameworkServer
from trimtab.terraform.kinds.catalog import definitions
from trimtab.terraform.kinds.definition import Definition
from trimtab.terraform.kinds.hints import Hints
from trimtab.terraform.kinds.naming import SUFFIX
from trimtab.terraform.kinds.promises import NO_PROMISES, Promises
from trimtab.terraform.kinds.provider import TrimtabProvider
from trimtab.terraform.kinds.served import Get
from trimtab.terraform.kinds.snapshot import Kinds, snapshot_bytes
from trimtab.terraform.protocol.contract import Encoded
from trimtab.terraform.protocol.messages import METHODS
from trimtab.terraform.protocol.wire import encode


def taken(
    get: Get,
    hints: Mapping[tuple[str, str], Hints] | None = None,
    suffix: str = SUFFIX,
    promised: Promises = NO_PROMISES,
) -> bytes:
    """A snapshot of the server that answers `get`; write it with `snapshot.write_snapshot`."""
    return precomputed(definitions(get, hints, suffix, promised))


def precomputed(kinds: Iterable[Definition]) -> bytes:
    known = list(kinds)
    return snapshot_bytes(known, encoded_schema(known))


def encoded_schema(kinds: Iterable[Definition]) -> bytes:
    """The answer to GetProviderSchema as it goes over the wire."""
    answer = FrameworkServer(TrimtabProvider(Kinds(kinds))).call("GetProviderSchema", {})
    if isinstance(answer, Encoded):
        return answer.data
    if problems := answer.get("diagnostics"):
        raise ValueError(f"the schemas cannot be served: {problems[0].get('detail') or problems[0].get('summary')}")
    return encode(answer, METHODS["GetProviderSchema"][1])
